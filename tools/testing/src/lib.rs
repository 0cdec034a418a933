//! For tests only: small problems, and tests that need something which the repository does not hold.
//!
//! | module | holds |
//! |---|---|
//! | [`net`] | problems op by op, and the networks by which the documentation explains the rules |
//! | [`plans`] | plans of them, as short texts |
//! | [`random`] | strategies of `proptest` for random problems |
//! | [`cases()`] | how many of them a property is tried on |
//! | [`networks`] | the training steps of the POET paper |
//! | [`evaluate()`], [`evaluate_op`] | what a graph or an op computes, in integers: a reference interpreter |
//! | [`evaluate_numbers`] | the same in double precision, for what sums are split of |
//! | [`onnx`] | ONNX models, one line per node |
//! | [`mobile_net()`] | a network for image classes on small devices, as an ONNX model |
//! | `need`, `trial` | what a test needs from outside, and how it is skipped, with a reason, where that is missing |
//!
//! Tests with needs stand in targets of their own (`harness = false` in the manifest), whose `main` lists them with what each needs:
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
#![expect(clippy::panic, reason = "helpers of tests fail as tests do")]

mod cases;
mod evaluate;
mod mobile_net;
mod need;
pub mod net;
pub mod networks;
mod numbers;
pub mod onnx;
pub mod plans;
pub mod random;
mod ranked;
mod rows;
mod trial;

pub use cases::cases;
pub use evaluate::{Array, evaluate, evaluate_all, evaluate_op};
pub use mobile_net::mobile_net;
pub use need::{BARE_METAL, Need, REQUIRED, is_nightly, onnx_test_data, ortools, runtime_library, workspace};
pub use networks::TrainingNet;
pub use numbers::evaluate_numbers;
pub use rows::Numbers;
pub use trial::{Trial, run, within};
