//! Classes of evicted storages that lie next to each other, kept by union-find.
//!
//! A storage that is evicted joins the classes of its evicted neighbours; one that comes back leaves its cost out, but the classes
//! that it joined stay joined. That is the approximation that makes `h_DTR_eq` cheap.

use remat_plan::StorageId;
use typed_index_collections::TiVec;

/// Disjoint classes with the sum of the costs of their members.
#[derive(Clone, Debug)]
pub(super) struct Classes {
    /// The node of each evicted storage; a storage gets a new one at each eviction.
    node: TiVec<StorageId, Option<u32>>,
    parent: Vec<u32>,
    /// Of roots: sum of the costs of the members.
    cost: Vec<u64>,
    /// Of every node: what its storage cost when it was evicted.
    own: Vec<u64>,
    /// Of roots: at least the members that lie next to storages in memory; some may have left, or be there twice.
    border: Vec<Vec<StorageId>>,
}

impl Classes {
    /// No storage is evicted.
    pub(super) fn new(storages: usize) -> Self {
        Self {
            node: TiVec::from(vec![None; storages]),
            parent: Vec::new(),
            cost: Vec::new(),
            own: Vec::new(),
            border: Vec::new(),
        }
    }

    /// The root of the storage's class, if it is evicted.
    pub(super) fn class(&mut self, storage: StorageId) -> Option<u32> {
        let node = self.node[storage]?;
        Some(self.find(node))
    }

    /// The cost of the class with that root.
    pub(super) fn cost(&self, root: u32) -> u64 {
        self.cost[root as usize]
    }

    fn find(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let above = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = above;
            node = above;
        }
        node
    }

    /// Puts a storage that is evicted now into a class of its own.
    pub(super) fn insert(&mut self, storage: StorageId, cost: u64) -> u32 {
        let node = self.parent.len() as u32;
        self.node[storage] = Some(node);
        self.parent.push(node);
        self.cost.push(cost);
        self.own.push(cost);
        self.border.push(vec![storage]);
        node
    }

    /// Joins two classes; returns the root of the new one.
    pub(super) fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let larger = self.border[a as usize].len() >= self.border[b as usize].len();
        let (root, other) = if larger { (a, b) } else { (b, a) };
        self.parent[other as usize] = root;
        self.cost[root as usize] += self.cost[other as usize];
        let border = std::mem::take(&mut self.border[other as usize]);
        self.border[root as usize].extend(border);
        root
    }

    /// Takes a storage that comes back out of its class, and its cost; returns the root.
    pub(super) fn remove(&mut self, storage: StorageId) -> Option<u32> {
        let node = self.node[storage].take()?;
        let root = self.find(node);
        self.cost[root as usize] -= self.own[node as usize];
        Some(root)
    }

    /// Something next to an evicted storage came into memory, or is new.
    pub(super) fn touch(&mut self, storage: StorageId) {
        if let Some(root) = self.class(storage) {
            self.border[root as usize].push(storage);
        }
    }

    /// Takes the border of the class with that root; [`Self::restore`] gives back what still belongs to it.
    pub(super) fn take_border(&mut self, root: u32) -> Vec<StorageId> {
        std::mem::take(&mut self.border[root as usize])
    }

    /// Gives the border back.
    pub(super) fn restore(&mut self, root: u32, border: Vec<StorageId>) {
        self.border[root as usize] = border;
    }
}
