//! The choice of what to evict.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::Rng as _;
use remat_plan::StorageId;

use super::{Runtime, Stop};
use crate::heuristic::Score;

impl Runtime<'_> {
    /// Evicts until `bytes` more fit into the budget.
    pub(super) fn make_room(&mut self, bytes: u64) -> Result<(), Stop> {
        while self.usage + bytes > self.budget {
            let victim = match self.options.heuristic.score() {
                Some(score) => self.lowest(score),
                None => {
                    let items = self.pool.items();
                    items.get(below(&mut self.rng, items.len())).copied()
                }
            };
            self.evict(victim.ok_or(Stop::OutOfMemory)?);
            self.evictions += 1;
        }
        Ok(())
    }

    /// The member of the pool that scores lowest: of equals the last one, but the first one of those that score nothing.
    fn lowest(&mut self, score: Score) -> Option<StorageId> {
        let mut best: Option<(f64, u64, StorageId)> = None;
        for index in 0..self.pool.items().len() {
            let storage = self.pool.items()[index];
            let (value, arrival) = (self.score(score, storage), self.pool.arrival(storage));
            let wins = best.is_none_or(|(lowest, last, _)| {
                let first_of_nothing = value <= 0.0 && arrival < last;
                value < lowest || (value <= lowest && (first_of_nothing || (value > 0.0 && arrival > last)))
            });
            if wins {
                best = Some((value, arrival, storage));
            }
        }
        best.map(|(.., storage)| storage)
    }

    /// The score; infinite where it divides by nothing.
    fn score(&mut self, score: Score, storage: StorageId) -> f64 {
        let cost = self.costs.of(storage);
        let size = if score.size {
            self.trace.storages[storage].bytes
        } else {
            1
        };
        let staleness = if score.staleness {
            self.clock - self.last_access[storage]
        } else {
            1
        };
        if size == 0 || staleness == 0 {
            return f64::INFINITY;
        }
        let divisor = size
            .checked_mul(staleness)
            .map_or_else(|| size as f64 * staleness as f64, |product| product as f64);
        cost as f64 / divisor
    }
}

/// A number in `0..count`; 0 for an empty range.
fn below(random: &mut SplitMix64, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}
