//! Blocks that buffers were put into, as a function has them: their views, and how long each is needed.
//!
//! Nothing is known here of how the views came about. A view is needed from the first operation that uses it to the last one, under its own
//! name or another one (a cast, a part of it, an argument of a loop); what may be another name counts as one. An operation with regions uses
//! it as long as it runs, unless the view itself is made inside.

use std::ops::Range;

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef, RegionLike, Value, ValueLike};
use rustc_hash::FxHashSet;
use thiserror::Error;

use crate::error::Diagnosed;
use crate::ffi::buffers as queries;
use crate::function::Function;
use crate::positions::{Positions, ancestor_in, name_of};

/// Why a block is not what [`Function::blocks`] can read, or breaks a rule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockError {
    /// Something else than a view uses the block.
    #[error("`{0}` uses a block of buffers, which only views may")]
    Use(String),
    /// A view has no constant offset or no static size.
    #[error("a view of a block of buffers needs a constant offset and a static size")]
    NotConstant,
    /// A view leaves the function together with a block that the function frees.
    #[error("a view of the block leaves the function, which frees the block")]
    Escapes,
    /// A view is used after its block was freed.
    #[error("the block is freed before the last use of a view of it")]
    Freed,
    /// A rule that is judged elsewhere.
    #[error("{0}")]
    Rule(String),
}

/// A view of a block.
#[derive(Clone)]
pub struct ViewOfBlock<'c> {
    op: OperationRef<'c, 'c>,
    /// Its first byte in the block.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What its elements have to be aligned to.
    pub alignment: u64,
    /// Its number, where it has one.
    pub buffer: Option<u64>,
    /// When it is needed, in positions of the text; empty if nothing uses it.
    pub needed: Range<u64>,
}

impl<'c> ViewOfBlock<'c> {
    /// An error at this view.
    #[must_use]
    pub fn fault(&self, why: String) -> Diagnosed<'c, BlockError> {
        Diagnosed::at(self.op, BlockError::Rule(why))
    }
}

/// A block and its views, in the order of the text.
#[derive(Clone)]
pub struct BlockViews<'c> {
    /// Its bytes.
    pub bytes: u64,
    /// Its views.
    pub views: Vec<ViewOfBlock<'c>>,
}

impl<'c> Function<'c> {
    /// The blocks that buffers of the function were put into.
    ///
    /// # Errors
    /// [`BlockError`] at the operation that does with a block or a view what has no meaning.
    pub fn blocks(self) -> Result<Vec<BlockViews<'c>>, Diagnosed<'c, BlockError>> {
        let positions = Positions::of(self.op());
        let first = self.op().regions().next().and_then(|region| region.first_block());
        let arguments = first.into_iter().flat_map(arguments);
        let results = positions.ops().iter().flat_map(|op| op.results().map(Into::into));
        let values: Vec<Value<'c, 'c>> = arguments.chain(results).collect();
        let mut blocks = Vec::new();
        for value in values {
            if let Some(bytes) = queries::block_bytes(value) {
                blocks.push(block(self.op(), value, bytes, &positions)?);
            }
        }
        Ok(blocks)
    }
}

fn arguments<'c>(block: BlockRef<'c, 'c>) -> impl Iterator<Item = Value<'c, 'c>> {
    (0..block.argument_count()).filter_map(move |index| Some(block.argument(index).ok()?.into()))
}

fn block<'c>(
    function: OperationRef<'c, 'c>,
    block: Value<'c, 'c>,
    bytes: u64,
    positions: &Positions<'c>,
) -> Result<BlockViews<'c>, Diagnosed<'c, BlockError>> {
    let mut names = vec![block];
    let (mut views, mut frees) = (Vec::new(), Vec::new());
    while let Some(name) = names.pop() {
        for user in queries::users(name) {
            match name_of(user).as_str() {
                "memref.view" => views.push(user),
                "memref.dealloc" => frees.push(user),
                "memref.assume_alignment" => names.extend(user.results().map(Value::from)),
                other => return Err(Diagnosed::at(user, BlockError::Use(other.to_owned()))),
            }
        }
    }
    views.sort_by_key(|&view| positions.time(view).start);
    let mut read = Vec::with_capacity(views.len());
    for op in views {
        let uses = Uses::of(function, op);
        let needed = needed(op, &uses, positions);
        if uses.leaves && !frees.is_empty() {
            return Err(Diagnosed::at(op, BlockError::Escapes));
        }
        let is_freed = |free: &&OperationRef<'c, 'c>| {
            let follows = free.block().and_then(|block| ancestor_in(op, block));
            follows.is_some() && positions.time(**free).start < needed.end
        };
        if let Some(&free) = frees.iter().find(is_freed) {
            return Err(Diagnosed::at(free, BlockError::Freed));
        }
        read.push(view(op, needed)?);
    }
    Ok(BlockViews { bytes, views: read })
}

fn view<'c>(op: OperationRef<'c, 'c>, needed: Range<u64>) -> Result<ViewOfBlock<'c>, Diagnosed<'c, BlockError>> {
    let facts = queries::view(op).unwrap_or_default();
    let (Ok(offset), Ok(bytes)) = (u64::try_from(facts.offset), u64::try_from(facts.bytes)) else {
        return Err(Diagnosed::at(op, BlockError::NotConstant));
    };
    Ok(ViewOfBlock {
        op,
        offset,
        bytes,
        alignment: u64::try_from(facts.alignment).unwrap_or(1),
        buffer: u64::try_from(facts.buffer).ok(),
        needed,
    })
}

/// From the first to the last use, in the block of the view.
fn needed<'c>(view: OperationRef<'c, 'c>, uses: &Uses<'c>, positions: &Positions<'c>) -> Range<u64> {
    let block = view.block();
    let around = || view.parent_operation().map_or(0..u64::MAX, |op| positions.time(op));
    let times = uses.ops.iter().map(|&op| {
        let ancestor = block.and_then(|block| ancestor_in(op, block));
        // In another block of the region: nothing says when that runs.
        ancestor.map_or_else(around, |ancestor| positions.time(ancestor))
    });
    times
        .reduce(|all, time| all.start.min(time.start)..all.end.max(time.end))
        .unwrap_or(0..0)
}

/// What uses a buffer, under any name that it may have.
struct Uses<'c> {
    function: OperationRef<'c, 'c>,
    ops: Vec<OperationRef<'c, 'c>>,
    names: FxHashSet<usize>,
    next: Vec<Value<'c, 'c>>,
    /// Whether the function returns it.
    leaves: bool,
}

impl<'c> Uses<'c> {
    fn of(function: OperationRef<'c, 'c>, view: OperationRef<'c, 'c>) -> Self {
        let mut uses = Self {
            function,
            ops: Vec::new(),
            names: FxHashSet::default(),
            next: Vec::new(),
            leaves: false,
        };
        uses.name_all(view.results().map(Value::from));
        while let Some(name) = uses.next.pop() {
            for user in queries::users(name) {
                uses.ops.push(user);
                uses.follow(name, user);
            }
        }
        uses
    }

    fn name_all(&mut self, values: impl Iterator<Item = Value<'c, 'c>>) {
        for value in values {
            if self.names.insert(value.to_raw().ptr as usize) {
                self.next.push(value);
            }
        }
    }

    /// Finds the names that an operation may give to the buffer.
    fn follow(&mut self, name: Value<'c, 'c>, user: OperationRef<'c, 'c>) {
        let is_address = !queries::is_buffer(name) || name_of(user) == "memref.extract_aligned_pointer_as_index";
        if name_of(user) == "bufferization.clone" {
            return;
        }
        // What is computed from an address may be used as one.
        self.name_all(
            user.results()
                .map(Value::from)
                .filter(|&value| is_address || queries::is_buffer(value)),
        );
        self.name_all(inner_arguments(user).into_iter());
        let successors: Vec<_> = user.successors().collect();
        for successor in successors {
            self.name_all(buffers_of(successor).into_iter());
        }
        // What ends a region hands its operands to the operation around it, and to the regions there.
        let ends = user.next_in_block().is_none() && user.successor_count() == 0 && user.result_count() == 0;
        match user.parent_operation() {
            Some(around) if ends && around == self.function => self.leaves = true,
            Some(around) if ends => {
                let results = around.results().map(Value::from);
                self.name_all(results.filter(|&value| queries::is_buffer(value)));
                self.name_all(inner_arguments(around).into_iter());
            }
            _ => {}
        }
    }
}

/// The buffers among the arguments of the blocks in an operation.
fn inner_arguments<'c>(op: OperationRef<'c, 'c>) -> Vec<Value<'c, 'c>> {
    let mut found = Vec::new();
    for region in op.regions() {
        let mut next = region.first_block();
        while let Some(block) = next {
            found.extend(buffers_of(block));
            next = block.next_in_region();
        }
    }
    found
}

fn buffers_of<'c>(block: BlockRef<'c, 'c>) -> Vec<Value<'c, 'c>> {
    arguments(block).filter(|&value| queries::is_buffer(value)).collect()
}
