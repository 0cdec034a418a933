//! From a rewritten graph back to the function.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike};
use melior::ir::{Location, Operation, OperationRef, Value, ValueLike};
use remat_ir::{Graph, Op, OpId, OpKind, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ApplyError, Diagnosed};
use crate::ffi::{self, NewAttribute, as_mut};
use crate::function::set_integer;
use crate::import::Imported;
use crate::types::is_ranked;
use crate::units::ValueIndex;

mod pages;
mod state;
mod tiles;

pub use state::ApplyOptions;
use state::{Applier, build_error, key, replace_reads};

/// Attribute that distinguishes copies of operations on tensors of other dialects, which no optimization barrier accepts.
const COPY_ID: &str = "remat.recompute";

/// The destination of operations that write into empty tensors.
const ALLOCATION: &str = "bufferization.alloc_tensor";

impl<'c> Imported<'c> {
    /// Rewrites the function to match `rewritten`, which is this graph with a plan applied: operations in its order, a copy for every
    /// `recompute` op, a marker for every `dealloc` op, transfers for `page_out` and `page_in` ops.
    ///
    /// A copy of an operation reads one of its operands through `remat.recompute`, unless an operand already distinguishes it from the
    /// operation and all other copies. Allocations replace the empty tensors that copies write into. This also distinguishes copies, and it
    /// keeps unrelated results from sharing a buffer. Constants stand first. Tiles are clones of an operation with parts of its operands.
    ///
    /// Returns the highest number of a copy; copies in other blocks of the function begin after it ([`ApplyOptions::numbered`]).
    ///
    /// # Errors
    /// [`ApplyError::NoPage`] if the plan moves a tensor whose type no page can hold; the function is then unchanged. Other [`ApplyError`]s if
    /// the graph belongs to another function; the function is then partly rewritten.
    pub fn apply(self, rewritten: &Graph, options: &ApplyOptions) -> Result<i64, Diagnosed<'c, ApplyError>> {
        let holder = self.body.holder();
        let mut applier = Applier::new(&self, rewritten, *options, self.body.block());
        applier.run().map_err(|error| Diagnosed::at(holder, error))?;
        Ok(applier.barriers)
    }
}

impl<'c> Applier<'_, 'c> {
    fn run(&mut self) -> Result<(), ApplyError> {
        self.check_pages()?;
        self.sources()?;
        for op in &self.new.ops {
            match op.kind {
                OpKind::Dealloc => self.dealloc(op)?,
                OpKind::PageOut => self.page_out(op)?,
                OpKind::PageIn => self.page_in(op)?,
                OpKind::Compute | OpKind::Recompute { .. } if !op.parts.is_empty() => self.part(op)?,
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
            if old.is_none() && self.new.values.contains_key(&id) {
                // Bounds of slices, which are attributes here.
                continue;
            }
            let &value = old.ok_or_else(|| ApplyError::ForeignTensor(tensor.name.clone()))?;
            self.values[id] = Some(self.imported.table.values[value].value);
        }
        Ok(())
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
        // Copies of fused operations are told apart one by one: each may read something else.
        let is_fusion = members.len() > 1;
        let copy_id = if is_copy && (!is_new || is_fusion) && !writes_empty {
            self.barrier(position, old, last, is_fusion, &mut exchange)?
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

    /// Puts an optimization barrier before one operand of a copy, or before all; returns a number for the copy if no operand has a type that barriers accept.
    fn barrier(
        &mut self,
        position: usize,
        old: OpId,
        last: OperationRef<'c, 'c>,
        all: bool,
        exchange: &mut FxHashMap<usize, Value<'c, 'c>>,
    ) -> Result<Option<i64>, ApplyError> {
        self.barriers += 1;
        let graph = &self.imported.graph;
        let values = graph.ops[old].reads().filter_map(|tensor| self.value_of(tensor));
        let carries = |value: &Value<'c, 'c>| {
            let index = self.imported.table.position(*value);
            index.is_some_and(|index| self.imported.table.can_carry_barrier(index)) && is_ranked(value.r#type())
        };
        let mut carried: Vec<Value<'c, 'c>> = values.filter(carries).collect();
        let mut distinct = FxHashSet::default();
        carried.retain(|&value| distinct.insert(key(value)));
        carried.truncate(if all { carried.len() } else { 1 });
        let copy_id = carried.is_empty().then_some(self.barriers);
        for (number, was) in carried.into_iter().enumerate() {
            self.barriers += i64::from(number > 0);
            let is = exchange.get(&key(was)).copied().unwrap_or(was);
            let of = &self.imported.table.entries[position].op_type;
            let barrier = self.recompute(is, self.barriers, of, last.location())?;
            let barrier = self.insert(barrier);
            let result = barrier
                .result(0)
                .map_err(|error| build_error("remat.recompute", &error))?;
            exchange.insert(key(was), result.into());
        }
        Ok(copy_id)
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

    /// Empty tensors that the operation is to write into become allocations right before it: where they stand, their memory is taken.
    /// Allocations are never merged; empty tensors would be, and one buffer would live from the first run to the last.
    fn freshen(&mut self, member: usize, operation: OperationRef<'c, 'c>) -> Result<(), ApplyError> {
        let table = &self.imported.table;
        for (index, empty) in table.empties(member) {
            let fresh = allocation(empty)?;
            let fresh = self.block.insert_operation_before(operation, fresh);
            let made = fresh.result(0).map_err(|error| build_error(ALLOCATION, &error))?;
            as_mut(operation).set_operand(index, made.into());
        }
        Ok(())
    }

    /// Removes operations of which tiles are left, and empty tensors that nobody writes into any more.
    fn sweep(&mut self) {
        // They read what they were made with.
        self.templates.clear();
        let table = &self.imported.table;
        let left: FxHashSet<u32> = self
            .new
            .ops
            .iter()
            .filter(|op| op.parts.is_empty())
            .filter_map(|op| op.source)
            .collect();
        for op in self.imported.graph.ops.iter().rev() {
            let Some(source) = op.source.filter(|source| !left.contains(source)) else {
                continue;
            };
            // Only its tiles run.
            for &member in table.members(source as usize).iter().rev() {
                ffi::erase(table.entries[member].op);
            }
        }
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
