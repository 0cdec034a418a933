//! Placements by one pass over the buffers in a fixed order.

use std::cmp::Reverse;

use typed_index_collections::{TiVec, ti_vec};

use crate::control::Meter;
use crate::instance::{Instance, Item};
use crate::occupancy::{Fit, Occupancy};

/// The order in which buffers are placed. What is equal keeps the order of the buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// Longest life first, then largest.
    Life,
    /// Largest first, then longest life.
    Size,
    /// Largest product of size and life first.
    Area,
    /// As they begin, the largest first: what an allocator does at run time.
    Start,
}

/// Passes, the ones that do best on large instances first.
const PASSES: [(Order, Fit); 7] = [
    (Order::Life, Fit::Lowest),
    (Order::Size, Fit::Lowest),
    (Order::Area, Fit::Lowest),
    (Order::Size, Fit::Tightest),
    (Order::Life, Fit::Tightest),
    (Order::Area, Fit::Tightest),
    (Order::Start, Fit::Tightest),
];
/// From so many buffers on, those passes are left out that rarely win.
const LARGE: usize = 200_000;
const PASSES_OF_LARGE: usize = 2;

/// The lowest placement of several passes; the first pass is always made, whatever the limits.
pub(crate) fn place(instance: &Instance, meter: &mut Meter<'_>) -> TiVec<Item, i64> {
    let passes = if instance.len() < LARGE {
        PASSES.len()
    } else {
        PASSES_OF_LARGE
    };
    let mut best: Option<(i64, TiVec<Item, i64>)> = None;
    for &(order, fit) in &PASSES[..passes] {
        let least = best.as_ref().map_or(i64::MAX, |(height, _)| *height);
        if least == instance.bound || best.is_some() && meter.is_over() {
            break;
        }
        let stop = best.is_some().then_some(&mut *meter);
        let Some(offsets) = pack(instance, &ordered(instance, order), fit, stop) else {
            break;
        };
        let height = instance.height(&offsets);
        if height < least {
            best = Some((height, offsets));
        }
    }
    best.map(|(_, offsets)| offsets).unwrap_or_default()
}

fn ordered(instance: &Instance, order: Order) -> Vec<Item> {
    let area = |item: Item| u128::from(instance.size[item].unsigned_abs()) * u128::from(instance.life[item]);
    let mut items: Vec<Item> = instance.size.keys().collect();
    match order {
        Order::Life => items.sort_by_key(|&item| Reverse((instance.life[item], instance.size[item]))),
        Order::Size => items.sort_by_key(|&item| Reverse((instance.size[item], instance.life[item]))),
        Order::Area => items.sort_by_key(|&item| Reverse(area(item))),
        Order::Start => items.sort_by_key(|&item| (instance.hull(item).start, Reverse(instance.size[item]))),
    }
    items
}

/// Places the buffers in this order, the pinned ones first; `None` where the meter stopped it.
fn pack(instance: &Instance, order: &[Item], fit: Fit, mut meter: Option<&mut Meter<'_>>) -> Option<TiVec<Item, i64>> {
    let mut occupancy = Occupancy::new(instance.sections());
    let mut offsets = ti_vec![0; instance.len()];
    for (item, pinned) in instance.pinned.iter_enumerated() {
        if let Some(offset) = *pinned {
            offsets[item] = offset;
            occupancy.take(instance, item, offset);
        }
    }
    for &item in order.iter().filter(|&&item| instance.pinned[item].is_none()) {
        if let Some(meter) = &mut meter {
            meter.tick(1);
            if meter.is_over() {
                return None;
            }
        }
        offsets[item] = occupancy.place(instance, item, fit);
        occupancy.take(instance, item, offsets[item]);
    }
    Some(offsets)
}

/// Lets every buffer down as far as it goes, the lowest first. The result is nowhere higher.
pub(crate) fn settle(instance: &Instance, offsets: &TiVec<Item, i64>) -> TiVec<Item, i64> {
    let mut items: Vec<Item> = instance.size.keys().collect();
    items.sort_by_key(|&item| (offsets[item], item));
    pack(instance, &items, Fit::Lowest, None).unwrap_or_default()
}
