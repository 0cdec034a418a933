//! The operations of a function in the order of their text, as positions in time.

use std::ops::Range;

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef, RegionLike};
use rustc_hash::FxHashMap;

/// From when to when each operation below a function runs, its regions included.
///
/// The operations of a block run one after the other, and so do their positions. Of two blocks of a region no two operations run at the same
/// time, but which one runs first the positions do not say.
pub(crate) struct Positions<'c> {
    times: FxHashMap<usize, Range<u64>>,
    /// All operations, the outer ones before those inside.
    ops: Vec<OperationRef<'c, 'c>>,
}

impl<'c> Positions<'c> {
    pub(crate) fn of(function: OperationRef<'c, 'c>) -> Self {
        let mut positions = Self {
            times: FxHashMap::default(),
            ops: Vec::new(),
        };
        let mut next = 0;
        positions.enter(function, &mut next);
        positions
    }

    fn enter(&mut self, op: OperationRef<'c, 'c>, next: &mut u64) {
        let start = *next;
        *next += 1;
        self.ops.push(op);
        for region in op.regions() {
            let mut block = region.first_block();
            while let Some(current) = block {
                let mut inside = current.first_operation();
                while let Some(op) = inside {
                    self.enter(op, next);
                    inside = op.next_in_block();
                }
                block = current.next_in_region();
            }
        }
        *next += 1;
        self.times.insert(key(op), start..*next);
    }

    pub(crate) fn ops(&self) -> &[OperationRef<'c, 'c>] {
        &self.ops
    }

    /// When an operation of the function runs.
    pub(crate) fn time(&self, op: OperationRef<'c, 'c>) -> Range<u64> {
        self.times.get(&key(op)).cloned().unwrap_or(0..u64::MAX)
    }
}

fn key(op: OperationRef<'_, '_>) -> usize {
    op.to_raw().ptr as usize
}

/// The operation of the block that holds `op`, or is it.
pub(crate) fn ancestor_in<'c>(op: OperationRef<'c, 'c>, block: BlockRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
    let mut ancestor = op;
    loop {
        if ancestor.block()? == block {
            return Some(ancestor);
        }
        ancestor = ancestor.parent_operation()?;
    }
}

/// The name of an operation, its dialect included.
pub(crate) fn name_of(op: OperationRef<'_, '_>) -> String {
    op.name().as_string_ref().as_str().unwrap_or_default().to_owned()
}
