//! Attention in one kernel, and recurrent layers.

use crate::operands::{Operands, product, value_bytes};

/// Second-level cache for which the blocks of attention are cut, in bytes; the runtime asks the processor.
const CACHE: u128 = 1 << 20;

/// Queries, keys and values after projection, the scores, the result before its heads are interleaved, and the mask where
/// attention looks back only.
pub(super) fn projected(operands: &Operands<'_>) -> Option<u128> {
    let [batch, steps, _] = *operands.input_shape(0)? else {
        return None;
    };
    let heads = positive(operands.int("num_heads"))?;
    let squares = u128::from(batch)
        .saturating_mul(u128::from(steps))
        .saturating_mul(u128::from(steps))
        .saturating_mul(4);
    let mask = if operands.flag("unidirectional") { squares } else { 0 };
    let result = value_bytes(operands.output(0)?);
    Some(
        result
            .saturating_mul(4)
            .saturating_add(squares.saturating_mul(heads))
            .saturating_add(mask),
    )
}

/// Queries, keys and values with heads apart, and one block of flash attention or, while a bias is added, one more of them.
pub(super) fn separate(operands: &Operands<'_>, bias: Option<usize>) -> Option<u128> {
    let [_, queries, width] = *operands.input_shape(0)? else {
        return None;
    };
    let keys = operands
        .input_shape(1)
        .and_then(|k| k.get(1).copied())
        .unwrap_or(queries);
    let head = u128::from(width) / positive(operands.int("num_heads"))?;
    let key_block = (CACHE / (16 * 2 * head.max(1))).max(1).min(u128::from(keys));
    let query_block = key_block.min(2 * head).min(u128::from(queries));
    let block = query_block.saturating_mul(2 + key_block + head).saturating_mul(4);
    let result = value_bytes(operands.output(0)?);
    let biased = bias.is_some_and(|index| operands.input(index).is_some());
    Some(
        result
            .saturating_mul(3)
            .saturating_add(if biased { block.max(result) } else { block }),
    )
}

/// The scores, and the mask of those that look back only.
pub(super) fn standard(operands: &Operands<'_>) -> Option<u128> {
    let (q, k) = (operands.input_shape(0)?, operands.input_shape(1)?);
    let (heads, queries, keys) = match (&q[..], &k[..]) {
        ([_, heads, queries, _], [_, _, keys, _]) => (u128::from(*heads), *queries, *keys),
        ([_, queries, _], [_, keys, _]) => (positive(operands.int("q_num_heads"))?, *queries, *keys),
        _ => return None,
    };
    let square = u128::from(queries).saturating_mul(u128::from(keys)).saturating_mul(4);
    let mask = if operands.flag("is_causal") { square } else { 0 };
    Some(
        square
            .saturating_mul(heads)
            .saturating_mul(u128::from(q[0]))
            .saturating_add(mask),
    )
}

/// The gates of all steps and the states of one; both ways, the operand and the result are also held reversed.
pub(super) fn recurrent(operands: &Operands<'_>, gates: u128) -> Option<u128> {
    let (x, r) = (operands.input_shape(0)?, operands.input_shape(2)?);
    let (&[steps, batch, _], &[directions, _, hidden]) = (&x[..], &r[..]) else {
        return None;
    };
    let states = product(&[steps, batch, hidden]).saturating_mul(4);
    let step = product(&[batch, hidden]).saturating_mul(4 * (gates + 1));
    let all = states
        .saturating_mul(gates)
        .saturating_add(if gates == 1 { 0 } else { step });
    if directions < 2 || gates == 1 {
        return Some(all);
    }
    let reversed = product(&x).saturating_mul(4).saturating_add(states);
    Some(all.saturating_mul(2).saturating_add(reversed))
}

fn positive(value: Option<i64>) -> Option<u128> {
    u128::try_from(value?).ok().filter(|&v| v > 0)
}
