//! Logs of eager executions, as the DTR paper's prototype writes them: one JSON object per line.
//!
//! `read` takes text or gzip, `instruction` one line, `build` turns instructions into a [`Trace`](crate::Trace).

mod build;
mod error;
mod instruction;
mod read;

pub use error::{LogError, LogErrorKind};
pub use read::read;
