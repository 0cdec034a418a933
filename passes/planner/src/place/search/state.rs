//! What a search knows.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::floor::Estimate;
use super::memo::Memo;
use super::node::{Frame, Node};
use super::preference::{Preference, Weights};
use crate::dense::Table;
use crate::place::instance::{Instance, Item};
use crate::rng::Rng;

/// A search and what it learned.
pub(crate) struct Search<'a> {
    pub(super) instance: &'a Instance,
    pub(super) neighbours: &'a Table<Item, Vec<Item>>,
    /// No buffer may end above it.
    pub(super) capacity: i64,
    /// `None` where it is open.
    pub(super) offset: Table<Item, Option<i64>>,
    /// The lowest offset that those that are placed allow; for pinned buffers their own, or more where it is taken.
    pub(super) lowest: Table<Item, i64>,
    /// Size of what is open in each section.
    pub(super) load: Vec<i64>,
    /// Open buffers that take bytes, or have a gap, in a section and in the next one.
    pub(super) crossing: Vec<u32>,
    /// Values of `lowest` to go back to.
    pub(super) trail: Vec<(Item, i64)>,
    pub(super) weights: Weights,
    pub(super) preference: Preference,
    pub(super) estimate: Estimate,
    pub(super) memo: Memo,
    pub(super) nodes: Vec<Node>,
    /// The way from the whole part to what is open now.
    pub(super) way: Vec<Frame>,
    /// Tries until the next restart.
    pub(super) left: u64,
    pub(super) rng: Rng,
    /// How many restarts each capacity had.
    pub(super) restarts: BTreeMap<i64, usize>,
    /// The preference of the next restart: the one that placed all buffers is used again.
    pub(super) next: usize,
}

impl<'a> Search<'a> {
    /// A search on buffers that are connected in time: there is no time between any two of them at which none is alive.
    pub(crate) fn new(instance: &'a Instance, neighbours: &'a Table<Item, Vec<Item>>, seed: u64) -> Self {
        let mut crossing = vec![0; instance.sections()];
        for item in instance.size.keys() {
            let hull = instance.hull(item);
            crossing[hull.start..hull.end - 1]
                .iter_mut()
                .for_each(|count| *count += 1);
        }
        Self {
            instance,
            neighbours,
            capacity: 0,
            offset: Table::filled(None, instance.len()),
            lowest: Table::filled(0, instance.len()),
            load: instance.load.clone(),
            crossing,
            trail: Vec::new(),
            weights: Weights::new(instance.sections()),
            preference: Preference::new(instance),
            estimate: Estimate::default(),
            memo: Memo::new(instance.len(), seed),
            nodes: Vec::new(),
            way: Vec::new(),
            left: 0,
            rng: Rng::new(seed, 1),
            restarts: BTreeMap::new(),
            next: 0,
        }
    }

    /// Takes the offset of a buffer back; its neighbours keep what they know of it.
    pub(super) fn reopen(&mut self, item: Item) {
        if self.offset[item].take().is_some() {
            let size = self.instance.size[item];
            for section in self.instance.spans[item].iter().cloned().flatten() {
                self.load[section] += size;
            }
        }
    }
}
