//! A 0/1 program as a mixed-integer program in floating point.

use super::program::{Literal, Program};
use crate::cpsat::Answer;
use crate::milp;
use crate::run::Clock;

/// Which solver works on the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MipSolver {
    Highs,
    Scip,
}

/// Minimizes the cost of the program; `improved` is told of every better solution with its objective and the bound.
pub(super) fn minimize(
    program: &Program,
    solver: MipSolver,
    hint: Option<&[bool]>,
    clock: &Clock<'_>,
    improved: &mut dyn FnMut(&[i64], i64, i64),
) -> Answer {
    if let Some(ended) = clock.ended() {
        return Answer {
            ended,
            solution: None,
            bound: 0,
            conflicts: 0,
        };
    }
    let start = hint.map(|hint| hint.iter().map(|&on| if on { 1.0 } else { 0.0 }).collect());
    // Costs are integers.
    let limits = milp::highs::Limits { absolute_gap: 0.99 };
    let mut best = None;
    let mut rounded = |solution: &[f64], bound: f64| {
        let on: Vec<i64> = solution.iter().map(|&value| i64::from(value > 0.5)).collect();
        let objective = program.cost.iter().zip(&on).map(|(cost, on)| cost * on).sum();
        improved(&on, objective, milp::certain(bound).min(objective));
        best = Some(on);
    };
    let model = self::program(program);
    let solve = match solver {
        MipSolver::Highs => milp::highs::minimize(model, start, limits, clock),
        MipSolver::Scip => milp::scip::minimize(model),
    };
    let (ended, bound) = solve.finish(clock, &mut rounded);
    Answer {
        ended,
        solution: best,
        bound: milp::certain(bound),
        conflicts: 0,
    }
}

/// The program with one row for each constraint: clauses, exclusions, limits.
pub(crate) fn program(program: &Program) -> milp::Program {
    let mut rows = milp::Rows::default();
    for clause in &program.clauses {
        let negated = clause.iter().filter(|literal| literal.negated).count();
        let terms = clause
            .iter()
            .map(|&Literal { variable, negated }| (variable, if negated { -1.0 } else { 1.0 }));
        rows.push(terms, 1.0 - negated as f64, f64::INFINITY);
    }
    for &(a, b) in &program.exclusions {
        rows.push([(a, 1.0), (b, 1.0)], f64::NEG_INFINITY, 1.0);
    }
    for limit in &program.rows {
        let terms = limit
            .terms
            .iter()
            .map(|&(variable, coefficient)| (variable, coefficient as f64));
        rows.push(terms, f64::NEG_INFINITY, limit.most as f64);
    }
    let columns = program
        .cost
        .iter()
        .zip(&program.upper)
        .map(|(&cost, &upper)| milp::Column {
            cost: cost as f64,
            lower: 0.0,
            upper: upper as f64,
            integer: upper == 1,
        });
    milp::Program {
        columns: columns.collect(),
        rows,
    }
}
