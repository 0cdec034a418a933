//! Placing anew what lies too high, with what is alive about then: of very many buffers, only few are in each other's way.
//!
//! A *window* is some sections around a buffer that ends above what is to be reached. What lives in these alone is placed anew, what also lives
//! outside stays. Where that does not help, the window grows; where it may not grow any more, nothing lower than what was found in it is sought
//! anywhere.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use crate::dense::{Id, Table};
use crate::limits::{Limits, Meter};
use crate::place::buffer::Buffer;
use crate::place::heuristic::is_thin;
use crate::place::instance::{Instance, Item, Span};
use crate::place::minimise::{Aim, BestPlacement, heuristics, search};

/// Sections on both sides of the buffer, at first; a window that does not help becomes twice as wide.
const FIRST_WIDTH: usize = 16;
/// No window holds more buffers.
const MOST: usize = 6_000;
/// Tries in a window.
const TRIES: u64 = 10_000;
/// To look at so many buffers counts as one try.
const LOOKED_AT: u64 = 1_000;

/// Lowers a placement of very many buffers, window by window.
pub(crate) fn mend(instance: &Instance, found: &mut BestPlacement, aim: Aim, seed: u64, meter: &mut Meter<'_>) {
    if !is_thin(instance) {
        return;
    }
    let mut goal = aim.target(found.bound).min(found.height);
    let mut offsets = found.offsets.clone();
    let top = |offsets: &Table<Item, i64>, item: Item| offsets[item] + instance.size[item];
    let highest = |offsets: &Table<Item, i64>| instance.size.keys().max_by_key(|&item| top(offsets, item));
    let mut width = FIRST_WIDTH;
    while let Some(item) = highest(&offsets)
        && top(&offsets, item) > goal
        && goal < found.height
        && !meter.is_over()
    {
        let hull = instance.hull(item);
        let times = hull.start.saturating_sub(width)..(hull.end + width).min(instance.sections());
        let before = top(&offsets, item);
        let window = Window::new(instance, &offsets, times);
        meter.tick(1 + instance.len() as u64 / LOOKED_AT);
        if window.items.len() > MOST {
            goal = before;
            width = FIRST_WIDTH;
            continue;
        }
        window.lower(&mut offsets, goal, seed, meter);
        if top(&offsets, item) > goal || window.items.iter().any(|&item| top(&offsets, item) > goal) {
            width *= 2;
        } else {
            width = FIRST_WIDTH;
        }
    }
    found.lower_to(offsets, instance, meter);
}

/// Buffers that take bytes in some sections.
struct Window {
    items: Vec<Item>,
    buffers: Vec<Buffer>,
}

impl Window {
    fn new(instance: &Instance, offsets: &Table<Item, i64>, times: Span) -> Self {
        let mut window = Self {
            items: Vec::new(),
            buffers: Vec::new(),
        };
        for item in instance.size.keys() {
            let hull = instance.hull(item);
            if hull.end <= times.start || times.end <= hull.start {
                continue;
            }
            let spans = instance.spans[item].iter();
            let within = spans.map(|span| span.start.max(times.start)..span.end.min(times.end));
            let taken = within.filter(|span| !span.is_empty());
            let taken: Vec<Range<u64>> = taken.map(|span| span.start as u64..span.end as u64).collect();
            if taken.is_empty() {
                continue;
            }
            let stays = hull.start < times.start || times.end < hull.end;
            let pinned = instance.pinned[item].or_else(|| stays.then(|| offsets[item]));
            window.items.push(item);
            window.buffers.push(Buffer {
                alignment: if stays {
                    1
                } else {
                    instance.alignment[item].unsigned_abs()
                },
                pinned: pinned.map(i64::unsigned_abs),
                ..Buffer::at_times(instance.size[item].unsigned_abs(), &taken)
            });
        }
        window
    }

    /// Places its buffers lower if that is found.
    fn lower(&self, offsets: &mut Table<Item, i64>, goal: i64, seed: u64, meter: &mut Meter<'_>) {
        let instance = Instance::new(&self.buffers);
        let unit = i64::try_from(instance.unit).unwrap_or(i64::MAX);
        let now = self.items.iter().map(|&item| offsets[item] / unit);
        let height = instance.height(&now.collect());
        if height <= instance.bound {
            return;
        }
        let mut share = Share {
            before: meter.tries(),
            meter: &mut *meter,
        };
        let mut own = Meter::new(&mut share);
        let mut found = heuristics(&instance, None, &mut own);
        search(&instance, &mut found, Aim::Lowest(goal / unit), None, seed, &mut own);
        let tries = own.tries();
        meter.tick(tries);
        if found.height < height {
            for (position, &item) in self.items.iter().enumerate() {
                offsets[item] = found.offsets[Item::at(position)] * unit;
            }
        }
    }
}

/// A part of the tries that are left.
struct Share<'m, 'c> {
    before: u64,
    meter: &'m mut Meter<'c>,
}

impl Limits for Share<'_, '_> {
    fn is_over(&mut self, tries: u64) -> bool {
        tries >= TRIES || self.meter.is_over_at(self.before + tries)
    }

    fn elapsed(&mut self) -> Duration {
        self.meter.elapsed()
    }
}
