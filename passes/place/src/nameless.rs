//! Buffers and places as the planner has them, without names.

use remat_plan::{Blocks, Buffer, BufferId, Place, Placement};
use remat_planner::place as planner;
use typed_index_collections::TiSlice;

/// The buffers without their names.
pub(crate) fn nameless(buffers: &TiSlice<BufferId, Buffer>) -> Vec<planner::Buffer> {
    let nameless = |buffer: &Buffer| planner::Buffer {
        size: buffer.size,
        alignment: buffer.alignment,
        lifetime: buffer.lifetime.clone(),
        gaps: buffer.gaps.clone(),
        pinned: buffer.pinned,
    };
    buffers.iter().map(nameless).collect()
}

/// A buffer that is named by its position.
pub(crate) fn named(at: usize, buffer: &planner::Buffer) -> Buffer {
    Buffer {
        name: at.to_string(),
        size: buffer.size,
        alignment: buffer.alignment,
        lifetime: buffer.lifetime.clone(),
        gaps: buffer.gaps.clone(),
        pinned: buffer.pinned,
    }
}

pub(crate) fn given(blocks: &Blocks) -> planner::Blocks {
    match blocks {
        Blocks::Lowest => planner::Blocks::Lowest,
        Blocks::Given(sizes) => planner::Blocks::Given(sizes.clone()),
    }
}

/// Where each buffer lies in a placement that may lack some.
pub(crate) fn places(buffers: &TiSlice<BufferId, Buffer>, placement: &Placement) -> Vec<Option<planner::Place>> {
    let place = |id: BufferId| placement.places.get(id).copied().flatten();
    let of = |place: Place| planner::Place {
        block: place.block,
        offset: place.offset,
    };
    buffers.keys().map(|id| place(id).map(of)).collect()
}

pub(crate) fn of_planner(place: planner::Place) -> Place {
    Place {
        block: place.block,
        offset: place.offset,
    }
}
