//! A 0/1 program, free of any solver's format.

use crate::ModelSize;

/// Index of a 0/1 variable.
pub(super) type Variable = u32;

/// A variable, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Literal {
    pub(super) variable: Variable,
    pub(super) negated: bool,
}

impl Literal {
    pub(super) fn is(variable: Variable) -> Self {
        Self {
            variable,
            negated: false,
        }
    }

    pub(super) fn not(variable: Variable) -> Self {
        Self {
            variable,
            negated: true,
        }
    }
}

/// `sum of coefficient * variable <= most`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) terms: Vec<(Variable, i64)>,
    pub(super) most: i64,
}

/// Minimize a sum over 0/1 variables.
#[derive(Clone, Default, Debug)]
pub(super) struct Program {
    /// Price of each variable.
    pub(super) cost: Vec<i64>,
    /// At least one literal of each is true.
    pub(super) clauses: Vec<Vec<Literal>>,
    /// At most one variable of each pair is true.
    pub(super) exclusions: Vec<(Variable, Variable)>,
    /// Linear constraints.
    pub(super) rows: Vec<Row>,
}

impl Program {
    pub(super) fn variable(&mut self, cost: i64) -> Variable {
        self.cost.push(cost);
        u32::try_from(self.cost.len() - 1).expect("the number of terms is limited below 2^32")
    }

    pub(super) fn size(&self) -> ModelSize {
        let literals: usize = self.clauses.iter().map(Vec::len).sum();
        let terms: usize = self.rows.iter().map(|row| row.terms.len()).sum();
        ModelSize {
            booleans: self.cost.len(),
            largest_domain: 2,
            constraints: self.clauses.len() + self.exclusions.len() + self.rows.len(),
            terms: literals + 2 * self.exclusions.len() + terms,
            ..ModelSize::default()
        }
    }
}
