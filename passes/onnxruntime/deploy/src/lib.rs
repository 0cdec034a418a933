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
//!
//! All of it shares one limit (`clock`). A first plan is measured early (`attempt`), so that there is a file to write whenever the time is over.

mod attempt;
mod check;
mod clock;
mod error;
mod given;
mod plan;
mod profile;
mod promise;
mod run;
mod variant;

pub use check::{Check, Measured};
pub use clock::LeftOut;
pub use error::DeployError;
pub use given::{open_for_plan, order_for_plan};
pub use profile::{ProfileRequest, measured_profile};
pub use promise::Promise;
pub use remat_onnxruntime_lower::OrderHint;
pub use run::{DeployRequest, Deployment, Profiler, deploy};
pub use variant::{Abandoned, Variant};
