//! Values that are known before the model runs: an interpreter over small tensors.
//!
//! Exporters compute shapes with ordinary nodes: `Shape`, `Gather`, arithmetic, casts to floating point and back. [`evaluate`] follows
//! them by the operators' own definitions (ONNX operator specification), to the bit where it gives a value at all: sums whose result
//! depends on the order of the addends and functions that libraries approximate differently give none.

mod arithmetic;
mod convert;
mod create;
mod layout;
mod operands;
mod reduce;
mod select;
mod tensor;

use crate::types::MAX_RANK;
pub(crate) use operands::{Follows, Operands, axis};
pub(crate) use tensor::{MAX_ELEMENTS, Tensor};

/// The results of a node, as far as they follow from what is known of its operands; `None` where they do not.
pub(crate) fn evaluate(operands: &Operands<'_>) -> Option<Vec<Tensor>> {
    if operands.node.domain == "com.microsoft" && operands.node.op_type == "BroadcastGradientArgs" {
        return reduce::gradient_axes(operands);
    }
    if !operands.node.is_default_domain() {
        return None;
    }
    let one = match operands.node.op_type.as_str() {
        "Identity" => operands.value(0).cloned(),
        "Constant" => create::constant(operands),
        "Shape" => create::shape(operands),
        "Size" => create::size(operands),
        "ConstantOfShape" => create::constant_of_shape(operands),
        "Range" => create::range(operands),
        "EyeLike" => create::eye_like(operands),
        "OneHot" => create::one_hot(operands),
        "Cast" | "CastLike" => convert::cast(operands),
        "Reshape" => layout::reshape(operands),
        "Flatten" => layout::flatten(operands),
        "Squeeze" => layout::squeeze(operands),
        "Unsqueeze" => layout::unsqueeze(operands),
        "Transpose" => layout::transpose(operands),
        "Expand" => layout::expand(operands),
        "Tile" => layout::tile(operands),
        "Concat" => layout::concat(operands),
        "Split" => return layout::split(operands),
        "Slice" => select::slice(operands),
        "Gather" => select::gather(operands),
        "GatherElements" => select::gather_elements(operands),
        "GatherND" => select::gather_nd(operands),
        "ScatterElements" | "Scatter" => select::scatter_elements(operands),
        "ScatterND" => select::scatter_nd(operands),
        "NonZero" => select::non_zero(operands),
        "Compress" => select::compress(operands),
        "Pad" => select::pad(operands),
        "Trilu" => select::trilu(operands),
        "TopK" => return select::top_k(operands),
        "Where" => arithmetic::select(operands),
        "CumSum" => reduce::cumulative_sum(operands),
        "ArgMax" | "ArgMin" => reduce::arg(operands),
        name if name.starts_with("Reduce") => reduce::reduce(operands),
        _ => arithmetic::elementwise(operands),
    };
    one.filter(|value| value.dims.len() <= MAX_RANK)
        .map(|value| vec![value])
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use onnx_runtime_ir::{Attribute, Node, NodeId, ValueId};
    use remat_ir::ElementType;

    use super::*;

    fn list(values: &[i64]) -> Tensor {
        Tensor::vector(values.to_vec()).expect("it is short")
    }

    fn empty(dims: &[usize]) -> Option<Tensor> {
        Tensor::integers(ElementType::Int64, dims.to_vec(), [])
    }

    fn run(op: &str, results: u32, attributes: &[(&str, i64)], values: Vec<Tensor>) -> Option<Vec<Tensor>> {
        let inputs = (0_u32..).take(values.len()).map(|id| Some(ValueId(id))).collect();
        let mut node = Node::new(NodeId(0), op, inputs, (100..100 + results).map(ValueId).collect());
        for &(name, value) in attributes {
            node.attributes.insert(name.to_owned(), Attribute::Int(value));
        }
        let shapes: Vec<_> = values.iter().map(|value| Some(value.dims.clone())).collect();
        let values: Vec<_> = values.into_iter().map(|value| Some(Rc::new(value))).collect();
        evaluate(&Operands {
            node: &node,
            version: 18,
            follows: Follows::All,
            values: &values,
            shapes: &shapes,
        })
    }

    #[test]
    fn an_empty_axis_is_sliced_backwards_to_an_empty_one() {
        let nothing = empty(&[0]).expect("it is small");
        let found = run(
            "Slice",
            1,
            &[],
            vec![nothing, list(&[-1]), list(&[-9]), list(&[0]), list(&[-1])],
        );
        assert_eq!(found.expect("it is known")[0].dims, [0]);
    }

    #[test]
    fn hostile_operands_have_no_value() {
        // Nothing in it, but what lies beside the empty axis is counted in strides.
        assert!(empty(&[0, 1 << 40, 1 << 40]).is_none());
        let most = i64::MAX;
        let ten = || list(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(run("Pad", 1, &[], vec![ten(), list(&[most, most])]).is_none());
        assert!(run("Split", 3, &[("axis", 0)], vec![ten(), list(&[most, most, 12])]).is_none());
        let twice = vec![
            ten(),
            list(&[0, 0]),
            list(&[most, most]),
            list(&[0, 0]),
            list(&[most, most]),
        ];
        assert!(run("Slice", 1, &[], twice).is_none());
        assert!(run("Tile", 1, &[], vec![ten(), list(&[most])]).is_none());
        assert!(run("Gather", 1, &[], vec![ten(), list(&[i64::MIN])]).is_none());
        let truth = Tensor::integers(ElementType::Bool, vec![12], [1; 12]).expect("it is short");
        assert!(run("Compress", 1, &[("axis", 0)], vec![ten(), truth]).is_none());
    }
}
