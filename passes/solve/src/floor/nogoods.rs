//! Sets that are known to fail, and what they need at least.

use rustc_hash::FxHashMap;

use super::graph::{Item, Set};

/// Sets of items, each with what it needs at least, found by what contains them.
///
/// A trie: the items of a set, largest first, lead from the root to its value.
pub(super) struct Nogoods {
    /// From a place by an item to the next place.
    children: FxHashMap<(u32, Item), u32>,
    /// Per place; 0 where no set ends.
    values: Vec<u64>,
}

impl Default for Nogoods {
    fn default() -> Self {
        Self {
            children: FxHashMap::default(),
            values: vec![0],
        }
    }
}

impl Nogoods {
    /// Adds an ascending set and what it needs, in bytes.
    pub(super) fn add(&mut self, set: &[Item], value: u64) {
        let mut place = 0;
        for &item in set.iter().rev() {
            let next = self.values.len() as u32;
            place = *self.children.entry((place, item)).or_insert(next);
            if place == next {
                self.values.push(0);
            }
        }
        let known = &mut self.values[place as usize];
        *known = (*known).max(value);
    }

    /// A part of a set that needs more than `budget`, and what it needs.
    pub(super) fn within(&self, set: &[Item], budget: u64) -> Option<(Set, u64)> {
        let mut found = Set::new();
        let value = self.find(0, set, budget, &mut found)?;
        found.reverse();
        Some((found, value))
    }

    fn find(&self, place: u32, set: &[Item], budget: u64, found: &mut Set) -> Option<u64> {
        let value = self.values[place as usize];
        if value > budget {
            return Some(value);
        }
        for (index, &item) in set.iter().enumerate() {
            if let Some(&next) = self.children.get(&(place, item)) {
                found.push(item);
                if let Some(value) = self.find(next, &set[..index], budget, found) {
                    return Some(value);
                }
                found.pop();
            }
        }
        None
    }
}
