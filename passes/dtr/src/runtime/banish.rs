//! Freeing for good.

use remat_plan::StorageId;

use super::Runtime;
use crate::Deallocation;

impl Runtime<'_> {
    /// Frees a storage for good, a constant too, if the program let go of it and no evicted storage descends from it. Its children
    /// cannot be computed again then and stay; what it descends from may be let go in turn.
    pub(super) fn banish(&mut self, storage: StorageId) {
        let mut waiting = vec![storage];
        while let Some(storage) = waiting.pop() {
            if !self.may_be_banished(storage) {
                continue;
            }
            self.banished[storage] = true;
            let was_absent = !self.material[storage];
            if was_absent {
                self.costs.forgotten(storage);
                waiting.extend_from_slice(self.costs.parents(storage));
            } else {
                self.leave(storage);
            }
            for child in self.costs.children(storage).to_vec() {
                if !self.banished[child] {
                    self.pin(child);
                }
            }
        }
    }

    /// Frees a storage that cannot be computed again for good, with the absent storages that could not come back without it; what is
    /// resident and could not either is pinned. Does nothing if the program still needs one of the absent ones.
    pub(super) fn banish_pinned(&mut self, storage: StorageId) {
        let mut gone = vec![storage];
        let mut stay = Vec::new();
        let mut next = 0;
        self.banished[storage] = true;
        let mut possible = true;
        while let Some(&at) = gone.get(next) {
            next += 1;
            for &child in self.costs.children(at) {
                if self.banished[child] || self.expired[child] {
                    continue;
                }
                if self.material[child] {
                    stay.push(child);
                } else {
                    possible &= self.references[child] == 0;
                    self.banished[child] = true;
                    gone.push(child);
                }
            }
        }
        if !possible {
            for storage in gone {
                self.banished[storage] = false;
            }
            return;
        }
        self.leave(storage);
        for &absent in &gone[1..] {
            self.costs.forgotten(absent);
        }
        for child in stay {
            self.pin(child);
        }
    }

    fn may_be_banished(&self, storage: StorageId) -> bool {
        let busy = self.locks[storage] > u32::from(self.pinned[storage]);
        let awaited = |&child: &StorageId| !self.banished[child] && !self.material[child];
        !self.banished[storage]
            && self.references[storage] == 0
            && !busy
            && !self.costs.children(storage).iter().any(awaited)
    }

    /// Storages came back: what they descend from may not be needed any more.
    pub(super) fn banish_parents(&mut self, returned: &[StorageId]) {
        if self.options.deallocation != Deallocation::Banish {
            return;
        }
        for &storage in returned {
            for parent in self.costs.parents(storage).to_vec() {
                self.banish(parent);
            }
        }
    }
}
