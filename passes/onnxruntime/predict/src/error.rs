//! Why nothing is predicted of a file.

use remat_onnx::OnnxError;
use thiserror::Error;

/// An error of a prediction, or of a plan of a subgraph.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PredictError {
    /// The model cannot be read, planned or written.
    #[error(transparent)]
    Pipeline(#[from] remat::Error),
    /// The time was over while a file was simulated.
    #[error("time limit reached while a file was simulated")]
    CutOff,
    /// Only ONNX models run in ONNX Runtime.
    #[error("the model is not an ONNX model")]
    NotOnnx,
}

impl From<OnnxError> for PredictError {
    fn from(error: OnnxError) -> Self {
        Self::Pipeline(error.into())
    }
}
