//! Several blocks as one space of addresses, with walls between them that no buffer crosses.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::place::buffer::{Blocks, Buffer, Place};
use crate::place::instance::gcd;

/// The blocks one after the other.
pub(crate) struct Space {
    /// The address at which each block begins, ascending. All alignments divide it.
    bases: Vec<u64>,
    /// The addresses between a block's last byte that can be used and the next block.
    walls: Vec<(u64, u64)>,
    /// The sizes of all blocks together.
    bytes: u64,
    /// The end of the last block; `None` where it has none.
    pub(crate) capacity: Option<u64>,
}

/// The alignments of the buffers have nothing in common: no block could begin at a multiple of all within the range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoCommonAlignment;

impl Space {
    /// The space of these blocks, for buffers whose offsets are multiples of `unit` where they lie as low as possible.
    pub(crate) fn new(
        blocks: &Blocks,
        alignments: impl Iterator<Item = u64>,
        unit: u64,
    ) -> Result<Self, NoCommonAlignment> {
        let sizes = match blocks {
            Blocks::Lowest => &[][..],
            Blocks::Given(sizes) => sizes,
        };
        let mut space = Self {
            bases: vec![0],
            walls: Vec::new(),
            bytes: sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
            capacity: sizes.first().copied(),
        };
        if sizes.len() < 2 {
            return Ok(space);
        }
        let step = alignments
            .chain([unit])
            .try_fold(1, common_multiple)
            .ok_or(NoCommonAlignment)?;
        let mut base: u64 = 0;
        for &size in &sizes[..sizes.len() - 1] {
            let wall = base.checked_add(size / unit * unit);
            let next = wall.and_then(|wall| (wall + 1).checked_next_multiple_of(step));
            let (Some(wall), Some(next)) = (wall, next.filter(|&next| next < 1 << 61)) else {
                return Err(NoCommonAlignment);
            };
            space.walls.push((wall, next));
            space.bases.push(next);
            base = next;
        }
        let last = base.checked_add(sizes[sizes.len() - 1]);
        space.capacity = Some(last.filter(|&last| last < 1 << 61).ok_or(NoCommonAlignment)?);
        Ok(space)
    }

    /// The sizes of all blocks together; 0 where there is no end.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether addresses are offsets.
    pub(crate) fn is_one_block(&self) -> bool {
        self.walls.is_empty()
    }

    /// The walls as buffers that are alive during all of these times.
    pub(crate) fn walls(&self, times: Range<u64>) -> impl Iterator<Item = Buffer> + '_ {
        self.walls.iter().map(move |&(start, end)| Buffer {
            pinned: Some(start),
            ..Buffer::new(end - start, times.clone())
        })
    }

    /// The place at an address.
    pub(crate) fn place(&self, address: u64) -> Place {
        let block = self.bases.partition_point(|&base| base <= address) - 1;
        Place {
            block,
            offset: address - self.bases[block],
        }
    }

    /// The address of a place.
    pub(crate) fn address(&self, place: Place) -> Option<u64> {
        self.bases.get(place.block)?.checked_add(place.offset)
    }
}

fn common_multiple(a: u64, b: u64) -> Option<u64> {
    (a / gcd([a, b])).checked_mul(b).filter(|&multiple| multiple < 1 << 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_at_multiples_of_all_alignments_with_a_wall_before_them() {
        let blocks = Blocks::Given(vec![100, 64, 1000]);
        let space = Space::new(&blocks, [1, 8, 12].into_iter(), 4).unwrap();
        assert_eq!(space.bases, [0, 120, 192]);
        assert_eq!(space.walls, [(100, 120), (184, 192)]);
        assert_eq!(space.capacity, Some(1192));
        let place = Place { block: 1, offset: 8 };
        assert_eq!(space.address(place), Some(128));
        assert_eq!(space.place(128), place);
    }

    #[test]
    fn alignments_without_a_common_multiple_are_refused() {
        let blocks = Blocks::Given(vec![64, 64]);
        let alignments = [(1 << 31) - 1, (1 << 30) - 1];
        assert!(Space::new(&blocks, alignments.into_iter(), 1).is_err());
        assert!(Space::new(&Blocks::Lowest, alignments.into_iter(), 1).is_ok());
    }
}
