//! Why a lowering strategy is rejected.

use remat_onnxruntime_run::RuntimeError;
use thiserror::Error;

use crate::{DeployError, Strategy};

/// What is wrong with the file of a strategy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The runtime does not fuse the model, or makes something of it that cannot be read.
    #[error(transparent)]
    NotFused(Box<DeployError>),
    /// The file does not load or run.
    #[error(transparent)]
    DoesNotRun(RuntimeError),
    /// An output has other bits than that of the model as it came.
    #[error("output `{output}` has other bits on inputs of seed {seed}")]
    OutputDiffers {
        /// The first output that differs.
        output: String,
        /// Seed of the inputs.
        seed: u64,
    },
    /// The file takes more memory than the model as it came.
    #[error("it takes {after} bytes, the model as it came {before}")]
    HigherPeak {
        /// Measured peak of the model as it came, in bytes.
        before: u64,
        /// Measured peak of the file, in bytes.
        after: u64,
    },
}

/// A strategy that was rejected.
#[derive(Debug)]
pub struct Rejected {
    /// The strategy.
    pub strategy: Strategy,
    /// What was wrong with it.
    pub reason: Rejection,
}
