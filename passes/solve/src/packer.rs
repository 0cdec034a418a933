//! A second method for offsets in one block, for where the search of `remat-place` gets no further.

use std::ops::Range;

use remat_plan::{Buffer, BufferId, PlacementProof};
use typed_index_collections::{TiSlice, TiVec};

use crate::SolveControl;

/// What is asked of a [`Packer`].
#[derive(Clone, Debug)]
pub struct Packing<'a> {
    /// Valid buffers with sizes above 0, connected in time.
    pub buffers: &'a TiSlice<BufferId, Buffer>,
    /// Heights that are of use: a placement of the first is as good as any lower one, and only one below the end is better than what is known.
    pub heights: Range<u64>,
    /// The offsets of a placement whose height is that end or, where a capacity is sought, more.
    pub start: &'a TiSlice<BufferId, u64>,
}

/// What a [`Packer`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    /// Offsets of a placement whose height is of use.
    pub offsets: Option<TiVec<BufferId, u64>>,
    /// No placement is lower, unless this is the first height of use: then nothing is said.
    pub bound: u64,
}

/// Seeks offsets of buffers in one block, and proves that there are no lower ones.
pub trait Packer: Sync {
    /// What the bounds of its answers rest on.
    fn proof(&self) -> PlacementProof;

    /// Seeks a placement within the limits of the control; `None` where the buffers are too many for it. A step is a conflict.
    fn pack(&self, packing: &Packing<'_>, control: &SolveControl<'_>) -> Option<Packed>;
}
