//! Half precision: kernels that have none run in single precision between two casts.

use remat_ir::{ElementType, Op, ValueType};

use crate::op_table::{Formula, formula};
use crate::operands::{Operands, value_bytes};

/// Operands and results in single precision, less the result that does not exist yet when the operands do. Models that the
/// runtime saved have these casts as nodes of their own, and nothing is counted.
pub(super) fn bytes(op: &Op, operands: &Operands<'_>) -> u128 {
    let half = |ty: Option<&ValueType>| match ty {
        Some(ty) if ty.element() == Some(ElementType::Float16) => value_bytes(ty),
        _ => 0,
    };
    if half(operands.output(0)) == 0 || has_half_kernel(op) {
        return 0;
    }
    let read = (0..operands.operand_slots()).fold(0_u128, |acc, i| acc.saturating_add(half(operands.input(i))));
    let written = (0..operands.result_slots()).fold(0_u128, |acc, i| acc.saturating_add(half(operands.output(i))));
    // An activation is written over its widened operand.
    let own = if matches!(op.op_type.as_str(), "Relu" | "Sigmoid" | "Tanh") {
        0
    } else {
        written
    };
    read.saturating_mul(2).saturating_add(own)
}

/// Whether the kernel takes half precision as it is: those that move bytes, and normalizations.
fn has_half_kernel(op: &Op) -> bool {
    if matches!(
        op.op_type.as_str(),
        "Cast" | "CastLike" | "QuantizeLinear" | "DequantizeLinear"
    ) {
        return true;
    }
    matches!(
        formula(&op.domain, &op.op_type),
        Formula::Move(_) | Formula::Metadata | Formula::GatherElements | Formula::Scatter | Formula::Normalization(_)
    ) || formula(&op.domain, &op.op_type) == Formula::Bytes
}
