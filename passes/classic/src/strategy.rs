//! The strategies, and why one is not tried.

use remat_plan::OpId;
use remat_solve::stages::TooManyStages;
use thiserror::Error;

use crate::candidates::{Candidates, Walk};
use crate::roles::RolesError;

/// What is retained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Every candidate is a checkpoint.
    All(Candidates),
    /// Only the result right before is retained. The one strategy that takes any graph.
    Last,
    /// Chen's strategy for `sqrt(n)` memory.
    ChenSqrt(Candidates),
    /// Chen's greedy strategy, for segments of 0 to 2.99 times the peak of `ChenSqrt(Candidates::All)`, in steps of 0.01.
    ChenGreedy(Candidates, Walk),
    /// Griewank's strategy for chains, for 0 checkpoints and up.
    Griewank,
}

/// Why a strategy is not tried.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The matrices would be too large.
    #[error(transparent)]
    TooManyStages(#[from] TooManyStages),
    /// The problem is not recognised as a training step.
    #[error(transparent)]
    Roles(#[from] RolesError),
    /// The forward pass is not a chain.
    #[error("the forward pass is not a chain: op {} does not read the op before it, and nothing else", .op.index())]
    NotAChain {
        /// The first op that breaks it.
        op: OpId,
    },
}
