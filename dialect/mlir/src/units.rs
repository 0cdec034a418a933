//! The operations of a block, the values between them, and which operations are one op of the graph.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, WalkOrder, WalkResult};
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};
use remat_ir::Effects;
use rustc_hash::FxHashMap;

use crate::alias::aliases;
use crate::attributes::identity;
use crate::effects::{effects_of, is_without_contents};
use crate::ffi::{self, Alias, OpFacts};
use crate::fusion;
use crate::types::is_ranked;

/// A value of the block, by its position in [`Table::values`].
pub(crate) type ValueIndex = usize;

/// One operation of the block.
pub(crate) struct Entry<'c> {
    pub(crate) op: OperationRef<'c, 'c>,
    pub(crate) domain: String,
    pub(crate) op_type: String,
    pub(crate) facts: OpFacts,
    pub(crate) effects: Effects,
    pub(crate) aliases: Vec<Alias>,
    /// Operands; `None` for values from outside the block.
    pub(crate) operands: Vec<Option<ValueIndex>>,
    /// Values of the block that regions of the operation read, each once.
    pub(crate) captures: Vec<ValueIndex>,
    /// The first of its results; the others follow.
    pub(crate) first_result: ValueIndex,
    pub(crate) results: usize,
    pub(crate) role: Role,
}

impl Entry<'_> {
    /// Whether it makes a tensor of static shape without contents.
    pub(crate) fn is_empty_tensor(&self) -> bool {
        self.role == Role::Resident && is_without_contents(&self.domain, &self.op_type)
    }
}

/// What an operation is to the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// An op.
    Op,
    /// A part of the op that ends with the operation at this position.
    PartOf(usize),
    /// Makes something that takes no memory of the run, from nothing: a constant, an empty tensor to be written into.
    Resident,
}

/// A value of the block.
pub(crate) struct Known<'c> {
    pub(crate) value: Value<'c, 'c>,
    /// The operation that makes it; `None` for arguments.
    pub(crate) maker: Option<usize>,
    /// How often operations of the block read it, the terminator included.
    pub(crate) uses: usize,
}

/// All operations of a block but the terminator.
pub(crate) struct Table<'c> {
    pub(crate) entries: Vec<Entry<'c>>,
    pub(crate) values: Vec<Known<'c>>,
    pub(crate) terminator: OperationRef<'c, 'c>,
    /// What the terminator reads.
    pub(crate) returned: Vec<ValueIndex>,
    pub(crate) arguments: usize,
    positions: FxHashMap<usize, ValueIndex>,
}

impl<'c> Table<'c> {
    /// Reads a block; `None` if it has no terminator.
    pub(crate) fn of(block: BlockRef<'c, 'c>) -> Option<Self> {
        let mut table = Self {
            entries: Vec::new(),
            values: Vec::new(),
            terminator: last(block)?,
            returned: Vec::new(),
            arguments: block.argument_count(),
            positions: FxHashMap::default(),
        };
        for index in 0..table.arguments {
            table.push_value(block.argument(index).ok()?.into(), None);
        }
        let mut next = block.first_operation();
        while let Some(op) = next.filter(|&op| op != table.terminator) {
            table.push_op(op);
            next = op.next_in_block();
        }
        let (operands, captures) = table.reads(table.terminator);
        table.returned = operands.into_iter().flatten().chain(captures).collect();
        for &value in &table.returned {
            table.values[value].uses += 1;
        }
        table.group();
        Some(table)
    }

    /// The position of a value, if it is one of the block.
    pub(crate) fn position(&self, value: Value<'c, 'c>) -> Option<ValueIndex> {
        self.positions.get(&key(value)).copied()
    }

    /// The operations of the op that ends with the one at `last`, in the order of the block.
    pub(crate) fn members(&self, last: usize) -> Vec<usize> {
        let mut members = vec![last];
        let mut next = 0;
        while let Some(&member) = members.get(next) {
            let entry = &self.entries[member];
            let parts = entry
                .operands
                .iter()
                .flatten()
                .filter_map(|&value| self.values[value].maker);
            members.extend(parts.filter(|&part| self.entries[part].role == Role::PartOf(member)));
            next += 1;
        }
        members.sort_unstable();
        members
    }

    /// The empty tensors that the operation reads, which it can only write into: the number of the operand, and who makes it.
    pub(crate) fn empties(&self, member: usize) -> impl Iterator<Item = (usize, usize)> {
        let operands = self.entries[member].operands.iter().enumerate();
        operands.filter_map(|(index, &value)| {
            let maker = self.values[value?].maker?;
            self.entries[maker].is_empty_tensor().then_some((index, maker))
        })
    }

    fn push_value(&mut self, value: Value<'c, 'c>, maker: Option<usize>) {
        self.positions.insert(key(value), self.values.len());
        self.values.push(Known { value, maker, uses: 0 });
    }

    fn push_op(&mut self, op: OperationRef<'c, 'c>) {
        let (domain, op_type) = identity(op);
        let facts = ffi::describe(op);
        let (operands, captures) = self.reads(op);
        for &value in operands.iter().flatten().chain(&captures) {
            self.values[value].uses += 1;
        }
        let is_empty = is_without_contents(&domain, &op_type) && operands.is_empty();
        let is_resident =
            is_empty || is_constant(op, &domain, &op_type) || self.spreads_constants(&domain, &op_type, &operands);
        let role = if is_resident { Role::Resident } else { Role::Op };
        let entry = Entry {
            op,
            effects: effects_of(op),
            aliases: aliases(op, &domain, &op_type),
            facts,
            operands,
            captures,
            first_result: self.values.len(),
            results: op.result_count(),
            role,
            domain,
            op_type,
        };
        for result in op.results() {
            self.push_value(result.into(), Some(self.entries.len()));
        }
        self.entries.push(entry);
    }

    /// Whether the operation only spreads constants, which its readers do themselves.
    fn spreads_constants(&self, domain: &str, op_type: &str, operands: &[Option<ValueIndex>]) -> bool {
        let is_resident = |value: &Option<ValueIndex>| {
            let maker = value.and_then(|value| self.values[value].maker);
            maker.is_some_and(|maker| self.entries[maker].role == Role::Resident)
        };
        fusion::spreads(domain, op_type) && operands.iter().all(is_resident)
    }

    /// What an operation reads: its operands, and the values of the block that its regions read.
    fn reads(&self, op: OperationRef<'c, 'c>) -> (Vec<Option<ValueIndex>>, Vec<ValueIndex>) {
        let operands = op.operands().map(|value| self.position(value)).collect();
        let mut captures = Vec::new();
        if op.region_count() > 0 {
            op.walk(WalkOrder::PreOrder, |nested| {
                if nested != op {
                    captures.extend(nested.operands().filter_map(|value| self.positions.get(&key(value))));
                }
                WalkResult::Advance
            });
            let mut seen = rustc_hash::FxHashSet::default();
            captures.retain(|&value| seen.insert(value));
        }
        (operands, captures)
    }

    /// Joins operations that only prepare the memory of a result with the operation that writes it, and those that are fused into their reader.
    fn group(&mut self) {
        for position in 0..self.entries.len() {
            let entry = &self.entries[position];
            let destinations = entry.aliases.iter().filter(|alias| alias.written);
            let parts: Vec<usize> = destinations
                .filter_map(|alias| entry.operands.get(alias.operand).copied().flatten())
                .filter_map(|value| self.prepares(value))
                .collect();
            let entry = &self.entries[position];
            let takes_in = entry.role == Role::Op
                && entry.effects == Effects::Pure
                && fusion::takes_in(&entry.domain, &entry.op_type);
            let fused = entry.operands.iter().flatten().filter(|_| takes_in);
            let fused = fused.filter_map(|&value| self.fused(value));
            let parts: Vec<usize> = parts.into_iter().chain(fused).collect();
            for part in parts {
                self.entries[part].role = Role::PartOf(position);
            }
        }
    }

    /// The operation that makes `value`, if it is fused into its only reader.
    fn fused(&self, value: ValueIndex) -> Option<usize> {
        let known = &self.values[value];
        let maker = known.maker.filter(|_| known.uses == 1)?;
        let entry = &self.entries[maker];
        let joins = entry.role == Role::Op
            && entry.effects == Effects::Pure
            && entry.results == 1
            && fusion::is_fused(&entry.domain, &entry.op_type);
        joins.then_some(maker)
    }

    /// The operation that makes `value`, if it goes with the only operation that reads the value: it reads only what is there anyway, or it
    /// writes one part of a tensor that is put together.
    fn prepares(&self, value: ValueIndex) -> Option<usize> {
        let known = &self.values[value];
        let maker = known.maker.filter(|_| known.uses == 1)?;
        let entry = &self.entries[maker];
        let is_there = |&value: &ValueIndex| {
            let known = &self.values[value];
            !is_ranked(known.value.r#type())
                || known.maker.is_none_or(|of| {
                    let role = self.entries[of].role;
                    role == Role::Resident || role == Role::PartOf(maker)
                })
        };
        let operand_is_there = |operand: &Option<ValueIndex>| operand.as_ref().is_some_and(is_there);
        let destinations = entry.aliases.iter().map(|alias| entry.operands.get(alias.operand));
        let assembles =
            entry.domain == "tensor" && entry.op_type == "insert_slice" && destinations.flatten().all(operand_is_there);
        let reads_nothing_new =
            !entry.facts.reduces && entry.operands.iter().all(operand_is_there) && entry.captures.iter().all(is_there);
        let joins = entry.role == Role::Op
            && entry.effects == Effects::Pure
            && entry.results == 1
            && entry.aliases.iter().all(|alias| alias.written)
            && (assembles || reads_nothing_new);
        joins.then_some(maker)
    }
}

/// Whether the operation makes a constant, by its word or, where its dialect is not loaded, by its name.
fn is_constant(op: OperationRef<'_, '_>, domain: &str, op_type: &str) -> bool {
    let named = ["Constant", "NoValue", "constant"].contains(&op_type) && ["", "stablehlo"].contains(&domain);
    let torch = domain == "torch" && (op_type.starts_with("constant.") || op_type.starts_with("vtensor.literal"));
    ffi::is_constant_like(op) || named || torch
}

/// The terminator of a block; of one whose dialect is not loaded, the last operation.
fn last<'c>(block: BlockRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    if let Some(terminator) = block.terminator() {
        return Some(terminator);
    }
    let mut last = block.first_operation()?;
    while let Some(next) = last.next_in_block() {
        last = next;
    }
    Some(last)
}

fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
