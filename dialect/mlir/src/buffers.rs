//! The buffers that a bufferized function allocates and frees, and one block in their place.
//!
//! A buffer has its bytes from its `memref.alloc` to its `memref.dealloc`. Where both stand in one block (of operations), nothing can use
//! the buffer outside of these, under whatever name. A region that runs several times, one time after the other, takes the bytes again in each.

use std::ops::Range;

use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use thiserror::Error;

use crate::ffi::{self, buffers as queries};
use crate::function::{Function, Severity};
use crate::positions::{Positions, ancestor_in, name_of};

/// Operations whose regions run one after the other, each as often as it does.
const SEQUENTIAL: [&str; 8] = [
    "affine.for",
    "affine.if",
    "memref.alloca_scope",
    "scf.execute_region",
    "scf.for",
    "scf.if",
    "scf.index_switch",
    "scf.while",
];

/// Why a buffer cannot be part of a block.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The program alone knows its size.
    #[error("its size is not static")]
    DynamicSize,
    /// It has a memory space.
    #[error("it is in another memory space")]
    OtherMemory,
    /// Its elements do not lie at fixed distances.
    #[error("its layout has no static strides")]
    Layout,
    /// Its elements have a type of unknown size.
    #[error("the size of its elements is unknown")]
    Element,
    /// It may outlive the function.
    #[error("no operation of its block frees it, so it may outlive the function")]
    Escapes,
    /// Several operations free it.
    #[error("{0} operations free it")]
    FreedOften(usize),
    /// It is allocated in a region that may run several times at once.
    #[error("it is allocated inside of `{0}`, whose regions may run several times at once")]
    Concurrent(String),
}

/// A buffer that can be part of a block.
#[derive(Clone)]
pub struct StaticBuffer<'c> {
    alloc: OperationRef<'c, 'c>,
    dealloc: OperationRef<'c, 'c>,
    /// Its bytes.
    pub bytes: u64,
    /// Its first byte lies at a multiple of this.
    pub alignment: u64,
    /// From its allocation to its deallocation, in positions of the text.
    pub lifetime: Range<u64>,
}

/// A buffer that stays as it is.
#[derive(Clone)]
pub struct OtherBuffer<'c> {
    alloc: OperationRef<'c, 'c>,
    /// Why.
    pub obstacle: Obstacle,
}

impl OtherBuffer<'_> {
    /// Emits a diagnostic at the allocation.
    pub fn emit(&self, severity: Severity, text: &str) {
        ffi::emit(self.alloc, severity.number(), text);
    }
}

/// Where a block comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockSource {
    /// The function allocates it.
    #[default]
    Allocated,
    /// The last argument of the function.
    Argument,
}

/// What a function allocates.
#[derive(Clone)]
pub struct Buffers<'c> {
    function: OperationRef<'c, 'c>,
    /// What can be part of a block, in the order of the text.
    pub fixed: Vec<StaticBuffer<'c>>,
    /// What cannot.
    pub others: Vec<OtherBuffer<'c>>,
}

impl<'c> Function<'c> {
    /// The buffers that the function allocates on the heap.
    #[must_use]
    pub fn buffers(self) -> Buffers<'c> {
        let positions = Positions::of(self.op());
        let mut buffers = Buffers {
            function: self.op(),
            fixed: Vec::new(),
            others: Vec::new(),
        };
        for &op in positions.ops() {
            let is_block = || op.results().any(|result| queries::block_bytes(result.into()).is_some());
            let Some(facts) = queries::allocation(op).filter(|_| !is_block()) else {
                continue;
            };
            let bytes = |number: i64| u64::try_from(number).unwrap_or(0);
            match obstacle(facts.obstacle).map_or_else(|| dealloc(self.op(), op, &positions), Err) {
                Ok(dealloc) => buffers.fixed.push(StaticBuffer {
                    alloc: op,
                    dealloc,
                    bytes: bytes(facts.bytes),
                    alignment: bytes(facts.alignment),
                    lifetime: positions.time(op).start..positions.time(dealloc).start,
                }),
                Err(obstacle) => buffers.others.push(OtherBuffer { alloc: op, obstacle }),
            }
        }
        buffers
    }
}

/// The numbers are those of `Obstacle` in C++.
fn obstacle(number: i32) -> Option<Obstacle> {
    match number {
        0 => None,
        1 => Some(Obstacle::DynamicSize),
        2 => Some(Obstacle::OtherMemory),
        3 => Some(Obstacle::Layout),
        _ => Some(Obstacle::Element),
    }
}

/// The operation that frees what `alloc` allocates, whenever that runs.
fn dealloc<'c>(
    function: OperationRef<'c, 'c>,
    alloc: OperationRef<'c, 'c>,
    positions: &Positions<'c>,
) -> Result<OperationRef<'c, 'c>, Obstacle> {
    let mut around = alloc.parent_operation();
    while let Some(op) = around.filter(|&op| op != function) {
        let name = name_of(op);
        if !SEQUENTIAL.contains(&name.as_str()) {
            return Err(Obstacle::Concurrent(name));
        }
        around = op.parent_operation();
    }
    let value = alloc.result(0).map_err(|_| Obstacle::Escapes)?;
    let users = queries::users(value.into());
    let mut frees = users.into_iter().filter(|&user| name_of(user) == "memref.dealloc");
    let first = frees.next().ok_or(Obstacle::Escapes)?;
    let others = frees.count();
    if others > 0 {
        return Err(Obstacle::FreedOften(others + 1));
    }
    let follows = first.block() == alloc.block() && positions.time(alloc).start < positions.time(first).start;
    if follows { Ok(first) } else { Err(Obstacle::Escapes) }
}

impl<'c> Buffers<'c> {
    /// Replaces the buffers by views of one block of these bytes, at these offsets, one for each of `fixed`. False, and nothing is changed, if
    /// the block is to be an argument and the function takes no further one.
    pub fn place(self, source: BlockSource, bytes: u64, offsets: &[u64]) -> bool {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let alignment = self.fixed.iter().map(|buffer| buffer.alignment).max().unwrap_or(1);
        let block = match source {
            BlockSource::Allocated => Some(queries::allocate_block(
                self.function,
                self.extent(),
                number(bytes),
                number(alignment),
            )),
            BlockSource::Argument => queries::append_block(self.function, number(bytes), number(alignment)),
        };
        let Some(block) = block else { return false };
        for (index, (buffer, &offset)) in self.fixed.into_iter().zip(offsets).enumerate() {
            queries::place_allocation(
                buffer.alloc,
                buffer.dealloc,
                block,
                number(offset),
                number(index as u64),
            );
        }
        true
    }

    /// The first and the last operation of the function's body that deal with its buffers, if these are in one block of it.
    fn extent(&self) -> Option<(OperationRef<'c, 'c>, OperationRef<'c, 'c>)> {
        let first = self.fixed.first()?;
        let last = self.fixed.iter().max_by_key(|buffer| buffer.lifetime.end)?;
        let mut outermost = first.alloc;
        while let Some(around) = outermost.parent_operation().filter(|&op| op != self.function) {
            outermost = around;
        }
        let block = outermost.block()?;
        let inside = |buffer: &StaticBuffer<'c>| ancestor_in(buffer.alloc, block).is_some();
        let is_one_block = self.fixed.iter().all(inside);
        is_one_block.then_some((outermost, ancestor_in(last.dealloc, block)?))
    }
}
