//! What is to be scheduled, free of any model format.

use remat_files::shown;
use remat_ir::{OpId, StorageId, TensorId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
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
#[serde(rename_all = "lowercase")]
pub enum StorageRole {
    /// May be freed at any time, and recomputed.
    Transient,
    /// Resident from its first compute to the end: it holds a graph output, or the runtime does not release it earlier.
    Kept,
    /// Belongs to the caller or the session: never counted, never freed.
    External,
}

/// One op.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
pub struct ProblemStorage {
    /// The tensor that creates it; tensors of the same storage with other producers are views.
    #[schemars(with = "u32")]
    pub root: TensorId,
    /// Size in bytes, aligned where the accounting says so.
    pub bytes: u64,
    /// What happens to it.
    pub role: StorageRole,
}

/// A rematerialization problem. Ids are positions; the order of `ops` is the reference order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
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
}

/// Why a problem read from a file is malformed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProblemError {
    /// The JSON text does not have the form of a problem.
    #[error("not a problem: {}", shown(.0))]
    Json(String),
    /// An id points behind the end of its table.
    #[error("{owner} refers to {what} {id}, but there are only {count}", owner = shown(.owner))]
    IdOutOfRange {
        /// Who refers.
        owner: String,
        /// `op`, `tensor` or `storage`.
        what: &'static str,
        /// The id.
        id: usize,
        /// Size of the table.
        count: usize,
    },
    /// Two ops or two tensors have one name.
    #[error("the name `{}` is used twice", shown(.0))]
    DuplicateName(String),
    /// An op reads a tensor that a later op (or the op itself) defines.
    #[error("op `{op}` reads `{tensor}` before it is defined: ops must stand in a topological order", op = shown(.op), tensor = shown(.tensor))]
    NotTopological {
        /// The op.
        op: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor names another producer than the op that lists it among its results.
    #[error("tensor `{}` and its producer do not agree", shown(.0))]
    WrongProducer(String),
    /// A storage's root lives in another storage.
    #[error("storage {0} and its root tensor do not agree")]
    WrongRoot(usize),
    /// A view is defined before the memory it looks into is created.
    #[error("tensor `{}` is a view, and is defined before the memory it looks into is created", shown(.0))]
    ViewBeforeBase(String),
    /// Sizes, durations or energies are so large that their sums do not fit 64 bits.
    #[error("the sum of all {0} overflows 63 bits")]
    Overflow(&'static str),
    /// The bus to the second memory moves nothing.
    #[error("the second memory has a bandwidth of 0 bytes per second")]
    NoBandwidth,
}

impl Problem {
    /// Reads a problem from JSON and checks it.
    ///
    /// # Errors
    /// [`ProblemError`] if the text is malformed or the problem breaks one of its rules.
    pub fn from_json(text: &str) -> Result<Self, ProblemError> {
        let problem: Self = serde_json::from_str(text).map_err(|error| ProblemError::Json(error.to_string()))?;
        problem.validate()?;
        Ok(problem)
    }

    /// The problem as indented JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a problem has only string keys and integers")
    }

    /// Hex digest of the problem, budget and limits included: what a certificate speaks about.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("a problem has only string keys and integers");
        blake3::hash(&text).to_hex()[..16].to_owned()
    }

    /// Hex digest of what is scheduled, by name: ops, what they read and define, and which tensors share memory. Sizes, costs and limits
    /// do not count, so that it tells models apart and nothing else.
    #[must_use]
    pub fn graph_digest(&self) -> String {
        let ops = self.ops.iter().map(|op| (&op.name, &op.reads, &op.defines));
        let tensors = self.tensors.iter().map(|tensor| (&tensor.name, tensor.storage));
        let parts = (ops.collect::<Vec<_>>(), tensors.collect::<Vec<_>>());
        let text = serde_json::to_vec(&parts).expect("names and ids have a JSON form");
        blake3::hash(&text).to_hex()[..16].to_owned()
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

    /// Checks ids, names, order, agreement of producers and roots, the bus, and that all sums fit 63 bits.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), ProblemError> {
        self.check_ids()?;
        self.check_names()?;
        self.check_producers()?;
        for (id, op) in self.ops.iter_enumerated() {
            for &tensor in &op.reads {
                if self.tensors[tensor].producer.is_some_and(|producer| producer >= id) {
                    let tensor = self.tensors[tensor].name.clone();
                    return Err(ProblemError::NotTopological {
                        op: op.name.clone(),
                        tensor,
                    });
                }
            }
        }
        let sizes = self
            .storages
            .iter()
            .map(|s| s.bytes)
            .chain(self.ops.iter().map(|op| op.workspace));
        sum_fits("sizes", sizes)?;
        sum_fits("durations", self.ops.iter().map(|op| op.duration))?;
        sum_fits("energies", self.ops.iter().map(|op| op.energy_pj))?;
        let ways = self.paging.iter().flat_map(|paging| [paging.page_out, paging.page_in]);
        for way in ways {
            if way.bytes_per_s == 0 {
                return Err(ProblemError::NoBandwidth);
            }
            let bytes = || self.storages.iter().map(|storage| storage.bytes);
            sum_fits("transfer times", bytes().map(|bytes| way.duration(bytes)))?;
            sum_fits("transfer energies", bytes().map(|bytes| way.energy(bytes)))?;
        }
        Ok(())
    }

    fn check_ids(&self) -> Result<(), ProblemError> {
        let within = |owner: &str, what: &'static str, id: usize, count: usize| {
            if id < count {
                return Ok(());
            }
            Err(ProblemError::IdOutOfRange {
                owner: owner.to_owned(),
                what,
                id,
                count,
            })
        };
        for op in &self.ops {
            for tensor in op.reads.iter().chain(&op.defines) {
                within(
                    &format!("op `{}`", op.name),
                    "tensor",
                    tensor.index(),
                    self.tensors.len(),
                )?;
            }
        }
        for tensor in &self.tensors {
            let owner = format!("tensor `{}`", tensor.name);
            within(&owner, "storage", tensor.storage.index(), self.storages.len())?;
            if let Some(op) = tensor.producer {
                within(&owner, "op", op.index(), self.ops.len())?;
            }
        }
        for (id, storage) in self.storages.iter_enumerated() {
            within(
                &format!("storage {}", id.index()),
                "tensor",
                storage.root.index(),
                self.tensors.len(),
            )?;
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ProblemError> {
        let mut seen = rustc_hash::FxHashSet::default();
        for op in &self.ops {
            if !seen.insert(op.name.as_str()) {
                return Err(ProblemError::DuplicateName(op.name.clone()));
            }
        }
        seen.clear();
        for tensor in &self.tensors {
            if !seen.insert(tensor.name.as_str()) {
                return Err(ProblemError::DuplicateName(tensor.name.clone()));
            }
        }
        Ok(())
    }

    fn check_producers(&self) -> Result<(), ProblemError> {
        let mut found: TiVec<TensorId, Option<OpId>> = TiVec::from(vec![None; self.tensors.len()]);
        for (id, op) in self.ops.iter_enumerated() {
            for &tensor in &op.defines {
                if found[tensor].replace(id).is_some() {
                    return Err(ProblemError::WrongProducer(self.tensors[tensor].name.clone()));
                }
            }
        }
        for (tensor, &producer) in self.tensors.iter().zip(&found) {
            if tensor.producer != producer {
                return Err(ProblemError::WrongProducer(tensor.name.clone()));
            }
        }
        for (id, storage) in self.storages.iter_enumerated() {
            if self.tensors[storage.root].storage != id {
                return Err(ProblemError::WrongRoot(id.index()));
            }
        }
        for tensor in &self.tensors {
            let creator = self.tensors[self.storages[tensor.storage].root].producer;
            if tensor
                .producer
                .zip(creator)
                .is_some_and(|(producer, creator)| producer < creator)
            {
                return Err(ProblemError::ViewBeforeBase(tensor.name.clone()));
            }
        }
        Ok(())
    }
}

/// Sums of sizes and durations are taken everywhere; that none overflows is checked once, here.
fn sum_fits(what: &'static str, mut values: impl Iterator<Item = u64>) -> Result<(), ProblemError> {
    let sum = values.try_fold(0u64, u64::checked_add);
    let fits = sum.is_some_and(|sum| i64::try_from(sum).is_ok());
    if fits {
        Ok(())
    } else {
        Err(ProblemError::Overflow(what))
    }
}
