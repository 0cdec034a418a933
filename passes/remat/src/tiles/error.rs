//! Why a model cannot be tiled.

use remat_verify::Rejection;
use thiserror::Error;

use crate::ErrorKind;

/// Why fused chains of a model cannot be run tile by tile.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FissionError {
    /// Problems and node-link graphs do not say what their ops compute.
    #[error("only ONNX models and functions in MLIR are run tile by tile")]
    NoOps,
    /// The fused chains do not fit the model.
    #[error(transparent)]
    Tiling(#[from] remat_fission::FissionError),
    /// The checker derived other tiles than we did: a bug of ours.
    #[error("the checker rejected our own tiles: {0}")]
    Rejected(Rejection),
}

impl FissionError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::NoOps | Self::Tiling(_) => ErrorKind::Input,
            Self::Rejected(_) => ErrorKind::Internal,
        }
    }
}
