//! Why a lowering strategy is rejected.

use std::fmt;

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
    #[error("it takes {after} bytes {which}, the model as it came {before}{basis}")]
    HigherPeak {
        /// Which peak is higher.
        which: Peak,
        /// Whether the two were measured or only predicted.
        basis: Basis,
        /// Peak of the model as it came, in bytes.
        before: u64,
        /// Peak of the file, in bytes.
        after: u64,
    },
}

/// A peak of a model in the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peak {
    /// With the memory arena off.
    ArenaOff,
    /// The first run with the memory arena on.
    FirstRun,
    /// Later runs with the memory arena on.
    LaterRuns,
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ArenaOff => "with the memory arena off",
            Self::FirstRun => "with the memory arena in the first run",
            Self::LaterRuns => "with the memory arena in later runs",
        })
    }
}

/// Where the figures of a comparison are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// Both models ran.
    Measured,
    /// The runtime was simulated on both.
    Predicted,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "",
            Self::Predicted => " (predicted, not measured)",
        })
    }
}

/// A strategy that was rejected.
#[derive(Debug)]
pub struct Rejected {
    /// The strategy.
    pub strategy: Strategy,
    /// What was wrong with it.
    pub reason: Rejection,
}
