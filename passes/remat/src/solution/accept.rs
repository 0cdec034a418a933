//! Solvers' plans, past the checker.

use remat_plan::{BoundCovers, Certificate, OpId, Plan, Problem, Status, StopReason, Structure, lower_sequence};
use remat_verify::{check_certificate, replay};
use rustc_hash::FxHashSet;

use super::{BugReport, Solution, SolveError};
use crate::claims::refuted;
use crate::{Error, Model};

impl Solution {
    /// The plan without recomputes: every op once, in reference order. It is the shortest one.
    ///
    /// # Errors
    /// [`SolveError::Rejected`] if the checker does not accept it.
    pub fn baseline(model: &Model) -> Result<Self, Error> {
        in_order(model, model.baseline_plan().clone())
    }

    /// The plan with every op once, in the order in which they first run.
    ///
    /// # Errors
    /// [`SolveError::Rejected`] if the checker does not accept it.
    pub fn once(&self, model: &Model) -> Result<Self, Error> {
        let (problem, mut ran) = (model.problem(), FxHashSet::default());
        let structure = Structure::of(problem);
        let is_first = |op: &OpId| !structure.is_lazy(*op) && ran.insert(*op);
        let once = lower_sequence(problem, &structure, self.plan.runs().filter(is_first));
        in_order(model, once.unwrap_or_else(|_| model.baseline_plan().clone()))
    }
}

/// A plan that runs every op once.
fn in_order(model: &Model, plan: Plan) -> Result<Solution, Error> {
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
    accept(model, model.problem().clone(), plan, certificate)
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
