//! The classic checkpointing heuristics for training steps: Chen's and Griewank's strategies, as the Checkmate paper compares
//! them.
//!
//! Each strategy yields matrices `S` of [`crate::stages`], which are completed, turned into sequences and lowered. They need to
//! know what is forward and what is backward ([`Roles`]); what is no training step is refused. [`curve`] gives all plans of a
//! strategy, [`Classic`] the cheapest of them that meets a budget. `docs/solvers/classic.md` says where they follow the paper's
//! artifact and where not.

mod binomial;
mod candidates;
mod curve;
mod fixed_set;
mod griewank;
mod roles;
mod solver;

use remat_plan::OpId;
use thiserror::Error;

pub use candidates::{Candidates, Walk};
pub use curve::{Point, curve};
pub use roles::{Roles, RolesError};
pub use solver::Classic;
pub(crate) use solver::interruption;

use crate::stages::TooManyStages;

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
