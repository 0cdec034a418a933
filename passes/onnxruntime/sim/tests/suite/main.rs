//! The simulation against ONNX Runtime, and against itself.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the helpers of tests fail and speak like tests"
)]

mod comparison;
mod control;
mod facts;
mod properties;
mod rules;
mod runtime;
