//! What is taken already, by section: a segment tree whose nodes hold ranges of offsets.

use alloc::vec;
use alloc::vec::Vec;

use crate::place::instance::{Instance, Item, Span};

/// Offsets that are taken, as ranges that neither overlap nor touch, ascending.
#[derive(Clone, Debug, Default)]
struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    fn insert(&mut self, start: i64, end: i64) {
        let from = self.0.partition_point(|range| range.1 < start);
        let to = from + self.0[from..].partition_point(|range| range.0 <= end);
        if from == to {
            self.0.insert(from, (start, end));
            return;
        }
        let merged = (start.min(self.0[from].0), end.max(self.0[to - 1].1));
        self.0[from] = merged;
        self.0.drain(from + 1..to);
    }
}

/// Sections and offsets that are taken.
///
/// A buffer is noted at the fewest nodes that make up its sections (`whole`), and at all nodes above these (`within`). What is taken in a
/// node's sections by anything is what `whole` of the node and of all above it, and `within` of the node, hold. The tighter buffers lie, the
/// fewer ranges these are: placing a buffer takes time `log n` for each hole that is too small for it.
pub(crate) struct Occupancy {
    leaves: usize,
    whole: Vec<Ranges>,
    within: Vec<Ranges>,
    nodes: Vec<usize>,
    /// The node, whether `within` is meant, and the next range to look at.
    views: Vec<(usize, bool, usize)>,
    gaps: Vec<(i64, i64)>,
}

/// Which hole a buffer goes into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fit {
    /// The lowest that it fits.
    Lowest,
    /// The tightest, the lowest of these.
    Tightest,
}

impl Occupancy {
    pub(crate) fn new(sections: usize) -> Self {
        let leaves = sections.next_power_of_two();
        Self {
            leaves,
            whole: vec![Ranges::default(); 2 * leaves],
            within: vec![Ranges::default(); leaves],
            nodes: Vec::new(),
            views: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// The fewest nodes that make up the sections.
    fn cover(&mut self, span: &Span) {
        self.nodes.clear();
        let (mut from, mut to) = (span.start + self.leaves, span.end + self.leaves);
        while from < to {
            if from % 2 == 1 {
                self.nodes.push(from);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                self.nodes.push(to);
            }
            (from, to) = (from / 2, to / 2);
        }
    }

    /// Notes a buffer.
    pub(crate) fn take(&mut self, instance: &Instance, item: Item, offset: i64) {
        let end = offset + instance.size[item];
        for span in &instance.spans[item] {
            self.cover(span);
            for &node in &self.nodes {
                self.whole[node].insert(offset, end);
            }
            for node in self.above(span) {
                self.within[node].insert(offset, end);
            }
        }
    }

    /// The nodes that hold some of the sections, but not these alone.
    fn above(&self, span: &Span) -> impl Iterator<Item = usize> + use<> {
        let (leaves, span) = (self.leaves, span.clone());
        let (mut left, mut right) = ((span.start + leaves) / 2, (span.end - 1 + leaves) / 2);
        let levels = core::iter::from_fn(move || {
            let level = (left, right);
            (left, right) = (left / 2, right / 2);
            (level.0 > 0).then_some(level)
        });
        let nodes = levels.flat_map(|(left, right)| [Some(left), (left != right).then_some(right)]);
        nodes.flatten().filter(move |&node| !covers(leaves, node, &span))
    }

    /// Where the buffer may lie.
    pub(crate) fn place(&mut self, instance: &Instance, item: Item, fit: Fit) -> i64 {
        self.look(instance, item);
        match fit {
            Fit::Lowest => self.lowest(instance, item),
            Fit::Tightest => self.tightest(instance, item),
        }
    }

    /// Finds what is to be looked at for the sections of the buffer.
    fn look(&mut self, instance: &Instance, item: Item) {
        self.views.clear();
        for span in &instance.spans[item] {
            self.cover(span);
            for &node in &self.nodes {
                if node < self.leaves && !self.within[node].0.is_empty() {
                    self.views.push((node, true, 0));
                }
            }
            let above = self.above(span).chain(self.nodes.iter().copied());
            let taken = above.filter(|&node| !self.whole[node].0.is_empty());
            self.views.extend(taken.map(|node| (node, false, 0)));
        }
    }

    fn lowest(&mut self, instance: &Instance, item: Item) -> i64 {
        let size = instance.size[item];
        let mut offset = 0;
        let mut agreeing = 0;
        let count = self.views.len();
        let mut at = 0;
        // Each set of ranges pushes the buffer up until all agree.
        while agreeing < count {
            let (node, is_within, next) = &mut self.views[at];
            let set = if *is_within {
                &self.within[*node]
            } else {
                &self.whole[*node]
            };
            let ranges = &set.0;
            let before = offset;
            while let Some(&(start, end)) = ranges.get(*next)
                && start < offset + size
            {
                offset = offset.max(instance.aligned(item, end));
                *next += 1;
            }
            agreeing = if offset == before { agreeing + 1 } else { 1 };
            at = if at + 1 == count { 0 } else { at + 1 };
        }
        offset
    }

    fn tightest(&mut self, instance: &Instance, item: Item) -> i64 {
        self.gaps.clear();
        for &(node, is_within, _) in &self.views {
            let set = if is_within {
                &self.within[node]
            } else {
                &self.whole[node]
            };
            self.gaps.extend_from_slice(&set.0);
        }
        self.gaps.sort_unstable();
        let size = instance.size[item];
        let (mut best, mut below) = (None, 0);
        for &(start, end) in &self.gaps {
            let offset = instance.aligned(item, below);
            let width = start - below;
            if start - offset >= size && best.is_none_or(|(least, _)| width < least) {
                best = Some((width, offset));
            }
            below = below.max(end);
        }
        best.map_or_else(|| instance.aligned(item, below), |(_, offset)| offset)
    }
}

/// Whether all sections of the node are in the span.
fn covers(leaves: usize, node: usize, span: &Span) -> bool {
    let below = leaves.ilog2() - node.ilog2();
    let first = (node << below) - leaves;
    span.start <= first && first + (1 << below) <= span.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut ranges = Ranges::default();
        for (start, end) in [(4, 6), (10, 12), (0, 2), (6, 8), (1, 3), (8, 10)] {
            ranges.insert(start, end);
        }
        assert_eq!(ranges.0, [(0, 3), (4, 12)]);
    }

    #[test]
    fn nodes_of_sections_are_told_from_those_above() {
        let mut occupancy = Occupancy::new(8);
        occupancy.cover(&(1..6));
        let mut nodes = occupancy.nodes.clone();
        nodes.sort_unstable();
        assert_eq!(nodes, [5, 6, 9]);
        let mut above: Vec<_> = occupancy.above(&(1..6)).collect();
        above.sort_unstable();
        assert_eq!(above, [1, 2, 3, 4]);
        assert!(occupancy.above(&(0..8)).next().is_none());
    }
}
