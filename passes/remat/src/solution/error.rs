//! Why a search ends without a plan, or without one that may be used, and what is known of a budget that is refused.

use std::fmt;

use remat_files::shown;
use remat_plan::{BoundCovers, BudgetSpec, Certificate, Infeasible, Plan, Problem, StopReason};
use remat_verify::Rejection;
use thiserror::Error;

use super::overhead::Overhead;
use crate::error::{exact, quoted};
use crate::{BaselinePeak, DeviceCapacity, ErrorKind};

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
    /// The solver needs something from outside of the program that is not there.
    #[error("solver `{name}` cannot be used: {}", shown(.missing))]
    Unavailable {
        /// The solver.
        name: String,
        /// What is missing.
        missing: String,
    },
    /// Energy is the objective, but nothing says what runs take.
    #[error("no energy of the ops is known: choose a device that states it; `{known}` do", known = shown(.known))]
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
    #[error("{what} is {}, and {capacity}", exact(*.bytes))]
    BeyondDevice {
        /// What is beyond it.
        what: &'static str,
        /// Its bytes.
        bytes: u64,
        /// What the device leaves.
        capacity: DeviceCapacity,
    },
}

impl SolveError {
    /// Which of the documented outcomes this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownSolver { .. }
            | Self::Unavailable { .. }
            | Self::NoEnergy { .. }
            | Self::BeyondDevice { .. } => ErrorKind::Input,
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

/// The lowest peak that a plan is known for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowestPeak {
    /// The peak in bytes.
    pub bytes: u64,
    /// The op that runs at the peak, where it is known.
    pub op: Option<String>,
    /// Whether it is proved that no plan has a lower peak.
    pub proved: bool,
}

/// A budget that is refused.
#[derive(Debug)]
pub struct Refusal {
    /// Why: [`SolveError::Infeasible`], [`SolveError::ProvedInfeasible`], [`SolveError::NoPlanOfItsKind`] or [`SolveError::NoPlan`].
    pub cause: SolveError,
    /// The budget as it was asked for.
    pub asked: BudgetSpec,
    /// The budget in bytes.
    pub budget: u64,
    /// What shares are of.
    pub baseline: BaselinePeak,
    /// The op that needs most by itself; absent where there are no ops.
    pub op: Option<String>,
    /// What it needs: no plan takes less.
    pub need: u64,
    /// The lowest peak known.
    pub lowest: Option<LowestPeak>,
    /// The device whose memory is the budget.
    pub capacity: Option<DeviceCapacity>,
    /// What to ask for instead; absent where nothing is known to work.
    pub retry: Option<BudgetSpec>,
}

impl Refusal {
    /// Bytes exactly, in the unit that fits, and in per cent of the baseline.
    fn bytes(&self, bytes: u64) -> String {
        let exact = exact(bytes);
        if self.baseline.bytes == 0 {
            return exact;
        }
        let permille = u128::from(bytes) * 1_000 / u128::from(self.baseline.bytes);
        format!("{exact}, {}.{} %", permille / 10, permille % 10)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = self.bytes(self.budget);
        match &self.cause {
            SolveError::Infeasible(_) => write!(f, "no plan can meet the budget of {budget}")?,
            SolveError::ProvedInfeasible { claim, .. } => {
                let is_fixed = claim.bound_covers == BoundCovers::FixedOrder;
                let order = if is_fixed { " in the given order" } else { "" };
                write!(
                    f,
                    "no plan{order} can meet the budget of {budget}: `{}` proved it",
                    claim.solver
                )?;
            }
            SolveError::NoPlan { stop, .. } => {
                write!(f, "no plan within the budget of {budget} was found: {}", ended(*stop))?;
            }
            other => write!(f, "{other}")?,
        }
        if let Some(capacity) = &self.capacity {
            write!(f, "; {capacity}")?;
        }
        let baseline = self.baseline;
        write!(
            f,
            "; the model takes {} as it is, {}",
            exact(baseline.bytes),
            baseline.of
        )?;
        if let Some(op) = &self.op {
            let need = self.bytes(self.need);
            let missing = self.need.saturating_sub(self.budget);
            match missing {
                0 => write!(f, ", op `{op}` alone needs {need}")?,
                _ => write!(f, ", op `{op}` alone needs {need}: {} more", exact(missing))?,
            }
        }
        if let Some(lowest) = &self.lowest {
            write!(
                f,
                "; the lowest peak {} is {}",
                lowest.found(),
                self.bytes(lowest.bytes)
            )?;
            if let Some(op) = lowest.op.as_ref().filter(|op| self.op.as_ref() != Some(op)) {
                write!(f, ", at op `{op}`")?;
            }
        }
        Ok(())
    }
}

impl LowestPeak {
    fn found(&self) -> &'static str {
        if self.proved {
            "of all plans"
        } else {
            "found (there may be a lower one)"
        }
    }
}

impl std::error::Error for Refusal {}

fn ended(stop: StopReason) -> &'static str {
    match stop {
        StopReason::TimeLimit => "the time limit was reached",
        StopReason::StepLimit => "the step limit was reached",
        StopReason::MemoryLimit => "the memory limit was reached",
        StopReason::Cancelled => "the search was interrupted",
        StopReason::Converged | StopReason::Proved => "the search came to its end",
        StopReason::Refused => "the solver cannot work on this problem",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_budget_need_and_lowest_peak_in_bytes_and_per_cent() {
        let cause = SolveError::NoPlan {
            budget: 300,
            reached: 600,
            stop: StopReason::StepLimit,
        };
        let refusal = Refusal {
            cause,
            asked: BudgetSpec::Bytes(300),
            budget: 300,
            baseline: BaselinePeak {
                bytes: 1_000,
                of: crate::BaselineOf::FileOrder,
            },
            op: Some("conv".to_owned()),
            need: 400,
            capacity: None,
            lowest: Some(LowestPeak {
                bytes: 600,
                op: None,
                proved: false,
            }),
            retry: Some(BudgetSpec::Min),
        };
        assert_eq!(
            refusal.to_string(),
            "no plan within the budget of 300 bytes, 30.0 % was found: the step limit was reached; the model takes 1000 bytes as it is, in \
             file order, op `conv` alone needs 400 bytes, 40.0 %: 100 bytes more; the lowest peak found (there may be a lower one) is 600 bytes, 60.0 %"
        );
    }
}
