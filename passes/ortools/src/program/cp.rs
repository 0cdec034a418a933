//! A 0/1 program on CP-SAT.

use crate::messages::{
    BoolArgumentProto, Constraint, ConstraintProto, CpModelProto, CpObjectiveProto, IntegerVariableProto,
    LinearConstraintProto, PartialVariableAssignment, SatParameters,
};

use remat_solve::SolveControl;

use super::{Literal, Program, Variable};
use crate::clock::{Clock, Ended};
use crate::cpsat::{self, Answer};

/// What CP-SAT is asked for.
pub(crate) struct Search<'a> {
    pub(crate) program: &'a Program,
    pub(crate) parameters: SatParameters,
    /// A solution, or part of one, to start from.
    pub(crate) hint: Option<&'a [i64]>,
    /// A bound on the cost that is proved.
    pub(crate) lower: i64,
    /// Only solutions that cost less than this count.
    pub(crate) below: Option<i64>,
}

impl Search<'_> {
    /// Minimizes the cost of the program; `improved` is told of every better solution with its cost and the bound.
    ///
    /// Sizes are rounded where they are too large for CP-SAT ([`super::rounded`]). If the best solution then exceeds a limit with exact sizes,
    /// a clause says so, and the search is repeated: so the answer is one about the program as it is, unless that has too many terms.
    pub(crate) fn minimize(&self, clock: &Clock<'_>, improved: &mut dyn FnMut(&[i64], i64, i64)) -> Answer {
        let counted = self.program.counted();
        let hint = self.hint.map(|hint| counted.solution(self.program, hint));
        let mut program = counted.program.into_owned();
        let (mut lower, mut conflicts) = (self.lower, 0);
        loop {
            let mut model = model(&program, hint.as_deref());
            if let (Some(objective), Some(below)) = (&mut model.objective, self.below) {
                objective.domain = vec![lower, below - 1];
            }
            let mut last = None;
            let mut remember = |solution: &[i64], cost: i64, bound: i64| {
                last = Some(solution.to_vec());
                improved(solution, cost, bound);
            };
            let parameters = self.parameters.clone();
            let mut answer = cpsat::minimize_with(model, parameters, lower, clock, &mut remember);
            conflicts += answer.conflicts;
            answer.conflicts = conflicts;
            let exact = counted.exact.as_ref().filter(|_| answer.ended == Ended::Optimal);
            let clauses = exact
                .zip(last)
                .map_or_else(Vec::new, |(exact, last)| exact.excluded(&last));
            if clauses.is_empty() {
                return answer;
            }
            tracing::debug!(
                clauses = clauses.len(),
                "the best solution exceeds a limit by what was rounded"
            );
            program.clauses.extend(clauses);
            lower = lower.max(answer.bound);
        }
    }
}

/// The model, with a solution or part of one to start from.
fn model(program: &Program, hint: Option<&[i64]>) -> CpModelProto {
    let clauses = program
        .clauses
        .iter()
        .map(|clause| bools(Constraint::BoolOr, clause.iter().copied()));
    let pairs = program.exclusions.iter();
    let exclusions = pairs.map(|&(a, b)| bools(Constraint::AtMostOne, [Literal::is(a), Literal::is(b)].into_iter()));
    let rows = program.rows.iter().map(|row| {
        constraint(Constraint::Linear(LinearConstraintProto {
            vars: row.terms.iter().map(|&(variable, _)| index(variable)).collect(),
            coeffs: row.terms.iter().map(|&(_, coefficient)| coefficient).collect(),
            domain: vec![i64::MIN, row.most],
        }))
    });
    let variables = program.upper.iter().map(|&upper| IntegerVariableProto {
        name: String::new(),
        domain: vec![0, upper],
    });
    let priced = || program.cost.iter().zip(0..).filter(|&(&cost, _)| cost != 0);
    CpModelProto {
        variables: variables.collect(),
        constraints: clauses.chain(exclusions).chain(rows).collect(),
        objective: Some(CpObjectiveProto {
            vars: priced().map(|(_, variable)| index(variable)).collect(),
            coeffs: priced().map(|(&cost, _)| cost).collect(),
            ..CpObjectiveProto::default()
        }),
        solution_hint: hint.map(|hint| PartialVariableAssignment {
            vars: (0..).take(hint.len()).collect(),
            values: hint.to_vec(),
        }),
    }
}

/// What proves the optimum of a gap model fastest: its linear relaxation is strong, so tree search on the bound and a full linear
/// program beat the default portfolio.
pub(crate) fn parameters(control: &SolveControl<'_>) -> SatParameters {
    SatParameters {
        subsolvers: vec!["lb_tree_search".to_owned(), "max_lp".to_owned()],
        // One thread takes turns between the two; so do more, but there the turns follow the clock.
        interleave_search: Some(control.threads <= 1),
        linearization_level: Some(2),
        ..cpsat::parameters(control)
    }
}

/// What proves fastest that a relaxation has no solution below a limit: there the search has to rule out, not to find.
pub(crate) fn rerun_parameters(control: &SolveControl<'_>) -> SatParameters {
    SatParameters {
        subsolvers: vec!["pseudo_costs".to_owned(), "reduced_costs".to_owned()],
        ..parameters(control)
    }
}

fn index(variable: Variable) -> i32 {
    i32::try_from(variable).expect("formulations refuse programs that large")
}

fn bools(kind: fn(BoolArgumentProto) -> Constraint, literals: impl Iterator<Item = Literal>) -> ConstraintProto {
    let literals = literals.map(|literal| {
        let index = index(literal.variable);
        if literal.negated { -index - 1 } else { index }
    });
    constraint(kind(BoolArgumentProto {
        literals: literals.collect(),
    }))
}

fn constraint(constraint: Constraint) -> ConstraintProto {
    ConstraintProto {
        constraint: Some(constraint),
        ..ConstraintProto::default()
    }
}
