//! Placing buffers as an allocator does at run time, each when it begins, but from the fullest time on, in both directions, and with knowledge
//! of the time at which each ends: of several holes, the one beside a buffer that ends soon before or after is taken, so that what becomes free is
//! in one piece. Takes time `n log n`, whatever is alive together.

use alloc::collections::{BTreeMap, BTreeSet, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::dense::Table;
use crate::float::sqrt;
use crate::hash::Map;

use crate::place::instance::{Instance, Item, Span};

/// How buffers are placed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    column: Column,
    /// So many holes are compared, tightest first: alignments may make one too small.
    holes: usize,
    waste: Waste,
}

/// The order of the buffers of the fullest time, from the lowest offset on.
#[derive(Clone, Copy, Debug)]
enum Column {
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

impl Manner {
    /// The first one does well on most buffers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let wastes = [Waste::FourthRoot, Waste::Root, Waste::Whole, Waste::Nothing];
        let holes = [8, 16, 32]
            .into_iter()
            .flat_map(move |holes| wastes.map(|waste| (holes, waste)));
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
struct Holes {
    by_offset: BTreeMap<i64, i64>,
    by_size: BTreeSet<(i64, i64)>,
    end: i64,
    /// When the buffer that begins at an offset ends, and when the one that ends there does.
    above: Map<i64, usize>,
    below: Map<i64, usize>,
}

impl Holes {
    fn new(end: i64) -> Self {
        Self {
            by_offset: BTreeMap::new(),
            by_size: BTreeSet::new(),
            end,
            above: Map::default(),
            below: Map::default(),
        }
    }

    /// Notes a buffer that ends at this time.
    fn note(&mut self, start: i64, end: i64, until: usize) {
        self.above.insert(start, until);
        self.below.insert(end, until);
    }

    /// Notes that a buffer has ended.
    fn free(&mut self, start: i64, end: i64) {
        self.above.remove(start);
        self.below.remove(end);
        self.add(start, end);
    }

    fn add(&mut self, mut start: i64, mut end: i64) {
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
    fn fitting(&self, instance: &Instance, item: Item, until: usize, manner: Manner) -> Option<(i64, i64, i64)> {
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
                let cost = apart as f64 * factor;
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

    /// The offset of a buffer in a hole or after all.
    fn take(&mut self, instance: &Instance, item: Item, until: usize, manner: Manner) -> i64 {
        let size = instance.size[item];
        let fitting = self.fitting(instance, item, until, manner);
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

/// Places buffers, none of which is pinned, from `base` on: those of the fullest section below each other, then those that begin later in the order in which they begin, then those that end before in the order in which they end, backwards. Where most is taken,
/// nothing is lost this way. Gaps in lifetimes are not used.
pub(crate) fn place(instance: &Instance, items: &[Item], base: i64, manner: Manner, offsets: &mut Table<Item, i64>) {
    let fullest = instance.fullest(items);
    let alive = |item: Item| instance.hull(item).contains(&fullest);
    let mut column: Vec<Item> = items.iter().copied().filter(|&item| alive(item)).collect();
    column.sort_by_key(|&item| match manner.column {
        Column::Size => (Reverse(instance.size[item].unsigned_abs()), item),
        Column::Life => (Reverse(instance.life[item]), item),
    });
    let mut end = base;
    for &item in &column {
        offsets[item] = instance.aligned(item, end);
        end = offsets[item] + instance.size[item];
    }
    let sections = instance.sections();
    let later = items.iter().copied();
    let later = later.filter(|&item| instance.hull(item).start > fullest);
    let forward = |item: Item| instance.hull(item);
    sweep(
        instance,
        &column,
        later.collect(),
        (base, end),
        manner,
        forward,
        offsets,
    );
    let before = items.iter().copied();
    let before = before.filter(|&item| instance.hull(item).end <= fullest);
    let backward = |item: Item| {
        let hull = instance.hull(item);
        sections - hull.end..sections - hull.start
    };
    sweep(
        instance,
        &column,
        before.collect(),
        (base, end),
        manner,
        backward,
        offsets,
    );
}

/// Places buffers in the order in which they begin, after a column of buffers that takes these offsets.
fn sweep(
    instance: &Instance,
    column: &[Item],
    mut items: Vec<Item>,
    (base, end): (i64, i64),
    manner: Manner,
    time: impl Fn(Item) -> Span,
    offsets: &mut Table<Item, i64>,
) {
    items.sort_by_key(|&item| (time(item).start, Reverse(instance.size[item]), item));
    let mut holes = Holes::new(end);
    let mut below = base;
    for &item in column {
        if below < offsets[item] {
            holes.add(below, offsets[item]);
        }
        below = offsets[item] + instance.size[item];
        holes.note(offsets[item], below, time(item).end);
    }
    let ends = column.iter().map(|&item| Reverse((time(item).end, item)));
    let mut alive: BinaryHeap<Reverse<(usize, Item)>> = ends.collect();
    for item in items {
        let time = time(item);
        while let Some(&Reverse((end, gone))) = alive.peek()
            && end <= time.start
        {
            alive.pop();
            holes.free(offsets[gone], offsets[gone] + instance.size[gone]);
        }
        let offset = holes.take(instance, item, time.end, manner);
        offsets[item] = offset;
        holes.note(offset, offset + instance.size[item], time.end);
        alive.push(Reverse((time.end, item)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Id;
    use crate::place::buffer::Buffer;

    #[test]
    fn the_fullest_time_has_no_holes_and_what_ends_makes_room_on_both_sides_of_it() {
        let demand = |size, start, end| Buffer::new(size, start..end);
        let instance = Instance::new(&[
            demand(4, 0, 2),
            demand(6, 1, 4),
            demand(5, 2, 5),
            demand(3, 2, 3),
            demand(3, 3, 6),
            demand(6, 4, 6),
        ]);
        let items: Vec<Item> = instance.size.keys().collect();
        for manner in Manner::all() {
            let mut offsets = Table::filled(0, items.len());
            place(&instance, &items, 10, manner, &mut offsets);
            assert_eq!(instance.height(&offsets), 10 + instance.bound, "{manner:?}");
            for (a, b) in items.iter().flat_map(|&a| items.iter().map(move |&b| (a, b))) {
                let apart = offsets[a] + instance.size[a] <= offsets[b] || offsets[b] + instance.size[b] <= offsets[a];
                assert!(a == b || apart || !instance.meet(a, b), "{a:?} {b:?} {offsets:?}");
            }
            assert!(offsets.iter().all(|&offset| offset >= 10));
        }
    }

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
        let take = |until| holes.fitting(&instance, Item::at(0), until, manner);
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
