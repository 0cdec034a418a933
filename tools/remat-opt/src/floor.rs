//! The peak that no plan undercuts, in words.

use remat::plan::Problem;
use remat::solver::LeastPeak;
use remat_files::shown;

/// What needs the bytes of a least peak: one op, or what stays to the end.
pub(crate) fn needed_for(problem: &Problem, least: &LeastPeak) -> String {
    match least.op {
        Some(op) => format!("op `{}`", shown(&problem.ops[op].name)),
        None => "the results that stay".to_owned(),
    }
}
