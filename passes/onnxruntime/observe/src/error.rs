//! Why the memory of a file cannot be planned.

use std::collections::BTreeMap;
use std::path::PathBuf;

use remat::ErrorKind;
use remat_files::shown;
use remat_onnxruntime_run::{RuntimeError, dims_text};
use thiserror::Error;

/// Why there is no plan of the memory of a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArenaPlanError {
    /// The buffers cannot be placed.
    #[error(transparent)]
    Pipeline(#[from] remat::Error),
    /// ONNX Runtime refuses the model, or is not what it should be.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// This program was built for a system that the arena library does not run on.
    #[error("this program has no arena library: it is made for Linux only")]
    NoLibrary,
    /// A file cannot be read or written.
    #[error("cannot use `{path}`: {why}", path = shown(.path.display()), why = shown(.why))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// The file with its plan does not compute what the model does that it was made of.
    #[error("output `{}` differs where memory is planned{}", shown(.output), at(.dims))]
    OutputDiffers {
        /// The first output that differs, bitwise or by its shape.
        output: String,
        /// Sizes of open dimensions.
        dims: BTreeMap<String, u64>,
    },
    /// The file does not run with its plan where the model does that it was made of.
    #[error("it does not run where memory is planned{}: {}", at(.dims), shown(.why))]
    Fails {
        /// The runtime's words.
        why: String,
        /// Sizes of open dimensions.
        dims: BTreeMap<String, u64>,
    },
    /// Buffers do not lie where they are planned.
    #[error(
        "runs do not follow the plan of their memory: {placed} buffers are placed, {missed} unforeseen, {refused} refused"
    )]
    NotFollowed {
        /// Buffers that no plan foresees.
        missed: u64,
        /// Buffers whose planned bytes were taken.
        refused: u64,
        /// Buffers that lie where they are planned.
        placed: u64,
    },
    /// The process grows by more than is predicted.
    #[error(
        "with the plan of its memory, the process grows by {measured} bytes in its {runs} runs, and {predicted} bytes are predicted: \
         the block, what runs take outside of it, and code that they read"
    )]
    Grows {
        /// The predicted growth in bytes.
        predicted: u64,
        /// The measured one.
        measured: u64,
        /// Which runs: `first` or `later`.
        runs: &'static str,
    },
    /// The process grows by more than with the original, without any plan.
    #[error("with the plan of its memory, the process grows by {planned} bytes, with the original by {original}")]
    NoLess {
        /// Growth of the process in bytes, with the plan.
        planned: u64,
        /// That of the original in a default session.
        original: u64,
    },
    /// The runtime orders the nodes of the model differently each time that it loads it.
    #[error(
        "the runtime allocates in another order each time that it loads the model, so no plan of its memory can be followed"
    )]
    OtherOrder,
    /// The file of plans would be larger than one that is read.
    #[error(
        "the plan of memory takes {bytes} bytes as a file, {most} are the most: plan fewer shapes or numbers of threads in one file"
    )]
    TooLarge {
        /// Bytes that it takes.
        bytes: u64,
        /// The most there may be.
        most: u64,
    },
}

/// With which sizes, as the end of a sentence.
fn at(dims: &BTreeMap<String, u64>) -> String {
    if dims.is_empty() {
        return String::new();
    }
    format!(" with {}", dims_text(dims))
}

impl ArenaPlanError {
    /// Which of the documented outcomes this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Pipeline(error) => error.kind(),
            Self::Runtime(RuntimeError::TimedOut { .. } | RuntimeError::Cancelled { .. }) => ErrorKind::Limit,
            Self::Runtime(_) => ErrorKind::Input,
            Self::NoLibrary | Self::File { .. } | Self::TooLarge { .. } => ErrorKind::Input,
            Self::OutputDiffers { .. } | Self::Fails { .. } => ErrorKind::Internal,
            Self::NotFollowed { .. } | Self::Grows { .. } | Self::NoLess { .. } | Self::OtherOrder => {
                ErrorKind::Negative
            }
        }
    }
}
