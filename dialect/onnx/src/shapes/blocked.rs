//! Shapes of the operators with which ONNX Runtime lays images out in blocks of channels, `com.microsoft.nchwc`, as far as no other
//! operator stands in for them.
//!
//! Source: ONNX Runtime, `core/graph/contrib_ops/nchwc_schema_defs.cc`.

use onnx_runtime_ir::{Attribute, Node};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, TypeInfo};

/// The type of the result of a node.
pub(super) fn result(node: &Node, inputs: &[NodeIo]) -> Option<TypeInfo> {
    let info = inputs.first()?.type_info.as_ref()?;
    let [images, second, third, fourth] = info.shape.as_slice() else {
        return None;
    };
    let is_last = node.attr("channels_last").and_then(Attribute::as_int).unwrap_or(0) != 0;
    let shape = match node.op_type.as_str() {
        // Images with the channels last, or as they are.
        "ReorderInput" if is_last => [images, fourth, second, third].map(Clone::clone).into(),
        "ReorderInput" => info.shape.clone(),
        "ReorderOutput" => {
            let channels = DimExpr::constant(node.attr("channels").and_then(Attribute::as_int)?);
            let (height, width) = (third.clone(), fourth.clone());
            if is_last {
                vec![images.clone(), height, width, channels]
            } else {
                vec![images.clone(), channels, height, width]
            }
        }
        "Upsample" => {
            let scales = node.attr("scales").and_then(Attribute::as_ints)?;
            let scaled = |(dim, scale): (&DimExpr, &i64)| match scale {
                1 => Some(dim.clone()),
                _ => dim.as_const()?.checked_mul(*scale).map(DimExpr::constant),
            };
            let scaled: Option<Vec<_>> = info.shape.iter().zip(scales).map(scaled).collect();
            scaled.filter(|shape| shape.len() == info.shape.len())?
        }
        _ => return None,
    };
    Some(TypeInfo::new(info.dtype, shape))
}
