//! Mixed-integer programs on SCIP, through MathOpt. There is no way to hand it a solution to start from, and it tells of one only in
//! the end.

use super::Program;
use super::highs_capi::Outcome;
use super::mathopt::{FEASIBLE, INFEASIBLE, INFEASIBLE_OR_UNBOUNDED, NO_SOLUTION_FOUND, OPTIMAL, model};
use super::mathopt_capi::{Interrupter, solve};
use super::watch::{Message, Solve, Stop};

/// Minimizes; all columns must be bounded.
pub(crate) fn minimize(program: Program) -> Solve {
    Solve::start(Stop::through(Interrupter::new()), move |send, stop| {
        let failed = (Outcome::Failed, f64::NEG_INFINITY);
        let Some(interrupter) = stop.interrupter() else {
            return failed;
        };
        let result = match solve(&model(&program), interrupter) {
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
