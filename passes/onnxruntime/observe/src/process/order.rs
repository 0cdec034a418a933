//! The nodes of a saved model in an order of the file in which the runtime runs them as it ran them before.
//!
//! It saves a model with the nodes in the order in which it runs them. It runs nodes depth first, from those that nobody reads, and of several the one that
//! stands last in the file first. In a main graph nodes may stand before those that they read from: there what runs first stands last. In a
//! subgraph they may not, and of a few orders the one is taken that keeps most nodes in their places.

use std::collections::BinaryHeap;

use remat_onnx::captures;
use remat_onnx::proto::{GraphProto, NodeProto};
use remat_onnxruntime_sim::depth_first;
use rustc_hash::FxHashMap;

/// Reorders the nodes of a main graph, and of its subgraphs.
pub(super) fn keep_order(graph: &mut GraphProto) {
    subgraphs(graph).for_each(keep_sorted);
    graph.node.reverse();
}

fn subgraphs(graph: &mut GraphProto) -> impl Iterator<Item = &mut GraphProto> {
    let attributes = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
    attributes.flat_map(|attribute| attribute.g.as_mut().into_iter().chain(&mut attribute.graphs))
}

/// The same, with every node behind those that it reads from.
fn keep_sorted(graph: &mut GraphProto) {
    subgraphs(graph).for_each(keep_sorted);
    let sources = sources(&graph.node);
    let orders = [
        (0..sources.len()).collect(),
        leaves_last(&sources),
        latest_first(&sources),
    ];
    let best = orders.into_iter().rev().max_by_key(|order| in_place(&sources, order));
    let mut nodes: Vec<Option<NodeProto>> = std::mem::take(&mut graph.node).into_iter().map(Some).collect();
    graph.node = best
        .into_iter()
        .flatten()
        .filter_map(|index| nodes[index].take())
        .collect();
    // Nodes on a cycle, which no runtime saves.
    graph.node.extend(nodes.into_iter().flatten());
}

/// The nodes that each node reads from, ascending, each once.
fn sources(nodes: &[NodeProto]) -> Vec<Vec<usize>> {
    let results = nodes.iter().enumerate();
    let makers: FxHashMap<&str, usize> = results
        .flat_map(|(index, node)| node.output.iter().map(move |name| (name.as_str(), index)))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let of = |node: &NodeProto| {
        let read = node.input.iter().map(String::as_str).chain(captures(node));
        let mut sources: Vec<usize> = read.filter_map(|name| makers.get(name).copied()).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    };
    nodes.iter().map(of).collect()
}

/// How many nodes run at their places where they stand in this order.
fn in_place(sources: &[Vec<usize>], order: &[usize]) -> usize {
    let mut places = vec![0; sources.len()];
    order.iter().enumerate().for_each(|(place, &node)| places[node] = place);
    let of = |&node: &usize| {
        let mut moved: Vec<usize> = sources[node].iter().map(|&source| places[source]).collect();
        moved.sort_unstable();
        moved
    };
    let moved: Vec<Vec<usize>> = order.iter().map(of).collect();
    let runs = depth_first(&moved).into_iter().map(|place| order[place]);
    runs.enumerate().filter(|&(time, node)| time == node).count()
}

/// The nodes that others read as they are, then the others in reverse.
fn leaves_last(sources: &[Vec<usize>]) -> Vec<usize> {
    let mut is_read = vec![false; sources.len()];
    sources.iter().flatten().for_each(|&source| is_read[source] = true);
    let (inner, leaves): (Vec<usize>, Vec<usize>) = (0..sources.len()).partition(|&node| is_read[node]);
    inner.into_iter().chain(leaves.into_iter().rev()).collect()
}

/// A topological order: of the nodes that are ready always the last one.
fn latest_first(sources: &[Vec<usize>]) -> Vec<usize> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); sources.len()];
    let mut waits: Vec<usize> = sources.iter().map(Vec::len).collect();
    for (node, sources) in sources.iter().enumerate() {
        sources.iter().for_each(|&source| readers[source].push(node));
    }
    let mut ready: BinaryHeap<usize> = (0..sources.len()).filter(|&node| waits[node] == 0).collect();
    let mut order = Vec::with_capacity(sources.len());
    while let Some(node) = ready.pop() {
        order.push(node);
        for &reader in &readers[node] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_orders_of_a_subgraph_the_one_is_taken_that_runs_as_before() {
        // 0 and 2 are independent, and 2 runs after 1, which reads 0.
        let sources = [vec![], vec![0], vec![], vec![1, 2]];
        assert_eq!(latest_first(&sources), [2, 0, 1, 3]);
        assert_eq!(in_place(&sources, &[0, 1, 2, 3]), 1);
        assert_eq!(in_place(&sources, &[2, 0, 1, 3]), 4);
        // Leaves run from the last one on.
        let sources = [vec![], vec![0], vec![], vec![2]];
        assert_eq!(leaves_last(&sources), [0, 2, 3, 1]);
        assert_eq!(in_place(&sources, &leaves_last(&sources)), 4);
    }
}
