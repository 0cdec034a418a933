//! Where a plan needs a leaf so that a depth-first order follows it.
//!
//! ONNX Runtime's default order runs, leaf by leaf, what the leaf needs and what has not run yet: depth first, of a node's sources
//! the one of the highest index first. Let nodes 0, 1, … stand in the order of the plan, and leaves be visited one after the other.
//! A leaf that reads node `j`, visited when exactly the nodes before `i` have run, continues the plan if its walk runs
//! `i, i + 1, …, j` in that order. A leaf at every node always does.

/// A leaf covers at most so many nodes; longer walks are rare and cost time to find.
const LONGEST_WALK: usize = 64;

/// The nodes that need a leaf, in order: the ends of stretches that one walk runs in the order of the plan. Nodes in `ends` end a
/// stretch. Nodes in `unreadable` end none: where a stretch can neither end at such a node nor run past it, the node runs when a later
/// walk needs it.
///
/// `sources[n]` are the nodes that node `n` reads from, all before `n`, sorted.
pub(crate) fn leaves(sources: &[Vec<usize>], ends: &[bool], unreadable: &[bool]) -> Vec<usize> {
    let mut walk = Walk {
        sources,
        waiting: vec![false; sources.len()],
        seen: vec![usize::MAX; sources.len()],
        stack: Vec::new(),
        walks: 0,
    };
    let mut leaves = Vec::new();
    let mut start = 0;
    while start < sources.len() {
        let limit = sources.len().min(start + LONGEST_WALK);
        let stop = (start..limit).find(|&node| ends[node]).map_or(limit, |node| node + 1);
        let mut longest_first = (start..stop).rev().filter(|&end| !unreadable[end]);
        if let Some(end) = longest_first.find(|&end| end == start || walk.runs(start, end)) {
            walk.run(start, end);
            leaves.push(end);
            start = end + 1;
        } else {
            walk.waiting[start] = true;
            start += 1;
        }
    }
    leaves
}

/// Depth-first walks as the runtime does them.
struct Walk<'a> {
    sources: &'a [Vec<usize>],
    /// Nodes that should have run and have not, since nothing asked for them.
    waiting: Vec<bool>,
    /// The walk that saw each node last.
    seen: Vec<usize>,
    stack: Vec<(usize, bool)>,
    walks: usize,
}

impl Walk<'_> {
    /// Whether a leaf at `end` runs `start..=end` in order, when all nodes before `start` that do not wait have run. Nodes that wait may
    /// run in between.
    fn runs(&mut self, start: usize, end: usize) -> bool {
        self.walks += 1;
        self.stack.clear();
        self.stack.push((end, false));
        let mut next = start;
        while let Some((node, done)) = self.stack.pop() {
            if done {
                if self.waiting[node] {
                    continue;
                }
                if node != next {
                    return false;
                }
                next += 1;
                continue;
            }
            if std::mem::replace(&mut self.seen[node], self.walks) == self.walks {
                continue;
            }
            self.stack.push((node, true));
            // Sources are sorted, so the highest comes off the stack first.
            let open = self.sources[node]
                .iter()
                .filter(|&&source| source >= start || self.waiting[source]);
            self.stack.extend(open.map(|&source| (source, false)));
        }
        next == end + 1
    }

    /// Notes what a leaf at `end` runs.
    fn run(&mut self, start: usize, end: usize) {
        self.runs(start, end);
        let latest = self.walks;
        for (waiting, &seen) in self.waiting.iter_mut().zip(&self.seen).take(start) {
            *waiting &= seen != latest;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The runtime's order: leaves by falling index, sources of a node by falling index, each node after its sources.
    fn default_order(sources: &[Vec<usize>]) -> Vec<usize> {
        fn visit(node: usize, sources: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
            if std::mem::replace(&mut seen[node], true) {
                return;
            }
            for &source in sources[node].iter().rev() {
                visit(source, sources, seen, order);
            }
            order.push(node);
        }
        let mut read = vec![false; sources.len()];
        sources.iter().flatten().for_each(|&source| read[source] = true);
        let (mut seen, mut order) = (vec![false; sources.len()], Vec::new());
        for leaf in (0..sources.len()).rev().filter(|&node| !read[node]) {
            visit(leaf, sources, &mut seen, &mut order);
        }
        order
    }

    /// The plan's nodes, and after them leaves in reverse.
    fn with_leaves(sources: &[Vec<usize>], leaves: &[usize]) -> Vec<Vec<usize>> {
        let tail = leaves.iter().rev().map(|&node| vec![node]);
        sources.iter().cloned().chain(tail).collect()
    }

    proptest! {
        #![proptest_config(remat_testing::cases(256))]

        #[test]
        fn nodes_that_cannot_be_asked_for_delay_nothing_else(
            sources in graphs(),
            unreadable in proptest::collection::vec(proptest::bool::weighted(0.2), 60),
        ) {
            let nodes = sources.len();
            let leaves = leaves(&sources, &vec![false; nodes], &unreadable[..nodes]);
            prop_assert!(leaves.iter().all(|&node| !unreadable[node]));
            let order = default_order(&with_leaves(&sources, &leaves));
            let plan: Vec<usize> = order.into_iter().filter(|&node| node < nodes && !unreadable[node]).collect();
            prop_assert_eq!(plan, (0..nodes).filter(|&node| !unreadable[node]).collect::<Vec<_>>());
        }
    }

    fn graphs() -> impl Strategy<Value = Vec<Vec<usize>>> {
        proptest::collection::vec(proptest::collection::vec(any::<proptest::sample::Index>(), 0..4), 1..60).prop_map(
            |picks| {
                let sources = |(node, picks): (usize, Vec<proptest::sample::Index>)| {
                    let mut sources: Vec<usize> = if node == 0 {
                        Vec::new()
                    } else {
                        picks.iter().map(|p| p.index(node)).collect()
                    };
                    sources.sort_unstable();
                    sources.dedup();
                    sources
                };
                picks.into_iter().enumerate().map(sources).collect()
            },
        )
    }

    proptest! {
        #![proptest_config(remat_testing::cases(256))]

        #[test]
        fn the_default_order_is_the_order_of_the_plan(sources in graphs(), ends in proptest::collection::vec(any::<bool>(), 60)) {
            let nodes = sources.len();
            let leaves = leaves(&sources, &ends, &vec![false; nodes]);
            prop_assert!((0..nodes).filter(|&node| ends[node]).all(|node| leaves.contains(&node)));
            let order = default_order(&with_leaves(&sources, &leaves));
            let plan: Vec<usize> = order.into_iter().filter(|&node| node < nodes).collect();
            prop_assert_eq!(plan, (0..nodes).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_chain_needs_one_leaf_and_an_eager_node_one_of_its_own() {
        let chain: Vec<Vec<usize>> = vec![vec![], vec![0], vec![1], vec![2]];
        assert_eq!(leaves(&chain, &[false; 4], &[false; 4]), [3]);
        // Node 1 is wanted by the last node only; without a leaf it would run after node 2.
        let eager: Vec<Vec<usize>> = vec![vec![], vec![0], vec![0], vec![1, 2]];
        assert_eq!(default_order(&eager), [0, 2, 1, 3]);
        assert_eq!(leaves(&eager, &[false; 4], &[false; 4]), [1, 3]);
    }
}
