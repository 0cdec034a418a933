//! Reproducible random choices for mutations.

/// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose numbers depend on the seed only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
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
