//! Parts that were proved impossible.

use crate::dense::Table;
use crate::hash::Map;
use crate::place::instance::Item;
use crate::rng::Rng;

/// Most parts that are remembered.
const MOST: usize = 2_000_000;

/// The open buffers of impossible parts, each with the lowest offset that it may have, as sums of 128 bits that stand for them. That two of
/// a search are the same by accident has a probability below 2^-80.
pub(super) struct Memo {
    impossible: Map<u128, ()>,
    /// Odd numbers.
    numbers: Table<Item, u128>,
}

impl Memo {
    pub(super) fn new(items: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 2);
        let mut word = || (rng.unit() * (1u64 << 53) as f64) as u128;
        let number = |_| word() << 80 ^ word() << 40 ^ word() | 1;
        Self {
            impossible: Map::default(),
            numbers: (0..items).map(number).collect(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.impossible.clear();
    }

    /// The number that stands for these buffers at these lowest offsets.
    pub(super) fn key(&self, part: impl Iterator<Item = (Item, i64)>) -> u128 {
        let mixed = |(item, lowest): (Item, i64)| {
            let number = self.numbers[item];
            let mixed = (number
                ^ u128::from(lowest.unsigned_abs()).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
            .wrapping_mul(0xD6E8_FEB8_6659_FD93_A076_1D64_78BD_642F);
            (mixed ^ mixed >> 67).wrapping_mul(number)
        };
        part.map(mixed).fold(0, u128::wrapping_add)
    }

    pub(super) fn is_impossible(&self, key: u128) -> bool {
        self.impossible.get(key).is_some()
    }

    pub(super) fn add(&mut self, key: u128) {
        if self.impossible.len() < MOST {
            self.impossible.insert(key, ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::Id;

    #[test]
    fn a_part_is_told_from_others_by_its_buffers_and_their_offsets() {
        let mut memo = Memo::new(3, 0);
        let part = |a, b| [(Item::at(0), a), (Item::at(2), b)].into_iter();
        memo.add(memo.key(part(0, 64)));
        assert!(memo.is_impossible(memo.key(part(0, 64))));
        assert!(memo.is_impossible(memo.key(part(0, 64).rev())));
        assert!(!memo.is_impossible(memo.key(part(64, 0))));
        assert!(!memo.is_impossible(memo.key(part(0, 64).take(1))));
        memo.clear();
        assert!(!memo.is_impossible(memo.key(part(0, 64))));
    }
}
