//! From a rewritten graph back to the function.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike, WalkOrder, WalkResult};
use melior::ir::{BlockRef, Location, Operation, OperationRef, Value, ValueLike};
use remat_ir::{Graph, Op, OpId, OpKind, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};
use typed_index_collections::TiVec;

use crate::error::{ApplyError, Diagnosed};
use crate::ffi::{self, NewAttribute, as_mut};
use crate::function::set_integer;
use crate::import::Imported;
use crate::types::is_ranked;
use crate::units::ValueIndex;

mod pages;

use pages::Pages;

/// Attribute that distinguishes copies of operations on tensors of other dialects, which no optimization barrier accepts.
const COPY_ID: &str = "remat.recompute";

/// The destination of operations that write into empty tensors.
const ALLOCATION: &str = "bufferization.alloc_tensor";

/// Options for applying a graph to a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApplyOptions {
    /// Whether `dealloc` ops become `remat.dealloc` markers.
    pub dealloc: bool,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self { dealloc: true }
    }
}

impl<'c> Imported<'c> {
    /// Rewrites the function to match `rewritten`, which is this graph with a plan applied: operations in its order, a copy for every
    /// `recompute` op, a marker for every `dealloc` op, transfers for `page_out` and `page_in` ops.
    ///
    /// A copy of an operation reads one of its operands through `remat.recompute`, unless an operand already distinguishes it from the
    /// operation and all other copies. Allocations replace the empty tensors that copies write into. This also distinguishes copies, and it
    /// keeps unrelated results from sharing a buffer. Constants stand first.
    ///
    /// # Errors
    /// [`ApplyError::NoPage`] if the plan moves a tensor whose type no page can hold; the function is then unchanged. Other [`ApplyError`]s if
    /// the graph belongs to another function; the function is then partly rewritten.
    pub fn apply(self, rewritten: &Graph, options: &ApplyOptions) -> Result<(), Diagnosed<'c, ApplyError>> {
        let function = self.function;
        let block = function
            .block()
            .map_err(|error| Diagnosed::at(function.op(), ApplyError::ForeignOp(error.to_string())))?;
        let mut applier = Applier::new(&self, rewritten, *options, block);
        applier.run().map_err(|error| Diagnosed::at(function.op(), error))
    }
}

struct Applier<'t, 'c> {
    imported: &'t Imported<'c>,
    new: &'t Graph,
    options: ApplyOptions,
    block: BlockRef<'c, 'c>,
    /// The op of the graph that each operation became, by the position of the operation.
    ops: FxHashMap<u32, OpId>,
    /// The value of each tensor of the new graph so far.
    values: TiVec<TensorId, Option<Value<'c, 'c>>>,
    /// What every run of each op read; runs that read the same would be merged.
    seen: FxHashSet<(u32, Vec<usize>)>,
    fences: i64,
    /// Operations that run again, as they were before anything was exchanged in them, by position.
    templates: FxHashMap<usize, Operation<'c>>,
    pages: Pages<'c>,
}

impl<'t, 'c> Applier<'t, 'c> {
    fn new(imported: &'t Imported<'c>, new: &'t Graph, options: ApplyOptions, block: BlockRef<'c, 'c>) -> Self {
        let ops = imported.graph.ops.iter_enumerated();
        let again = new.ops.iter().filter(|op| matches!(op.kind, OpKind::Recompute { .. }));
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
            fences: 0,
            pages: Pages::of(new),
        }
    }

    fn run(&mut self) -> Result<(), ApplyError> {
        self.check_pages()?;
        self.sources()?;
        for op in &self.new.ops {
            match op.kind {
                OpKind::Dealloc => self.dealloc(op)?,
                OpKind::PageOut => self.page_out(op)?,
                OpKind::PageIn => self.page_in(op)?,
                OpKind::Compute | OpKind::Recompute { .. } => self.op(op)?,
            }
        }
        self.return_current()?;
        self.sweep();
        Ok(())
    }

    /// Arguments and constants are the values they were.
    fn sources(&mut self) -> Result<(), ApplyError> {
        let graph = &self.imported.graph;
        let by_tensor: FxHashMap<TensorId, ValueIndex> = self
            .imported
            .tensors
            .iter()
            .enumerate()
            .map(|(value, &tensor)| (tensor, value))
            .collect();
        let sources = graph
            .tensors
            .iter_enumerated()
            .filter(|(_, tensor)| tensor.producer.is_none());
        let by_name: FxHashMap<&str, TensorId> = sources.map(|(id, tensor)| (tensor.name.as_str(), id)).collect();
        for (id, tensor) in self
            .new
            .tensors
            .iter_enumerated()
            .filter(|(_, tensor)| tensor.producer.is_none())
        {
            let old = by_name.get(tensor.name.as_str()).and_then(|old| by_tensor.get(old));
            let &value = old.ok_or_else(|| ApplyError::ForeignTensor(tensor.name.clone()))?;
            self.values[id] = Some(self.imported.table.values[value].value);
        }
        Ok(())
    }

    /// The operation that an op of the new graph stands for, by its position, and the op that it was.
    fn source(&self, op: &Op) -> Result<(u32, OpId), ApplyError> {
        let source = op.source.and_then(|source| Some((source, *self.ops.get(&source)?)));
        source.ok_or_else(|| ApplyError::ForeignOp(op.name.clone()))
    }

    fn op(&mut self, op: &Op) -> Result<(), ApplyError> {
        let (source, old) = self.source(op)?;
        for tensor in op.reads() {
            if self.values[tensor].is_some() {
                self.current(tensor)?;
            }
        }
        let table = &self.imported.table;
        let position = source as usize;
        let mut exchange = self.exchange(op, old)?;
        let mut read: Vec<usize> = Vec::with_capacity(op.inputs.len());
        for tensor in op.reads() {
            read.push(self.values[tensor].map_or(0, key));
        }
        let is_new = self.seen.insert((source, read));
        let is_copy = matches!(op.kind, OpKind::Recompute { .. });
        let last = table.entries[position].op;
        let members = table.members(position);
        let writes_empty = members.iter().any(|&member| table.empties(member).next().is_some());
        let copy_id = if is_copy && !is_new && !writes_empty {
            self.fence(position, old, last, &mut exchange)?
        } else {
            None
        };
        let mut results = last;
        for member in members {
            let original = table.entries[member].op;
            let operation = if let Some(template) = self.templates.get(&member).filter(|_| is_copy) {
                self.insert(template.clone())
            } else {
                as_mut(original).move_before(table.terminator);
                original
            };
            replace_reads(operation, &exchange);
            self.freshen(member, operation)?;
            if is_copy {
                // Later members of the copy read what this one makes.
                for (from, to) in original.results().zip(operation.results()) {
                    exchange.insert(key(from.into()), to.into());
                }
            }
            results = operation;
        }
        if let Some(id) = copy_id {
            set_integer(results, COPY_ID, id);
        }
        for (&tensor, result) in op.outputs.iter().flatten().zip(results.results()) {
            self.values[tensor] = Some(result.into());
        }
        Ok(())
    }

    /// What stands for each value that the op read in the function as it was, where that is another one now.
    fn exchange(&self, op: &Op, old: OpId) -> Result<FxHashMap<usize, Value<'c, 'c>>, ApplyError> {
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
    fn value_of(&self, tensor: TensorId) -> Option<Value<'c, 'c>> {
        // Values and tensors were made in the same order.
        let value = self.imported.tensors.binary_search(&tensor).ok()?;
        Some(self.imported.table.values[value].value)
    }

    /// Puts an optimization barrier before one operand of a copy; returns a number for the copy if no operand has a type that barriers accept.
    fn fence(
        &mut self,
        position: usize,
        old: OpId,
        last: OperationRef<'c, 'c>,
        exchange: &mut FxHashMap<usize, Value<'c, 'c>>,
    ) -> Result<Option<i64>, ApplyError> {
        self.fences += 1;
        let graph = &self.imported.graph;
        let values = graph.ops[old].reads().filter_map(|tensor| self.value_of(tensor));
        let carries = |value: &Value<'c, 'c>| {
            let index = self.imported.table.position(*value);
            index.is_some_and(|index| self.imported.table.can_carry_fence(index)) && is_ranked(value.r#type())
        };
        let Some(was) = values.into_iter().find(carries) else {
            return Ok(Some(self.fences));
        };
        let is = exchange.get(&key(was)).copied().unwrap_or(was);
        let of = &self.imported.table.entries[position].op_type;
        let fence = self.recompute(is, self.fences, of, last.location())?;
        let fence = self.insert(fence);
        let result = fence
            .result(0)
            .map_err(|error| build_error("remat.recompute", &error))?;
        exchange.insert(key(was), result.into());
        Ok(None)
    }

    fn recompute(
        &self,
        input: Value<'c, 'c>,
        id: i64,
        of: &str,
        location: Location<'c>,
    ) -> Result<Operation<'c>, ApplyError> {
        OperationBuilder::new("remat.recompute", location)
            .add_operands(&[input])
            .add_results(&[input.r#type()])
            .add_attributes(&[
                ffi::attribute(location, "id", &NewAttribute::Integer(id)),
                ffi::attribute(location, "of", &NewAttribute::Text(of)),
            ])
            .build()
            .map_err(|error| build_error("remat.recompute", &error))
    }

    fn dealloc(&mut self, op: &Op) -> Result<(), ApplyError> {
        if !self.options.dealloc {
            return Ok(());
        }
        for tensor in op.reads() {
            let value = self.values[tensor];
            let Some(value) = value.filter(|value| is_ranked(value.r#type())) else {
                continue;
            };
            let marker = OperationBuilder::new("remat.dealloc", self.location(tensor))
                .add_operands(&[value])
                .build()
                .map_err(|error| build_error("remat.dealloc", &error))?;
            self.insert(marker);
        }
        Ok(())
    }

    /// The location of the operation that makes a tensor.
    fn location(&self, tensor: TensorId) -> Location<'c> {
        let maker = self.new.tensors[tensor].producer.and_then(|op| self.new.ops[op].source);
        let entry = maker.and_then(|source| self.imported.table.entries.get(source as usize));
        entry.map_or_else(|| self.imported.function.op().location(), |entry| entry.op.location())
    }

    fn insert(&self, operation: Operation<'c>) -> OperationRef<'c, 'c> {
        self.block
            .insert_operation_before(self.imported.table.terminator, operation)
    }

    /// Empty tensors that the operation is to write into become allocations right before it: where they stand, their memory is taken.
    /// Allocations are never merged; empty tensors would be, and one buffer would live from the first run to the last.
    fn freshen(&mut self, member: usize, operation: OperationRef<'c, 'c>) -> Result<(), ApplyError> {
        let table = &self.imported.table;
        for (index, empty) in table.empties(member) {
            let fresh = allocation(table.entries[empty].op)?;
            let fresh = self.block.insert_operation_before(operation, fresh);
            let made = fresh.result(0).map_err(|error| build_error(ALLOCATION, &error))?;
            as_mut(operation).set_operand(index, made.into());
        }
        Ok(())
    }

    /// Removes empty tensors that nobody writes into any more.
    fn sweep(&mut self) {
        // They read what they were made with.
        self.templates.clear();
        let table = &self.imported.table;
        let empties = table.entries.iter().filter(|entry| entry.is_empty_tensor());
        for entry in empties.filter(|entry| !ffi::is_used(entry.op)) {
            ffi::erase(entry.op);
        }
    }
}

/// An allocation of a tensor like the result of `empty`.
fn allocation<'c>(empty: OperationRef<'c, 'c>) -> Result<Operation<'c>, ApplyError> {
    let error = |error| build_error(ALLOCATION, &error);
    let ty = empty.result(0).map_err(error)?.r#type();
    // No dynamic extents, nothing to copy, no hint at the size.
    let segments = NewAttribute::Integers(&[0, 0, 0]);
    OperationBuilder::new(ALLOCATION, empty.location())
        .add_results(&[ty])
        .add_attributes(&[ffi::attribute(empty.location(), "operandSegmentSizes", &segments)])
        .build()
        .map_err(error)
}

/// Makes an operation and everything inside it read the new values.
fn replace_reads<'c>(operation: OperationRef<'c, 'c>, exchange: &FxHashMap<usize, Value<'c, 'c>>) {
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

fn build_error(op: &'static str, error: &melior::Error) -> ApplyError {
    ApplyError::Build {
        op,
        why: error.to_string(),
    }
}

fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
