//! The blocks inside an operation.

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, OperationRef, RegionLike};

/// Visits every block of the regions of the operation.
pub(crate) fn for_each_block<'c, 'a>(op: OperationRef<'c, 'a>, work: &mut dyn FnMut(BlockRef<'c, 'a>)) {
    for region in op.regions() {
        let mut next = region.first_block();
        while let Some(block) = next {
            work(block);
            next = block.next_in_region();
        }
    }
}

/// Visits every operation of a block.
pub(crate) fn for_each_op<'c, 'a>(block: BlockRef<'c, 'a>, work: &mut dyn FnMut(OperationRef<'c, 'a>)) {
    let mut next = block.first_operation();
    while let Some(op) = next {
        work(op);
        next = op.next_in_block();
    }
}
