//! What is known while a graph is applied: operations, values and pages so far.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, OperationMutLike, WalkOrder, WalkResult};
use melior::ir::{BlockRef, Location, Operation, OperationRef, Value, ValueLike};
use remat_ir::{Graph, Op, OpId, OpKind, StorageId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};
use typed_index_collections::TiVec;

use crate::error::ApplyError;
use crate::ffi::as_mut;
use crate::import::Imported;

/// Options for applying a graph to a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApplyOptions {
    /// Whether `dealloc` ops become `remat.dealloc` markers.
    pub dealloc: bool,
    /// Copies are numbered from the number after this one. Where equal operations are merged, numbers tell copies apart across blocks.
    pub numbered: i64,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self {
            dealloc: true,
            numbered: 0,
        }
    }
}

/// A function that is being rewritten, and what was done so far.
pub(super) struct Applier<'t, 'c> {
    pub(super) imported: &'t Imported<'c>,
    pub(super) new: &'t Graph,
    pub(super) options: ApplyOptions,
    pub(super) block: BlockRef<'c, 'c>,
    /// The op of the graph that each operation became, by the position of the operation.
    pub(super) ops: FxHashMap<u32, OpId>,
    /// The value of each tensor of the new graph so far.
    pub(super) values: TiVec<TensorId, Option<Value<'c, 'c>>>,
    /// What every run of each op read; runs that read the same would be merged.
    pub(super) seen: FxHashSet<(u32, Vec<usize>)>,
    pub(super) barriers: i64,
    /// Operations that run again, as they were before anything was exchanged in them, by position.
    pub(super) templates: FxHashMap<usize, Operation<'c>>,
    pub(super) pages: Pages<'c>,
}

impl<'t, 'c> Applier<'t, 'c> {
    pub(super) fn new(
        imported: &'t Imported<'c>,
        new: &'t Graph,
        options: ApplyOptions,
        block: BlockRef<'c, 'c>,
    ) -> Self {
        let ops = imported.graph.ops.iter_enumerated();
        let is_clone = |op: &&Op| matches!(op.kind, OpKind::Recompute { .. }) || !op.parts.is_empty();
        let again = new.ops.iter().filter(is_clone);
        let again: FxHashSet<u32> = again.filter_map(|op| op.source).collect();
        let table = &imported.table;
        let positions = (0..table.entries.len())
            .filter(|&position| u32::try_from(position).is_ok_and(|source| again.contains(&source)));
        let members = positions.flat_map(|position| table.members(position));
        Self {
            templates: members
                .map(|member| (member, (*table.entries[member].op).clone()))
                .collect(),
            imported,
            new,
            options,
            block,
            ops: ops.filter_map(|(id, op)| Some((op.source?, id))).collect(),
            values: TiVec::from(vec![None; new.tensors.len()]),
            seen: FxHashSet::default(),
            barriers: options.numbered,
            pages: Pages::of(new),
        }
    }

    /// The operation that an op of the new graph stands for, by its position, and the op that it was.
    pub(super) fn source(&self, op: &Op) -> Result<(u32, OpId), ApplyError> {
        let source = op.source.and_then(|source| Some((source, *self.ops.get(&source)?)));
        source.ok_or_else(|| ApplyError::ForeignOp(op.name.clone()))
    }

    /// What stands for each value that the op read in the function as it was, where that is another one now.
    pub(super) fn exchange(&self, op: &Op, old: OpId) -> Result<FxHashMap<usize, Value<'c, 'c>>, ApplyError> {
        let graph = &self.imported.graph;
        let mut exchange = FxHashMap::default();
        let olds = graph.ops[old].inputs.iter().flatten().chain(&graph.ops[old].captures);
        let news = op.inputs.iter().flatten().chain(&op.captures);
        for (&was, &is) in olds.zip(news) {
            if self.new.tensors[is].ty == remat_ir::ValueType::Unknown && self.values[is].is_none() {
                // Only orders operations.
                continue;
            }
            let is = self.values[is].ok_or_else(|| ApplyError::ForeignTensor(self.new.tensors[is].name.clone()))?;
            if let Some(was) = self.value_of(was) {
                exchange.insert(key(was), is);
            }
        }
        Ok(exchange)
    }

    /// The value that a tensor of the graph as it was stands for.
    pub(super) fn value_of(&self, tensor: TensorId) -> Option<Value<'c, 'c>> {
        // Values and tensors were made in the same order.
        let value = self.imported.tensors.binary_search(&tensor).ok()?;
        Some(self.imported.table.values[value].value)
    }

    /// The location of the operation that makes a tensor.
    pub(super) fn location(&self, tensor: TensorId) -> Location<'c> {
        let maker = self.new.tensors[tensor].producer.and_then(|op| self.new.ops[op].source);
        let entry = maker.and_then(|source| self.imported.table.entries.get(source as usize));
        entry.map_or_else(|| self.imported.body.holder().location(), |entry| entry.op.location())
    }

    pub(super) fn insert(&self, operation: Operation<'c>) -> OperationRef<'c, 'c> {
        self.block
            .insert_operation_before(self.imported.table.terminator, operation)
    }
}

/// What is in the second memory, and which values are of tensors that left.
pub(super) struct Pages<'c> {
    /// The page that each storage has there.
    pub(super) pages: TiVec<StorageId, Option<Value<'c, 'c>>>,
    /// How often each storage is still to come back.
    pub(super) to_come: TiVec<StorageId, usize>,
    /// The tensors of storages that move.
    pub(super) tensors: FxHashMap<StorageId, Vec<TensorId>>,
    /// Whether the buffer of the tensor's value was freed.
    pub(super) stale: TiVec<TensorId, bool>,
}

impl Pages<'_> {
    fn of(graph: &Graph) -> Self {
        let mut to_come: TiVec<StorageId, usize> = TiVec::from(vec![0; graph.storages.len()]);
        let mut tensors: FxHashMap<StorageId, Vec<TensorId>> = FxHashMap::default();
        for op in graph.ops.iter().filter(|op| op.kind == OpKind::PageIn) {
            for tensor in op.reads() {
                let storage = graph.tensors[tensor].storage;
                to_come[storage] += 1;
                tensors.entry(storage).or_default();
            }
        }
        for (id, tensor) in graph.tensors.iter_enumerated() {
            if let Some(known) = tensors.get_mut(&tensor.storage) {
                known.push(id);
            }
        }
        Self {
            pages: TiVec::from(vec![None; graph.storages.len()]),
            to_come,
            tensors,
            stale: TiVec::from(vec![false; graph.tensors.len()]),
        }
    }
}

/// Makes an operation and everything inside it read the new values.
pub(super) fn replace_reads<'c>(operation: OperationRef<'c, 'c>, exchange: &FxHashMap<usize, Value<'c, 'c>>) {
    operation.walk(WalkOrder::PreOrder, |nested| {
        for index in 0..nested.operand_count() {
            let current = nested.operand(index).ok().and_then(|value| exchange.get(&key(value)));
            if let Some(&value) = current {
                as_mut(nested).set_operand(index, value);
            }
        }
        WalkResult::Advance
    });
}

pub(super) fn build_error(op: &'static str, error: &melior::Error) -> ApplyError {
    ApplyError::Build {
        op,
        why: error.to_string(),
    }
}

pub(super) fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
