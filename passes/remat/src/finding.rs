//! What is known of a model under one budget, in memory and in files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Solution;

/// No budget of several has a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("none of the {budgets} budgets has a plan; {impossible} of them are impossible")]
pub struct NoPlans {
    /// How many budgets there are.
    pub budgets: usize,
    /// How many of them no plan can meet.
    pub impossible: usize,
}

/// What is known about one budget.
#[derive(Debug)]
pub enum Finding {
    /// Nothing yet.
    Untried,
    /// A plan that the checker has replayed.
    Plan(Box<Solution>),
    /// No plan exists: below what one op needs, or proved by the solver.
    Impossible {
        /// Who says so, and why.
        reason: String,
    },
    /// A limit was reached before a plan was found.
    NotFound {
        /// The limit, and how far the search got.
        reason: String,
    },
}

impl Finding {
    /// The plan, where there is one.
    #[must_use]
    pub fn solution(&self) -> Option<&Solution> {
        match self {
            Self::Plan(solution) => Some(solution),
            Self::Untried | Self::Impossible { .. } | Self::NotFound { .. } => None,
        }
    }

    /// Why there is no plan, where that is known.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Impossible { reason } | Self::NotFound { reason } => Some(reason),
            Self::Untried | Self::Plan(_) => None,
        }
    }

    /// Its name in a file.
    #[must_use]
    pub fn kind(&self) -> FindingKind {
        match self {
            Self::Untried => FindingKind::Untried,
            Self::Plan(_) => FindingKind::Plan,
            Self::Impossible { .. } => FindingKind::Impossible,
            Self::NotFound { .. } => FindingKind::NotFound,
        }
    }
}

/// What was found for a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Nothing yet.
    Untried,
    /// A plan.
    Plan,
    /// No plan exists.
    Impossible,
    /// A limit was reached first.
    NotFound,
}

/// Whole milliseconds, as files state them.
pub(crate) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
