//! Placements by one pass over the buffers in a fixed order.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use typed_index_collections::{TiVec, ti_vec};

use crate::control::Meter;
use crate::instance::{Instance, Item};
use crate::occupancy::{Fit, Occupancy};
use crate::online;

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

/// Passes, the ones that do best on thousands of buffers first.
const PASSES: [(Order, Fit); 7] = [
    (Order::Life, Fit::Lowest),
    (Order::Size, Fit::Lowest),
    (Order::Area, Fit::Lowest),
    (Order::Size, Fit::Tightest),
    (Order::Life, Fit::Tightest),
    (Order::Area, Fit::Tightest),
    (Order::Start, Fit::Tightest),
];
/// From so many buffers on, no pass is certain to end soon: one in the order of time comes first, then those that do best on most buffers.
const LARGE: usize = 50_000;
const PASSES_OF_LARGE: [(Order, Fit); 3] = [
    (Order::Size, Fit::Lowest),
    (Order::Life, Fit::Lowest),
    (Order::Area, Fit::Lowest),
];
/// What is left when the time is up takes this multiple of the time that all buffers took.
const FINISHING: u32 = 2;

/// The lowest placement of several passes; the first one is always made, whatever the limits.
pub(crate) fn place(instance: &Instance, meter: &mut Meter<'_>) -> TiVec<Item, i64> {
    if instance.len() < LARGE {
        return lowest(instance, &PASSES, None, None, meter);
    }
    let began = Instant::now();
    let free: Vec<Item> = instance
        .size
        .keys()
        .filter(|&item| instance.pinned[item].is_none())
        .collect();
    let mut offsets: TiVec<Item, i64> = instance.pinned.iter().map(|pinned| pinned.unwrap_or(0)).collect();
    let pinned = instance
        .size
        .keys()
        .filter_map(|item| Some(instance.pinned[item]? + instance.size[item]));
    online::place(instance, &free, pinned.max().unwrap_or(0), &mut offsets);
    let reserve = FINISHING * began.elapsed();
    let found = (instance.height(&offsets), offsets);
    lowest(instance, &PASSES_OF_LARGE, Some(found), Some(reserve), meter)
}

/// The lowest placement that was found or that the passes make. Within the time that is reserved, a pass is finished in the order of time.
fn lowest(
    instance: &Instance,
    passes: &[(Order, Fit)],
    found: Option<(i64, TiVec<Item, i64>)>,
    reserve: Option<Duration>,
    meter: &mut Meter<'_>,
) -> TiVec<Item, i64> {
    let mut best = found;
    for &(order, fit) in passes {
        let least = best.as_ref().map_or(i64::MAX, |(height, _)| *height);
        if least == instance.bound || best.is_some() && meter.is_over_within(reserve.unwrap_or_default()) {
            break;
        }
        let limits = best.is_some().then_some(Limits {
            meter: &mut *meter,
            reserve,
        });
        let Some(offsets) = pack(instance, &ordered(instance, order), fit, limits) else {
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

/// When a pass has to end.
struct Limits<'m, 'c> {
    meter: &'m mut Meter<'c>,
    /// The time in which what is left can be placed in the order of time; without it a pass that does not end is void.
    reserve: Option<Duration>,
}

/// Places the buffers in this order, the pinned ones first; `None` where the limits stopped it.
fn pack(instance: &Instance, order: &[Item], fit: Fit, mut limits: Option<Limits<'_, '_>>) -> Option<TiVec<Item, i64>> {
    let mut occupancy = Occupancy::new(instance.sections());
    let mut offsets = ti_vec![0; instance.len()];
    let mut top = 0;
    for (item, pinned) in instance.pinned.iter_enumerated() {
        if let Some(offset) = *pinned {
            offsets[item] = offset;
            top = top.max(offset + instance.size[item]);
            occupancy.take(instance, item, offset);
        }
    }
    let order: Vec<Item> = order
        .iter()
        .copied()
        .filter(|&item| instance.pinned[item].is_none())
        .collect();
    for (at, &item) in order.iter().enumerate() {
        if let Some(Limits { meter, reserve }) = &mut limits {
            meter.tick(1);
            if meter.is_over_within(reserve.unwrap_or_default()) {
                (*reserve)?;
                online::place(instance, &order[at..], top, &mut offsets);
                return Some(offsets);
            }
        }
        offsets[item] = occupancy.place(instance, item, fit);
        top = top.max(offsets[item] + instance.size[item]);
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
