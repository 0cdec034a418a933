//! What the inference crate's rules leave open although it follows: results whose rank is known even if their extents are not.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::{NodeIo, TypeInfo};

use super::guard::MAX_RANK;
use super::symbols::Symbols;

/// Adds known types to the results of a node of the default domain.
pub(super) fn complete(node: &Node, inputs: &[NodeIo], results: &mut [NodeIo], symbols: &mut Symbols<'_>) {
    let Some(result) = results.first_mut().filter(|_| node.is_default_domain()) else {
        return;
    };
    if result.type_info.is_none() && result.value_type.is_none() {
        result.type_info = shape(node, inputs, symbols);
    }
}

/// The type of a result whose extents depend on values that are not known, but whose rank does not.
fn shape(node: &Node, inputs: &[NodeIo], symbols: &mut Symbols<'_>) -> Option<TypeInfo> {
    let first = inputs.first()?.type_info.as_ref();
    // Number of elements of a vector operand.
    let length = |index: usize| {
        let [length] = inputs.get(index)?.type_info.as_ref()?.shape.as_slice() else {
            return None;
        };
        length
            .as_const()
            .and_then(|length| usize::try_from(length).ok())
            .filter(|&length| length <= MAX_RANK)
    };
    let mut open = |rank: usize| (0..rank).map(|_| symbols.interner.fresh_dim()).collect::<Vec<_>>();
    match node.op_type.as_str() {
        "Trilu" => first.cloned(),
        "ConstantOfShape" => {
            let dtype = match node.attr("value") {
                Some(Attribute::Tensor(value)) => value.dtype,
                _ => DataType::Float32,
            };
            Some(TypeInfo::new(dtype, open(length(0)?)))
        }
        op if op.starts_with("Reduce") => {
            let info = first?;
            let keeps = node.attr("keepdims").and_then(Attribute::as_int).unwrap_or(1) != 0;
            let rank = if keeps {
                info.rank()
            } else {
                info.rank().checked_sub(length(1)?)?
            };
            Some(TypeInfo::new(info.dtype, open(rank)))
        }
        _ => None,
    }
}
