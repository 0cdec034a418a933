//! What is to be scheduled, free of any model format.

use std::io::BufWriter;

use remat_ir::{OpId, StorageId, TensorId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use crate::{Objective, Paging};

/// Which bytes count against the budget. The mode is applied when the problem is built (sizes, roles and workspace already
/// follow it); it is kept for the reader of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// The convention of the Checkmate and Moccasin papers: results of ops count, inputs and parameters do not, results that
    /// nobody reads die at once, graph outputs included.
    Paper,
    /// What an inference runtime takes: graph outputs stay until the end, inputs and constants belong to the caller and the
    /// session, sizes are aligned, views share memory, kernels take workspace.
    Runtime,
}

/// Whether the first computes must follow the reference order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrderMode {
    /// First computes of the ops that own memory follow the reference order; recomputes stand anywhere.
    Fixed,
    /// Any topological order.
    Free,
}

/// What happens to the memory of a storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageRole {
    /// May be freed at any time, and recomputed.
    Transient,
    /// Resident from its first compute to the end: it holds a graph output, or the runtime does not release it earlier.
    LiveOut,
    /// Belongs to the caller or the session: never counted, never freed.
    External,
}

/// One op.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemOp {
    /// Unique name.
    pub name: String,
    /// Time of one run, in nanoseconds for models; in the graph's own unit for graphs that state durations.
    pub duration: u64,
    /// Energy of one run, in picojoules.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub energy_pj: u64,
    /// Bytes the kernel takes on top of operands and results while it runs.
    #[serde(default)]
    pub workspace: u64,
    /// Whether the op may run more than once.
    #[serde(default = "yes")]
    pub recomputable: bool,
    /// Tensors that must be defined when the op runs, without repetition.
    #[schemars(with = "Vec<u32>")]
    pub reads: Vec<TensorId>,
    /// Tensors the op defines.
    #[schemars(with = "Vec<u32>")]
    pub defines: Vec<TensorId>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// One tensor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemTensor {
    /// Unique name.
    pub name: String,
    /// Where it lives.
    #[schemars(with = "u32")]
    pub storage: StorageId,
    /// The op that defines it; absent for what the caller or the session provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u32>")]
    pub producer: Option<OpId>,
}

/// One piece of memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProblemStorage {
    /// The tensor that creates it; tensors of the same storage with other producers are views.
    #[schemars(with = "u32")]
    pub root: TensorId,
    /// Size in bytes, aligned where the accounting says so.
    pub bytes: u64,
    /// What happens to it.
    pub role: StorageRole,
}

/// Write after read: `before` never runs once `after` has run, be it again.
///
/// `after` overwrites in place what `before` reads, such as an optimizer that updates a parameter: a later run of `before` would read
/// the new value. Further runs of `after` itself are another matter ([`ProblemOp::recomputable`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AntiDependence {
    /// The op that reads.
    #[schemars(with = "u32")]
    pub before: OpId,
    /// The op that overwrites; later in the reference order.
    #[schemars(with = "u32")]
    pub after: OpId,
}

/// A rematerialization problem. Ids are positions; the order of `ops` is the reference order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// Name of the model.
    pub name: String,
    /// Which bytes count.
    pub accounting: Accounting,
    /// Whether first computes follow the reference order.
    pub order: OrderMode,
    /// How often one op may run at most; absent: no limit. Views are exempt: re-running them costs no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_computes: Option<u32>,
    /// Largest allowed peak in bytes; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// The second memory; absent: paging steps are not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<Paging>,
    /// What a plan is to be good at.
    #[serde(default, skip_serializing_if = "Objective::is_default")]
    pub objective: Objective,
    /// Longest allowed duration of a plan, in nanoseconds; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// The ops.
    #[schemars(with = "Vec<ProblemOp>")]
    pub ops: TiVec<OpId, ProblemOp>,
    /// The tensors.
    #[schemars(with = "Vec<ProblemTensor>")]
    pub tensors: TiVec<TensorId, ProblemTensor>,
    /// The storages.
    #[schemars(with = "Vec<ProblemStorage>")]
    pub storages: TiVec<StorageId, ProblemStorage>,
    /// Which ops never run after which others, without repetition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anti_dependences: Vec<AntiDependence>,
}

impl Problem {
    /// Whether least time within the budget is all that is asked for: there is no second memory, no deadline and no other objective.
    #[must_use]
    pub fn is_time_within_budget(&self) -> bool {
        self.paging.is_none() && self.deadline.is_none() && self.objective == Objective::Time
    }

    /// The problem as indented JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a problem has only string keys and integers")
    }

    /// Hex digest of the problem, budget and limits included: what a certificate speaks about.
    #[must_use]
    pub fn digest(&self) -> String {
        digest_of(self)
    }

    /// Hex digest of what is scheduled, by name: ops, what they read and define, and which tensors share memory. Sizes, costs and limits
    /// do not count, so that it tells models apart and nothing else.
    #[must_use]
    pub fn graph_digest(&self) -> String {
        let ops = self.ops.iter().map(|op| (&op.name, &op.reads, &op.defines));
        let tensors = self.tensors.iter().map(|tensor| (&tensor.name, tensor.storage));
        let parts = (ops.collect::<Vec<_>>(), tensors.collect::<Vec<_>>());
        digest_of(&parts)
    }

    /// Time of computing every op once.
    #[must_use]
    pub fn total_duration(&self) -> u64 {
        self.ops.iter().map(|op| op.duration).sum()
    }

    /// Energy of computing every op once, in picojoules.
    #[must_use]
    pub fn total_energy(&self) -> u64 {
        self.ops.iter().map(|op| op.energy_pj).sum()
    }

    /// Name of a storage: that of its root tensor.
    #[must_use]
    pub fn storage_name(&self, storage: StorageId) -> &str {
        &self.tensors[self.storages[storage].root].name
    }
}

/// Hex digest of the JSON form, which is not held: of a million ops it takes some hundred megabytes.
fn digest_of(value: &impl Serialize) -> String {
    let mut text = BufWriter::with_capacity(1 << 16, blake3::Hasher::new());
    serde_json::to_writer(&mut text, value)
        .expect("there are only string keys and integers, and hashing does not fail");
    let hasher = text.into_inner().expect("hashing does not fail");
    hasher.finalize().to_hex()[..16].to_owned()
}
