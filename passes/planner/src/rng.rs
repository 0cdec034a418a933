//! A small, fast, reproducible source of random numbers.

/// The generator xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016),
/// seeded through SplitMix64. The same seed gives the same numbers on every machine and in every version of this crate.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for the given seed and stream; different streams of one seed are independent.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mixed = split_mix(seed ^ split_mix(stream.wrapping_add(1)));
        Self(mixed.max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..count`; 0 for an empty range.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// `true` with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A distance of at least 1, small ones far more often, at most `reach`.
    pub fn nearby(&mut self, reach: f64) -> usize {
        let x = self.unit();
        1 + (x * x * x * reach) as usize
    }
}

fn split_mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_seed_and_stream_only() {
        let draw = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            [rng.below(1000), rng.below(1000), rng.below(1000), rng.below(1000)]
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
    }

    #[test]
    fn every_number_below_the_bound_occurs_and_none_above() {
        let mut rng = Rng::new(7, 0);
        let mut seen = [0; 5];
        for _ in 0..5000 {
            seen[rng.below(5)] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
    }
}
