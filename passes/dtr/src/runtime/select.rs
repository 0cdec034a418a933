//! The choice of what to evict.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::Rng as _;
use remat_plan::StorageId;

use super::{Runtime, Stop};
use crate::{Heuristic, Score};

/// Batch eviction takes everything that scores below this multiple of the lowest score.
const BATCH: f64 = 2.0;

impl Runtime<'_> {
    /// Evicts until `bytes` more fit into the budget.
    pub(super) fn make_room(&mut self, bytes: u64) -> Result<(), Stop> {
        while self.usage + bytes > self.budget {
            let victim = match self.options.heuristic {
                Heuristic::Random => {
                    let items = self.pool.items();
                    items.get(below(&mut self.rng, items.len())).copied()
                }
                Heuristic::Score(score) => self.lowest(score),
            };
            let Some(victim) = victim else {
                return Err(Stop::OutOfMemory);
            };
            let batch = match self.options.heuristic {
                Heuristic::Score(score) if self.options.batch => self.batch(score, victim),
                _ => vec![victim],
            };
            for victim in batch {
                self.evict(victim);
                self.evictions += 1;
            }
        }
        Ok(())
    }

    /// The member of the pool that scores lowest: of equals the last one, but the first one of those that score nothing.
    fn lowest(&mut self, score: Score) -> Option<StorageId> {
        let mut best: Option<(f64, u64, StorageId)> = None;
        let mut index = 0;
        let stride = self.pool.items().len().isqrt();
        while let Some(&storage) = self.pool.items().get(index) {
            let (value, arrival) = (self.score(score, storage), self.pool.arrival(storage));
            let wins = best.is_none_or(|(lowest, last, _)| {
                let first_of_nothing = value <= 0.0 && arrival < last;
                value < lowest || (value <= lowest && (first_of_nothing || (value > 0.0 && arrival > last)))
            });
            if wins {
                best = Some((value, arrival, storage));
            }
            index += if self.options.sampling {
                1 + below(&mut self.rng, stride)
            } else {
                1
            };
        }
        best.map(|(.., storage)| storage)
    }

    /// The victim first, then all that score nearly as low, in the order of the pool.
    fn batch(&mut self, score: Score, victim: StorageId) -> Vec<StorageId> {
        let limit = BATCH * self.score(score, victim);
        let items = self.pool.items().to_vec();
        let mut batch: Vec<StorageId> = items
            .into_iter()
            .filter(|&s| s != victim && self.score(score, s) < limit)
            .collect();
        batch.sort_unstable_by_key(|&storage| self.pool.arrival(storage));
        batch.insert(0, victim);
        batch
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
