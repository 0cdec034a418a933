//! The invariants of a graph, checked in the order in which the crate's documentation lists them.

use rustc_hash::FxHashSet;
use thiserror::Error;
use typed_index_collections::TiVec;

use crate::{Graph, Op, OpId, OpKind, StorageClass, StorageId, TensorId};

/// A broken invariant; every message names the op or tensor.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GraphError {
    /// Invariant 1.
    #[error("op name `{0}` is defined twice")]
    DuplicateOp(String),
    /// Invariant 1.
    #[error("tensor name `{0}` is defined twice")]
    DuplicateTensor(String),
    /// Invariant 2.
    #[error("tensor `{tensor}` is not a result of the op `{op}` that it names as its producer")]
    WrongProducer {
        /// The tensor.
        tensor: String,
        /// The op.
        op: String,
    },
    /// Invariant 3.
    #[error("op `{op}` reads `{tensor}` before it is defined")]
    UsedBeforeDefined {
        /// The op that reads.
        op: String,
        /// What it reads.
        tensor: String,
    },
    /// Invariant 4.
    #[error("result `{tensor}` of op `{op}` is a view of a storage that the op does not read")]
    ViewOfStranger {
        /// The op.
        op: String,
        /// Its result.
        tensor: String,
    },
    /// Invariant 5.
    #[error("recompute op `{op}` does not repeat an earlier pure compute op of the same type and results")]
    BadRecompute {
        /// The recompute op.
        op: String,
    },
    /// Invariant 6.
    #[error("op `{op}` reads `{tensor}` after its storage was deallocated")]
    UsedAfterDealloc {
        /// The op that reads.
        op: String,
        /// What it reads.
        tensor: String,
    },
    /// Invariant 6.
    #[error("storage of `{tensor}` cannot be deallocated: {why}")]
    BadDealloc {
        /// Root of the storage.
        tensor: String,
        /// The reason.
        why: &'static str,
    },
    /// Invariant 7.
    #[error("op `{op}` reads `{tensor}` while its storage is in the second memory")]
    UsedWhilePagedOut {
        /// The op that reads.
        op: String,
        /// What it reads.
        tensor: String,
    },
    /// Invariant 7.
    #[error("{word} of `{tensor}` is not possible: {why}")]
    BadPage {
        /// `page_out` or `page_in`.
        word: &'static str,
        /// Root of the storage.
        tensor: String,
        /// The reason.
        why: &'static str,
    },
    /// Invariant 7.
    #[error("graph output `{0}` is in the second memory at the end")]
    OutputPagedOut(String),
    /// Invariant 8.
    #[error("`{what}` cannot lie there: {why}")]
    BadPlace {
        /// The root of the storage, or the op that has a workspace.
        what: String,
        /// The reason.
        why: String,
    },
    /// Invariant 9.
    #[error("op `{op}` cannot compute such a part: {why}")]
    BadPart {
        /// The op.
        op: String,
        /// The reason.
        why: String,
    },
    /// Invariant 10.
    #[error("`{tensor}` cannot have these elements: {why}")]
    BadValues {
        /// The tensor.
        tensor: String,
        /// The reason.
        why: String,
    },
}

/// Where a storage is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Memory,
    Second,
    Gone,
}

impl Graph {
    /// Checks every invariant of the crate's documentation.
    ///
    /// # Errors
    /// All broken invariants, in the order of the documentation.
    pub fn validate(&self) -> Result<(), Vec<GraphError>> {
        let mut errors = Vec::new();
        self.check_names(&mut errors);
        self.check_producers(&mut errors);
        self.check_order(&mut errors);
        self.check_views(&mut errors);
        self.check_recomputes(&mut errors);
        self.check_memory(&mut errors);
        self.check_block(&mut errors);
        self.check_parts(&mut errors);
        self.check_values(&mut errors);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn check_names(&self, errors: &mut Vec<GraphError>) {
        let mut seen = FxHashSet::default();
        for op in self.ops.iter().filter(|op| op.kind.is_run()) {
            if !seen.insert(op.name.as_str()) {
                errors.push(GraphError::DuplicateOp(op.name.clone()));
            }
        }
        seen.clear();
        for tensor in &self.tensors {
            if !seen.insert(tensor.name.as_str()) {
                errors.push(GraphError::DuplicateTensor(tensor.name.clone()));
            }
        }
    }

    fn check_producers(&self, errors: &mut Vec<GraphError>) {
        let mut found: TiVec<TensorId, Option<OpId>> = TiVec::from(vec![None; self.tensors.len()]);
        for (id, op) in self.ops.iter_enumerated() {
            for tensor in op.results() {
                found[tensor] = Some(id);
            }
        }
        for (tensor, &producer) in self.tensors.iter().zip(&found) {
            if tensor.producer != producer {
                let op = tensor
                    .producer
                    .or(producer)
                    .map_or_else(String::new, |id| self.ops[id].name.clone());
                errors.push(GraphError::WrongProducer {
                    tensor: tensor.name.clone(),
                    op,
                });
            }
        }
    }

    fn check_order(&self, errors: &mut Vec<GraphError>) {
        for (id, op) in self.ops.iter_enumerated() {
            for tensor in op.reads() {
                if self.tensors[tensor].producer.is_some_and(|producer| producer >= id) {
                    let tensor = self.tensors[tensor].name.clone();
                    errors.push(GraphError::UsedBeforeDefined {
                        op: op.name.clone(),
                        tensor,
                    });
                }
            }
        }
    }

    fn check_views(&self, errors: &mut Vec<GraphError>) {
        for op in &self.ops {
            for result in op.results().filter(|&t| self.is_view(t)) {
                let storage = self.tensors[result].storage;
                if !op.reads().any(|t| self.tensors[t].storage == storage) {
                    let tensor = self.tensors[result].name.clone();
                    errors.push(GraphError::ViewOfStranger {
                        op: op.name.clone(),
                        tensor,
                    });
                }
            }
        }
    }

    fn check_recomputes(&self, errors: &mut Vec<GraphError>) {
        let repeats = |id: OpId, op: &Op, of: OpId| {
            self.ops.get(of).is_some_and(|original| {
                of < id
                    && original.kind == OpKind::Compute
                    && original.effects.recomputable()
                    && (&original.op_type, &original.domain) == (&op.op_type, &op.domain)
                    && original.outputs.len() == op.outputs.len()
            })
        };
        for (id, op) in self.ops.iter_enumerated() {
            if let OpKind::Recompute { of } = op.kind
                && !repeats(id, op, of)
            {
                errors.push(GraphError::BadRecompute { op: op.name.clone() });
            }
        }
    }

    /// Invariants 6 and 7, in the order of the ops.
    fn check_memory(&self, errors: &mut Vec<GraphError>) {
        let mut at: TiVec<StorageId, Location> = TiVec::from(vec![Location::Memory; self.storages.len()]);
        for op in &self.ops {
            for tensor in op.reads() {
                let storage = self.tensors[tensor].storage;
                let error = if op.kind.is_run() {
                    self.misread(op, tensor, at[storage])
                } else {
                    self.relocate(op.kind, storage, &mut at[storage])
                };
                errors.extend(error);
            }
        }
        let outputs = self
            .outputs
            .iter()
            .map(|&output| (output, self.tensors[output].storage));
        let out = outputs.filter(|&(_, storage)| at[storage] == Location::Second);
        errors.extend(out.map(|(output, _)| GraphError::OutputPagedOut(self.tensors[output].name.clone())));
    }

    fn misread(&self, op: &Op, tensor: TensorId, at: Location) -> Option<GraphError> {
        let (op, tensor) = (op.name.clone(), self.tensors[tensor].name.clone());
        match at {
            Location::Memory => None,
            Location::Second => Some(GraphError::UsedWhilePagedOut { op, tensor }),
            Location::Gone => Some(GraphError::UsedAfterDealloc { op, tensor }),
        }
    }

    /// What a `dealloc`, `page_out` or `page_in` does to a storage, if it may.
    fn relocate(&self, kind: OpKind, storage: StorageId, at: &mut Location) -> Option<GraphError> {
        let is_result = self.storages[storage].class == StorageClass::Intermediate;
        let is_output = || {
            self.outputs
                .iter()
                .any(|&output| self.tensors[output].storage == storage)
        };
        let why = match (kind, *at) {
            _ if !is_result => "it is a graph input or a constant",
            (OpKind::Dealloc, _) if is_output() => "it is a graph output",
            (OpKind::Dealloc, Location::Gone) => "it is already deallocated",
            (_, Location::Gone) => "it was deallocated",
            (OpKind::PageIn, Location::Memory) => "it is in memory",
            (OpKind::PageIn, Location::Second) => {
                *at = Location::Memory;
                return None;
            }
            (_, Location::Second) => "it is in the second memory",
            (OpKind::PageOut, Location::Memory) => {
                *at = Location::Second;
                return None;
            }
            (_, Location::Memory) => {
                *at = Location::Gone;
                return None;
            }
        };
        let tensor = self.storage_name(storage).to_owned();
        Some(match kind {
            OpKind::PageOut | OpKind::PageIn => GraphError::BadPage {
                word: kind.memory_word().unwrap_or_default(),
                tensor,
                why,
            },
            _ => GraphError::BadDealloc { tensor, why },
        })
    }
}
