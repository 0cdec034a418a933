//! What can go wrong while a model is written as MLIR.

use remat_onnx::OnnxError;
use thiserror::Error;

use crate::Form;

/// The model could not be written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The form has no way to say this.
    #[error("{place} cannot be written in form `{form}`: {why}")]
    Unsupported {
        /// The node, tensor or attribute, such as ``node `Conv_3` ``.
        place: String,
        /// The form that was asked for.
        form: Form,
        /// What it lacks.
        why: String,
    },
    /// The values of a tensor, or the body of a subgraph or function, could not be read.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The text could not be written.
    #[error("cannot write the MLIR text: {0}")]
    Io(#[from] std::io::Error),
}
