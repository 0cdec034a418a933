//! The immediate predecessors of series-parallel orders, in linear time.

use remat_plan::{Instance, NodeId};
use typed_index_collections::{TiVec, ti_vec};

/// The pairs of nodes that follow each other at once, if the nodes are in a series-parallel order; else any pairs of a predecessor and its
/// successor. Which of the two it is shows later: what the other pairs demand has to follow from these.
///
/// Let the layer of a node be the length of the longest path to it. In a series-parallel order, all nodes that follow a node at once have the
/// same predecessors, so the same layer, and every other successor comes after one of them, so in a later layer.
///
/// Source: J. Valdes, R. E. Tarjan, E. L. Lawler, *The Recognition of Series Parallel Digraphs*, SIAM J. Comput. 11(2), 1982, section 4.
pub(super) fn immediate(instance: &Instance) -> Vec<(NodeId, NodeId)> {
    let mut layer: TiVec<NodeId, u32> = ti_vec![0; instance.len()];
    for node in instance.nodes() {
        let before = instance.predecessors(node).iter().map(|&other| layer[other] + 1);
        layer[node] = before.max().unwrap_or(0);
    }
    let mut pairs = Vec::with_capacity(instance.len());
    for node in instance.nodes() {
        let successors = instance.successors(node);
        let nearest = successors.iter().map(|&other| layer[other]).min();
        let is_nearest = |other: &&NodeId| Some(layer[**other]) == nearest;
        pairs.extend(successors.iter().filter(is_nearest).map(|&other| (node, other)));
    }
    pairs
}
