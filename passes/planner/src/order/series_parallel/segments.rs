//! The order of least peak where every node adds or frees a fixed number of bytes.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::tree::{Part, Tree};
use crate::dense::Table;
use crate::order::network::NodeId;

/// What a node takes, whatever ran before: while it runs, and what it leaves (negative where it frees more than it makes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Demand {
    pub(super) peak: i128,
    pub(super) net: i128,
}

/// An order of least peak, and that peak.
pub(super) struct Merged {
    pub(super) order: Vec<NodeId>,
    pub(super) peak: i128,
    /// Segments that were looked at: what the time is proportional to, but for a factor of the order of the square of the logarithm.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test holds it against the size"))]
    pub(super) looked_at: usize,
}

/// The order of all nodes with the least peak, if the order is that of a tree, each node has a demand and nothing else takes memory.
///
/// Parts are sequences of *segments*, runs of nodes that no other node need come between. Segments that free memory come first, those of low peak
/// first; then those that add memory, those that fall most from their peak first. Parts in parallel are merged by this rule. In series, the
/// segments of the second part that the rule would have before some of the first part become one segment with them.
///
/// Source: H. M. Abdel-Wahab, T. Kameda, *Scheduling to Minimize Maximum Cumulative Cost Subject to Series-Parallel Precedence Constraints*, Oper. Res.
/// 26(1), 1978; C. L. Monma, J. B. Sidney, *Sequencing with Series-Parallel Precedence Constraints*, Math. Oper. Res. 4(3), 1979. On trees these are the hills and valleys of
/// J. W. H. Liu, *An Application of Generalized Tree Pebbling to Sparse Matrix Factorization*, SIAM J. Alg. Disc. Meth. 8(3), 1987.
pub(super) fn merge(tree: &Tree, demands: &Table<NodeId, Demand>) -> Merged {
    let mut merger = Merger {
        segments: Vec::with_capacity(2 * demands.len()),
        next: Table::filled(None, demands.len()),
        looked_at: 0,
    };
    let mut profiles: Vec<Profile> = Vec::with_capacity(tree.parts().len());
    for &part in tree.parts() {
        let mut take = |part: u32| core::mem::take(&mut profiles[part as usize]);
        let profile = match part {
            Part::Node(node) => merger.single(node, demands[node]),
            Part::Series(first, second) => {
                let (first, second) = (take(first), take(second));
                merger.in_series(first, second)
            }
            Part::Parallel(first, second) => {
                let (first, second) = (take(first), take(second));
                merger.together(first, second)
            }
        };
        profiles.push(profile);
    }
    let whole = profiles.pop().unwrap_or_default();
    merger.finish(&whole)
}

/// Nodes one after the other, as a list from `first` to `last`.
#[derive(Clone, Copy)]
struct Segment {
    demand: Demand,
    first: NodeId,
    last: NodeId,
}

impl Segment {
    fn frees(&self) -> bool {
        self.demand.net < 0
    }

    /// Segments that free come in ascending, others in descending order of this.
    fn key(&self) -> i128 {
        if self.frees() {
            self.demand.peak
        } else {
            self.demand.peak - self.demand.net
        }
    }

    /// Whether the rule has this one before the other.
    fn is_before(&self, other: &Self) -> bool {
        match (self.frees(), other.frees()) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => self.key() < other.key(),
            (false, false) => self.key() > other.key(),
        }
    }
}

/// The segments of a part, by key and number: first those that free, ascending, then the others, descending.
#[derive(Default)]
struct Profile {
    freeing: BTreeSet<(i128, usize)>,
    adding: BTreeSet<(i128, usize)>,
}

impl Profile {
    fn first(&self) -> Option<usize> {
        let first = self.freeing.first().or_else(|| self.adding.last());
        first.map(|&(_, number)| number)
    }

    fn last(&self) -> Option<usize> {
        let last = self.adding.first().or_else(|| self.freeing.last());
        last.map(|&(_, number)| number)
    }
}

struct Merger {
    segments: Vec<Segment>,
    /// Within a segment, the node after each node.
    next: Table<NodeId, Option<NodeId>>,
    looked_at: usize,
}

impl Merger {
    fn single(&mut self, node: NodeId, demand: Demand) -> Profile {
        let mut profile = Profile::default();
        let segment = Segment {
            demand,
            first: node,
            last: node,
        };
        self.insert(&mut profile, segment);
        profile
    }

    fn insert(&mut self, profile: &mut Profile, segment: Segment) {
        let entry = (segment.key(), self.segments.len());
        if segment.frees() {
            profile.freeing.insert(entry);
        } else {
            profile.adding.insert(entry);
        }
        self.segments.push(segment);
    }

    fn remove(&self, profile: &mut Profile, number: usize) -> Segment {
        let segment = self.segments[number];
        let entry = (segment.key(), number);
        if segment.frees() {
            profile.freeing.remove(&entry);
        } else {
            profile.adding.remove(&entry);
        }
        segment
    }

    /// The smaller part goes into the larger one, so that no segment is moved more often than the logarithm of their number.
    fn together(&mut self, first: Profile, second: Profile) -> Profile {
        Profile {
            freeing: self.united(first.freeing, second.freeing),
            adding: self.united(first.adding, second.adding),
        }
    }

    fn united(
        &mut self,
        mut large: BTreeSet<(i128, usize)>,
        mut small: BTreeSet<(i128, usize)>,
    ) -> BTreeSet<(i128, usize)> {
        if large.len() < small.len() {
            core::mem::swap(&mut large, &mut small);
        }
        self.looked_at += small.len();
        large.extend(small);
        large
    }

    fn in_series(&mut self, mut first: Profile, mut second: Profile) -> Profile {
        let mut middle: Option<Segment> = None;
        loop {
            self.looked_at += 1;
            let (before, after) = (first.last(), second.first());
            middle = match (middle, before, after) {
                (None, Some(before), Some(after)) if !self.segments[before].is_before(&self.segments[after]) => {
                    let (a, b) = (self.remove(&mut first, before), self.remove(&mut second, after));
                    Some(self.joined(a, b))
                }
                (Some(own), Some(before), _) if !self.segments[before].is_before(&own) => {
                    let a = self.remove(&mut first, before);
                    Some(self.joined(a, own))
                }
                (Some(own), _, Some(after)) if !own.is_before(&self.segments[after]) => {
                    let b = self.remove(&mut second, after);
                    Some(self.joined(own, b))
                }
                (middle, _, _) => {
                    if let Some(segment) = middle {
                        self.insert(&mut first, segment);
                    }
                    return self.together(first, second);
                }
            };
        }
    }

    fn joined(&mut self, a: Segment, b: Segment) -> Segment {
        self.next[a.last] = Some(b.first);
        Segment {
            demand: Demand {
                peak: a.demand.peak.max(a.demand.net + b.demand.peak),
                net: a.demand.net + b.demand.net,
            },
            first: a.first,
            last: b.last,
        }
    }

    fn finish(&self, whole: &Profile) -> Merged {
        let mut order = Vec::with_capacity(self.next.len());
        let (mut peak, mut memory) = (0, 0);
        for &(_, number) in whole.freeing.iter().chain(whole.adding.iter().rev()) {
            let segment = &self.segments[number];
            peak = peak.max(memory + segment.demand.peak);
            memory += segment.demand.net;
            let mut node = Some(segment.first);
            while let Some(here) = node {
                order.push(here);
                node = self.next[here];
            }
        }
        Merged {
            order,
            peak,
            looked_at: self.looked_at,
        }
    }
}
