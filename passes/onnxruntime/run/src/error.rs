//! What can go wrong on the way to the bits of an output.

use std::path::PathBuf;
use std::time::Duration;

use remat_files::shown;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An error of the runtime or on the way to it. Child processes send it to their parent.
#[derive(Clone, PartialEq, Eq, Debug, Error, Serialize, Deserialize)]
pub enum RuntimeError {
    /// The shared library is missing or too old.
    #[error("cannot load ONNX Runtime from `{path}`: {why}", path = shown(.path.display()), why = shown(.why))]
    Library {
        /// Where it was looked for.
        path: PathBuf,
        /// The loader's words.
        why: String,
    },
    /// The library lacks what executes the nodes.
    #[error("this library of ONNX Runtime has no provider `{provider}`: {why}", provider = shown(.provider), why = shown(.why))]
    Provider {
        /// The provider.
        provider: String,
        /// The runtime's words.
        why: String,
    },
    /// The runtime refuses the model.
    #[error("ONNX Runtime cannot load `{model}`: {why}", model = shown(.model.display()), why = shown(.why))]
    Load {
        /// The model file.
        model: PathBuf,
        /// The runtime's words.
        why: String,
    },
    /// The model has an input that cannot be filled.
    #[error("input `{input}` of `{model}` cannot be filled: {why}", model = shown(.model.display()), input = shown(.input), why = shown(.why))]
    Input {
        /// The model file.
        model: PathBuf,
        /// The input.
        input: String,
        /// The reason.
        why: String,
    },
    /// A kernel failed.
    #[error("ONNX Runtime cannot run `{model}`: {why}", model = shown(.model.display()), why = shown(.why))]
    Run {
        /// The model file.
        model: PathBuf,
        /// The runtime's words.
        why: String,
    },
    /// The runtime did not write the model that it optimized.
    #[error("ONNX Runtime cannot write `{model}` as `{out}`: {why}", model = shown(.model.display()), out = shown(.out.display()), why = shown(.why))]
    Save {
        /// The model file.
        model: PathBuf,
        /// Where it was to be written.
        out: PathBuf,
        /// The runtime's words.
        why: String,
    },
    /// The arena library cannot be loaded, or refuses its plan.
    #[error("the arena library `{path}` cannot be used: {why}", path = shown(.path.display()), why = shown(.why))]
    ArenaLibrary {
        /// The library.
        path: PathBuf,
        /// The runtime's words.
        why: String,
    },
    /// The runtime's profile is not what it is known to be.
    #[error("the profile that ONNX Runtime wrote of `{model}` cannot be read: {why}", model = shown(.model.display()), why = shown(.why))]
    Profile {
        /// The model file.
        model: PathBuf,
        /// What was found.
        why: String,
    },
    /// The process in which the model was to run did not answer.
    #[error("the process that ran `{model}` {why}", model = shown(.model.display()), why = shown(.why))]
    Child {
        /// The model file.
        model: PathBuf,
        /// How it ended, with the last line that it wrote on its error stream.
        why: String,
    },
    /// The process in which the model ran was killed, because it took too long.
    #[error("`{model}` did not finish within {:.0} s in ONNX Runtime", .limit.as_secs_f64().ceil())]
    TimedOut {
        /// The model file.
        model: PathBuf,
        /// The time it had, loading included.
        limit: Duration,
    },
    /// The process in which the model ran was killed, or not started any more, because the caller said so.
    #[error("the run of `{model}` in ONNX Runtime was interrupted")]
    Cancelled {
        /// The model file.
        model: PathBuf,
    },
}
