//! Operands of additions, such that copies of ops change nothing in what the runtime makes of them.
//!
//! Of two convolutions that an addition reads, the runtime makes it part of the first one that nothing else reads (ONNX Runtime,
//! `core/optimizer/nchwc_transformer.cc`), and the sum of that one begins with the result of the other. Where a plan runs the other one again for
//! the addition alone, both would do, and the first one would be taken: with other bits if it is the copy. So the one that is taken stands first.

use remat_onnx::captures;
use remat_onnx::proto::{GraphProto, NodeProto};
use remat_operators::BLOCKED_DOMAIN;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build::row;

/// Exchanges the operands of additions whose second one is what the runtime takes; how many there were.
pub fn put_sums_first(graph: &mut GraphProto) -> usize {
    let swapped: Vec<usize> = {
        let mut uses: FxHashMap<&str, usize> = FxHashMap::default();
        let inside = graph.node.iter().flat_map(captures);
        let read = graph.node.iter().flat_map(|node| &node.input).map(String::as_str);
        let outputs = graph.output.iter().map(|output| output.name.as_str());
        for name in read.chain(inside).chain(outputs) {
            *uses.entry(name).or_default() += 1;
        }
        let convs = graph.node.iter().filter(|node| is_bare_conv(node));
        let lone = |node: &&NodeProto| {
            node.output
                .first()
                .is_some_and(|name| uses.get(name.as_str()) == Some(&1))
        };
        let lone: FxHashSet<&str> = convs
            .filter(lone)
            .filter_map(|node| Some(node.output.first()?.as_str()))
            .collect();
        let is_second = |node: &NodeProto| match node.input.as_slice() {
            [first, second] => !lone.contains(first.as_str()) && lone.contains(second.as_str()),
            _ => false,
        };
        let is_sum = |node: &NodeProto| row(node).blocked.is_sum();
        let nodes = graph.node.iter().enumerate();
        nodes
            .filter(|(_, node)| is_sum(node) && is_second(node))
            .map(|(place, _)| place)
            .collect()
    };
    for &place in &swapped {
        graph.node[place].input.swap(0, 1);
    }
    swapped.len()
}

/// Whether a convolution may take an addition in: nothing else is part of it.
fn is_bare_conv(node: &NodeProto) -> bool {
    let is_conv = row(node).blocked.is_convolution() && node.domain != BLOCKED_DOMAIN;
    let is_active = node.attribute.iter().any(|attribute| attribute.name == "activation");
    is_conv && !is_active && node.input.len() < 4
}

#[cfg(test)]
mod tests {
    use remat_testing::onnx;

    use super::*;

    fn node(op_type: &str, inputs: &[&str], output: &str) -> NodeProto {
        onnx::node(op_type, inputs, &[output])
    }

    /// Features, a block on them, and the sum of both, with these operands.
    fn graph(operands: [&str; 2], others: &[NodeProto]) -> GraphProto {
        let mut nodes = vec![
            node("Conv", &["x", "w0"], "features"),
            node("Relu", &["features"], "active"),
            node("Conv", &["active", "w1"], "block"),
            node("Add", &operands, "sum"),
        ];
        nodes.extend_from_slice(others);
        onnx::graph(&[], nodes, &[])
    }

    #[test]
    fn the_convolution_that_takes_a_sum_in_stands_first() {
        let mut swapped = graph(["features", "block"], &[]);
        assert_eq!(put_sums_first(&mut swapped), 1);
        assert_eq!(swapped, graph(["block", "features"], &[]));
        assert_eq!(put_sums_first(&mut swapped), 0);
    }

    #[test]
    fn what_takes_no_sum_in_stays_where_it_is() {
        let read_again = [node("Neg", &["block"], "again")];
        assert_eq!(put_sums_first(&mut graph(["features", "block"], &read_again)), 0);
        assert_eq!(put_sums_first(&mut graph(["features", "active"], &[])), 0);
        // Both are read once: the first one stays the first.
        let mut both = graph(["features", "block"], &[]);
        both.node[1].input[0] = "x".to_owned();
        assert_eq!(put_sums_first(&mut both), 0);
        let mut other = graph(["features", "block"], &[]);
        other.node[3].op_type = "Sub".to_owned();
        assert_eq!(put_sums_first(&mut other), 0);
    }
}
