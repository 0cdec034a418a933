//! What is asked of a sweep, and why there is no result.

use std::time::Duration;

use remat_files::{DocumentError, shown};
use remat_plan::BudgetSpec;
use thiserror::Error;

use crate::NoPlans;

/// Why a sweep has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A budget that does not stand for a number of bytes.
    #[error("`{budget}` is not a budget for a sweep: name shares, sizes or `min`")]
    Budget {
        /// The budget.
        budget: BudgetSpec,
    },
    /// The front to continue does not fit.
    #[error(transparent)]
    File(#[from] FrontFileError),
    /// No budget has a plan.
    #[error(transparent)]
    NoPlans(#[from] NoPlans),
}

/// What is asked of a sweep.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// The budgets, in any order: shares, bytes, and at most one `min`.
    pub budgets: Vec<BudgetSpec>,
    /// Name of the solver.
    pub solver: String,
    /// Longest time for one budget, both visits together.
    pub time_per_budget: Option<Duration>,
}

/// Why a front cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrontFileError {
    /// The text is not a front.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The front belongs to another model, or to the same one read with other options.
    #[error("the front belongs to the problem {found} (model `{model}`), but this is the problem {expected}", found = shown(.found), model = shown(.model), expected = shown(.expected))]
    OtherProblem {
        /// Digest in the file.
        found: String,
        /// Name of the model in the file.
        model: String,
        /// Digest of the model at hand.
        expected: String,
    },
}
