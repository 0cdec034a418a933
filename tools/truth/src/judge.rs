//! Answers held against the truth.

use remat_plan::{BoundCovers, Certificate, Objective, OrderMode, Plan, Problem, Status};
use remat_solve::{Outcome, SolveControl, Solver};
use remat_verify::{Replay, check_certificate, replay};

use crate::paging::least_energy;
use crate::{Space, least};

/// The replay of an outcome's plan, if it has one.
///
/// # Panics
/// If a claim is not what the checker finds.
pub fn checked(problem: &Problem, outcome: &Outcome) -> Option<Replay> {
    let certificate = &outcome.certificate;
    let Some(plan) = &outcome.plan else {
        assert_eq!(certificate.objective, None);
        assert!(matches!(certificate.status, Status::Infeasible | Status::Unknown));
        return None;
    };
    let replayed = replay(problem, plan);
    assert!(replayed.is_ok(), "{replayed:?}");
    let replayed = replayed.ok()?;
    assert_eq!(certificate.objective, Some(replayed.duration));
    assert!(certificate.bound <= replayed.duration);
    assert!(outcome.lowest_peak.is_some_and(|peak| replayed.peak <= peak));
    assert!(matches!(certificate.status, Status::Feasible | Status::Optimal));
    assert_eq!(certificate.problem, problem.digest());
    Some(replayed)
}

/// The truth about one problem, each part found when it is asked for.
pub struct Truth<'a> {
    problem: &'a Problem,
    known: [Option<Option<u64>>; 3],
}

impl<'a> Truth<'a> {
    /// Nothing was asked yet.
    #[must_use]
    pub fn of(problem: &'a Problem) -> Self {
        Self {
            problem,
            known: [None; 3],
        }
    }

    /// The least duration in a space; with a second memory the least energy in fixed order.
    pub fn least(&mut self, space: Space) -> Option<u64> {
        let index = match space {
            Space::AllPlans => 0,
            Space::FixedOrder => 1,
            Space::StageForm => 2,
        };
        *self.known[index].get_or_insert_with(|| match self.problem.paging {
            None => least(self.problem, space),
            Some(_) => least_energy(self.problem, self.problem.budget.unwrap_or(u64::MAX)),
        })
    }

    /// Whether a plan and what is claimed about it are true.
    ///
    /// # Errors
    /// What is false, in words.
    pub fn judge(&mut self, plan: Option<&Plan>, certificate: &Certificate) -> Result<(), String> {
        let problem = self.problem;
        let found = match plan {
            Some(plan) => Some((plan, replay(problem, plan).map_err(|rejection| rejection.to_string())?)),
            None => None,
        };
        let judged = found.as_ref().map(|(plan, replay)| (*plan, replay));
        check_certificate(problem, judged, certificate).map_err(|rejection| rejection.to_string())?;
        let own = match problem.order {
            OrderMode::Fixed => Space::FixedOrder,
            OrderMode::Free => Space::AllPlans,
        };
        if problem.paging.is_some() && (problem.order, problem.objective) != (OrderMode::Fixed, Objective::Energy) {
            return Ok(());
        }
        if let Some((_, replay)) = &found {
            let objective = replay.objective(problem.objective);
            match self.least(own) {
                Some(best) if best <= objective => {}
                best => {
                    return Err(format!(
                        "a plan of {objective} where the best has {best:?}: the truth is wrong"
                    ));
                }
            }
        }
        // Of plans in stage form with a second memory the truth is not known.
        if problem.paging.is_some() && certificate.bound_covers == BoundCovers::StageForm {
            return Ok(());
        }
        let space = match certificate.bound_covers {
            BoundCovers::AllPlans => Space::AllPlans,
            BoundCovers::FixedOrder => Space::FixedOrder,
            BoundCovers::StageForm => Space::StageForm,
            BoundCovers::CandidateSet => return Ok(()),
        };
        let best = self.least(space);
        match (certificate.status, best) {
            (Status::Infeasible, Some(best)) => Err(format!("`INFEASIBLE` among {space:?}, which have {best}")),
            (_, Some(best)) if certificate.bound > best => Err(format!(
                "a bound of {} on {space:?}, which have {best}",
                certificate.bound
            )),
            // A plan outside stage form may be better than all in it.
            (Status::Optimal, best) if space != Space::StageForm && certificate.objective != best => {
                let objective = certificate.objective;
                Err(format!(
                    "`OPTIMAL` with {objective:?} among {space:?}, which have {best:?}"
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Something false that a solver said.
#[derive(Clone, PartialEq, Debug)]
pub struct Falsehood {
    /// Name of the solver.
    pub solver: &'static str,
    /// What is false.
    pub what: String,
    /// What it claimed.
    pub certificate: Certificate,
}

/// What an audit of one problem came to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Audit {
    /// How many answers there were.
    pub answers: usize,
    /// How many of them had a plan.
    pub plans: usize,
    /// How many of them claimed a proof.
    pub proofs: usize,
    /// What was false.
    pub false_claims: Vec<Falsehood>,
}

/// Asks every solver that takes all of the problem into account, and judges its answer and those of its parts.
pub fn audit<'s>(
    problem: &Problem,
    solvers: impl Iterator<Item = &'s dyn Solver>,
    control: impl Fn(&dyn Solver) -> SolveControl<'static>,
) -> Audit {
    let mut truth = Truth::of(problem);
    let mut audit = Audit::default();
    for solver in solvers.filter(|solver| solver.supports(problem)) {
        let outcome = solver.solve(problem, &control(solver));
        for answer in std::iter::once(&outcome).chain(&outcome.parts) {
            audit.answers += 1;
            audit.plans += usize::from(answer.plan.is_some());
            audit.proofs += usize::from(matches!(
                answer.certificate.status,
                Status::Optimal | Status::Infeasible
            ));
            if let Err(what) = truth.judge(answer.plan.as_ref(), &answer.certificate) {
                audit.false_claims.push(Falsehood {
                    solver: solver.name(),
                    what,
                    certificate: answer.certificate.clone(),
                });
            }
        }
    }
    audit
}
