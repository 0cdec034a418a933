//! Products in models of half precision, which the runtime would fuse in a file that it fused before.
//!
//! ONNX Runtime has no kernels for products in half precision on a CPU. It looks for factors and transpositions that it can make part of a product,
//! finds none among halves, and converts operands to single precision last. A file of what it made then has products in single precision from the
//! start: their factors and transpositions would become part of them, and the sums would be rounded otherwise. It looks through no view.
//!
//! Source: ONNX Runtime, `core/optimizer/matmul_scale_fusion.cc`, `matmul_transpose_fusion.cc`, `insert_cast_transformer.cc`.

use remat_ir::{ElementType, ValueType};
use remat_onnx::proto::NodeProto;
use remat_operators::Split;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build::row;

/// The results that products must read through a view: in a model of single precision, none.
pub(crate) fn factors_of_products(nodes: &[NodeProto], types: &FxHashMap<String, ValueType>) -> FxHashSet<String> {
    if types.values().all(|ty| ty.element() != Some(ElementType::Float16)) {
        return FxHashSet::default();
    }
    let products = nodes.iter().filter(|node| is_product(node));
    let read: FxHashSet<&str> = products.flat_map(|node| &node.input).map(String::as_str).collect();
    let parts = nodes.iter().filter(|node| may_become_part(node, types));
    let results = parts.filter_map(|node| node.output.first());
    results
        .filter(|result| read.contains(result.as_str()))
        .cloned()
        .collect()
}

/// Whether a node is a product of matrices.
pub(crate) fn is_product(node: &NodeProto) -> bool {
    row(node).split == Split::MatMul
}

/// Whether a node only transposes a tensor, or changes each element by itself, as a conversion and a factor do.
fn may_become_part(node: &NodeProto, types: &FxHashMap<String, ValueType>) -> bool {
    let is_one = |name: &String| {
        let dims = types.get(name).and_then(ValueType::known_shape);
        dims.is_some_and(|dims| dims.iter().all(|&dim| dim == 1))
    };
    match row(node).split {
        Split::Transpose => true,
        Split::Elementwise => node.input.iter().filter(|name| !is_one(name)).count() <= 1,
        _ => false,
    }
}
