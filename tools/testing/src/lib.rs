//! For tests only: tests that need something which the repository does not hold.
//!
//! Such tests stand in targets of their own (`harness = false` in the manifest), whose `main` lists them with what each needs:
//!
//! ```no_run
//! use std::process::ExitCode;
//! use remat_testing::{Need, run, trial};
//!
//! fn published_peaks() { /* reads files of `Need::Graphs` */ }
//!
//! fn main() -> ExitCode {
//!     run([trial!(published_peaks, Need::Graphs)])
//! }
//! ```
//!
//! A test whose need is not met is reported as ignored, with the reason; where the environment variable [`REQUIRED`] names the need, it
//! fails instead.

mod need;
mod trial;

pub use need::{Need, REQUIRED, onnx_test_data, runtime_library, workspace};
pub use trial::{Trial, run};
