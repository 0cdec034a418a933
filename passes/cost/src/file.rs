//! The profile file: durations that someone measured, as stable JSON in names instead of ids.

use std::collections::BTreeMap;

use remat_files::{DocumentError, document, shown};
use remat_ir::{Graph, OpId};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Profile, Provenance, list_names};

/// The value of [`ProfileFile::format`] that this version writes and reads.
pub const PROFILE_FORMAT: &str = "remat-profile/1";

/// Type and shape that a result had.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputRecord {
    /// Name of the tensor in the model.
    pub tensor: String,
    /// Element type in ONNX's words, `float` for instance.
    pub element: String,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Bytes of its elements; absent where elements have no fixed size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// How the runs were done whose times a profile states.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// The runtime with its version.
    pub runtime: String,
    /// What executed the nodes, `cpu` or `cuda:0`.
    pub provider: String,
    /// Threads within one node; 0 as many as the runtime wants.
    pub threads: u64,
    /// Graph optimization level.
    pub level: String,
    /// Whether the runtime's memory arena was on.
    pub arena: bool,
    /// Whether the runtime's memory pattern was on.
    pub memory_pattern: bool,
    /// Warm runs, whose medians are stated.
    pub runs: u64,
    /// Where the inputs came from.
    pub inputs: String,
    /// Values of symbolic dimensions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dims: BTreeMap<String, u64>,
    /// Median time of a whole run in nanoseconds.
    pub run_ns: u64,
}

/// What one op costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpRecord {
    /// Name of the op in the model.
    pub node: String,
    /// Time of one run in nanoseconds.
    pub duration_ns: u64,
    /// Bytes the kernel takes on top of operands and results while it runs; absent: as modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_bytes: Option<u64>,
    /// What the results were, where it was seen. Sizes that the model leaves open are taken from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputRecord>,
}

/// Costs of the ops of one model on one device, as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// [`PROFILE_FORMAT`].
    pub format: String,
    /// The machine, in words.
    pub device: String,
    /// How the figures were obtained, in words.
    pub method: String,
    /// When, as an ISO 8601 date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// How the runs were done, where they were done by a runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
    /// The ops; those left out keep their modelled costs.
    pub ops: Vec<OpRecord>,
}

/// What a profile file said about a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// Number of ops whose costs the file gave.
    pub matched: usize,
    /// Names of the ops that take time and keep their modelled costs, in reference order.
    pub missing: Vec<String>,
}

/// Why a profile file cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProfileError {
    /// The text is not a profile.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Two entries for one op.
    #[error("the profile states the costs of node `{}` twice", shown(.0))]
    DuplicateNode(String),
    /// The file belongs to another model.
    #[error("the model has no such nodes, of which the profile states the costs: {}", list_names(.0))]
    UnknownNodes(Vec<String>),
    /// The profile belongs to another graph.
    #[error("the profile describes {profile} ops, the graph has {graph}")]
    OpCount {
        /// Ops in the profile.
        profile: usize,
        /// Ops in the graph.
        graph: usize,
    },
}

impl ProfileFile {
    /// Reads a profile file.
    ///
    /// # Errors
    /// [`ProfileError::Document`].
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        Ok(document::read("profile", &[PROFILE_FORMAT], text)?)
    }

    /// The profile file as JSON: one line per op, so that profiles can be compared line by line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let head = Self {
            ops: Vec::new(),
            ..self.clone()
        };
        document::to_json_by_line(&head, "ops", &self.ops)
    }
}

impl Profile {
    /// Replaces modelled costs by those of a file.
    ///
    /// # Errors
    /// [`ProfileError`] if the file names an op twice or one that `graph` does not have; the profile is unchanged then.
    pub fn apply_file(&mut self, graph: &Graph, file: &ProfileFile) -> Result<Applied, ProfileError> {
        let (profile, ops) = (self.ops.len(), graph.ops.len());
        if profile != ops {
            return Err(ProfileError::OpCount { profile, graph: ops });
        }
        let mut records: FxHashMap<&str, &OpRecord> = FxHashMap::default();
        for record in &file.ops {
            if records.insert(&record.node, record).is_some() {
                return Err(ProfileError::DuplicateNode(record.node.clone()));
            }
        }
        let ids: FxHashMap<&str, OpId> = graph
            .ops
            .iter_enumerated()
            .map(|(id, op)| (op.name.as_str(), id))
            .collect();
        let names = file.ops.iter().map(|record| &record.node);
        let unknown: Vec<String> = names.filter(|node| !ids.contains_key(node.as_str())).cloned().collect();
        if !unknown.is_empty() {
            return Err(ProfileError::UnknownNodes(unknown));
        }
        let mut missing = Vec::new();
        for (id, op) in graph.ops.iter_enumerated() {
            let cost = &mut self.ops[id];
            if let Some(record) = records.get(op.name.as_str()) {
                cost.duration_ns = record.duration_ns;
                cost.workspace_bytes = record.workspace_bytes.unwrap_or(cost.workspace_bytes);
                cost.provenance = Provenance::File;
            } else if cost.duration_ns > 0 {
                missing.push(op.name.clone());
            }
        }
        self.device.clone_from(&file.device);
        self.method = if missing.is_empty() {
            file.method.clone()
        } else {
            format!("{}; {} for {} ops", file.method, self.method, missing.len())
        };
        Ok(Applied {
            matched: records.len(),
            missing,
        })
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
