//! Solvers' plans, past the checker.

use remat_plan::{BoundCovers, Certificate, OpId, Plan, Problem, Status, StopReason, Structure, lower_sequence};
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

    /// The plan with its runs in the order of `sequence`, in which lazy views are left out ([`Structure`]). One that runs every op once is a shortest
    /// plan under any budget, and may take up to `budget` bytes. `None` where the checker rejects it, and for plans of which nothing is claimed.
    ///
    /// # Errors
    /// [`SolveError::FalseClaim`] if it refutes what was claimed of the plan.
    pub fn reordered(
        &self,
        model: &Model,
        sequence: impl IntoIterator<Item = OpId>,
        budget: u64,
    ) -> Result<Option<Self>, Error> {
        let mut problem = self.problem.clone();
        if self.replay.duration == model.baseline().duration {
            problem.budget = problem.budget.map(|known| known.max(budget));
        }
        let plan = lower_sequence(&problem, &Structure::of(&problem), sequence).ok();
        let accepted = plan.filter(|plan| replay(&problem, plan).is_ok());
        let Some((plan, certificate)) = accepted.zip(self.certificate.clone()) else {
            return Ok(None);
        };
        accept(model, problem, plan, certificate).map(Some)
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
