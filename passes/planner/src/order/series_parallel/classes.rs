//! Elements in classes that are united: union by rank, paths halved.

use alloc::vec;
use alloc::vec::Vec;

pub(super) struct Classes {
    parent: Vec<u32>,
    rank: Vec<u8>,
}

impl Classes {
    /// Each element below `count` by itself.
    pub(super) fn new(count: usize) -> Self {
        Self {
            parent: (0u32..).take(count).collect(),
            rank: vec![0; count],
        }
    }

    fn find(&mut self, element: usize) -> usize {
        let mut at = element;
        while self.parent[at] as usize != at {
            let above = self.parent[at] as usize;
            self.parent[at] = self.parent[above];
            at = self.parent[at] as usize;
        }
        at
    }

    pub(super) fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        let (below, above) = if self.rank[a] < self.rank[b] { (a, b) } else { (b, a) };
        self.rank[above] += u8::from(self.rank[a] == self.rank[b]);
        self.parent[below] = above as u32;
    }

    /// One element of the class of each.
    pub(super) fn into_labels(mut self) -> Vec<usize> {
        (0..self.parent.len()).map(|element| self.find(element)).collect()
    }
}
