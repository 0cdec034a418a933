//! Tiny buffers by trying everything.

use remat_plan::{Buffer, BufferId};
use typed_index_collections::TiVec;

/// The least height of all placements whose offsets are multiples of `step`; `None` where none is at most `most`.
pub(crate) fn least_height(buffers: &TiVec<BufferId, Buffer>, step: u64, most: u64) -> Option<u64> {
    let mut least = None;
    if buffers.is_empty() {
        return Some(0);
    }
    let mut offsets = Vec::new();
    try_all(buffers, step, most, &mut offsets, &mut least);
    least
}

fn try_all(buffers: &TiVec<BufferId, Buffer>, step: u64, most: u64, offsets: &mut Vec<u64>, least: &mut Option<u64>) {
    let Some(buffer) = buffers.raw.get(offsets.len()) else {
        let ends = offsets.iter().zip(buffers).map(|(offset, buffer)| offset + buffer.size);
        *least = ends
            .max()
            .map(|height| least.map_or(height, |least: u64| least.min(height)));
        return;
    };
    let mut offset = 0;
    while offset + buffer.size <= most && least.is_none_or(|least| offset + buffer.size < least) {
        let is_own = offset % buffer.alignment == 0 && buffer.pinned.is_none_or(|pinned| pinned == offset);
        let mut before = offsets.iter().zip(buffers);
        let is_free = |(&other, placed): (&u64, &Buffer)| {
            let apart = other + placed.size <= offset || offset + buffer.size <= other;
            apart || !meet(buffer, placed)
        };
        if is_own && before.all(is_free) {
            offsets.push(offset);
            try_all(buffers, step, most, offsets, least);
            offsets.pop();
        }
        offset += step;
    }
}

fn meet(a: &Buffer, b: &Buffer) -> bool {
    a.size > 0 && b.size > 0 && a.taken().any(|a| b.taken().any(|b| a.start < b.end && b.start < a.end))
}

#[test]
fn the_truth_of_a_placement_that_needs_more_than_its_load() {
    // At no time more than 4 are taken, and 5 are needed.
    let buffers = crate::small::above_load();
    assert_eq!(least_height(&buffers, 1, 10), Some(5));
    assert_eq!(least_height(&buffers, 1, 4), None);
}
