//! Placing buffers in the order of time, each when it begins ([`online`](crate::place::online)), but from the fullest time on, in both directions. Takes
//! time `n log n`, whatever is alive together.
//!
//! Where a buffer ends above what is to be reached, the sweep goes back some way and takes other holes, again and again. What is found lowest then
//! stays, and nothing lower is sought from there on.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use crate::dense::Table;
use crate::limits::Meter;
use crate::place::instance::{Instance, Item, Span};
use crate::place::online::{Column, Holes, Manner};
use crate::rng::Rng;

/// A state is kept each time when this part of what is alive was placed, but not for fewer buffers than that.
const PART: usize = 2;
const LEAST: usize = 64;
/// So many states are kept.
const KEPT: usize = 8;
/// How often a sweep goes back at one place.
const TRIALS: usize = 300;

/// What a sweep is to reach.
pub(crate) struct Goal<'m, 'c> {
    /// No buffer should end above it; what does raises it.
    pub(crate) height: i64,
    /// A sweep goes back only where this time is left then.
    pub(crate) reserve: Duration,
    pub(crate) meter: &'m mut Meter<'c>,
}

/// Places buffers, none of which is pinned, from `base` on: those of the fullest section below each other, then those that begin later in the order in
/// which they begin, then those that end before in the order in which they end, backwards. Where most is taken, nothing is lost this way. Gaps in
/// lifetimes are not used. Without a goal, a sweep never goes back.
pub(crate) fn place(
    instance: &Instance,
    items: &[Item],
    base: i64,
    manner: Manner,
    mut goal: Option<Goal<'_, '_>>,
    offsets: &mut Table<Item, i64>,
) {
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
        (&column, later.collect()),
        (base, end),
        manner,
        forward,
        goal.as_mut(),
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
        (&column, before.collect()),
        (base, end),
        manner,
        backward,
        goal.as_mut(),
        offsets,
    );
}

/// Places buffers in the order in which they begin, after a column of buffers that takes these offsets.
fn sweep(
    instance: &Instance,
    (column, mut items): (&[Item], Vec<Item>),
    (base, end): (i64, i64),
    manner: Manner,
    time: impl Fn(Item) -> Span,
    goal: Option<&mut Goal<'_, '_>>,
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
    let mut state = State {
        next: 0,
        holes,
        alive: ends.collect(),
    };
    let sweep = Sweep {
        instance,
        items,
        manner,
        time,
    };
    match goal {
        Some(goal) => sweep.towards(state, goal, offsets),
        None => _ = sweep.run(&mut state, sweep.items.len(), i64::MAX, (manner, None), offsets),
    }
}

/// How far a sweep is.
#[derive(Clone)]
struct State {
    /// The next buffer.
    next: usize,
    holes: Holes,
    /// Buffers and when they end.
    alive: BinaryHeap<Reverse<(usize, Item)>>,
}

/// A sweep in one direction.
struct Sweep<'a, F> {
    instance: &'a Instance,
    /// In the order in which they begin.
    items: Vec<Item>,
    manner: Manner,
    time: F,
}

impl<F: Fn(Item) -> Span> Sweep<'_, F> {
    /// Places buffers up to a number, or until one ends at `most` or above; where the highest of them ends.
    fn run(
        &self,
        state: &mut State,
        until: usize,
        most: i64,
        (manner, mut noise): (Manner, Option<&mut Rng>),
        offsets: &mut Table<Item, i64>,
    ) -> i64 {
        let mut highest = 0;
        while state.next < until && highest < most {
            let item = self.items[state.next];
            state.next += 1;
            let time = (self.time)(item);
            while let Some(&Reverse((end, gone))) = state.alive.peek()
                && end <= time.start
            {
                state.alive.pop();
                state
                    .holes
                    .free(offsets[gone], offsets[gone] + self.instance.size[gone]);
            }
            let offset = state
                .holes
                .take(self.instance, item, time.end, manner, noise.as_deref_mut());
            offsets[item] = offset;
            let top = offset + self.instance.size[item];
            state.holes.note(offset, top, time.end);
            state.alive.push(Reverse((time.end, item)));
            highest = highest.max(top);
        }
        highest
    }

    /// Places all buffers, and goes back where one ends above the goal.
    fn towards(&self, mut state: State, goal: &mut Goal<'_, '_>, offsets: &mut Table<Item, i64>) {
        let mut rng = Rng::new(0, 9);
        let mut kept: VecDeque<State> = VecDeque::new();
        while state.next < self.items.len() {
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(state.clone());
            let step = (state.alive.len() / PART).max(LEAST);
            let until = self.items.len().min(state.next + step);
            let most = goal.height.saturating_add(1);
            if self.run(&mut state, until, most, (self.manner, None), offsets) < most {
                continue;
            }
            let until = self.items.len().min(state.next + step);
            state = self.again(&mut kept, until, goal, &mut rng, offsets);
        }
    }

    /// Goes back to states that are kept, and places the buffers up to a number otherwise; the state after the lowest way that is found.
    fn again(
        &self,
        kept: &mut VecDeque<State>,
        until: usize,
        goal: &mut Goal<'_, '_>,
        rng: &mut Rng,
        offsets: &mut Table<Item, i64>,
    ) -> State {
        let last = kept.len() - 1;
        let mut state = kept[last].clone();
        let mut least = self.run(&mut state, until, i64::MAX, (self.manner, None), offsets);
        let from = kept[0].next;
        let offsets_of = |offsets: &Table<Item, i64>| -> Vec<i64> {
            let items = self.items[from..until].iter();
            items.map(|&item| offsets[item]).collect()
        };
        let mut best = (last, offsets_of(offsets));
        // What each trial goes on from.
        let before = best.1.clone();
        for trial in 0..TRIALS {
            if least <= goal.height || goal.meter.is_over_within(goal.reserve) {
                break;
            }
            let back = last - trial % kept.len();
            let mut other = kept[back].clone();
            let begun = other.next;
            put(&self.items[from..begun], &before, offsets);
            let manner = self.manner.other(trial / kept.len());
            let highest = self.run(&mut other, until, least, (manner, Some(&mut *rng)), offsets);
            goal.meter.tick((other.next - begun) as u64);
            if highest < least {
                (least, best, state) = (highest, (back, offsets_of(offsets)), other);
            }
        }
        put(&self.items[from..until], &best.1, offsets);
        kept.truncate(best.0 + 1);
        goal.height = goal.height.max(least);
        state
    }
}

fn put(items: &[Item], all: &[i64], offsets: &mut Table<Item, i64>) {
    for (&item, &offset) in items.iter().zip(all) {
        offsets[item] = offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Tries;
    use crate::place::buffer::Buffer;

    fn apart(instance: &Instance, offsets: &Table<Item, i64>) -> bool {
        let items: Vec<Item> = instance.size.keys().collect();
        let pairs = items.iter().flat_map(|&a| items.iter().map(move |&b| (a, b)));
        pairs.into_iter().all(|(a, b)| {
            let apart = offsets[a] + instance.size[a] <= offsets[b] || offsets[b] + instance.size[b] <= offsets[a];
            a == b || apart || !instance.meet(a, b)
        })
    }

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
            place(&instance, &items, 10, manner, None, &mut offsets);
            assert_eq!(instance.height(&offsets), 10 + instance.bound, "{manner:?}");
            assert!(apart(&instance, &offsets), "{manner:?} {offsets:?}");
            assert!(offsets.iter().all(|&offset| offset >= 10));
        }
    }

    #[test]
    fn going_back_keeps_buffers_apart_and_makes_blocks_lower() {
        let mut rng = Rng::new(3, 1);
        let (mut lower, mut higher) = (0, 0);
        for _ in 0..30 {
            let mut buffer = |at: u64| {
                let most = 1 << (1 + rng.below(9));
                let size = 1 + rng.below(most) as u64;
                Buffer::new(size, at..at + 1 + rng.below(80) as u64)
            };
            let buffers: Vec<Buffer> = (0..600).map(&mut buffer).collect();
            let instance = Instance::new(&buffers);
            let items: Vec<Item> = instance.size.keys().collect();
            let manner = Manner::all().next().unwrap();
            let height = |goal: Option<i64>| {
                let mut limits = Tries::at_most(u64::MAX);
                let mut meter = Meter::new(&mut limits);
                let goal = goal.map(|height| Goal {
                    height,
                    reserve: Duration::ZERO,
                    meter: &mut meter,
                });
                let mut offsets = Table::filled(0, items.len());
                place(&instance, &items, 0, manner, goal, &mut offsets);
                assert!(apart(&instance, &offsets));
                instance.height(&offsets)
            };
            let (once, again) = (height(None), height(Some(instance.bound)));
            lower += usize::from(again < once);
            higher += usize::from(again > once);
        }
        assert!(lower > 10 && higher == 0, "{lower} {higher}");
    }
}
