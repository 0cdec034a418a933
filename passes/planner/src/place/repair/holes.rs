//! What is free between the neighbours of a buffer.

use alloc::vec::Vec;

use crate::dense::Table;
use crate::place::instance::{Instance, Item};
use crate::rng::Rng;

/// Where a buffer lies.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Spot {
    /// Where it lay last, if it is open.
    pub(super) start: i64,
    /// 0 where it is open.
    end: i64,
}

impl Spot {
    pub(super) fn is_placed(self) -> bool {
        self.end > 0
    }

    pub(super) fn put(&mut self, item: Item, offset: i64, instance: &Instance) {
        *self = Self {
            start: offset,
            end: offset + instance.size[item],
        };
    }

    pub(super) fn open(&mut self) {
        self.end = 0;
    }
}

/// The neighbours of a buffer that have a place.
#[derive(Default)]
pub(super) struct Holes {
    /// No buffer may end above it.
    pub(super) limit: i64,
    /// Ascending.
    spots: Vec<Spot>,
    items: Vec<Item>,
    /// Where they end and what they weigh, ascending.
    ends: Vec<(i64, u64)>,
    removed: Vec<Item>,
}

impl Holes {
    /// Finds the neighbours that have a place, and sorts the list by offsets: few change from one time to the next.
    pub(super) fn look(&mut self, neighbours: &mut [Item], spots: &Table<Item, Spot>) {
        insertion_sort(neighbours, |&item| spots[item].start);
        self.spots.clear();
        self.items.clear();
        for &item in &*neighbours {
            let spot = spots[item];
            if spot.is_placed() {
                self.spots.push(spot);
                self.items.push(item);
            }
        }
    }

    /// The lowest and highest offset in each hole that is large enough, and the width of the hole; ascending.
    fn fitting(&self, item: Item, instance: &Instance) -> impl Iterator<Item = (i64, i64, i64)> {
        let size = instance.size[item];
        let mut below = 0;
        let limit = Spot {
            start: self.limit,
            end: self.limit,
        };
        self.spots.iter().copied().chain([limit]).filter_map(move |spot| {
            let width = spot.start - below;
            let from = below;
            below = below.max(spot.end);
            if width < size {
                return None;
            }
            let lowest = instance.aligned(item, from);
            let highest = instance.aligned_down(item, spot.start - size);
            (lowest <= highest).then_some((lowest, highest, width))
        })
    }

    pub(super) fn lowest(&self, item: Item, instance: &Instance) -> Option<i64> {
        Some(self.fitting(item, instance).next()?.0)
    }

    /// The lowest offset in the tightest hole.
    pub(super) fn tightest(&self, item: Item, instance: &Instance) -> Option<i64> {
        let holes = self.fitting(item, instance);
        Some(holes.min_by_key(|&(lowest, _, width)| (width, lowest))?.0)
    }

    /// Either end of any hole.
    pub(super) fn any(&self, item: Item, instance: &Instance, rng: &mut Rng) -> Option<i64> {
        let holes = self.fitting(item, instance);
        let mut chosen = None;
        for (count, (lowest, highest, _)) in (1u32..).zip(holes) {
            let chance = rng.unit() * f64::from(count);
            if chance < 1.0 {
                chosen = Some(if chance < 0.5 { lowest } else { highest });
            }
        }
        chosen
    }

    /// The offset at which the sum of the weights of what is in the way is least, and below `most`; of several, any. At one such offset the
    /// buffer touches another one or an end.
    pub(super) fn cheapest(
        &mut self,
        item: Item,
        instance: &Instance,
        weight: &Table<Item, u64>,
        most: u64,
        rng: &mut Rng,
    ) -> Option<i64> {
        let size = instance.size[item];
        let highest = self.limit - size;
        let spots = self.spots.iter().zip(&self.items);
        self.ends.clear();
        self.ends.extend(spots.map(|(spot, &item)| (spot.end, weight[item])));
        insertion_sort(&mut self.ends, |&(end, _)| end);
        // Ascending: above a neighbour, below one, at either end.
        let above = |at: usize| {
            self.ends
                .get(at)
                .map_or(i64::MAX, |&(end, _)| instance.aligned(item, end))
        };
        let under = |at: usize| {
            let spot = self.spots.get(at);
            spot.map_or(i64::MAX, |spot| instance.aligned_down(item, spot.start - size))
        };
        let (mut at_end, mut at_start) = (0, 0);
        let (mut next_above, mut next_under) = (above(0), under(0));
        let (mut next_edge, mut edges) = (0, [i64::MAX, instance.aligned_down(item, highest)].into_iter());
        let (mut starts, mut ends) = (0, 0);
        let (mut cost, mut least, mut best, mut count) = (0u64, most, None, 0u32);
        loop {
            let offset = next_above.min(next_under).min(next_edge);
            if offset > highest {
                return best;
            }
            if offset == next_above {
                at_end += 1;
                next_above = above(at_end);
            } else if offset == next_under {
                at_start += 1;
                next_under = under(at_start);
            } else {
                next_edge = edges.next_back().unwrap_or(i64::MAX);
            }
            if offset < 0 {
                continue;
            }
            while self.spots.get(starts).is_some_and(|spot| spot.start < offset + size) {
                cost += weight[self.items[starts]];
                starts += 1;
            }
            while let Some(&(_, weight)) = self.ends.get(ends).filter(|&&(end, _)| end <= offset) {
                cost -= weight;
                ends += 1;
            }
            if cost < least {
                (least, best, count) = (cost, Some(offset), 1);
            } else if cost == least && best.is_some_and(|best| best != offset) {
                count += 1;
                if rng.unit() * f64::from(count) < 1.0 {
                    best = Some(offset);
                }
            }
        }
    }

    /// The neighbours that have bytes in common with the buffer at this offset.
    pub(super) fn in_the_way(&mut self, item: Item, offset: i64, instance: &Instance) -> &[Item] {
        let end = offset + instance.size[item];
        let spots = self.spots.iter().zip(&self.items);
        let met = spots.filter(|(spot, _)| spot.start < end && offset < spot.end);
        self.removed.clear();
        self.removed.extend(met.map(|(_, &item)| item));
        &self.removed
    }
}

/// Sorts what is nearly sorted.
fn insertion_sort<T: Copy>(list: &mut [T], key: impl Fn(&T) -> i64) {
    let mut before = i64::MIN;
    for at in 0..list.len() {
        let moved = list[at];
        let own = key(&moved);
        if own >= before {
            before = own;
            continue;
        }
        let mut to = at;
        while to > 0 && key(&list[to - 1]) > own {
            list[to] = list[to - 1];
            to -= 1;
        }
        list[to] = moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Id;
    use crate::place::buffer::Buffer;

    /// Buffers that are all alive together, the last one without a place, and the others at these offsets.
    fn instance(sizes: &[u64], alignment: u64) -> Instance {
        let buffer = |&size: &u64| Buffer {
            alignment,
            ..Buffer::new(size, 0..1)
        };
        Instance::new(&sizes.iter().map(buffer).collect::<Vec<_>>())
    }

    fn holes(instance: &Instance, offsets: &[i64], limit: i64) -> (Holes, Vec<Item>) {
        let mut spots: Table<Item, Spot> = Table::filled(Spot::default(), instance.len());
        for (at, &offset) in offsets.iter().enumerate() {
            spots[Item::at(at)].put(Item::at(at), offset, instance);
        }
        let mut neighbours: Vec<Item> = instance.size.keys().take(offsets.len()).collect();
        let mut holes = Holes {
            limit,
            ..Holes::default()
        };
        holes.look(&mut neighbours, &spots);
        (holes, neighbours)
    }

    #[test]
    fn the_lowest_hole_and_the_tightest_one_are_told_apart() {
        let instance = instance(&[2, 3, 1, 2], 1);
        let (holes, sorted) = holes(&instance, &[12, 4, 9], 20);
        assert_eq!(sorted, [Item::at(1), Item::at(2), Item::at(0)]);
        let last = Item::at(3);
        assert_eq!(holes.lowest(last, &instance), Some(0));
        assert_eq!(holes.tightest(last, &instance), Some(7));
    }

    #[test]
    fn no_offset_is_cheaper_than_the_cheapest_one() {
        let mut rng = Rng::new(5, 0);
        for _ in 0..400 {
            let mut below = |most: i64| (rng.unit() * most as f64) as i64;
            // One of 1 makes the unit 1.
            let sizes: Vec<u64> = [1]
                .into_iter()
                .chain((0..5).map(|_| 1 + below(6).unsigned_abs()))
                .collect();
            let offsets: Vec<i64> = sizes[..5].iter().map(|_| below(12)).collect();
            let weight: Table<Item, u64> = sizes.iter().map(|_| 1 + below(9).unsigned_abs()).collect();
            let limit = 6 + below(10);
            let instance = instance(&sizes, 1 + below(2).unsigned_abs());
            let (mut holes, _) = holes(&instance, &offsets, limit);
            let last = Item::at(5);
            let cost = |holes: &mut Holes, offset: i64| -> u64 {
                let removed = holes.in_the_way(last, offset, &instance);
                removed.iter().map(|&item| weight[item]).sum()
            };
            let allowed = (0..=limit - instance.size[last]).filter(|&offset| instance.aligned(last, offset) == offset);
            let least = allowed.map(|offset| cost(&mut holes, offset)).min();
            let most = 1 + below(12).unsigned_abs();
            let chosen = holes.cheapest(last, &instance, &weight, most, &mut Rng::new(1, 0));
            let chosen = chosen.map(|offset| {
                assert!(
                    offset >= 0 && offset + instance.size[last] <= limit && instance.aligned(last, offset) == offset
                );
                cost(&mut holes, offset)
            });
            assert_eq!(
                chosen,
                least.filter(|&least| least < most),
                "{sizes:?} {offsets:?} {limit}"
            );
        }
    }
}
