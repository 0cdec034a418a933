//! A lower bound on the peak of every plan that looks further than at one op.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use remat_plan::{NodeId, ValueId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dag::Dag;

/// Nodes that are looked at: those that need most themselves.
const NODES: usize = 16;
/// Sets that are looked at for one node.
const SETS: usize = 1_000;

/// Values that are resident together; ascending.
type ValueSet = SmallVec<[ValueId; 12]>;

/// Memory in units that every plan needs at some step, in any order and with any number of computes.
///
/// Consider the last run that makes a value of a set `S` which is resident later: while it happens, the rest of `S`, its own inputs
/// and its results are resident, and before it the rest of `S` and its inputs were. So each set leads back to others, one per
/// node that makes a part of it, down to the empty set at the beginning. Every plan contains such a way back from the inputs of
/// each node; the bound of a node is the least over all ways of the largest step, found by Dijkstra's algorithm. Where that is
/// broken off, the sets still to be looked at give the bound. What is kept for good is left out: its time depends on the order.
///
/// `go_on` is asked before each set; once it says no, the bound is what was found so far.
pub(crate) fn lowest_peak_of_any_plan(dag: &Dag, mut go_on: impl FnMut() -> bool) -> i32 {
    let at_node = |node: NodeId| sum(dag, dag.needs(node)) + dag.local(node);
    let mut nodes: Vec<NodeId> = dag.nodes().collect();
    nodes.sort_by_key(|&node| Reverse(at_node(node)));
    let bounds = nodes
        .into_iter()
        .take(NODES)
        .map(|node| at_node(node).max(bottleneck(dag, dag.needs(node), &mut go_on)));
    bounds.max().unwrap_or(0)
}

/// The least that the worst step takes on the way from nothing to a set, or a lower bound of it.
fn bottleneck(dag: &Dag, goal: &[ValueId], go_on: &mut impl FnMut() -> bool) -> i32 {
    let goal: ValueSet = goal.iter().copied().collect();
    let mut known: FxHashMap<ValueSet, i32> = FxHashMap::default();
    // Of sets with equal bounds, the one nearer to the beginning of the graph first.
    let mut queue = BinaryHeap::from([Reverse((0, newest(&goal), goal.clone()))]);
    known.insert(goal, 0);
    let mut looked_at = 0;
    while let Some(Reverse((peak, _, set))) = queue.pop() {
        looked_at += 1;
        if set.is_empty() || looked_at > SETS || !go_on() {
            return peak;
        }
        if known.get(&set).is_some_and(|&other| other < peak) {
            continue;
        }
        let mut last = None;
        // Values of one node are neighbours in the ascending set.
        for &value in &set {
            let node = dag.producer(value);
            if last.replace(node) == Some(node) {
                continue;
            }
            let before = predecessor(dag, &set, node);
            let peak = peak.max(sum(dag, &before) + dag.local(node));
            let other = known.entry(before.clone()).or_insert(i32::MAX);
            if peak < *other {
                *other = peak;
                queue.push(Reverse((peak, newest(&before), before)));
            }
        }
    }
    // Unreachable: every set leads back to the empty one.
    0
}

/// What is resident before `node` runs if `set` is resident after it.
fn predecessor(dag: &Dag, set: &[ValueId], node: NodeId) -> ValueSet {
    let rest = set.iter().copied().filter(|&value| dag.producer(value) != node);
    let mut before: ValueSet = rest.chain(dag.needs(node).iter().copied()).collect();
    before.sort_unstable();
    before.dedup();
    before
}

fn sum(dag: &Dag, set: &[ValueId]) -> i32 {
    set.iter().map(|&value| dag.bytes(value)).sum()
}

fn newest(set: &[ValueId]) -> ValueId {
    set.last().copied().unwrap_or(ValueId::new(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use remat_plan::Structure;

    use super::*;
    use remat_testing::random::{Features, problems};

    #[test]
    fn the_input_made_last_meets_the_others() {
        // Two branches of 4 and then 5 bytes meet: the ops need 9, 9 and 11 bytes themselves. But while the second branch is
        // computed from its input, the result of the first is there already.
        let ops: &[(u64, u64, &[usize])] = &[(1, 4, &[]), (1, 5, &[0]), (1, 4, &[]), (1, 5, &[2]), (1, 1, &[1, 3])];
        let problem = remat_testing::net::paper(ops);
        let structure = Structure::of(&problem);
        let dag = Dag::of(&problem, &structure);
        assert_eq!(problem.bottleneck(&structure).map(|worst| worst.bytes), Some(11));
        assert_eq!(lowest_peak_of_any_plan(&dag, || true), 14);
    }

    proptest! {
        #[test]
        fn the_bound_is_between_one_op_and_the_reference_order(problem in problems(1..20, Features::PAPER), sets in 0usize..50) {
            let structure = Structure::of(&problem);
            let dag = Dag::of(&problem, &structure);
            let peak = crate::state::State::new(&dag, i32::MAX).peak();
            let least = problem.bottleneck(&structure).map_or(0, |worst| worst.bytes);
            let mut left = sets;
            let bound = lowest_peak_of_any_plan(&dag, || { left = left.saturating_sub(1); left > 0 });
            prop_assert!(bound <= peak);
            prop_assert!(dag.unscaled(bound) >= least);
        }
    }
}
