//! Marks that keep a runtime from merging a clone with its original.
//!
//! ONNX Runtime's elimination of common subexpressions compares attributes. It accepts any attribute whose name starts with two
//! underscores, on any op, and so does `onnx.checker`; kernels never see it. One thing is refused: an activation that is fused into
//! the op before it hands its attributes on under other names, and loading fails. So the result that a marked activation reads gets a
//! further reader, and is fused with nothing.

use remat_onnx::proto::{GraphProto, NodeProto};
use remat_onnx::{MARK, RECOMPUTE_OF};

use crate::build;

/// Whether the node repeats another one.
fn is_clone(node: &NodeProto) -> bool {
    node.metadata_props.iter().any(|entry| entry.key == RECOMPUTE_OF)
}

/// Marks every clone; returns how many there are.
pub(crate) fn mark(graph: &mut GraphProto) -> usize {
    let clones = graph.node.iter_mut().filter(|node| is_clone(node));
    let mut count = 0;
    for node in clones {
        node.attribute.push(build::int(MARK, count));
        count += 1;
    }
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// What marked activations read.
pub(crate) fn read_by_marked_activations(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let activations = |node: &&NodeProto| is_clone(node) && build::row(node).fused_activation;
    graph
        .node
        .iter()
        .filter(activations)
        .filter_map(|node| node.input.first().map(String::as_str))
}
