//! A map without an order of its own, for where a tree takes too long: open addressing, linear probing, deletion by shifting back.

use alloc::vec;
use alloc::vec::Vec;

/// A key of a [`Map`].
pub(crate) trait Key: Copy + Eq {
    /// No key: marks a free place.
    const NONE: Self;

    /// Its high bits are well mixed.
    fn hash(self) -> u64;
}

/// 2^64 divided by the golden ratio, odd: what Fibonacci hashing multiplies with (D. E. Knuth, *The Art of Computer Programming* 3, 6.4).
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Offsets.
impl Key for i64 {
    const NONE: Self = Self::MIN;

    #[inline]
    fn hash(self) -> u64 {
        self.cast_unsigned().wrapping_mul(FACTOR)
    }
}

/// Numbers that are random already.
impl Key for u128 {
    const NONE: Self = 0;

    #[inline]
    fn hash(self) -> u64 {
        (self >> 64) as u64
    }
}

/// Pairs of positions.
impl Key for (u32, u32) {
    const NONE: Self = (u32::MAX, u32::MAX);

    #[inline]
    fn hash(self) -> u64 {
        let both = u64::from(self.0) << 32 | u64::from(self.1);
        (both ^ both >> 31).wrapping_mul(FACTOR)
    }
}

/// What keys stand for. At most half of the places are taken.
#[derive(Clone, Debug)]
pub(crate) struct Map<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
    len: usize,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            values: Vec::new(),
            len: 0,
        }
    }
}

impl<K: Key, V: Copy + Default> Map<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.fill(K::NONE);
        self.len = 0;
    }

    /// Where the key is, or else would be; there are places.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mut at = self.home(key);
        while self.keys[at] != key && self.keys[at] != K::NONE {
            at = self.after(at);
        }
        at
    }

    #[inline]
    fn home(&self, key: K) -> usize {
        // The number of places is a power of two, 2 at least.
        (key.hash() >> (64 - self.keys.len().trailing_zeros())) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.keys.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<V> {
        if self.len == 0 {
            return None;
        }
        let at = self.find(key);
        (self.keys[at] == key).then(|| self.values[at])
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if 2 * self.len >= self.keys.len() {
            self.grow();
        }
        let at = self.find(key);
        self.len += usize::from(self.keys[at] != key);
        (self.keys[at], self.values[at]) = (key, value);
    }

    fn grow(&mut self) {
        let places = (2 * self.keys.len()).max(16);
        let keys = core::mem::replace(&mut self.keys, vec![K::NONE; places]);
        let values = core::mem::replace(&mut self.values, vec![V::default(); places]);
        for (key, value) in keys.into_iter().zip(values).filter(|&(key, _)| key != K::NONE) {
            let at = self.find(key);
            (self.keys[at], self.values[at]) = (key, value);
        }
    }

    pub(crate) fn remove(&mut self, key: K) {
        if self.len == 0 {
            return;
        }
        let mut hole = self.find(key);
        if self.keys[hole] != key {
            return;
        }
        self.len -= 1;
        let mask = self.keys.len() - 1;
        let way = |from: usize, to: usize| to.wrapping_sub(from) & mask;
        let mut at = self.after(hole);
        while self.keys[at] != K::NONE {
            // It may move to the hole where that is not before its home.
            if way(self.home(self.keys[at]), at) >= way(hole, at) {
                (self.keys[hole], self.values[hole]) = (self.keys[at], self.values[at]);
                hole = at;
            }
            at = self.after(at);
        }
        self.keys[hole] = K::NONE;
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_map_holds_what_a_tree_holds() {
        let mut rng = Rng::new(1, 0);
        let any = |rng: &mut Rng| (rng.unit() * 300.0) as i64 - 150;
        let (mut map, mut tree) = (Map::default(), BTreeMap::new());
        for step in 0..20_000 {
            let key = any(&mut rng);
            if rng.chance(0.45) {
                map.remove(key);
                tree.remove(&key);
            } else {
                map.insert(key, step);
                tree.insert(key, step);
            }
            let other = any(&mut rng);
            assert_eq!(map.get(other), tree.get(&other).copied());
            assert_eq!(map.len(), tree.len());
        }
        map.clear();
        assert_eq!((map.len(), map.get(0)), (0, None));
    }
}
