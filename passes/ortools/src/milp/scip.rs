//! Mixed-integer programs on SCIP, through MathOpt. There is no way to hand it a solution to start from, and it tells of one only in
//! the end. Nor can it be stopped: past the deadline its thread is left behind, and works on until it is done. So large
//! programs are not given to it.

use super::Program;
use super::highs_capi::Outcome;
use super::mathopt::{FEASIBLE, INFEASIBLE, INFEASIBLE_OR_UNBOUNDED, NO_SOLUTION_FOUND, OPTIMAL, model};
use super::mathopt_capi::solve;
use super::watch::{Message, Solve};

/// Programs with more terms than this may take SCIP many minutes.
const MAX_TERMS: usize = 200_000;

/// Minimizes; all columns must be bounded.
pub(crate) fn minimize(program: Program) -> Solve {
    Solve::start(move |send, _| {
        let failed = (Outcome::Failed, f64::NEG_INFINITY);
        if program.rows.columns.len() > MAX_TERMS {
            tracing::warn!(
                terms = program.rows.columns.len(),
                limit = MAX_TERMS,
                "too large for a solver that cannot be stopped"
            );
            return failed;
        }
        let result = match solve(&model(&program)) {
            Ok(result) => result,
            Err(message) => {
                tracing::error!(message, "SCIP fails");
                return failed;
            }
        };
        let Some(termination) = &result.termination else {
            return failed;
        };
        let bound = termination.objective_bounds.as_ref();
        let bound = bound.map_or(f64::NEG_INFINITY, |bounds| bounds.dual_bound);
        if let Some(solution) = result.best(program.columns.len()) {
            // Nobody listens any more where the thread was left behind.
            let _ = send.send(Message::Improved(solution, bound));
        }
        let outcome = match termination.reason {
            OPTIMAL => Outcome::Optimal,
            // Nothing is unbounded where all columns are bounded.
            INFEASIBLE | INFEASIBLE_OR_UNBOUNDED => Outcome::Infeasible,
            FEASIBLE | NO_SOLUTION_FOUND => Outcome::Stopped,
            reason => {
                tracing::error!(reason, detail = termination.detail, "SCIP fails");
                Outcome::Failed
            }
        };
        (outcome, bound)
    })
}
