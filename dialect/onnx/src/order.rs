//! An order in which every node comes after the nodes it reads from.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onnx_protobuf::{GraphProto, NodeProto};
use rustc_hash::FxHashMap;

use crate::scope::captures;

/// Puts the nodes of what was made of a graph, by fusing nodes, say, into the order of that graph; whether that changes anything. A node stands where
/// the graph has the last of its results; one that has none of them as late as its readers permit.
pub fn order_like(graph: &mut GraphProto, original: &GraphProto) -> bool {
    let place_of = |nodes: &[NodeProto]| -> FxHashMap<String, usize> {
        let outputs = nodes.iter().enumerate();
        let outputs = outputs.flat_map(|(at, node)| node.output.iter().map(move |output| (output.clone(), at)));
        outputs.filter(|(output, _)| !output.is_empty()).collect()
    };
    let (known, made) = (place_of(&original.node), place_of(&graph.node));
    let reads = |node: &NodeProto| -> Vec<u32> {
        let operands = node.input.iter().map(String::as_str).chain(captures(node));
        let sources = operands.filter_map(|name| made.get(name));
        sources.filter_map(|&source| u32::try_from(source).ok()).collect()
    };
    let reads_from: Vec<Vec<u32>> = graph.node.iter().map(reads).collect();
    let Ok(sorted) = stable_order(&reads_from) else {
        return false;
    };
    let own = |node: &NodeProto| node.output.iter().filter_map(|output| known.get(output)).max();
    let mut rank: Vec<Option<usize>> = graph.node.iter().map(|node| own(node).copied()).collect();
    for &node in sorted.iter().rev() {
        // Its readers have their ranks; who reads nothing known comes last.
        let place = rank[node as usize].unwrap_or(known.len());
        rank[node as usize] = Some(place);
        for &source in &reads_from[node as usize] {
            let source = source as usize;
            if own(&graph.node[source]).is_none() {
                rank[source] = Some(rank[source].map_or(place, |rank| rank.min(place)));
            }
        }
    }
    let mut wanted = sorted;
    wanted.sort_by_key(|&node| rank[node as usize]);
    let mut places = vec![0; wanted.len()];
    for (place, &node) in (0..).zip(&wanted) {
        places[node as usize] = place;
    }
    let by_place: Vec<Vec<u32>> = wanted
        .iter()
        .map(|&node| {
            let sources = reads_from[node as usize].iter();
            sources.map(|&source| places[source as usize]).collect()
        })
        .collect();
    let Ok(order) = stable_order(&by_place) else {
        return false;
    };
    let order: Vec<usize> = order.iter().map(|&place| wanted[place as usize] as usize).collect();
    let is_changed = !order.is_sorted();
    if is_changed {
        graph.node = order
            .iter()
            .map(|&node| std::mem::take(&mut graph.node[node]))
            .collect();
    }
    is_changed
}

/// The stable topological order: among the nodes that are ready, the lowest index first. A list that is sorted already
/// keeps its order.
///
/// # Errors
/// The nodes on one cycle, each reading from the one before it.
pub(crate) fn stable_order(reads_from: &[Vec<u32>]) -> Result<Vec<u32>, Vec<u32>> {
    let mut waiting: Vec<usize> = reads_from.iter().map(Vec::len).collect();
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); reads_from.len()];
    let count = u32::try_from(reads_from.len()).expect("a model of less than 2 GiB has fewer nodes");
    for (node, sources) in (0..count).zip(reads_from) {
        sources.iter().for_each(|&source| readers[source as usize].push(node));
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0..count)
        .filter(|&node| waiting[node as usize] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(reads_from.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &reader in &readers[node as usize] {
            waiting[reader as usize] -= 1;
            if waiting[reader as usize] == 0 {
                ready.push(Reverse(reader));
            }
        }
    }
    match waiting.iter().position(|&sources| sources > 0) {
        None => Ok(order),
        Some(start) => Err(cycle(reads_from, &waiting, start)),
    }
}

/// Walks from a waiting node to a source that is waiting too, until a node comes up again.
fn cycle(reads_from: &[Vec<u32>], waiting: &[usize], start: usize) -> Vec<u32> {
    let mut path: Vec<u32> = Vec::new();
    let mut place = vec![usize::MAX; reads_from.len()];
    let mut node = start as u32;
    while place[node as usize] == usize::MAX {
        place[node as usize] = path.len();
        path.push(node);
        let next = reads_from[node as usize]
            .iter()
            .copied()
            .find(|&source| waiting[source as usize] > 0);
        let Some(next) = next else { break };
        node = next;
    }
    let mut found = path.split_off(place[node as usize]);
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &[(&[&str], &str)]) -> GraphProto {
        let node = |&(input, output): &(&[&str], &str)| NodeProto {
            input: input.iter().map(|&name| name.to_owned()).collect(),
            output: vec![output.to_owned()],
            ..NodeProto::default()
        };
        GraphProto {
            node: nodes.iter().map(node).collect(),
            ..GraphProto::default()
        }
    }

    #[test]
    fn fused_nodes_stand_where_their_results_were() {
        let original = graph(&[
            (&["x"], "a"),
            (&["a"], "b"),
            (&["w"], "turned"),
            (&["b"], "c"),
            (&["c", "turned"], "d"),
        ]);
        // `a` and `b` are one node; `turned` and a node that was added come late, before who reads them.
        let mut fused = graph(&[
            (&["w"], "added"),
            (&["added"], "more"),
            (&["w"], "turned"),
            (&["x"], "b"),
            (&["b"], "c"),
            (&["c", "turned", "more"], "d"),
        ]);
        assert!(order_like(&mut fused, &original));
        let outputs: Vec<&str> = fused.node.iter().map(|node| node.output[0].as_str()).collect();
        assert_eq!(outputs, ["b", "turned", "c", "added", "more", "d"]);
        assert!(!order_like(&mut fused, &original), "it is in order");
    }

    #[test]
    fn a_sorted_list_keeps_its_order_and_others_change_as_little_as_possible() {
        assert_eq!(
            stable_order(&[vec![], vec![], vec![1], vec![0, 2]]),
            Ok(vec![0, 1, 2, 3])
        );
        assert_eq!(stable_order(&[vec![3], vec![], vec![1], vec![]]), Ok(vec![1, 2, 3, 0]));
    }

    #[test]
    fn only_the_nodes_on_the_cycle_are_named() {
        // 0 reads from 1, 1 from 2, 2 from 1: node 0 waits, but is on no cycle.
        assert_eq!(stable_order(&[vec![1], vec![2], vec![1]]), Err(vec![2, 1]));
        assert_eq!(stable_order(&[vec![0]]), Err(vec![0]));
    }
}
