//! The whole way to a model that keeps its promise in ONNX Runtime: [`deploy`].
//!
//! ```text
//! model.onnx ── fuse ──> Model ── solve ──> Solution ── lower ──> file ── promise ──> check ──> small.onnx
//!               (runtime)          ^                                        |           |
//!                                  └──── less by what the runtime adds ─────┘           └── another variant, if bits differ
//! ```
//!
//! What the runtime makes of a file is first simulated (`promise`), then measured (`check`). Without a runtime at hand nothing is fused and
//! nothing measured.

mod check;
mod promise;
mod run;
mod variant;

pub use check::{Check, Measured};
pub use promise::Promise;
pub use run::{DeployRequest, Deployment, Profiler, deploy};
pub use variant::{Abandoned, Variant};
