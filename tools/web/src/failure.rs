//! Why there is no answer.

use remat::ReadError;
use remat::onnx::OnnxError;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum Failure {
    /// The model cannot be read, planned or written.
    #[error(transparent)]
    Remat(#[from] remat::Error),
    /// The file is no model, or no model can be written.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    File(#[from] std::io::Error),
    /// What the page asks is malformed.
    #[error("the question is malformed: {0}")]
    Question(#[from] serde_json::Error),
    /// The page of a plan cannot be made.
    #[error("the page cannot be made: {0}")]
    Page(String),
    /// Something is asked about a plan, and none was made.
    #[error("no plan was made yet")]
    NoPlan,
}

impl Failure {
    /// Dimensions that have to be given before the model can be planned.
    #[must_use]
    pub fn open_dims(&self) -> &[String] {
        match self {
            Self::Remat(remat::Error::Read(ReadError::Onnx(OnnxError::UnknownSizes { dims, .. }))) => dims,
            _ => &[],
        }
    }
}
