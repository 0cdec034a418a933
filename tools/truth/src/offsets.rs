//! Offsets of tiny buffers.

use remat_plan::{Buffer, BufferId};
use typed_index_collections::{TiSlice, TiVec};

/// Buffers whose load is 4, of which no placement is lower than 5.
#[must_use]
pub fn above_load() -> TiVec<BufferId, Buffer> {
    let sizes = [
        (1, 4..6),
        (2, 8..13),
        (2, 6..9),
        (2, 1..5),
        (1, 4..8),
        (2, 0..4),
        (1, 5..7),
    ];
    let buffers = sizes.into_iter().enumerate();
    buffers
        .map(|(index, (size, lifetime))| Buffer::new(index.to_string(), size, lifetime))
        .collect()
}

/// The least height of all placements whose offsets are multiples of `step`; `None` where none is at most `most`.
#[must_use]
pub fn least_height(buffers: &TiSlice<BufferId, Buffer>, step: u64, most: u64) -> Option<u64> {
    let mut least = None;
    if buffers.is_empty() {
        return Some(0);
    }
    let mut offsets = Vec::new();
    try_all(buffers, step, most, &mut offsets, &mut least);
    least
}

fn try_all(buffers: &TiSlice<BufferId, Buffer>, step: u64, most: u64, offsets: &mut Vec<u64>, least: &mut Option<u64>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_of_buffers_that_need_more_than_their_load() {
        let buffers = above_load();
        assert_eq!(least_height(&buffers, 1, 10), Some(5));
        assert_eq!(least_height(&buffers, 1, 4), None);
    }
}
