//! Which buffers are placed before the others.

use alloc::vec;
use alloc::vec::Vec;

use super::cores::cores;
use crate::dense::Table;
use crate::place::instance::{Instance, Item};

/// Buffers below this part of the bound are tiny.
const TINY: i64 = 1 << 14;
/// Where fewer than one in so many buffers are tiny, all are placed together.
const FEW: usize = 8;

/// Buffers that are placed together.
pub(super) struct Level {
    /// Without pinned ones.
    pub(super) items: Vec<Item>,
    /// Those of the level, and pinned ones, that may be placed before the others.
    pub(super) cores: Vec<Vec<Item>>,
    /// How much of the capacity is left to the next level.
    pub(super) room: i64,
    /// Those of the level that each meets in time.
    pub(super) neighbours: Table<Item, Vec<Item>>,
}

/// The buffers that are not tiny, which leave the difference between their load and the bound to the others; then all. No levels where few are
/// tiny.
pub(super) fn levels(instance: &Instance, neighbours: &Table<Item, Vec<Item>>) -> Vec<Level> {
    let is_tiny = |item: Item| instance.pinned[item].is_none() && instance.size[item] < instance.bound / TINY;
    let free = instance.size.keys().filter(|&item| instance.pinned[item].is_none());
    let items: Vec<Item> = free.collect();
    let large: Vec<Item> = items.iter().copied().filter(|&item| !is_tiny(item)).collect();
    let tiny = items.len() - large.len();
    if large.is_empty() || tiny < items.len().div_ceil(FEW).max(1) {
        return Vec::new();
    }
    let mut load = vec![0; instance.sections()];
    for item in instance.size.keys().filter(|&item| !is_tiny(item)) {
        for section in instance.spans[item].iter().cloned().flatten() {
            load[section] += instance.size[item];
        }
    }
    let most = load.iter().max().copied().unwrap_or(0);
    let others = |(item, others): (Item, &Vec<Item>)| {
        let large = others.iter().copied();
        large.filter(|&other| !is_tiny(item) && !is_tiny(other)).collect()
    };
    let first = Level {
        cores: cores(instance, &large, &load),
        items: large,
        room: (instance.bound - most).max(0),
        neighbours: neighbours.iter_enumerated().map(others).collect(),
    };
    let all = Level {
        cores: Vec::new(),
        items,
        room: 0,
        neighbours: neighbours.clone(),
    };
    vec![first, all]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Id;
    use crate::place::buffer::Buffer;

    #[test]
    fn tiny_buffers_come_after_the_others_where_there_are_many() {
        let demand = |size, pinned| Buffer {
            pinned,
            ..Buffer::new(size, 0..2)
        };
        let both = [demand(1 << 20, None), demand(3, None), demand(5, Some(0))];
        let instance = Instance::new(&both);
        let neighbours = instance.neighbours(usize::MAX).unwrap();
        let levels = levels(&instance, &neighbours);
        let items: Vec<&[Item]> = levels.iter().map(|level| &level.items[..]).collect();
        assert_eq!(items, [&[Item::at(0)][..], &[Item::at(0), Item::at(1)]]);
        assert_eq!((levels[0].room, levels[1].room), (3, 0));
        assert_eq!(levels[0].neighbours.raw, [vec![Item::at(2)], vec![], vec![Item::at(0)]]);
        let large = Instance::new(&[demand(7, None), demand(3, None)]);
        assert!(super::levels(&large, &large.neighbours(9).unwrap()).is_empty());
    }
}
