//! The immediate predecessors of series-parallel orders, in linear time.

use alloc::vec::Vec;

use super::scope::Scope;
use crate::dense::Table;
use crate::order::network::NodeId;

/// The pairs of nodes that follow each other at once, if the nodes are in a series-parallel order; else any pairs of a predecessor and its
/// successor. Which of the two it is shows later: what the other pairs demand has to follow from these.
///
/// Let the layer of a node be the length of the longest path to it. In a series-parallel order, all nodes that follow a node at once have the
/// same predecessors, so the same layer, and every other successor comes after one of them, so in a later layer.
///
/// Source: J. Valdes, R. E. Tarjan, E. L. Lawler, *The Recognition of Series Parallel Digraphs*, SIAM J. Comput. 11(2), 1982, section 4.
pub(super) fn immediate(scope: &Scope<'_>) -> Vec<(NodeId, NodeId)> {
    let mut layer: Table<NodeId, u32> = Table::filled(0, scope.network.len());
    for node in scope.nodes() {
        let before = scope.predecessors(node).map(|other| layer[other] + 1);
        layer[node] = before.max().unwrap_or(0);
    }
    let mut pairs = Vec::with_capacity(scope.network.len());
    for node in scope.nodes() {
        let nearest = scope.successors(node).map(|other| layer[other]).min();
        let next = scope.successors(node).filter(|&other| Some(layer[other]) == nearest);
        pairs.extend(next.map(|other| (node, other)));
    }
    pairs
}
