//! A 0/1 program, free of any solver's format; what hands it to a solver, and what proves bounds on it.

pub(crate) mod cp;
pub mod linear;
pub(crate) mod mip;
pub(crate) mod proof;
pub(crate) mod rounded;
pub mod task;

use crate::ModelSize;

pub use rounded::LARGEST;

/// Index of a 0/1 variable.
pub type Variable = u32;

/// A variable, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal {
    /// Its index.
    pub variable: Variable,
    /// Whether it is true where the variable is 0.
    pub negated: bool,
}

impl Literal {
    /// True where the variable is 1.
    #[must_use]
    pub fn is(variable: Variable) -> Self {
        Self {
            variable,
            negated: false,
        }
    }

    /// True where the variable is 0.
    #[must_use]
    pub fn not(variable: Variable) -> Self {
        Self {
            variable,
            negated: true,
        }
    }
}

/// `sum of coefficient * variable <= most`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Variables and their coefficients.
    pub terms: Vec<(Variable, i64)>,
    /// The right side.
    pub most: i64,
}

impl Row {
    /// By how much values exceed it.
    pub(crate) fn excess(&self, values: &[f64]) -> f64 {
        let products = self
            .terms
            .iter()
            .map(|&(variable, coefficient)| values[variable as usize] * coefficient as f64);
        products.sum::<f64>() - self.most as f64
    }
}

/// Minimize a sum over 0/1 variables. Solvers number variables and terms in `i32`: each formulation refuses what comes near that.
#[derive(Clone, Default, Debug)]
pub struct Program {
    /// Price of each variable.
    pub cost: Vec<i64>,
    /// The largest value of each variable; 1 but for those made by [`Self::bounded`].
    pub upper: Vec<i64>,
    /// At least one literal of each is true.
    pub clauses: Vec<Vec<Literal>>,
    /// At most one variable of each pair is true.
    pub exclusions: Vec<(Variable, Variable)>,
    /// Linear constraints.
    pub rows: Vec<Row>,
}

impl Program {
    /// A 0/1 variable.
    pub fn variable(&mut self, cost: i64) -> Variable {
        self.push(cost, 1)
    }

    /// An integer from 0 to `most` that costs nothing; it stands for a sum.
    pub fn bounded(&mut self, most: i64) -> Variable {
        self.push(0, most)
    }

    fn push(&mut self, cost: i64, most: i64) -> Variable {
        self.cost.push(cost);
        self.upper.push(most);
        u32::try_from(self.cost.len() - 1).expect("formulations refuse programs that large")
    }

    /// Whether these values of all variables are a solution.
    #[must_use]
    pub fn is_met(&self, values: &[i64]) -> bool {
        let at = |variable: Variable| values.get(variable as usize).copied().unwrap_or(0);
        let within = values
            .iter()
            .zip(&self.upper)
            .all(|(value, upper)| (0..=*upper).contains(value));
        let is_true = |literal: &Literal| (at(literal.variable) != 0) != literal.negated;
        let sum = |row: &Row| {
            row.terms
                .iter()
                .map(|&(variable, factor)| factor * at(variable))
                .sum::<i64>()
        };
        values.len() == self.cost.len()
            && within
            && self.clauses.iter().all(|clause| clause.iter().any(is_true))
            && self.exclusions.iter().all(|&(a, b)| at(a) + at(b) <= 1)
            && self.rows.iter().all(|row| sum(row) <= row.most)
    }

    /// How many variables cost something.
    pub(crate) fn priced(&self) -> usize {
        self.cost.iter().filter(|&&cost| cost > 0).count()
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> ModelSize {
        let literals: usize = self.clauses.iter().map(Vec::len).sum();
        let terms: usize = self.rows.iter().map(|row| row.terms.len()).sum();
        let integers = self.upper.iter().filter(|&&upper| upper != 1).count();
        let largest = self.upper.iter().copied().max().unwrap_or(1).max(1);
        ModelSize {
            integers,
            booleans: self.cost.len() - integers,
            largest_domain: usize::try_from(largest).map_or(usize::MAX, |largest| largest.saturating_add(1)),
            constraints: self.clauses.len() + self.exclusions.len() + self.rows.len(),
            terms: literals + 2 * self.exclusions.len() + terms,
            ..ModelSize::default()
        }
    }

    /// The program with some variables fixed. Rows that hold whatever the others are, are left out. `None` if it has no solution.
    pub(crate) fn with(&self, fixed: &[Option<bool>]) -> Option<Reduced> {
        let mut program = Self::default();
        let mut base = 0;
        let mut place: Vec<Option<Variable>> = Vec::with_capacity(self.cost.len());
        for ((&cost, &upper), &fixed) in self.cost.iter().zip(&self.upper).zip(fixed) {
            place.push(match fixed {
                None => Some(program.push(cost, upper)),
                Some(on) => {
                    base += if on { cost } else { 0 };
                    None
                }
            });
        }
        for clause in &self.clauses {
            let is_true = |literal: &Literal| fixed[literal.variable as usize] == Some(!literal.negated);
            if clause.iter().any(is_true) {
                continue;
            }
            let left: Vec<Literal> = clause
                .iter()
                .filter_map(|&Literal { variable, negated }| {
                    let variable = place[variable as usize]?;
                    Some(Literal { variable, negated })
                })
                .collect();
            if left.is_empty() {
                return None;
            }
            program.clauses.push(left);
        }
        for &(a, b) in &self.exclusions {
            match (place[a as usize], place[b as usize]) {
                (Some(a), Some(b)) => program.exclusions.push((a, b)),
                (Some(free), None) if fixed[b as usize] == Some(true) => program.clauses.push(vec![Literal::not(free)]),
                (None, Some(free)) if fixed[a as usize] == Some(true) => program.clauses.push(vec![Literal::not(free)]),
                (None, None) if fixed[a as usize] == Some(true) && fixed[b as usize] == Some(true) => return None,
                _ => {}
            }
        }
        for row in &self.rows {
            let mut most = row.most;
            let mut terms = Vec::with_capacity(row.terms.len());
            for &(variable, coefficient) in &row.terms {
                match place[variable as usize] {
                    Some(variable) => terms.push((variable, coefficient)),
                    None if fixed[variable as usize] == Some(true) => most -= coefficient,
                    None => {}
                }
            }
            let sum = |part: fn(i64) -> i64| -> i64 {
                let values = terms
                    .iter()
                    .map(|&(variable, coefficient)| part(coefficient) * program.upper[variable as usize]);
                values.sum()
            };
            if sum(|coefficient| coefficient.min(0)) > most {
                return None;
            }
            if sum(|coefficient| coefficient.max(0)) > most {
                program.rows.push(Row { terms, most });
            }
        }
        let fixed = fixed.iter().map(|&value| value == Some(true)).collect();
        Some(Reduced {
            program,
            place,
            fixed,
            base,
        })
    }
}

/// What is left of a program when variables are fixed.
pub(crate) struct Reduced {
    pub(crate) program: Program,
    /// For each variable of the whole program that of the reduced one; absent where it is fixed.
    place: Vec<Option<Variable>>,
    /// Which variables are fixed to 1.
    fixed: Vec<bool>,
    /// The cost of what is fixed.
    pub(crate) base: i64,
}

impl Reduced {
    /// The values of all variables of the whole program in a solution of this one.
    pub(crate) fn whole(&self, solution: &[i64]) -> Vec<i64> {
        let value = |(place, &fixed): (&Option<Variable>, &bool)| match place {
            Some(variable) => solution.get(*variable as usize).copied().unwrap_or(0),
            None => i64::from(fixed),
        };
        self.place.iter().zip(&self.fixed).map(value).collect()
    }
}
