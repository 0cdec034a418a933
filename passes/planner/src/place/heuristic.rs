//! Placements by one pass over the buffers in a fixed order.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use crate::dense::Table;

use crate::limits::Meter;
use crate::place::instance::{Instance, Item, Span};
use crate::place::occupancy::{Fit, Occupancy};
use crate::place::online::Manner;
use crate::place::sweep::{self, Goal};

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
/// From so many buffers on there is but one pass, in the order of time, where few are alive together: what it leaves is mended by
/// [`windows`](crate::place::windows).
const MANY: usize = 5_000;
/// Fewer than these are alive at a time, on average.
const FEW_ALIVE: usize = 100;
/// A pass in the order of time goes back where fewer than this part of all buffers, as a divisor, are alive at a time: what lies before is soon
/// forgotten then.
const LOOSE: usize = 20;
/// After so many passes in the order of time that lower nothing, one after the other, there are no more.
const FRUITLESS: usize = 3;
/// What is left when the time is up takes this multiple of the time that all buffers took.
const FINISHING: u32 = 2;

/// The tries that all passes take: with that many there is no search yet. Of very many buffers, one pass takes none.
#[must_use]
pub fn tries_of_passes(buffers: usize) -> u64 {
    if buffers < LARGE {
        (PASSES.len() * buffers) as u64
    } else {
        0
    }
}

/// Whether many buffers are to be placed of which few are alive together.
pub(crate) fn is_thin(instance: &Instance) -> bool {
    instance.len() >= MANY && alive(instance) < FEW_ALIVE
}

/// How many buffers are alive at a time, on average.
fn alive(instance: &Instance) -> usize {
    let all: usize = instance.spans.all().iter().map(Span::len).sum();
    all / instance.sections().max(1)
}

/// The lowest placement of several passes; the first one is always made, whatever the limits.
pub(crate) fn place(instance: &Instance, meter: &mut Meter<'_>) -> Table<Item, i64> {
    let is_thin = is_thin(instance);
    if instance.len() < LARGE && !is_thin {
        return lowest(instance, &PASSES, None, None, meter);
    }
    let began = meter.elapsed();
    let mut found = None;
    in_order_of_time(instance, &mut Manner::all().take(1), &mut found, Duration::ZERO, meter);
    let each = meter.elapsed().saturating_sub(began) * 5 / 4;
    let reserve = FINISHING * each;
    if is_thin {
        return found.unwrap_or_default();
    }
    in_order_of_time(instance, &mut Manner::all(), &mut found, each, meter);
    lowest(instance, &PASSES_OF_LARGE, found, Some(reserve), meter)
}

/// Lowers what was found by passes in the order of time, each of which takes no longer than what is reserved, but where it goes back. The first
/// one is always made, and never goes back.
fn in_order_of_time(
    instance: &Instance,
    manners: &mut dyn Iterator<Item = Manner>,
    found: &mut Option<Table<Item, i64>>,
    reserve: Duration,
    meter: &mut Meter<'_>,
) {
    let mut least = found.as_ref().map_or(i64::MAX, |found| instance.height(found));
    let items = instance.size.keys();
    let free: Vec<Item> = items.filter(|&item| instance.pinned[item].is_none()).collect();
    let pinned = instance.pinned.iter().zip(&instance.size);
    let base = pinned.filter_map(|(pinned, size)| Some((*pinned)? + size)).max();
    let is_loose = alive(instance) < instance.len() / LOOSE;
    let mut fruitless = 0;
    for manner in manners {
        if found.is_some() && (fruitless == FRUITLESS || least == instance.bound || meter.is_over_within(reserve)) {
            return;
        }
        let mut offsets: Table<Item, i64> = instance.pinned.iter().map(|pinned| pinned.unwrap_or(0)).collect();
        // Half way down to what no placement undercuts.
        let goal = (found.is_some() && is_loose).then(|| Goal {
            height: instance.bound + (least - instance.bound) / 2,
            reserve: 2 * reserve,
            meter: &mut *meter,
        });
        sweep::place(instance, &free, base.unwrap_or(0), manner, goal, &mut offsets);
        if found.is_some() {
            meter.tick(instance.len() as u64);
        }
        let height = instance.height(&offsets);
        fruitless += 1;
        if height < least {
            (least, *found, fruitless) = (height, Some(offsets), 0);
        }
    }
}

/// The lowest placement that was found or that the passes make. Within the time that is reserved, a pass is finished in the order of time.
fn lowest(
    instance: &Instance,
    passes: &[(Order, Fit)],
    found: Option<Table<Item, i64>>,
    reserve: Option<Duration>,
    meter: &mut Meter<'_>,
) -> Table<Item, i64> {
    let mut best = found.map(|found| (instance.height(&found), found));
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
fn pack(instance: &Instance, order: &[Item], fit: Fit, mut limits: Option<Limits<'_, '_>>) -> Option<Table<Item, i64>> {
    let mut occupancy = Occupancy::new(instance.sections());
    let mut offsets = Table::filled(0, instance.len());
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
                if let Some(manner) = Manner::all().next() {
                    sweep::place(instance, &order[at..], top, manner, None, &mut offsets);
                }
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
pub(crate) fn settle(instance: &Instance, offsets: &Table<Item, i64>) -> Table<Item, i64> {
    let mut items: Vec<Item> = instance.size.keys().collect();
    items.sort_by_key(|&item| (offsets[item], item));
    pack(instance, &items, Fit::Lowest, None).unwrap_or_default()
}
