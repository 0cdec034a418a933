//! Ids, and dense vectors that are indexed by them.

use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut, Range};
use core::slice;

/// A position in a dense vector.
pub(crate) trait Id: Copy {
    fn at(index: usize) -> Self;
    fn position(self) -> usize;
}

/// Defines an id of 32 bits.
macro_rules! dense_id {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) struct $name(u32);

        impl $crate::dense::Id for $name {
            #[inline]
            fn at(index: usize) -> Self {
                Self(u32::try_from(index).expect("whoever calls the planner has fewer than 2^32 elements"))
            }

            #[inline]
            fn position(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use dense_id;

/// A vector with one element for each id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table<K, V> {
    pub(crate) raw: Vec<V>,
    key: PhantomData<fn(K) -> K>,
}

impl<K: Id, V> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.raw.len()
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + Clone + use<K, V> {
        (0..self.raw.len()).map(K::at)
    }

    pub(crate) fn iter(&self) -> slice::Iter<'_, V> {
        self.raw.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> slice::IterMut<'_, V> {
        self.raw.iter_mut()
    }

    pub(crate) fn iter_enumerated(&self) -> impl Iterator<Item = (K, &V)> {
        self.raw.iter().enumerate().map(|(index, value)| (K::at(index), value))
    }
}

impl<K: Id, V: Clone> Table<K, V> {
    pub(crate) fn filled(value: V, len: usize) -> Self {
        vec![value; len].into()
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<K, V> From<Vec<V>> for Table<K, V> {
    fn from(raw: Vec<V>) -> Self {
        Self { raw, key: PhantomData }
    }
}

impl<K, V> FromIterator<V> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(iter: I) -> Self {
        iter.into_iter().collect::<Vec<V>>().into()
    }
}

impl<K: Id, V> Index<K> for Table<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, key: K) -> &V {
        &self.raw[key.position()]
    }
}

impl<K: Id, V> IndexMut<K> for Table<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.raw[key.position()]
    }
}

impl<'a, K, V> IntoIterator for &'a Table<K, V> {
    type Item = &'a V;
    type IntoIter = slice::Iter<'a, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.raw.iter()
    }
}

impl<K, V> IntoIterator for Table<K, V> {
    type Item = V;
    type IntoIter = vec::IntoIter<V>;

    fn into_iter(self) -> Self::IntoIter {
        self.raw.into_iter()
    }
}

/// A list for each id, all in one vector.
#[derive(Clone, Debug)]
pub(crate) struct Lists<K, V> {
    /// Per id, and one more: where its list begins.
    starts: Vec<u32>,
    all: Vec<V>,
    key: PhantomData<fn(K) -> K>,
}

impl<K: Id, V> Lists<K, V> {
    pub(crate) fn of<L: IntoIterator<Item = V>>(lists: impl Iterator<Item = L>) -> Self {
        let mut all = Vec::new();
        let mut starts = Vec::with_capacity(lists.size_hint().0 + 1);
        starts.push(0);
        for list in lists {
            all.extend(list);
            starts.push(position_of(all.len()));
        }
        Self::joined(starts, all)
    }

    fn joined(starts: Vec<u32>, all: Vec<V>) -> Self {
        Self {
            starts,
            all,
            key: PhantomData,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[V]> + Clone {
        self.starts
            .windows(2)
            .map(|pair| &self.all[pair[0] as usize..pair[1] as usize])
    }

    /// The elements of all lists.
    pub(crate) fn all(&self) -> &[V] {
        &self.all
    }

    fn range(&self, key: K) -> Range<usize> {
        let at = key.position();
        self.starts[at] as usize..self.starts[at + 1] as usize
    }
}

impl<K: Id, V: Copy> Lists<K, V> {
    /// The second of each pair, listed by the first, for so many ids; each list has the order of the pairs.
    pub(crate) fn of_pairs(pairs: impl Iterator<Item = (K, V)> + Clone, ids: usize) -> Self {
        let mut starts = vec![0u32; ids + 1];
        for (key, _) in pairs.clone() {
            starts[key.position() + 1] += 1;
        }
        for at in 0..ids {
            starts[at + 1] += starts[at];
        }
        let Some((_, first)) = pairs.clone().next() else {
            return Self::joined(starts, Vec::new());
        };
        let mut all = vec![first; starts[ids] as usize];
        let mut next = starts.clone();
        for (key, value) in pairs {
            let next = &mut next[key.position()];
            all[*next as usize] = value;
            *next += 1;
        }
        Self::joined(starts, all)
    }
}

impl<K: Id, V> Index<K> for Lists<K, V> {
    type Output = [V];

    #[inline]
    fn index(&self, key: K) -> &[V] {
        &self.all[self.range(key)]
    }
}

impl<K: Id, V> IndexMut<K> for Lists<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut [V] {
        let range = self.range(key);
        &mut self.all[range]
    }
}

fn position_of(length: usize) -> u32 {
    u32::try_from(length).expect("whoever calls the planner has fewer than 2^32 elements")
}

#[cfg(test)]
mod tests {
    use super::*;

    dense_id!(
        /// For tests.
        Key
    );

    #[test]
    fn pairs_are_listed_by_their_first_in_their_order() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c')].map(|(key, value)| (Key::at(key), value));
        let lists = Lists::of_pairs(pairs.into_iter(), 4);
        let found: Vec<&[char]> = lists.iter().collect();
        assert_eq!(found, [&['b'][..], &[], &['a', 'c'], &[]]);
        assert_eq!(lists[Key::at(2)], ['a', 'c']);
    }
}
