//! Placing a buffer as an allocator does at run time, when it begins, but with knowledge of the time at which each ends: of several holes, the one
//! beside a buffer that ends soon before or after is taken, so that what becomes free is in one piece.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::float::sqrt;
use crate::hash::Map;

use crate::place::instance::{Instance, Item};
use crate::rng::Rng;

/// How buffers are placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) column: Column,
    /// So many holes are compared, tightest first: alignments may make one too small.
    holes: usize,
    waste: Waste,
}

/// The order of the buffers of the fullest time, from the lowest offset on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Largest first.
    Size,
    /// Longest life first.
    Life,
}

/// What is multiplied with the difference between the times at which two buffers end, by what a hole has left.
#[derive(Clone, Copy, Debug)]
enum Waste {
    FourthRoot,
    Root,
    Whole,
    Nothing,
}

const WASTES: [Waste; 4] = [Waste::FourthRoot, Waste::Root, Waste::Whole, Waste::Nothing];

impl Manner {
    /// The same column and another choice of holes.
    pub(crate) fn other(self, number: usize) -> Self {
        let waste = WASTES[number % WASTES.len()];
        Self { waste, ..self }
    }

    /// The first one does well on most buffers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let holes = [8, 16, 32]
            .into_iter()
            .flat_map(|holes| WASTES.map(|waste| (holes, waste)));
        holes.flat_map(|(holes, waste)| [Column::Size, Column::Life].map(|column| Self { column, holes, waste }))
    }
}

impl Waste {
    fn factor(self, left: i64) -> f64 {
        let left = (left + 1) as f64;
        match self {
            Self::FourthRoot => sqrt(sqrt(left)),
            Self::Root => sqrt(left),
            Self::Whole => left,
            Self::Nothing => 1.0,
        }
    }
}

/// What is free between the lowest offset and the end of what was taken so far; holes do not touch.
#[derive(Clone)]
pub(crate) struct Holes {
    by_offset: BTreeMap<i64, i64>,
    by_size: BTreeSet<(i64, i64)>,
    end: i64,
    /// When the buffer that begins at an offset ends, and when the one that ends there does.
    above: Map<i64, usize>,
    below: Map<i64, usize>,
}

impl Holes {
    pub(crate) fn new(end: i64) -> Self {
        Self {
            by_offset: BTreeMap::new(),
            by_size: BTreeSet::new(),
            end,
            above: Map::default(),
            below: Map::default(),
        }
    }

    /// Notes a buffer that ends at this time.
    pub(crate) fn note(&mut self, start: i64, end: i64, until: usize) {
        self.above.insert(start, until);
        self.below.insert(end, until);
    }

    /// Notes that a buffer has ended.
    pub(crate) fn free(&mut self, start: i64, end: i64) {
        self.above.remove(start);
        self.below.remove(end);
        self.add(start, end);
    }

    pub(crate) fn add(&mut self, mut start: i64, mut end: i64) {
        if let Some((&before, &until)) = self.by_offset.range(..start).next_back()
            && until == start
        {
            self.remove(before, until);
            start = before;
        }
        if let Some(&until) = self.by_offset.get(&end) {
            self.remove(end, until);
            end = until;
        }
        if end == self.end {
            self.end = start;
        } else if start < end {
            self.by_offset.insert(start, end);
            self.by_size.insert((end - start, start));
        }
    }

    fn remove(&mut self, start: i64, end: i64) {
        self.by_offset.remove(&start);
        self.by_size.remove(&(end - start, start));
    }

    /// The hole whose neighbour ends at about this time, as start and end, and the offset in it.
    fn fitting(
        &self,
        instance: &Instance,
        item: Item,
        until: usize,
        manner: Manner,
        mut noise: Option<&mut Rng>,
    ) -> Option<(i64, i64, i64)> {
        let size = instance.size[item];
        let mut best: Option<(f64, (i64, i64, i64))> = None;
        for &(width, start) in self.by_size.range((size, i64::MIN)..).take(manner.holes) {
            let end = start + width;
            let lowest = instance.aligned(item, start);
            let highest = instance.aligned_down(item, end - size);
            if highest < lowest {
                continue;
            }
            let factor = manner.waste.factor(width - size);
            for (offset, other) in [(lowest, self.below.get(start)), (highest, self.above.get(end))] {
                let apart = other.map_or(usize::MAX, |other| other.abs_diff(until).saturating_add(1));
                let cost = apart as f64 * factor * noise.as_mut().map_or(1.0, |rng| 1.0 + rng.unit());
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, (start, end, offset)));
                }
            }
            if width == size {
                break;
            }
        }
        best.map(|(_, hole)| hole)
    }

    /// The offset of a buffer in a hole or after all. Noise makes other holes come next.
    pub(crate) fn take(
        &mut self,
        instance: &Instance,
        item: Item,
        until: usize,
        manner: Manner,
        noise: Option<&mut Rng>,
    ) -> i64 {
        let size = instance.size[item];
        let fitting = self.fitting(instance, item, until, manner, noise);
        if let Some((start, end, offset)) = fitting {
            self.remove(start, end);
            if start < offset {
                self.add(start, offset);
            }
            if offset + size < end {
                self.add(offset + size, end);
            }
            return offset;
        }
        let before = self.end;
        let offset = instance.aligned(item, before);
        self.end = offset + size;
        if before < offset {
            self.add(before, offset);
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Id;
    use crate::place::buffer::Buffer;

    #[test]
    fn a_buffer_goes_beside_one_that_ends_when_it_does() {
        let instance = Instance::new(&[Buffer::new(1, 0..1)]);
        let mut holes = Holes::new(30);
        for (start, end, until) in [(0, 5, 9), (7, 10, 3), (10, 20, 4), (23, 30, 8)] {
            holes.note(start, end, until);
        }
        holes.add(5, 7);
        holes.add(20, 23);
        let manner = Manner::all().next().unwrap();
        let take = |until| holes.fitting(&instance, Item::at(0), until, manner, None);
        assert_eq!(take(3), Some((5, 7, 6)));
        assert_eq!(take(4), Some((20, 23, 20)));
        assert_eq!(take(9), Some((5, 7, 5)));
    }

    #[test]
    fn holes_that_touch_become_one_and_the_last_one_has_no_end() {
        let mut holes = Holes::new(20);
        holes.add(2, 5);
        holes.add(8, 10);
        holes.add(5, 8);
        assert_eq!(holes.by_offset, BTreeMap::from([(2, 10)]));
        holes.add(10, 20);
        assert!(holes.by_offset.is_empty() && holes.by_size.is_empty());
        assert_eq!(holes.end, 2);
    }
}
