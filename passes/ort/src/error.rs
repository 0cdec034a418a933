//! What can go wrong on the way to the bits of an output.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the runtime or on the way to it.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The shared library is missing or too old.
    #[error("cannot load ONNX Runtime from `{path}`: {why}")]
    Library {
        /// Where it was looked for.
        path: PathBuf,
        /// The loader's words.
        why: String,
    },
    /// The runtime refuses the model.
    #[error("ONNX Runtime cannot load `{model}`: {why}")]
    Load {
        /// The model file.
        model: PathBuf,
        /// The runtime's words.
        why: String,
    },
    /// The model has an input that cannot be filled.
    #[error("input `{input}` of `{model}` cannot be filled: {why}")]
    Input {
        /// The model file.
        model: PathBuf,
        /// The input.
        input: String,
        /// The reason.
        why: String,
    },
    /// A kernel failed.
    #[error("ONNX Runtime cannot run `{model}`: {why}")]
    Run {
        /// The model file.
        model: PathBuf,
        /// The runtime's words.
        why: String,
    },
}
