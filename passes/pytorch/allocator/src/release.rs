//! What goes back to the device.

use crate::blocks::{Id, PoolKey};
use crate::figures::Event;
use crate::memory::Memory;

impl Memory {
    /// Gives back what is free: whole segments, and whole pages of those that grow.
    pub(crate) fn release_all(&mut self) {
        // Large ones first.
        let mut keys: Vec<PoolKey> = self
            .blocks
            .pools
            .keys()
            .copied()
            .filter(|key| key.private.is_none())
            .collect();
        keys.sort_unstable_by_key(|key| key.is_small);
        for key in keys {
            let free: Vec<Id> = self.blocks.pools[&key].free.iter().map(|&(.., id)| id).collect();
            let (growing, others): (Vec<Id>, Vec<Id>) = free
                .into_iter()
                .partition(|&id| self.blocks.get(id).grows_from.is_some());
            others.into_iter().for_each(|id| {
                if !self.blocks.get(id).is_split() {
                    self.release(id);
                }
            });
            growing.into_iter().for_each(|id| self.unmap(id));
        }
    }

    /// Gives a free segment back.
    fn release(&mut self, id: Id) {
        self.blocks.unshelve(id);
        if let Some(gone) = self.blocks.remove(id) {
            self.figures.reserved -= gone.bytes;
            self.events.push(Event::SegmentFree {
                address: gone.address,
                bytes: gone.bytes,
            });
        }
    }

    /// Gives back blocks that are never split, as many as a request needs: the smallest that is large enough, or else the largest, one after the other.
    /// Whether that was enough.
    pub(crate) fn release_oversized(&mut self, key: PoolKey, stream: u64, bytes: u64) -> bool {
        let Some(most) = self.settings.max_split_bytes else {
            return false;
        };
        let needed = bytes.max(most);
        // Those of segments that grow go page by page, with all others.
        let is_whole = |&&(of, .., id): &&(u64, u64, u64, Id)| of == stream && !self.blocks.get(id).is_split();
        let Some(pool) = self.blocks.pools.get(&key) else {
            return false;
        };
        if let Some(&(.., id)) = pool.free.range((stream, needed, 0, 0)..).find(is_whole) {
            self.release(id);
            return true;
        }
        let mut gone = 0;
        let largest_first = pool.free.range((stream, most, 0, 0)..(stream, needed, 0, 0)).rev();
        let oversized: Vec<Id> = largest_first
            .filter(is_whole)
            .take_while(|&&(_, size, ..)| {
                let goes = gone < needed;
                gone += if goes { size } else { 0 };
                goes
            })
            .map(|&(.., id)| id)
            .collect();
        oversized.into_iter().for_each(|id| self.release(id));
        gone >= needed
    }

    /// Gives free segments back that were not used for longer than others, where more is reserved than the settings allow.
    pub(crate) fn collect(&mut self) {
        let Some(allowed) = self
            .settings
            .allowed_bytes
            .filter(|_| self.settings.collection_permille > 0)
        else {
            return;
        };
        let threshold = u128::from(allowed) * u128::from(self.settings.collection_permille) / 1000;
        let threshold = u64::try_from(threshold).unwrap_or(u64::MAX);
        let Some(target) = self.figures.reserved.checked_sub(threshold).filter(|&bytes| bytes > 0) else {
            return;
        };
        let key = PoolKey {
            private: None,
            is_small: false,
        };
        let searches = self.blocks.pool(key).searches;
        let free = self.blocks.pools[&key]
            .free
            .iter()
            .map(|&(.., id)| (id, self.blocks.get(id)));
        let whole = free.filter(|(_, block)| !block.is_split() && block.grows_from.is_none());
        let mut ages: Vec<(Id, u64)> = whole.map(|(id, block)| (id, searches - block.freed_at)).collect();
        let mut reclaimed = 0;
        while reclaimed < target && !ages.is_empty() {
            let total: u64 = ages.iter().map(|(_, age)| age).sum();
            let count = u64::try_from(ages.len()).unwrap_or(u64::MAX);
            let (old, young): (Vec<_>, Vec<_>) = ages.iter().partition(|(_, age)| age.saturating_mul(count) >= total);
            for (id, _) in old {
                reclaimed += self.blocks.get(id).bytes;
                self.release(id);
            }
            ages = young;
        }
    }
}
