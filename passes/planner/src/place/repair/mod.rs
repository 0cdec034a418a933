//! Local search at a capacity: a buffer that fits nowhere takes the place of those that are cheapest to remove.
//!
//! Guided ejection search, which Nagata and Bräysy introduced for routing (2009). Of the open buffers, the one with most weight is placed. Where
//! no hole is large enough, it is placed where the sum of the weights of what is in the way is least; that is open again, and its own weight
//! grows. Then some of its neighbours move to other holes. Nothing is proved this way. One file holds one part:
//!
//! 1. `level`: where many buffers are tiny, the others are placed first, no higher than their own load requires;
//! 2. `cores`: those of the fullest sections are placed before, by the exact search;
//! 3. `holes`: what is free between the neighbours of a buffer, and what it costs to place it where something is in the way.
//!
//! A search that takes long begins anew with another core, or with none; all of them have the same tries, which double when all had their turn.

mod cores;
mod holes;
mod level;

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::dense::Table;

use self::holes::{Holes, Spot};
use self::level::{Level, levels};
use crate::limits::Meter;
use crate::place::instance::{Instance, Item};
use crate::place::search::Answer;
use crate::rng::Rng;

/// Tries to place a core, and then the others, in the first round; every round has twice as many.
const CORE: u64 = 16_000;
const REST: u64 = 1_000;
/// The most rounds that tries double.
const ROUNDS: usize = 40;
/// So many neighbours may move after others were removed.
const MOVES: u64 = 4;
/// The weight of what an earlier level has placed; others stay below it.
const HEAVY: u64 = 1 << 30;
/// The weight of what is pinned: more than all others together.
const PINNED: u64 = 1 << 46;
/// No sum of weights overflows with so many buffers.
const MOST: usize = 1 << 15;

/// A local search and what it learned.
pub(crate) struct Repair<'a> {
    instance: &'a Instance,
    levels: Vec<Level>,
    /// The level that is being placed.
    level: usize,
    capacity: Option<i64>,
    /// How often each capacity was begun.
    begun: BTreeMap<i64, usize>,
    /// Tries up to which the others are placed around a core.
    end: u64,
    /// Where each buffer lies, or lay last.
    spots: Table<Item, Spot>,
    /// Those of the level without a place, by weight.
    open: BinaryHeap<(u64, Item)>,
    /// By how much a weight grows.
    step: Table<Item, u64>,
    weight: Table<Item, u64>,
    seed: u64,
    rng: Rng,
    holes: Holes,
}

impl<'a> Repair<'a> {
    /// `None` where it does not help: the exact search does better where no buffers are tiny.
    pub(crate) fn new(instance: &'a Instance, neighbours: &Table<Item, Vec<Item>>, seed: u64) -> Option<Self> {
        let levels = levels(instance, neighbours);
        (!levels.is_empty() && instance.len() <= MOST).then(|| Self {
            instance,
            levels,
            level: 0,
            capacity: None,
            begun: BTreeMap::new(),
            end: 0,
            spots: Table::filled(Spot::default(), instance.len()),
            open: BinaryHeap::new(),
            step: Table::new(),
            weight: Table::new(),
            seed,
            rng: Rng::new(seed, 3),
            holes: Holes::default(),
        })
    }

    /// Looks for a placement that is no higher than the capacity, for so many tries. Another call with the same capacity goes on.
    pub(crate) fn attempt(&mut self, capacity: i64, tries: u64, meter: &mut Meter<'_>) -> Answer {
        let end = meter.tries().saturating_add(tries);
        if self.capacity != Some(capacity) {
            self.capacity = Some(capacity);
            self.restart(capacity, meter);
        }
        loop {
            while let Some(&(_, item)) = self.open.peek() {
                if meter.is_over() || meter.tries() >= end {
                    return Answer::Stopped;
                }
                if meter.tries() >= self.end {
                    self.restart(capacity, meter);
                    continue;
                }
                self.open.pop();
                if !self.insert(item, meter) {
                    // There is no place between the pinned ones. The exact search may prove it.
                    self.open.push((self.weight[item], item));
                    return Answer::Stopped;
                }
            }
            if self.level + 1 == self.levels.len() {
                return Answer::Placed;
            }
            for &item in &self.levels[self.level].items {
                self.weight[item] = HEAVY;
                self.step[item] = 0;
            }
            self.begin(self.level + 1, capacity);
        }
    }

    /// The offsets after an attempt that placed all buffers.
    pub(crate) fn offsets(&self) -> Table<Item, i64> {
        self.spots.iter().map(|spot| spot.start).collect()
    }

    /// Begins anew, around the next core that the exact search places.
    fn restart(&mut self, capacity: i64, meter: &mut Meter<'_>) {
        let largest = self.instance.size.iter().max().copied().unwrap_or(1);
        self.step = self.instance.size.iter().map(|&size| root(size, largest)).collect();
        self.weight.clone_from(&self.step);
        self.open.clear();
        self.spots.raw.fill(Spot::default());
        for (item, pinned) in self.instance.pinned.iter_enumerated() {
            if let Some(offset) = *pinned {
                self.spots[item].put(item, offset, self.instance);
                self.weight[item] = PINNED;
            }
        }
        let level = &mut self.levels[0];
        let begun = self.begun.entry(capacity).or_default();
        let round = *begun / (level.cores.len() + 1);
        let turn = *begun % (level.cores.len() + 1);
        *begun += 1;
        let double = 1 << round.min(ROUNDS);
        if let Some(core) = level.cores.get_mut(turn) {
            if round > 0 {
                cores::shuffle(core, &mut self.rng);
            }
            let limit = capacity - level.room;
            let placed = cores::place(self.instance, core, limit, CORE * double, self.seed, meter);
            for (item, offset) in placed.unwrap_or_default() {
                self.spots[item].put(item, offset, self.instance);
            }
        }
        self.end = meter.tries() + REST * double;
        self.begin(0, capacity);
    }

    /// Places the buffers of a level where they fit, the largest ones first; the others are open.
    fn begin(&mut self, level: usize, capacity: i64) {
        self.level = level;
        self.holes.limit = capacity - self.levels[level].room;
        let mut items = self.levels[level].items.clone();
        items.retain(|&item| !self.spots[item].is_placed());
        items.sort_by_key(|&item| Reverse((self.instance.size[item], self.instance.life[item])));
        for item in items {
            self.look(item);
            match self.holes.lowest(item, self.instance) {
                Some(offset) => self.spots[item].put(item, offset, self.instance),
                None => self.open.push((self.weight[item], item)),
            }
        }
    }

    fn look(&mut self, item: Item) {
        self.holes
            .look(&mut self.levels[self.level].neighbours[item], &self.spots);
    }

    /// Places an open buffer; whether there is any place for it.
    fn insert(&mut self, item: Item, meter: &mut Meter<'_>) -> bool {
        meter.tick(1);
        self.look(item);
        if let Some(offset) = self.holes.tightest(item, self.instance) {
            self.spots[item].put(item, offset, self.instance);
            return true;
        }
        self.weight[item] = (self.weight[item] + self.step[item]).min(HEAVY);
        let Some(offset) = self
            .holes
            .cheapest(item, self.instance, &self.weight, PINNED, &mut self.rng)
        else {
            return false;
        };
        for &removed in self.holes.in_the_way(item, offset, self.instance) {
            self.spots[removed].open();
            self.open.push((self.weight[removed], removed));
        }
        self.spots[item].put(item, offset, self.instance);
        for _ in 0..MOVES {
            self.shake(item, meter);
        }
        true
    }

    /// Moves a neighbour to either end of some hole.
    fn shake(&mut self, item: Item, meter: &mut Meter<'_>) {
        let neighbours = &self.levels[self.level].neighbours[item];
        let chosen = neighbours
            .get((self.rng.unit() * neighbours.len() as f64) as usize)
            .copied();
        let may_move = |&item: &Item| self.spots[item].is_placed() && self.instance.pinned[item].is_none();
        let Some(item) = chosen.filter(may_move) else {
            return;
        };
        meter.tick(1);
        self.look(item);
        if let Some(offset) = self.holes.any(item, self.instance, &mut self.rng) {
            self.spots[item].put(item, offset, self.instance);
        }
    }
}

/// The root of a size, where that of the largest one is 2^16.
fn root(size: i64, largest: i64) -> u64 {
    let scaled = (u128::from(size.unsigned_abs()) << 32) / u128::from(largest.unsigned_abs().max(1));
    u64::try_from(scaled.isqrt()).unwrap_or(1).max(1)
}
