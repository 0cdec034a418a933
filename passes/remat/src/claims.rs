//! What solvers claim, held against every plan that the same run knows.
//!
//! One claim that a plan refutes is a bug of ours: the run ends with [`SolveError::FalseClaim`], and no result comes of it.

use remat_plan::{Certificate, Plan, Problem, Status};
use remat_solve::Outcome;
use remat_verify::{Rejection, check_against, replay};

use crate::{BugReport, Error, Solution, SolveError};

/// The claims and plans of one run, all for one problem but for its budget.
#[derive(Debug)]
pub(crate) struct Claims {
    problem: Problem,
    claims: Vec<(Option<u64>, Certificate)>,
    plans: Vec<Known>,
}

/// A plan that the checker accepted, or will be asked about where it matters.
#[derive(Debug)]
struct Known {
    plan: Plan,
    /// What it comes to.
    objective: u64,
    /// Its peak; 0 where that is not known.
    peak: u64,
    /// What its solver claims of it.
    certificate: Option<Certificate>,
}

impl Claims {
    /// Nothing is claimed and nothing known.
    pub(crate) fn new(problem: &Problem) -> Self {
        Self {
            problem: problem.clone(),
            claims: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// Takes in what is claimed under a budget.
    ///
    /// # Errors
    /// [`SolveError::FalseClaim`] where a plan that is known refutes it.
    pub(crate) fn claim(&mut self, budget: Option<u64>, certificate: &Certificate) -> Result<(), Error> {
        for known in &self.plans {
            self.hold(budget, certificate, known)?;
        }
        self.claims.push((budget, certificate.clone()));
        Ok(())
    }

    /// Takes in a plan of this objective and peak; a peak of 0 stands for one that is not known.
    ///
    /// # Errors
    /// [`SolveError::FalseClaim`] where it refutes what was claimed.
    pub(crate) fn plan(
        &mut self,
        plan: &Plan,
        objective: u64,
        peak: u64,
        certificate: Option<&Certificate>,
    ) -> Result<(), Error> {
        let known = Known {
            plan: plan.clone(),
            objective,
            peak,
            certificate: certificate.cloned(),
        };
        for (budget, claim) in &self.claims {
            self.hold(*budget, claim, &known)?;
        }
        self.plans.push(known);
        Ok(())
    }

    /// Takes in the plan of a solution.
    ///
    /// # Errors
    /// [`SolveError::FalseClaim`] where it refutes what was claimed.
    pub(crate) fn of_solution(&mut self, solution: &Solution) -> Result<(), Error> {
        let Solution {
            problem, plan, replay, ..
        } = solution;
        let objective = replay.objective(problem.objective);
        self.plan(plan, objective, replay.peak, solution.certificate.as_ref())
    }

    /// Holds one claim against one plan. The checker replays the plan only where it could refute the claim.
    fn hold(&self, budget: Option<u64>, claim: &Certificate, known: &Known) -> Result<(), Error> {
        let could_refute = claim.status == Status::Infeasible || known.objective < claim.bound;
        if !could_refute || budget.is_some_and(|budget| known.peak > budget) {
            return Ok(());
        }
        let problem = Problem {
            budget,
            ..self.problem.clone()
        };
        check_against(&problem, claim, &known.plan).map_err(|rejection| {
            let certificates = std::iter::once(claim).chain(&known.certificate).cloned().collect();
            refuted(problem, Some(known.plan.clone()), certificates, rejection).into()
        })
    }
}

/// The bug report on a false claim; the first certificate makes it.
pub(crate) fn refuted(
    problem: Problem,
    plan: Option<Plan>,
    certificates: Vec<Certificate>,
    rejection: Rejection,
) -> SolveError {
    let solver = certificates
        .first()
        .map_or_else(String::new, |claim| claim.solver.clone());
    SolveError::FalseClaim(Box::new(BugReport {
        problem,
        plan,
        certificates,
        solver,
        rejection,
    }))
}

/// Holds everything that a solver and its parts claim against all of their plans and the one they started from.
///
/// # Errors
/// [`SolveError::FalseClaim`].
pub(crate) fn agree(problem: &Problem, outcome: &Outcome, start: Option<&Plan>) -> Result<(), Error> {
    let mut claims = Claims::new(problem);
    if let Some((start, found)) = start.and_then(|start| Some((start, replay(problem, start).ok()?))) {
        claims.plan(start, found.objective(problem.objective), found.peak, None)?;
    }
    let mut open = vec![outcome];
    while let Some(answer) = open.pop() {
        let certificate = &answer.certificate;
        if let (Some(plan), Some(objective)) = (&answer.plan, certificate.objective) {
            claims.plan(plan, objective, 0, Some(certificate))?;
        }
        claims.claim(problem.budget, certificate)?;
        open.extend(&answer.parts);
    }
    Ok(())
}
