//! Rewritten models compute the same bits in ONNX Runtime, whatever the runtime does to them when it loads them.
//!
//! Needs the runtime's library (`third_party/fetch.sh` brings it; `REMAT_ORT_LIBRARY` names another); without it the tests say
//! so and pass, because the default build must work on a machine that has nothing but cargo.
#![expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "the helpers of tests fail and speak like tests"
)]

mod bits;
mod common;
mod deploy;
mod features;
mod measure;
mod profile;
mod stress;
