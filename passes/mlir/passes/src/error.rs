//! Why a pass failed on a function.

use remat_mlir::{ApplyError, BlockError, Body, Diagnosed, Function, ImportError, Severity};
use thiserror::Error;

use crate::OptionError;

/// Why a pass failed. `'c` is the life of the function.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PassError<'c> {
    /// An option has no meaning.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The function cannot be read.
    #[error("{0}")]
    Import(Diagnosed<'c, ImportError>),
    /// There is no plan, or not within the limits.
    #[error(transparent)]
    Plan(#[from] remat::Error),
    /// There is no plan for one of several blocks, or for a region.
    #[error("`{}`: {why}", .body.name())]
    Inside {
        /// The block.
        body: Body<'c>,
        /// What is held outside of it, and why there is no plan beside that.
        why: String,
    },
    /// The plan could not be carried over; our mistake.
    #[error("{0}")]
    Apply(Diagnosed<'c, ApplyError>),
    /// The schedule that stands in the function breaks a rule.
    #[error("{0}")]
    Schedule(String),
    /// Plans were found, and what they are lowered to takes more than their model says.
    #[error(
        "no plan that was found keeps the budget: lowered, the function takes {peak} bytes, the budget is {budget} bytes"
    )]
    Lowered {
        /// Bytes of the last plan's lowering.
        peak: u64,
        /// Bytes that are allowed.
        budget: u64,
    },
    /// There is no plan, and the function as it was takes more than the budget, too.
    #[error(
        "{why} (where each result has memory of its own); as it stands, the function takes {peak} bytes once it is lowered"
    )]
    NoneBelow {
        /// Bytes of the lowering of the function as it was.
        peak: u64,
        /// Why there is no plan.
        why: Box<remat::Error>,
    },
    /// The function has buffers and no tensors.
    #[error("the function is bufferized already: run `remat` before `one-shot-bufferize`, `remat-place` after it")]
    Bufferized,
    /// The views of a block break a rule.
    #[error("{0}")]
    Block(Diagnosed<'c, BlockError>),
    /// The block is to be an argument, and the function takes no further one.
    #[error("the function takes no block as an argument")]
    NoArgument,
}

impl<'c> From<Diagnosed<'c, ImportError>> for PassError<'c> {
    fn from(error: Diagnosed<'c, ImportError>) -> Self {
        Self::Import(error)
    }
}

impl<'c> From<Diagnosed<'c, ApplyError>> for PassError<'c> {
    fn from(error: Diagnosed<'c, ApplyError>) -> Self {
        Self::Apply(error)
    }
}

impl<'c> From<Diagnosed<'c, BlockError>> for PassError<'c> {
    fn from(error: Diagnosed<'c, BlockError>) -> Self {
        Self::Block(error)
    }
}

impl PassError<'_> {
    /// Tells the error where it belongs: at an operation, else at `function`.
    pub fn emit(&self, function: Function<'_>) {
        match self {
            Self::Import(error) => error.emit(),
            Self::Apply(error) => error.emit(),
            Self::Inside { body, .. } => body.emit(Severity::Error, &self.to_string()),
            Self::Block(error) => error.emit(),
            Self::Option(_)
            | Self::Plan(_)
            | Self::Schedule(_)
            | Self::Lowered { .. }
            | Self::NoneBelow { .. }
            | Self::Bufferized
            | Self::NoArgument => {
                function.emit(Severity::Error, &self.to_string());
            }
        }
    }
}
