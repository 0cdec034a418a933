//! A model that the runtime laid out, with canonical names and a canonical order.
//!
//! The runtime numbers the nodes that make unblocked copies in the order of addresses in its memory, and writes nodes in an order that depends on
//! these numbers: both would be others each time. Here a copy is called after what it makes, and nodes stand in the order of the nodes that they
//! stand for, so that tiles follow each other as they were written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use remat_onnx::captures;
use remat_onnx::proto::{GraphProto, NodeProto};
use remat_operators::Blocked;
use rustc_hash::FxHashMap;

use crate::build::row;
use crate::layout::CONVERTED;

/// Renames and sorts the nodes of `laid_out`, which the runtime made of `before`.
pub fn canonicalize_names(laid_out: &mut GraphProto, before: &GraphProto) {
    for node in &mut laid_out.node {
        if row(node).blocked == Blocked::FromBlocks {
            node.name = format!("{}_reordered", node.output.first().map_or("", String::as_str));
        }
    }
    let ranks = ranks(&laid_out.node, &before.node);
    let nodes = std::mem::take(&mut laid_out.node);
    laid_out.node = sorted(nodes, &ranks);
}

/// By node: the place of the node that it stands for. A copy into blocks is made right before what reads it.
fn ranks(nodes: &[NodeProto], before: &[NodeProto]) -> Vec<usize> {
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for (place, node) in before.iter().enumerate() {
        places.extend(
            node.output
                .iter()
                .filter(|name| !name.is_empty())
                .map(|name| (name.as_str(), place)),
        );
    }
    let known = |node: &NodeProto| {
        let made = node.output.iter().find_map(|name| places.get(name.as_str()));
        let converted = || places.get(node.name.rsplit_once(CONVERTED)?.0);
        made.or_else(converted).copied()
    };
    let mut ranks: Vec<Option<usize>> = nodes.iter().map(known).collect();
    let mut readers: FxHashMap<&str, usize> = FxHashMap::default();
    for (node, rank) in nodes.iter().zip(&mut ranks).rev() {
        let first = node.output.iter().filter_map(|name| readers.get(name.as_str())).min();
        let own = rank.or(first.copied());
        *rank = own;
        for operand in reads(node) {
            let earliest = readers.entry(operand).or_insert(usize::MAX);
            *earliest = own.unwrap_or(usize::MAX).min(*earliest);
        }
    }
    ranks.into_iter().map(|rank| rank.unwrap_or(usize::MAX)).collect()
}

/// What a node reads, in its subgraphs, too.
fn reads(node: &NodeProto) -> impl Iterator<Item = &str> {
    let own = node.input.iter().map(String::as_str).filter(|name| !name.is_empty());
    own.chain(captures(node))
}

/// The nodes such that each stands after what it reads, those of low ranks first; as they are if they form a circle.
fn sorted(nodes: Vec<NodeProto>, ranks: &[usize]) -> Vec<NodeProto> {
    let mut makers: FxHashMap<&str, usize> = FxHashMap::default();
    for (place, node) in nodes.iter().enumerate() {
        let made = node.output.iter().filter(|name| !name.is_empty());
        makers.extend(made.map(|name| (name.as_str(), place)));
    }
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut missing: Vec<usize> = vec![0; nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        let mut operands: Vec<usize> = reads(node).filter_map(|name| makers.get(name)).copied().collect();
        operands.sort_unstable();
        operands.dedup();
        missing[place] = operands.len();
        operands.into_iter().for_each(|operand| readers[operand].push(place));
    }
    let first = |place: usize| nodes[place].output.first().map_or("", String::as_str);
    let key = |place: usize| Reverse((ranks[place], first(place), place));
    let mut free: BinaryHeap<_> = (0..nodes.len()).filter(|&place| missing[place] == 0).map(key).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse((_, _, place))) = free.pop() {
        order.push(place);
        for &reader in &readers[place] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                free.push(key(reader));
            }
        }
    }
    if order.len() < nodes.len() {
        return nodes;
    }
    let mut nodes: Vec<Option<NodeProto>> = nodes.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| nodes[place].take()).collect()
}

#[cfg(test)]
mod tests {
    use remat_operators::BLOCKED_DOMAIN as BLOCKED;
    use remat_testing::onnx::{self, NodeExt};

    use super::*;

    const REORDERED: &str = "ReorderOutput";

    fn node(name: &str, op_type: &str, domain: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        onnx::node(op_type, inputs, outputs).named(name).domain(domain)
    }

    fn graph(nodes: Vec<NodeProto>) -> GraphProto {
        onnx::graph(&[], nodes, &[])
    }

    /// Two tiles: rows of `x`, a convolution, an activation.
    fn written() -> GraphProto {
        let tile = |tile: usize| {
            let [rows, conv, y] = ["rows", "conv", "y"].map(|name| format!("{name}{tile}"));
            [
                node(&rows, "Slice", "", &["x"], &[&rows]),
                node(&conv, "Conv", "", &[&rows, "w"], &[&conv]),
                node(&y, "Exp", "", &[&conv], &[&y]),
            ]
        };
        graph([tile(0), tile(1)].into_iter().flatten().collect())
    }

    /// The same laid out, its nodes in the order of `places`; copies are called after `token`.
    fn laid_out(places: [usize; 10], token: &str) -> GraphProto {
        let tile = |tile: usize| {
            let [rows, conv, y] = ["rows", "conv", "y"].map(|name| format!("{name}{tile}"));
            let [blocked, copied] = ["blocked", "copied"].map(|name| format!("{name}{tile}"));
            [
                node(&rows, "Slice", "", &["x"], &[&rows]),
                node("ReorderInput", "ReorderInput", BLOCKED, &[&rows], &[&copied]),
                node(&format!("{conv}_nchwc"), "Conv", BLOCKED, &[&copied, "w"], &[&blocked]),
                node(
                    &format!("{REORDERED}{token}"),
                    REORDERED,
                    BLOCKED,
                    &[&blocked],
                    &[&conv],
                ),
                node(&y, "Exp", "", &[&conv], &[&y]),
            ]
        };
        let nodes: Vec<NodeProto> = [tile(0), tile(1)].into_iter().flatten().collect();
        graph(places.map(|place| nodes[place].clone()).to_vec())
    }

    #[test]
    fn tiles_follow_each_other_as_written_whatever_the_runtime_made_of_it() {
        let mut first = laid_out([0, 5, 6, 1, 7, 2, 8, 3, 9, 4], "_1");
        let mut second = laid_out([5, 0, 1, 2, 6, 3, 7, 4, 8, 9], "_7");
        for graph in [&mut first, &mut second] {
            canonicalize_names(graph, &written());
        }
        assert_eq!(first, second);
        let made: Vec<&str> = first.node.iter().map(|node| node.output[0].as_str()).collect();
        let expected = [
            "rows0", "copied0", "blocked0", "conv0", "y0", "rows1", "copied1", "blocked1", "conv1", "y1",
        ];
        assert_eq!(made, expected);
        assert_eq!(first.node[3].name, "conv0_reordered");
    }

    #[test]
    fn what_is_read_stands_first_whatever_it_stands_for() {
        // The second tile stands first and reads what the first one makes.
        let mut graph = laid_out([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "");
        graph.node[5].input[0] = "y0".to_owned();
        let mut before = written();
        before.node.rotate_left(3);
        canonicalize_names(&mut graph, &before);
        let place = |name: &str| graph.node.iter().position(|node| node.output[0] == name).unwrap();
        assert!(place("y0") < place("rows1") && place("rows1") < place("y1"));
        assert_eq!(graph.node.len(), 10);
    }
}
