//! What a model takes as it is: what budgets in per cent are shares of.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The peak of a model without a plan. Every share of memory, in budgets and in reports, is one of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BaselinePeak {
    /// The peak in bytes.
    pub bytes: u64,
    /// What says so.
    pub of: BaselineOf,
}

/// What says how much a model takes as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineOf {
    /// A run in ONNX Runtime with the memory arena off.
    Measured,
    /// The simulation of such a run.
    Simulated,
    /// Every op once, in the order of the file, as plans count memory.
    #[default]
    FileOrder,
}

impl fmt::Display for BaselineOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured in ONNX Runtime",
            Self::Simulated => "simulated for ONNX Runtime",
            Self::FileOrder => "in file order",
        })
    }
}
