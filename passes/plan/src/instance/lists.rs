//! Lists of varying length, one after another in one array.

use std::marker::PhantomData;

/// For each `K` a list of `T`.
#[derive(Clone, Debug)]
pub(super) struct Lists<K, T> {
    /// Per key, and one more: where its list starts.
    start: Vec<u32>,
    items: Vec<T>,
    key: PhantomData<K>,
}

impl<K: Copy + From<usize> + Into<usize>, T: Copy + From<usize> + Into<usize>> Lists<K, T> {
    /// One list for each key, in the order of the keys.
    pub(super) fn of(lists: impl IntoIterator<Item = impl IntoIterator<Item = T>>) -> Self {
        let (mut start, mut items) = (vec![0], Vec::new());
        for list in lists {
            items.extend(list);
            start.push(items.len() as u32);
        }
        Self {
            start,
            items,
            key: PhantomData,
        }
    }

    #[inline]
    pub(super) fn get(&self, key: K) -> &[T] {
        let key: usize = key.into();
        &self.items[self.start[key] as usize..self.start[key + 1] as usize]
    }

    /// For each of `count` items the keys in whose lists it stands, ascending.
    pub(super) fn inverted(&self, count: usize) -> Lists<T, K> {
        let mut keys: Vec<Vec<K>> = vec![Vec::new(); count];
        for key in (0..self.start.len() - 1).map(K::from) {
            for &item in self.get(key) {
                keys[item.into()].push(key);
            }
        }
        Lists::of(keys)
    }
}
