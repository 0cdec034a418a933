//! Fuzz targets: what a reader accepts must survive everything that follows, up to the checker.
//!
//! A [`Target`] takes any bytes as one of the inputs of this program. Most bytes are refused by the reader, which must not panic. What it
//! accepts is checked against the invariants of what it became, planned by a solver with few steps, replayed by the checker, applied,
//! written and read back. The body panics where something does not hold, and never otherwise.
//!
//! The same bodies run in two ways: on the seeds and on mutants of them in this crate's tests, and under libFuzzer in the package `fuzz`
//! at the root of the repository (`docs/fuzzing.md`). Sizes are bounded, so that a body takes milliseconds.

mod arena;
mod device;
mod graph;
mod judge;
mod log;
mod mutate;
mod nodelink;
mod onnx;
// The second, naive statement of the checker's rules.
#[path = "../../../passes/verify/tests/it/oracle.rs"]
mod oracle;
mod plan;
mod problem;
mod profile;
mod rng;
mod sample;
mod schedule;
mod seeds;
mod target;

pub use mutate::{Mutants, mutate};
pub use rng::Rng;
pub use seeds::{Seed, seeds};
pub use target::{Form, TARGETS, Target};
