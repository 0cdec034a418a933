//! The buffers of the fullest sections, which the exact search places alone: with few of them it is fast where the local search is slow.

use alloc::vec;
use alloc::vec::Vec;

use crate::limits::Meter;
use crate::place::buffer::Buffer;
use crate::place::instance::{Instance, Item};
use crate::place::search::{Answer, Search};
use crate::rng::Rng;

/// A section is full if its load is more than this, in hundredths of the largest load. One after the other is tried.
const FULL: [i64; 4] = [98, 95, 90, 80];

/// What may be placed first: pinned buffers, and those of the others that live in a section that is full; no two of these are the same, and
/// none is all.
pub(super) fn cores(instance: &Instance, items: &[Item], load: &[i64]) -> Vec<Vec<Item>> {
    let most = load.iter().max().copied().unwrap_or(0);
    let lives_in = |item: Item, share: i64| {
        let mut sections = instance.spans[item].iter().cloned().flatten();
        sections.any(|section| i128::from(load[section]) * 100 > i128::from(most) * i128::from(share))
    };
    let mut cores: Vec<Vec<Item>> = Vec::new();
    for share in FULL {
        let of_full: Vec<Item> = items.iter().copied().filter(|&item| lives_in(item, share)).collect();
        if of_full.len() < items.len() && cores.last().is_none_or(|core| core.len() < of_full.len()) {
            cores.push(of_full);
        }
    }
    let pinned = || {
        instance
            .pinned
            .iter_enumerated()
            .filter_map(|(item, pinned)| pinned.map(|_| item))
    };
    cores.iter_mut().for_each(|core| core.extend(pinned()));
    cores
}

/// Offsets for these buffers, none of which ends above the limit, if they are found within so many tries. Which of two that are equally good
/// is tried first depends on their order.
pub(super) fn place(
    instance: &Instance,
    core: &[Item],
    limit: i64,
    tries: u64,
    seed: u64,
    meter: &mut Meter<'_>,
) -> Option<Vec<(Item, i64)>> {
    let mut placed = Vec::with_capacity(core.len());
    for part in parts(instance, core) {
        let buffers: Vec<Buffer> = part.iter().map(|&item| buffer(instance, item)).collect();
        let alone = Instance::new(&buffers);
        let neighbours = alone.neighbours(usize::MAX)?;
        let unit = i64::try_from(alone.unit).ok()?;
        let mut search = Search::new(&alone, &neighbours, seed);
        if search.attempt(limit / unit, tries, meter) != Answer::Placed {
            return None;
        }
        placed.extend(
            part.into_iter()
                .zip(search.offsets())
                .map(|(item, offset)| (item, offset * unit)),
        );
    }
    Some(placed)
}

/// Brings the buffers into any order.
pub(super) fn shuffle(core: &mut [Item], rng: &mut Rng) {
    for at in (1..core.len()).rev() {
        core.swap(at, (rng.unit() * (at + 1) as f64) as usize);
    }
}

/// Sections as times.
fn buffer(instance: &Instance, item: Item) -> Buffer {
    let spans = instance.spans[item].iter();
    let times: Vec<_> = spans.map(|span| span.start as u64..span.end as u64).collect();
    Buffer {
        alignment: instance.alignment[item].unsigned_abs(),
        pinned: instance.pinned[item].map(i64::unsigned_abs),
        ..Buffer::at_times(instance.size[item].unsigned_abs(), &times)
    }
}

/// Those that are connected in time, in the order in which they come.
fn parts(instance: &Instance, items: &[Item]) -> Vec<Vec<Item>> {
    let mut hulls: Vec<_> = items.iter().map(|&item| instance.hull(item)).collect();
    hulls.sort_by_key(|hull| hull.start);
    let mut ends: Vec<usize> = Vec::new();
    for hull in hulls {
        match ends.last_mut() {
            Some(end) if hull.start < *end => *end = hull.end.max(*end),
            _ => ends.push(hull.end),
        }
    }
    let mut parts = vec![Vec::new(); ends.len()];
    for &item in items {
        let start = instance.hull(item).start;
        parts[ends.partition_point(|&end| end <= start)].push(item);
    }
    parts
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;
    use crate::limits::Tries;

    fn instance(buffers: &[(u64, Range<u64>)]) -> Instance {
        let buffer = |(size, times): &(u64, Range<u64>)| Buffer::new(*size, times.clone());
        Instance::new(&buffers.iter().map(buffer).collect::<Vec<_>>())
    }

    #[test]
    fn a_core_has_what_lives_in_a_full_section() {
        let instance = instance(&[(60, 0..2), (40, 1..3), (50, 2..4), (1, 3..6), (69, 5..7)]);
        let items: Vec<Item> = instance.size.keys().collect();
        assert_eq!(instance.load, [100, 90, 51, 70]);
        assert_eq!(cores(&instance, &items, &instance.load), [&items[..2], &items[..3]]);
    }

    #[test]
    fn a_core_is_placed_without_the_others() {
        let buffers = [(2, 0..2), (4, 1..3), (4, 6..8), (6, 7..9), (1, 0..9)];
        let instance = instance(&buffers);
        let core: Vec<Item> = instance.size.keys().take(4).collect();
        assert_eq!(parts(&instance, &core), [&core[..2], &core[2..]]);
        let place = |limit| {
            place(
                &instance,
                &core,
                limit,
                100,
                1,
                &mut Meter::new(&mut Tries::at_most(u64::MAX)),
            )
        };
        let placed = place(10).unwrap();
        for (at, &(item, offset)) in placed.iter().enumerate() {
            assert!(offset >= 0 && offset + instance.size[item] <= 10);
            for &(other, above) in &placed[..at] {
                let is_apart = offset + instance.size[item] <= above || above + instance.size[other] <= offset;
                assert!(is_apart || !instance.meet(item, other));
            }
        }
        assert_eq!((placed.len(), place(9)), (4, None));
    }
}
