//! Runs models in ONNX Runtime, loaded at run time from a shared library.
//!
//! The only crate that reaches the runtime. It builds without it: the library is looked up when [`Runtime::load`] is called.
//! Today it serves one purpose: the same seeded inputs through two models, and the bits of every output.

mod error;
mod inputs;
mod output;
mod session;

pub use error::RuntimeError;
pub use output::Output;
pub use session::{OptimizationLevel, Runtime, SessionSettings, run_seeded};
