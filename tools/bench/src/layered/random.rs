//! Random numbers that are the same on every machine and in every version.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Uniform numbers, and those of other distributions.
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// A number in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..count`; 0 if there is none.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }

    /// A number from 0 on with this mean.
    pub(super) fn geometric(&mut self, mean: f64) -> usize {
        failures(1.0 / (1.0 + mean), self.unit())
    }

    /// A number from the standard normal distribution, by the method of Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// The numbers below `count` of which each is taken with this probability; takes time for those that are taken only.
    pub(super) fn thinned(&mut self, count: usize, probability: f64) -> impl Iterator<Item = usize> {
        let mut next = 0usize;
        std::iter::from_fn(move || {
            next = next.saturating_add(failures(probability, self.unit()));
            next += usize::from(next < usize::MAX);
            (next <= count && next > 0).then(|| next - 1)
        })
        .take(count)
    }
}

/// Failures before the first success, for a uniform number in `[0, 1)`.
fn failures(probability: f64, uniform: f64) -> usize {
    if probability >= 1.0 {
        0
    } else if probability <= 0.0 {
        usize::MAX
    } else {
        ((1.0 - uniform).ln() / (1.0 - probability).ln()) as usize
    }
}
