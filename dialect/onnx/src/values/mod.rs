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

use crate::shapes::MAX_RANK;
pub(crate) use operands::Operands;
pub(crate) use tensor::{MAX_ELEMENTS, Tensor};

/// The results of a node, as far as they follow from what is known of its operands; `None` where they do not.
pub(crate) fn evaluate(operands: &Operands<'_>) -> Option<Vec<Tensor>> {
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
