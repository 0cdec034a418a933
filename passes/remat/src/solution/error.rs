//! Why a search ends without a plan, or without one that may be used.

use remat_files::shown;
use remat_plan::{BoundCovers, Certificate, Infeasible, Plan, Problem, StopReason};
use remat_verify::Rejection;
use thiserror::Error;

use crate::error::quoted;
use crate::refusal::exact;
use crate::{ErrorKind, Overhead, Refusal, Room};

/// An answer of ours that the checker rejected, with the problem it answers.
#[derive(Debug)]
pub struct BugReport {
    /// The problem.
    pub problem: Problem,
    /// The plan that is wrong, or that refutes a claim.
    pub plan: Option<Plan>,
    /// What was claimed; a claim that is refuted first, then what is claimed of the plan.
    pub certificates: Vec<Certificate>,
    /// Name of the solver.
    pub solver: String,
    /// What the checker found.
    pub rejection: Rejection,
}

/// Why there is no plan.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SolveError {
    /// There is no solver of this name.
    #[error("there is no solver `{name}`; known are {}", quoted(.known), name = shown(.name))]
    UnknownSolver {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// Energy is the objective, but nothing says what runs take.
    #[error("nothing says what energy the ops take: choose a device that states it; `{known}` do", known = shown(.known))]
    NoEnergy {
        /// The devices that state it.
        known: String,
    },
    /// The budget is below what one op needs.
    #[error(transparent)]
    Infeasible(#[from] Infeasible),
    /// The solver proved that no plan exists.
    #[error(
        "no plan{} can meet the budget of {budget} bytes: `{}` proved it",
        if .claim.bound_covers == BoundCovers::FixedOrder { " in the given order" } else { "" },
        shown(&.claim.solver)
    )]
    ProvedInfeasible {
        /// The budget.
        budget: u64,
        /// The proof.
        claim: Box<Certificate>,
    },
    /// The solver proved that none of the plans exists that its model covers.
    #[error("`{}` has no plan of its kind within {budget} bytes: {}; others may exist", .claim.solver, kind_text(.claim.bound_covers))]
    NoPlanOfItsKind {
        /// The budget.
        budget: u64,
        /// The proof.
        claim: Box<Certificate>,
    },
    /// No plan was found in time.
    #[error("no plan within {budget} bytes was found ({}){}", format!("{stop:?}").to_lowercase(), reached_text(*.reached))]
    NoPlan {
        /// The budget.
        budget: u64,
        /// Lowest peak that was reached; 0 where nothing was tried.
        reached: u64,
        /// Why the search stopped.
        stop: StopReason,
    },
    /// A plan of ours was rejected.
    #[error("the checker rejected a plan of solver `{}`: this is a bug of remat-opt", .0.solver)]
    Rejected(Box<BugReport>),
    /// A claim of ours was refuted.
    #[error("what solver `{}` claims is refuted by the checker: this is a bug of remat-opt", .0.solver)]
    FalseClaim(Box<BugReport>),
    /// A budget is refused; what is known of those that are not comes with it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A plan keeps the budget and takes longer than allowed.
    #[error("the shortest plan found adds {:.2} %, {:.2} % are allowed; {}", added(*.found, *.baseline), added(*.allowed, *.baseline),
        if .bound > .allowed { format!("no plan adds less than {:.2} %, that is proved", added(*.bound, *.baseline)) }
        else { "there may be a shorter one".to_owned() })]
    TooLong {
        /// Duration of the plan.
        found: u64,
        /// Duration of running every op once.
        baseline: u64,
        /// Longest duration that is allowed.
        allowed: u64,
        /// No plan within the budget is shorter.
        bound: u64,
    },
    /// A budget, or a plan, beyond the memory of the device.
    #[error("{what} is {}, and {room}", exact(*.bytes))]
    BeyondDevice {
        /// What is beyond it.
        what: &'static str,
        /// Its bytes.
        bytes: u64,
        /// What the device leaves.
        room: Room,
    },
}

impl SolveError {
    pub(crate) fn unknown_solver(name: &str) -> Self {
        Self::UnknownSolver {
            name: name.to_owned(),
            known: crate::solvers().map(|solver| solver.name().to_owned()).collect(),
        }
    }

    /// Which of the documented outcomes this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownSolver { .. } | Self::NoEnergy { .. } | Self::BeyondDevice { .. } => ErrorKind::Input,
            Self::Infeasible(_) | Self::ProvedInfeasible { .. } => ErrorKind::Negative,
            Self::TooLong { bound, allowed, .. } if bound > allowed => ErrorKind::Negative,
            Self::NoPlanOfItsKind { .. } | Self::NoPlan { .. } | Self::TooLong { .. } => ErrorKind::Limit,
            Self::Rejected(_) | Self::FalseClaim(_) => ErrorKind::Internal,
            Self::Refused(refusal) => refusal.cause.kind(),
        }
    }
}

/// Time beyond the baseline, in per cent.
fn added(duration: u64, baseline: u64) -> f64 {
    Overhead { duration, baseline }.percent()
}

fn reached_text(reached: u64) -> String {
    if reached == 0 {
        String::new()
    } else {
        format!("; the lowest peak reached is {reached} bytes")
    }
}

fn kind_text(covers: BoundCovers) -> &'static str {
    match covers {
        BoundCovers::AllPlans => "it covers all plans",
        BoundCovers::FixedOrder => "it covers the plans whose first runs keep the order of the model",
        BoundCovers::StageForm => "it covers the plans in stage form, in which reruns keep the order of the model",
        BoundCovers::CandidateSet => "it covers the plans that its model can express",
    }
}
