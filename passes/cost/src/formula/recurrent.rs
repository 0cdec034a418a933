//! LSTM, GRU and RNN.

use crate::operands::Operands;

/// Operations per gate value for its activation and its share of the state update.
const PER_GATE: u128 = 10;

/// Operand 0 has sequence, batch (in either order) and input size; `weights` and the operand given second hold all gates of
/// all directions: each step of each sequence meets every weight once.
pub(super) fn flops(operands: &Operands<'_>, weights: [usize; 2]) -> Option<u128> {
    let x = operands.input_shape(0)?;
    let (&input_size, steps) = x.split_last()?;
    let steps = crate::operands::product(steps);
    let weight = operands.input_elements(weights[0])?;
    let recurrence = operands.input_elements(weights[1])?;
    let gates = weight / u128::from(input_size.max(1));
    let per_step = weight
        .saturating_add(recurrence)
        .saturating_mul(2)
        .saturating_add(gates.saturating_mul(PER_GATE));
    Some(steps.saturating_mul(per_step))
}
