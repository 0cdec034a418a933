//! What ONNX Runtime takes for a file, predicted: the runtime is simulated on the file as it is written ([`simulate`]), and nothing runs.
//!
//! Subgraphs of If, Loop and Scan are planned as models of their own ([`BodyTask`]), because what their nodes take then is simulated, too.

mod bodies;
mod error;
mod simulate;

pub use bodies::{BodyTask, BodyWriter, PlannedBodies, with_planned_bodies};
pub use error::PredictError;
pub use simulate::{
    Prediction, Simulated, as_it_is, bytes_by_body, simulate, simulate_loaded, simulated, with_simulated_baseline,
};
