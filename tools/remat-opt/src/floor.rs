//! The peak that no plan undercuts, in words.

use remat::plan::Problem;
use remat::solver::LeastPeak;
use remat_files::shown;

/// What needs the bytes of a least peak: one op, what stays to the end, or every order.
pub(crate) fn needed_for(problem: &Problem, least: &LeastPeak) -> String {
    match least.op {
        Some(op) => format!("op `{}`", shown(&problem.ops[op].name)),
        None if least.is_of_orders => "the best order, each op once".to_owned(),
        None => "the results that stay".to_owned(),
    }
}
