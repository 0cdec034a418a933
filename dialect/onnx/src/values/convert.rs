//! Changes of the element type.

use onnx_runtime_ir::Attribute;
use remat_ir::ElementType;

use super::operands::Operands;
use super::tensor::{Data, Tensor};
use crate::types::element;

pub(super) fn cast(operands: &Operands<'_>) -> Option<Tensor> {
    let to = if operands.node.op_type == "CastLike" {
        operands.value(1)?.element
    } else {
        let code = operands.node.attr("to").and_then(Attribute::as_int)?;
        element(i32::try_from(code).ok()?).ok().flatten()?
    };
    to_element(operands.value(0)?, to)
}

/// The tensor in another element type. A number that the type does not hold gives none: what runtimes make of it differs.
fn to_element(tensor: &Tensor, to: ElementType) -> Option<Tensor> {
    let dims = tensor.dims.clone();
    match &tensor.data {
        Data::Integers(values) => {
            let floats = values.iter().map(|&value| value as f64);
            Tensor::integers(to, dims.clone(), values.iter().copied()).or_else(|| Tensor::floats(to, dims, floats))
        }
        Data::Floats(values) if to == ElementType::Bool => {
            Tensor::integers(to, dims, values.iter().map(|&value| i64::from(value != 0.0)))
        }
        Data::Floats(values) => Tensor::floats(to, dims.clone(), values.iter().copied()).or_else(|| {
            let integers: Vec<i64> = values.iter().map(|&value| truncated(value)).collect::<Option<_>>()?;
            let cast = Tensor::integers(to, dims, integers.iter().copied())?;
            (cast.as_integers()? == integers).then_some(cast)
        }),
    }
}

/// The integer towards zero.
fn truncated(value: f64) -> Option<i64> {
    // Of 64 bits all but the last power of two.
    (value.abs() < 9.2e18).then_some(value as i64)
}
