//! Solvers' plans, past the checker.

use remat_plan::{BoundCovers, Certificate, Plan, Problem, Status, StopReason};
use remat_verify::{check_certificate, replay};

use super::{BugReport, Solution, SolveError};
use crate::claims::refuted;
use crate::{Error, Model};

impl Solution {
    /// The plan without recomputes: every op once, in reference order. It is the shortest one.
    ///
    /// # Errors
    /// [`SolveError::Rejected`] if the checker does not accept it.
    pub fn baseline(model: &Model) -> Result<Self, Error> {
        let duration = model.baseline().duration;
        let certificate = Certificate {
            status: Status::Optimal,
            objective: Some(duration),
            bound: duration,
            bound_covers: BoundCovers::AllPlans,
            evidence: None,
            gap: Some(0.0),
            stop: StopReason::Proved,
            solver: "baseline".to_owned(),
            seed: 0,
            threads: 1,
            steps: 0,
            elapsed_ms: 0,
            problem: model.problem().digest(),
        };
        accept(
            model,
            model.problem().clone(),
            model.baseline_plan().clone(),
            certificate,
        )
    }
}

/// The only way from a solver to a [`Solution`]: past the checker, and its certificate too.
pub(crate) fn accept(
    model: &Model,
    problem: Problem,
    plan: Plan,
    mut certificate: Certificate,
) -> Result<Solution, Error> {
    match replay(&problem, &plan) {
        Ok(replay) => {
            certificate.restate(replay.objective(problem.objective), problem.digest());
            if let Err(rejection) = check_certificate(&problem, Some((&plan, &replay)), &certificate) {
                return Err(refuted(problem, Some(plan), vec![certificate], rejection).into());
            }
            Ok(Solution::of(model, problem, plan, replay, Some(certificate)))
        }
        Err(rejection) => Err(SolveError::Rejected(Box::new(BugReport {
            problem,
            plan: Some(plan),
            solver: certificate.solver.clone(),
            certificates: vec![certificate],
            rejection,
        }))
        .into()),
    }
}
