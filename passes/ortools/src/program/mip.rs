//! A 0/1 program as a mixed-integer program in floating point.

use super::rounded::{Countable, LARGEST};
use super::{Literal, Program};
use crate::clock::{Clock, Ended};
use crate::milp;

/// By how much HiGHS, as it is set, lets a row be violated.
pub(super) const TOLERANCE: f64 = 1e-6;

/// What HiGHS says of a program. Nothing of it is proved.
pub(super) struct Said {
    pub(super) ended: Ended,
    /// No solution costs less, if it is right within its tolerance.
    pub(super) bound: i64,
}

/// Minimizes the cost of a program; `improved` is told of every better solution with its cost.
pub(super) fn minimize(
    program: &Countable<'_>,
    start: Option<Vec<i64>>,
    clock: &Clock<'_>,
    improved: &mut dyn FnMut(&[i64], i64),
) -> Said {
    if let Some(ended) = clock.ended() {
        return Said { ended, bound: 0 };
    }
    let cost = &program.program.cost;
    let mut rounded = |solution: &[f64], _: f64| {
        let on: Vec<i64> = solution.iter().map(|&value| i64::from(value > 0.5)).collect();
        let objective = cost.iter().zip(&on).map(|(cost, on)| cost * on).sum();
        improved(&on, objective);
    };
    let start = start.map(|start| start.iter().map(|&value| value as f64).collect());
    let model = self::program(&program.program);
    let price = model.price;
    // Costs are integers.
    let limits = milp::highs::Limits {
        absolute_gap: 0.99 / price,
    };
    let solve = milp::highs::minimize(model, start, limits, clock);
    let (ended, bound) = solve.finish(clock, &mut rounded);
    Said {
        ended,
        bound: milp::certain(bound * price),
    }
}

/// The program with one row for each constraint: clauses, exclusions, limits. Rows are as large as they are: what is not
/// [`Program::rounded`] may be more than the solver can count. Costs are counted in a power of two, which changes no digit of them.
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
    let most = program.cost.iter().copied().max().unwrap_or(0);
    let mut price = 1.0;
    while most as f64 / price > LARGEST as f64 {
        price *= 2.0;
    }
    let columns = program
        .cost
        .iter()
        .zip(&program.upper)
        .map(|(&cost, &upper)| milp::Column {
            cost: cost as f64 / price,
            lower: 0.0,
            upper: upper as f64,
            integer: upper == 1,
        });
    milp::Program {
        price,
        columns: columns.collect(),
        rows,
    }
}
