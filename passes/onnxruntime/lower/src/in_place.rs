//! Results that the runtime may write over an operand, if it knows that both look alike.
//!
//! Kernels that may overwrite an operand (`overwrites` in the table of operators) do so where the node is the last to read the memory of
//! the operand, and where the runtime sees one shape, with elements of one size, on both. A dynamic shape is never seen to be equal to
//! another one, so where shapes are dynamic the operand passes through a view that states its shape.

use remat_ir::ValueType;
use remat_onnx::proto::{GraphProto, NodeProto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build::row;

/// By result, the operand over which the runtime may write it if nodes run in the order of the list.
pub(crate) fn overwritten(
    graph: &GraphProto,
    nodes: &[NodeProto],
    types: &FxHashMap<String, ValueType>,
) -> FxHashMap<String, String> {
    let mut roots: FxHashMap<&str, &str> = FxHashMap::default();
    let mut made: FxHashMap<&str, &NodeProto> = FxHashMap::default();
    let mut last_reader: FxHashMap<&str, usize> = FxHashMap::default();
    let captured: Vec<Vec<String>> = nodes
        .iter()
        .map(|node| remat_onnx::captures(node).into_iter().map(str::to_owned).collect())
        .collect();
    let outputs: FxHashSet<&str> = graph.output.iter().map(|output| output.name.as_str()).collect();
    for (place, node) in nodes.iter().enumerate() {
        for name in node.input.iter().chain(&captured[place]) {
            last_reader.insert(root(&roots, name), place);
        }
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            made.insert(output, node);
        }
        if let (true, [base, ..], [result, ..]) = (row(node).is_view(), &node.input[..], &node.output[..])
            && !outputs.contains(result.as_str())
        {
            let of = root(&roots, base);
            roots.insert(result, of);
        }
    }
    let is_result = |name: &str| made.contains_key(name) && !outputs.contains(name);
    let alike = |one: &str, other: &str| {
        let look = |name: &str| {
            // A view that states a shape would be right for one size only.
            let ty = types.get(name).filter(|ty| !ty.has_free_dims())?;
            Some((ty.known_shape()?, ty.element()?.bits().div_ceil(8)))
        };
        look(one).is_some_and(|one| Some(one) == look(other))
    };
    let of = |(place, node): (usize, &NodeProto)| {
        let element = |place: usize| types.get(node.input.get(place)?)?.element();
        let operand = node.input.get(row(node).overwrites_of(element)?)?;
        let result = node.output.first()?;
        let memory = root(&roots, operand);
        let reads = node.input.iter().filter(|name| root(&roots, name) == memory).count();
        let is_last = reads == 1 && last_reader.get(memory) == Some(&place);
        // The runtime fuses it with the node before it, which then writes the result at once.
        let maker = made.get(operand.as_str());
        let is_fused = row(node).fused_activation && maker.is_some_and(|maker| row(maker).takes_activation);
        let holds = is_last && !is_fused && is_result(memory) && is_result(result) && alike(operand, result);
        holds.then(|| (result.clone(), operand.clone()))
    };
    nodes.iter().enumerate().filter_map(of).collect()
}

/// The value in whose memory a value lies.
fn root<'n>(roots: &FxHashMap<&'n str, &'n str>, name: &'n str) -> &'n str {
    roots.get(name).copied().unwrap_or(name)
}
