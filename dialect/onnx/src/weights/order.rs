//! The nodes of a saved model in an order of the file in which the runtime runs them as it ran them before.
//!
//! It saves a model with the nodes in the order in which it runs them. It runs nodes depth first, from those that nobody reads, and of several the one that
//! stands last in the file first. So what runs first has to stand last. In a main graph nodes may stand before those that they read from; in a
//! subgraph they may not: there, of the nodes that may stand next, the one that runs last does.

use std::collections::BinaryHeap;

use onnx_protobuf::{GraphProto, NodeProto};
use rustc_hash::FxHashMap;

use crate::attributes::{subgraphs, subgraphs_mut};
use crate::scope::free_names;

/// Reorders the nodes of a graph, and of its subgraphs.
pub(super) fn reverse(graph: &mut GraphProto) {
    graph.node.iter_mut().flat_map(subgraphs_mut).for_each(reverse_sorted);
    graph.node.reverse();
}

/// The same, with every node behind those that it reads from.
fn reverse_sorted(graph: &mut GraphProto) {
    graph.node.iter_mut().flat_map(subgraphs_mut).for_each(reverse_sorted);
    let order = latest_first(&graph.node);
    let mut nodes: Vec<Option<NodeProto>> = std::mem::take(&mut graph.node).into_iter().map(Some).collect();
    graph
        .node
        .extend(order.into_iter().filter_map(|index| nodes[index].take()));
    // Nodes on a cycle, which no runtime saves.
    graph.node.extend(nodes.into_iter().flatten());
}

/// The nodes in a topological order: always the last one of those that are ready.
fn latest_first(nodes: &[NodeProto]) -> Vec<usize> {
    let results = nodes.iter().enumerate();
    let makers: FxHashMap<&str, usize> = results
        .flat_map(|(index, node)| node.output.iter().map(move |name| (name.as_str(), index)))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut waits: Vec<usize> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let captured = subgraphs(node).flat_map(free_names);
        let mut sources: Vec<usize> = node
            .input
            .iter()
            .map(String::as_str)
            .chain(captured)
            .filter_map(|name| makers.get(name).copied())
            .collect();
        sources.sort_unstable();
        sources.dedup();
        waits.push(sources.len());
        for source in sources {
            readers[source].push(index);
        }
    }
    let mut ready: BinaryHeap<usize> = (0..waits.len()).filter(|&index| waits[index] == 0).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(index) = ready.pop() {
        order.push(index);
        for &reader in &readers[index] {
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
    use onnx_protobuf::AttributeProto;

    use super::*;

    fn node(inputs: &[&str], output: &str) -> NodeProto {
        NodeProto {
            input: inputs.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            ..NodeProto::default()
        }
    }

    fn outputs(graph: &GraphProto) -> Vec<&str> {
        graph.node.iter().map(|node| node.output[0].as_str()).collect()
    }

    #[test]
    fn nodes_of_subgraphs_stand_behind_what_they_read() {
        let body = GraphProto {
            node: vec![
                node(&["x"], "a"),
                node(&["a"], "read"),
                node(&["x"], "b"),
                node(&["a", "b"], "c"),
            ],
            ..GraphProto::default()
        };
        let mut branch = node(&["x"], "y");
        branch.attribute.push(AttributeProto {
            name: "then_branch".to_owned(),
            g: Some(body).into(),
            ..AttributeProto::default()
        });
        let mut graph = GraphProto {
            node: vec![node(&[], "x"), branch, node(&["y"], "z")],
            ..GraphProto::default()
        };
        reverse(&mut graph);
        assert_eq!(outputs(&graph), ["z", "y", "x"]);
        let body = graph.node[1].attribute[0].g.as_ref().expect("it is there");
        assert_eq!(outputs(body), ["b", "a", "c", "read"]);
    }
}
