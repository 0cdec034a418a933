//! The storages that may be evicted.

use remat_plan::StorageId;
use typed_index_collections::TiVec;

const NOWHERE: u32 = u32::MAX;

/// A set that remembers when each member came.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    items: Vec<StorageId>,
    position: TiVec<StorageId, u32>,
    arrival: TiVec<StorageId, u64>,
    arrivals: u64,
}

impl Pool {
    pub(super) fn new(storages: usize) -> Self {
        Self {
            items: Vec::new(),
            position: TiVec::from(vec![NOWHERE; storages]),
            arrival: TiVec::from(vec![0; storages]),
            arrivals: 0,
        }
    }

    /// The members, in no particular order.
    pub(super) fn items(&self) -> &[StorageId] {
        &self.items
    }

    /// When a member came; later ones have larger numbers.
    pub(super) fn arrival(&self, storage: StorageId) -> u64 {
        self.arrival[storage]
    }

    pub(super) fn insert(&mut self, storage: StorageId) {
        if self.position[storage] != NOWHERE {
            return;
        }
        self.position[storage] = self.items.len() as u32;
        self.items.push(storage);
        self.arrivals += 1;
        self.arrival[storage] = self.arrivals;
    }

    pub(super) fn remove(&mut self, storage: StorageId) {
        let position = std::mem::replace(&mut self.position[storage], NOWHERE);
        if position == NOWHERE {
            return;
        }
        self.items.swap_remove(position as usize);
        if let Some(&moved) = self.items.get(position as usize) {
            self.position[moved] = position;
        }
    }
}
