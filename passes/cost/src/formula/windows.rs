//! Ops that slide a window over an image.

use crate::operands::Operands;

/// One operation per element of the window and output element.
pub(super) fn pool(operands: &Operands<'_>) -> Option<u128> {
    let window = operands.ints("kernel_shape")?;
    let window = window
        .iter()
        .fold(1u128, |acc, &k| acc.saturating_mul(u128::try_from(k).unwrap_or(0)));
    Some(operands.output_elements(0)?.saturating_mul(window))
}

/// LRN: a square and a sum per neighbour, then a power.
pub(super) fn local_norm(operands: &Operands<'_>) -> Option<u128> {
    const POWER: u128 = 20;
    let neighbours = u128::try_from(operands.int("size")?).ok()?;
    let per_element = neighbours.saturating_mul(2).saturating_add(POWER);
    Some(operands.output_elements(0)?.saturating_mul(per_element))
}
