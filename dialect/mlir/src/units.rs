//! The operations of a block, the values between them, and which operations are one op of the graph.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, WalkOrder, WalkResult};
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};
use remat_ir::Effects;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::alias::aliases;
use crate::attributes::identity;
use crate::bodies::{for_each_block, for_each_op};
use crate::effects::{effects_of, is_without_contents};
use crate::ffi::buffers::users;
use crate::ffi::{self, Alias, OpFacts};
use crate::fusion;
use crate::positions::ancestor_in;
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
    /// The operation that makes it; `None` for arguments and for values from outside of the block.
    pub(crate) maker: Option<usize>,
    /// Of a value from outside that takes no memory of the run, a constant or an empty tensor: the operation that makes it.
    pub(crate) resident: Option<OperationRef<'c, 'c>>,
    /// How often operations of the block read it, the terminator included, and once more if other blocks do.
    pub(crate) uses: usize,
}

/// All operations of a block but the terminator.
pub(crate) struct Table<'c> {
    pub(crate) entries: Vec<Entry<'c>>,
    pub(crate) values: Vec<Known<'c>>,
    pub(crate) terminator: OperationRef<'c, 'c>,
    /// What the terminator reads, and what of the block other blocks do.
    pub(crate) returned: Vec<ValueIndex>,
    /// How many values are arguments of the block; they are the first ones.
    pub(crate) arguments: usize,
    /// How many values are from outside of the block; they follow its arguments.
    pub(crate) outer: usize,
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
            outer: 0,
            positions: FxHashMap::default(),
        };
        for index in 0..table.arguments {
            table.push_value(block.argument(index).ok()?.into(), None);
        }
        for value in outer_values(block) {
            table.push_value(value, None);
            table.outer += 1;
        }
        let mut next = block.first_operation();
        while let Some(op) = next.filter(|&op| op != table.terminator) {
            table.push_op(op);
            next = op.next_in_block();
        }
        let (operands, captures) = table.reads(table.terminator);
        let elsewhere = (0..table.values.len()).filter(|&value| table.is_read_elsewhere(value, block));
        table.returned = operands
            .into_iter()
            .flatten()
            .chain(captures)
            .chain(elsewhere)
            .collect();
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
    pub(crate) fn empties(&self, member: usize) -> impl Iterator<Item = (usize, OperationRef<'c, 'c>)> {
        let operands = self.entries[member].operands.iter().enumerate();
        operands.filter_map(|(index, &value)| Some((index, self.empty(value?)?)))
    }

    /// Whether an operation writes into an empty tensor.
    pub(crate) fn writes_into_empties(&self) -> bool {
        (0..self.values.len()).any(|value| self.empty(value).is_some())
    }

    /// Whether the value is a constant or an empty tensor.
    pub(crate) fn is_resident(&self, value: ValueIndex) -> bool {
        let known = &self.values[value];
        let made = known.maker.map(|maker| self.entries[maker].role == Role::Resident);
        made.unwrap_or(known.resident.is_some())
    }

    /// The operation that makes the value, if that is an empty tensor.
    fn empty(&self, value: ValueIndex) -> Option<OperationRef<'c, 'c>> {
        let known = &self.values[value];
        if let Some(maker) = known.maker {
            let entry = &self.entries[maker];
            return entry.is_empty_tensor().then_some(entry.op);
        }
        known.resident.filter(|&op| is_empty(op))
    }

    /// Whether another block reads what this block makes.
    fn is_read_elsewhere(&self, value: ValueIndex, block: BlockRef<'c, 'c>) -> bool {
        let known = &self.values[value];
        let is_own = known.maker.is_some() || value < self.arguments;
        is_own
            && users(known.value)
                .into_iter()
                .any(|user| ancestor_in(user, block).is_none())
    }

    fn push_value(&mut self, value: Value<'c, 'c>, maker: Option<usize>) {
        self.positions.insert(key(value), self.values.len());
        let from_outside = maker.is_none().then(|| ffi::maker(value)).flatten();
        self.values.push(Known {
            value,
            maker,
            resident: from_outside.filter(|&op| makes_no_memory(op)),
            uses: 0,
        });
    }

    fn push_op(&mut self, op: OperationRef<'c, 'c>) {
        let (domain, op_type) = identity(op);
        let facts = ffi::describe(op);
        let (operands, captures) = self.reads(op);
        for &value in operands.iter().flatten().chain(&captures) {
            self.values[value].uses += 1;
        }
        let is_resident = makes_no_memory(op) || self.spreads_constants(&domain, &op_type, &operands);
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
        let is_resident = |value: &Option<ValueIndex>| value.is_some_and(|value| self.is_resident(value));
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
            let mut seen = FxHashSet::default();
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

/// The values from outside that operations of the block read, or operations inside of them, in the order of their first readers.
fn outer_values<'c>(block: BlockRef<'c, 'c>) -> Vec<Value<'c, 'c>> {
    let mut known = FxHashSet::default();
    define(block, &mut known);
    let mut outer = Vec::new();
    read_unknown(block, &mut known, &mut outer);
    outer
}

/// Adds what a block and all inside of it make.
fn define<'c>(block: BlockRef<'c, 'c>, known: &mut FxHashSet<usize>) {
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    known.extend(arguments.map(|argument| key(argument.into())));
    for_each_op(block, &mut |op| {
        known.extend(op.results().map(|result| key(result.into())));
        for_each_block(op, &mut |inside| define(inside, known));
    });
}

/// Adds what a block and all inside of it read and nobody is known to make.
fn read_unknown<'c>(block: BlockRef<'c, 'c>, known: &mut FxHashSet<usize>, found: &mut Vec<Value<'c, 'c>>) {
    for_each_op(block, &mut |op| {
        found.extend(op.operands().filter(|&value| known.insert(key(value))));
        for_each_block(op, &mut |inside| read_unknown(inside, known, found));
    });
}

/// Whether the operation makes something that takes no memory of the run, from nothing.
fn makes_no_memory(op: OperationRef<'_, '_>) -> bool {
    let (domain, op_type) = identity(op);
    is_empty(op) || is_constant(op, &domain, &op_type)
}

/// Whether the operation makes a tensor of static shape without contents.
fn is_empty(op: OperationRef<'_, '_>) -> bool {
    let (domain, op_type) = identity(op);
    is_without_contents(&domain, &op_type) && op.operand_count() == 0
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
