//! Reproducible random choices for mutations.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Random numbers and what mutations choose with them.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    /// A generator whose numbers depend on the seed only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..count`; 0 for an empty range.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// One of the items; `None` where there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// A number that has broken programs before, or a small one.
    pub fn number(&mut self) -> u64 {
        const EXTREMES: [u64; 14] = [
            0,
            1,
            2,
            3,
            7,
            64,
            255,
            1 << 16,
            (1 << 31) - 1,
            1 << 32,
            1 << 53,
            (1 << 62) + 1,
            i64::MAX as u64,
            u64::MAX,
        ];
        match self.below(4) {
            0 => self.bits() >> self.below(64),
            1 => self.below(10) as u64,
            _ => EXTREMES[self.below(EXTREMES.len())],
        }
    }
}
