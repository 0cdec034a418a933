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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElementType, GraphBuilder, OpSpec, ValueType};

    fn vector() -> ValueType {
        ValueType::tensor(ElementType::Float32, &[8])
    }

    fn chain() -> (GraphBuilder, TensorId, TensorId, OpId) {
        let mut builder = GraphBuilder::new("chain");
        let x = builder.input("x", vector()).unwrap();
        let (op, y) = builder
            .op(OpSpec::new("relu", "Relu").reads(x).defines("y", vector()))
            .unwrap();
        (builder, x, y[0].unwrap(), op)
    }

    #[test]
    fn a_graph_with_views_recompute_and_dealloc_is_valid() {
        let (mut builder, x, y, relu) = chain();
        let (_, v) = builder
            .op(OpSpec::new("flat", "Flatten").reads(y).views("v", vector(), y))
            .unwrap();
        builder
            .op(OpSpec::new("sum", "Add")
                .reads(v[0].unwrap())
                .reads(y)
                .defines("s", vector()))
            .unwrap();
        builder.dealloc(y);
        let mut again = OpSpec::new("relu.again", "Relu").reads(x).defines("y.again", vector());
        again.kind = OpKind::Recompute { of: relu };
        let (_, again) = builder.op(again).unwrap();
        builder.output(again[0].unwrap());
        assert_eq!(builder.finish().validate(), Ok(()));
    }

    #[test]
    fn reading_a_deallocated_storage_is_rejected() {
        let (mut builder, _, y, _) = chain();
        builder.dealloc(y);
        builder
            .op(OpSpec::new("late", "Neg").reads(y).defines("z", vector()))
            .unwrap();
        let errors = builder.finish().validate().unwrap_err();
        assert_eq!(
            errors,
            [GraphError::UsedAfterDealloc {
                op: "late".into(),
                tensor: "y".into()
            }]
        );
    }

    #[test]
    fn deallocating_an_input_twice_freed_or_returned_storage_is_rejected() {
        let (mut builder, x, y, _) = chain();
        builder.dealloc(x);
        builder.output(y);
        builder.dealloc(y);
        let errors = builder.finish().validate().unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
    }

    #[test]
    fn a_storage_that_leaves_and_comes_back_is_readable_again() {
        let (mut builder, x, y, _) = chain();
        builder.page_out(y);
        builder
            .op(OpSpec::new("beside", "Neg").reads(x).defines("z", vector()))
            .unwrap();
        builder.page_in(y);
        builder.output(y);
        assert_eq!(builder.finish().validate(), Ok(()));
    }

    #[test]
    fn what_is_in_the_second_memory_is_neither_read_nor_moved_nor_returned() {
        let (mut builder, x, y, _) = chain();
        builder.page_in(y);
        builder.page_out(x);
        builder.page_out(y);
        builder.page_out(y);
        builder
            .op(OpSpec::new("early", "Neg").reads(y).defines("z", vector()))
            .unwrap();
        builder.output(y);
        let page = |word, tensor: &str, why| GraphError::BadPage {
            word,
            tensor: tensor.into(),
            why,
        };
        assert_eq!(
            builder.finish().validate().unwrap_err(),
            [
                page("page_in", "y", "it is in memory"),
                page("page_out", "x", "it is a graph input or a constant"),
                page("page_out", "y", "it is in the second memory"),
                GraphError::UsedWhilePagedOut {
                    op: "early".into(),
                    tensor: "y".into()
                },
                GraphError::OutputPagedOut("y".into()),
            ]
        );
    }

    #[test]
    fn recomputing_a_random_op_is_rejected() {
        let mut builder = GraphBuilder::new("random");
        let spec = OpSpec::new("draw", "RandomNormal")
            .defines("r", vector())
            .effects(crate::Effects::Random);
        let (of, _) = builder.op(spec).unwrap();
        let mut again = OpSpec::new("again", "RandomNormal").defines("r2", vector());
        again.kind = OpKind::Recompute { of };
        builder.op(again).unwrap();
        let errors = builder.finish().validate().unwrap_err();
        assert_eq!(errors, [GraphError::BadRecompute { op: "again".into() }]);
    }

    #[test]
    fn duplicate_names_are_rejected() {
        let (mut builder, x, _, _) = chain();
        builder
            .op(OpSpec::new("relu", "Relu").reads(x).defines("y", vector()))
            .unwrap();
        let errors = builder.finish().validate().unwrap_err();
        assert_eq!(
            errors,
            [
                GraphError::DuplicateOp("relu".into()),
                GraphError::DuplicateTensor("y".into())
            ]
        );
    }

    #[test]
    fn a_view_of_something_the_op_does_not_read_is_rejected() {
        let (mut builder, x, y, _) = chain();
        builder
            .op(OpSpec::new("odd", "Reshape").reads(x).views("v", vector(), y))
            .unwrap();
        let errors = builder.finish().validate().unwrap_err();
        assert_eq!(
            errors,
            [GraphError::ViewOfStranger {
                op: "odd".into(),
                tensor: "v".into()
            }]
        );
    }
}
