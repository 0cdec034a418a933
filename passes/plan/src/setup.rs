//! How the model of a plan was read: with the model, enough to build the problem again that the plan answers.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Paging, Tiling};

/// A device that a plan was made for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// Its name.
    pub name: String,
    /// Its figures, where it is none of those that the program knows: the keys of a device table, with `efficiencies` of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<serde_json::Value>,
}

/// What a model was read with. Accounting and order stand in the plan itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// [`crate::Problem::graph_digest`] of the problem: which model it is.
    pub graph: String,
    /// [`crate::Problem::digest`] of the problem without budget, objective and deadline: which model, sizes and costs.
    pub problem: String,
    /// The runtime with its version, where the plan is one for the graph that this runtime makes of the model by fusing nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fused_by: Option<String>,
    /// The execution orders that the file for ONNX Runtime was made for, `any` or `priority`; absent: no such file was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_hint: Option<String>,
    /// Values of symbolic dimensions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dims: BTreeMap<String, u64>,
    /// Those of them that are fixed: what is written takes no other values.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub fixed_dims: BTreeSet<String>,
    /// Bytes of tensors whose size does not follow from the model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, u64>,
    /// How often one op may run at most; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_computes: Option<u32>,
    /// The device that durations are estimated for; absent where the input states durations itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceRecord>,
    /// Measured times of ops, in nanoseconds, which replace the estimates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub durations_ns: BTreeMap<String, u64>,
    /// Measured workspace of ops, in bytes, which replaces the estimates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workspace_bytes: BTreeMap<String, u64>,
    /// The fused chains of the graph that run tile by tile: the plan is one for the tiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiling: Option<Tiling>,
    /// The second memory; absent: nothing moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<Paging>,
}
