//! Half precision: kernels that have none run in single precision between two casts.

use remat_ir::{ElementType, ValueType};
use remat_operators::{Half, Operator};

use crate::operands::{Operands, value_bytes};

/// Operands and results in single precision, less the result that does not exist yet when the operands do. Models that the
/// runtime saved have these casts as nodes of their own, and nothing is counted.
pub(super) fn bytes(row: &Operator, operands: &Operands<'_>) -> u128 {
    let half = |ty: Option<&ValueType>| match ty {
        Some(ty) if ty.element() == Some(ElementType::Float16) => value_bytes(ty),
        _ => 0,
    };
    if half(operands.output(0)) == 0 || row.takes_half() {
        return 0;
    }
    let read = (0..operands.operand_slots()).fold(0_u128, |acc, i| acc.saturating_add(half(operands.input(i))));
    let written = (0..operands.result_slots()).fold(0_u128, |acc, i| acc.saturating_add(half(operands.output(i))));
    // An activation is written over its widened operand.
    let own = if row.half == Half::WidenedInPlace { 0 } else { written };
    read.saturating_mul(2).saturating_add(own)
}
