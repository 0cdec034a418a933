//! Placing buffers as an allocator does at run time, each into the tightest hole when it begins, but from the fullest time on and in both
//! directions. Takes time `n log n`, whatever is alive together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use typed_index_collections::TiVec;

use crate::instance::{Instance, Item, Span};

/// So many holes are tried, tightest first: alignments may make one too small.
const HOLES: usize = 8;

/// What is free between the lowest offset and the end of what was taken so far; holes do not touch.
struct Holes {
    by_offset: BTreeMap<i64, i64>,
    by_size: BTreeSet<(i64, i64)>,
    end: i64,
}

impl Holes {
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

    /// The offset of a buffer in a hole or behind all.
    fn take(&mut self, instance: &Instance, item: Item) -> i64 {
        let size = instance.size[item];
        let mut tightest = self.by_size.range((size, i64::MIN)..).take(HOLES);
        let fitting = tightest.find_map(|&(width, start)| {
            let offset = instance.aligned(item, start);
            (offset + size <= start + width).then_some((start, start + width, offset))
        });
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

/// Places buffers, none of which is pinned, from `base` on: those of the fullest section below each other, the largest first, then those that
/// begin later in the order in which they begin, then those that end before in the order in which they end, backwards. Where most is taken,
/// nothing is lost this way. Gaps in lifetimes are not used.
pub(crate) fn place(instance: &Instance, items: &[Item], base: i64, offsets: &mut TiVec<Item, i64>) {
    let fullest = instance.fullest(items);
    let alive = |item: Item| instance.hull(item).contains(&fullest);
    let mut column: Vec<Item> = items.iter().copied().filter(|&item| alive(item)).collect();
    column.sort_by_key(|&item| (Reverse(instance.size[item]), item));
    let mut end = base;
    for &item in &column {
        offsets[item] = instance.aligned(item, end);
        end = offsets[item] + instance.size[item];
    }
    let sections = instance.sections();
    let later = items.iter().copied();
    let later = later.filter(|&item| instance.hull(item).start > fullest);
    let forward = |item: Item| instance.hull(item);
    sweep(instance, &column, later.collect(), (base, end), forward, offsets);
    let before = items.iter().copied();
    let before = before.filter(|&item| instance.hull(item).end <= fullest);
    let backward = |item: Item| {
        let hull = instance.hull(item);
        sections - hull.end..sections - hull.start
    };
    sweep(instance, &column, before.collect(), (base, end), backward, offsets);
}

/// Places buffers in the order in which they begin, after a column of buffers that takes these offsets.
fn sweep(
    instance: &Instance,
    column: &[Item],
    mut items: Vec<Item>,
    (base, end): (i64, i64),
    time: impl Fn(Item) -> Span,
    offsets: &mut TiVec<Item, i64>,
) {
    items.sort_by_key(|&item| (time(item).start, Reverse(instance.size[item]), item));
    let mut holes = Holes {
        by_offset: BTreeMap::new(),
        by_size: BTreeSet::new(),
        end,
    };
    let mut below = base;
    for &item in column {
        if below < offsets[item] {
            holes.add(below, offsets[item]);
        }
        below = offsets[item] + instance.size[item];
    }
    let ends = column.iter().map(|&item| Reverse((time(item).end, item)));
    let mut alive: BinaryHeap<Reverse<(usize, Item)>> = ends.collect();
    for item in items {
        let time = time(item);
        while let Some(&Reverse((end, gone))) = alive.peek()
            && end <= time.start
        {
            alive.pop();
            holes.add(offsets[gone], offsets[gone] + instance.size[gone]);
        }
        offsets[item] = holes.take(instance, item);
        alive.push(Reverse((time.end, item)));
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;
    use typed_index_collections::ti_vec;

    use super::*;
    use crate::instance::Demand;

    #[test]
    fn the_fullest_time_has_no_holes_and_what_ends_makes_room_on_both_sides_of_it() {
        let demand = |size, start, end| Demand {
            size,
            alignment: 1,
            taken: smallvec![start..end],
            pinned: None,
        };
        let instance = Instance::new(&[
            demand(4, 0, 2),
            demand(6, 1, 4),
            demand(5, 2, 5),
            demand(3, 2, 3),
            demand(3, 3, 6),
            demand(6, 4, 6),
        ]);
        let items: Vec<Item> = instance.size.keys().collect();
        let mut offsets = ti_vec![0; items.len()];
        place(&instance, &items, 10, &mut offsets);
        assert_eq!(instance.height(&offsets), 10 + instance.bound);
        for (a, b) in items.iter().flat_map(|&a| items.iter().map(move |&b| (a, b))) {
            let apart = offsets[a] + instance.size[a] <= offsets[b] || offsets[b] + instance.size[b] <= offsets[a];
            assert!(a == b || apart || !instance.meet(a, b), "{a:?} {b:?} {offsets:?}");
        }
        assert!(offsets.iter().all(|&offset| offset >= 10));
    }

    #[test]
    fn holes_that_touch_become_one_and_the_last_one_has_no_end() {
        let mut holes = Holes {
            by_offset: BTreeMap::new(),
            by_size: BTreeSet::new(),
            end: 20,
        };
        holes.add(2, 5);
        holes.add(8, 10);
        holes.add(5, 8);
        assert_eq!(holes.by_offset, BTreeMap::from([(2, 10)]));
        holes.add(10, 20);
        assert!(holes.by_offset.is_empty() && holes.by_size.is_empty());
        assert_eq!(holes.end, 2);
    }
}
