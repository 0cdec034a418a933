//! What a page asks and is told, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a model is to be read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// What the model is called.
    pub name: String,
    /// Values of dimensions that it leaves open.
    pub dims: BTreeMap<String, u64>,
}

/// What is known of a model before it is planned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Summary {
    /// What it is called.
    pub name: String,
    /// Ops of its main graph.
    pub ops: usize,
    /// Bytes of its weights.
    pub weights_bytes: u64,
    /// The least block for everything else, as the model is.
    pub block_bytes: u64,
    /// Most of it that is needed at one time, as the model is.
    pub peak_bytes: u64,
    /// What no plan of whole ops goes below.
    pub least_bytes: u64,
    /// The op that needs it; empty where it is no single one.
    pub least_op: String,
    /// The op at the peak.
    pub peak_op: String,
}

/// A plan that was found and checked.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The budget that was asked for, as a share in per cent; absent for the lowest peak.
    pub percent: Option<u32>,
    /// Most that is needed at one time.
    pub peak_bytes: u64,
    /// The block in which everything has its place.
    pub block_bytes: u64,
    /// Time beyond that of the model as it is, in per cent, estimated.
    pub overhead_percent: f64,
    /// How many ops run again.
    pub recomputes: usize,
    /// Fused chains that run tile by tile.
    pub tiled: usize,
}
