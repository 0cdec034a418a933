//! Einsum: operands are brought into the order of a batched matrix product, multiplied, and brought into the order asked
//! for.

use crate::operands::{Operands, value_bytes};

/// The result before its axes are arranged, and copies of the operands: the second always, each once more where its axes
/// are not in the order batch, own, summed (summed, own for the second).
pub(super) fn einsum(operands: &Operands<'_>) -> Option<u128> {
    let result = value_bytes(operands.output(0)?);
    let equation: String = operands
        .text("equation")?
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    let (left, output) = equation.split_once("->")?;
    let Some((a, b)) = left.split_once(',') else {
        return Some(result);
    };
    let batch = |c: &char| a.contains(*c) && b.contains(*c) && output.contains(*c);
    let summed = |c: &char| a.contains(*c) && b.contains(*c) && !output.contains(*c);
    let arranged = |term: &str, summed_last: bool| {
        let rank = |c: char| match (batch(&c), summed(&c)) {
            (true, _) => 0,
            (_, is_summed) => 1 + u8::from(is_summed == summed_last),
        };
        term.chars().map(rank).is_sorted()
    };
    let turned = |index: usize, term: &str, summed_last: bool| {
        if arranged(term, summed_last) {
            0
        } else {
            operands.input_bytes(index)
        }
    };
    let copies = operands
        .input_bytes(1)
        .saturating_add(turned(0, a, true))
        .saturating_add(turned(1, b, false));
    Some(result.saturating_add(copies))
}
