//! One attempt at one size, and what is known of the size then.

use std::sync::atomic::Ordering;

use remat_plan::{BudgetSpec, Plan};
use remat_solve::{Observer, Progress, SolveControl};

use crate::watch::Guard;
use crate::{Error, ErrorKind, Model, Overhead, Solution, SolveRequest, solve};

/// What is known about one size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BatchFinding {
    /// It fits without rematerialization.
    Baseline,
    /// It fits with a plan that adds no more time than allowed.
    Plan {
        /// Peak in bytes.
        peak: u64,
        /// Duration.
        duration: u64,
    },
    /// No plan exists that fits and adds no more time than allowed.
    Impossible {
        /// Who says so, and why.
        reason: String,
    },
    /// No plan was found; there may be one.
    NotFound {
        /// Which limit ended the search, or how far the best plan is off.
        reason: String,
    },
    /// The model cannot be read with this size.
    Unreadable {
        /// What is wrong.
        reason: String,
    },
}

impl BatchFinding {
    /// Whether the size fits.
    #[must_use]
    pub fn fits(&self) -> bool {
        matches!(self, Self::Baseline | Self::Plan { .. })
    }

    /// Why it does not fit.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Baseline | Self::Plan { .. } => None,
            Self::Impossible { reason } | Self::NotFound { reason } | Self::Unreadable { reason } => Some(reason),
        }
    }
}

/// What came of an attempt.
pub(super) enum Attempt {
    /// A plan that fits and takes no longer than allowed.
    Found(Box<Solution>),
    /// None; the finding says why.
    Without(BatchFinding),
}

/// Stops the search once a plan is short enough.
struct Enough<'a> {
    longest: u64,
    inner: Option<&'a dyn Observer>,
    guard: &'a Guard<'a>,
}

impl Observer for Enough<'_> {
    fn improved(&self, progress: &Progress, plan: &dyn Fn() -> Option<Plan>) {
        if let Some(inner) = self.inner {
            inner.improved(progress, plan);
        }
        if progress.objective <= self.longest {
            self.guard.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// What is asked of a solver about one size.
pub(super) struct Task<'a> {
    pub(super) model: &'a Model,
    pub(super) solver: &'a str,
    /// Largest peak in bytes.
    pub(super) budget: u64,
    /// Largest duration.
    pub(super) longest: u64,
}

impl Task<'_> {
    /// Searches until a plan is short enough or the limits of `control` are reached.
    ///
    /// # Errors
    /// What is neither a finding nor a limit.
    pub(super) fn attempt(&self, control: &SolveControl<'_>, start: Option<&Plan>) -> Result<Attempt, Error> {
        let guard = Guard::new(u64::MAX, control.cancel);
        let enough = Enough {
            longest: self.longest,
            inner: control.observer,
            guard: &guard,
        };
        let mut own = *control;
        own.cancel = Some(&guard.stop);
        own.observer = Some(&enough);
        own.warm_start = start;
        let request = SolveRequest {
            budget: BudgetSpec::Bytes(self.budget),
            max_overhead: None,
            solver: self.solver.to_owned(),
        };
        match guard.run(|| solve(self.model, &request, &own)) {
            Ok(solution) if solution.replay.duration <= self.longest => Ok(Attempt::Found(Box::new(solution))),
            Ok(solution) => Ok(Attempt::Without(self.too_long(&solution))),
            Err(error) => {
                let reason = error.to_string();
                match error.kind() {
                    ErrorKind::Negative => Ok(Attempt::Without(BatchFinding::Impossible { reason })),
                    ErrorKind::Limit => Ok(Attempt::Without(BatchFinding::NotFound { reason })),
                    ErrorKind::Input | ErrorKind::Internal => Err(error),
                }
            }
        }
    }

    /// The plan fits, but takes too long. A bound on all plans may say that every plan does.
    fn too_long(&self, solution: &Solution) -> BatchFinding {
        let percent = |duration: u64| {
            let baseline = self.model.baseline().duration;
            Overhead { duration, baseline }.percent()
        };
        let bound = solution.bound_on_all_plans(self.model.problem().order);
        if bound > self.longest {
            let reason = format!(
                "every plan that fits adds at least {:.2} %, allowed are {:.2} %",
                percent(bound),
                percent(self.longest)
            );
            return BatchFinding::Impossible { reason };
        }
        let reason = format!(
            "the shortest plan that was found adds {:.2} %, allowed are {:.2} %",
            percent(solution.replay.duration),
            percent(self.longest)
        );
        BatchFinding::NotFound { reason }
    }
}
