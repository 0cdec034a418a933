//! How often ops that walk over memory start an inner loop: what broadcasting, slicing and permuting cost on top of bytes.

use crate::operands::{Operands, product, value_bytes};
use crate::work::CpuDetail;

/// Elementwise ops: the inner loop spans the trailing axes along which every operand either moves or stands still.
pub(super) fn broadcast(operands: &Operands<'_>) -> Option<u128> {
    let out = operands.output(0)?.known_shape()?;
    let shapes: Vec<Vec<u64>> = (0..operands.operand_slots())
        .filter_map(|index| operands.input_shape(index))
        .filter(|shape| shape.len() <= out.len())
        .collect();
    let moves = |axis: usize| -> Vec<bool> {
        let from_right = out.len() - axis;
        let size = |shape: &Vec<u64>| shape.len().checked_sub(from_right).map_or(1, |i| shape[i]);
        shapes.iter().map(|shape| size(shape) == out[axis]).collect()
    };
    // Axes of size 1 belong to any loop.
    let axes = (0..out.len()).rev().filter(|&axis| out[axis] != 1);
    let mut pattern: Option<Vec<bool>> = None;
    let mut length = 1u128;
    for axis in axes {
        let this = moves(axis);
        if *pattern.get_or_insert_with(|| this.clone()) != this {
            break;
        }
        length = length.saturating_mul(u128::from(out[axis]));
    }
    Some(product(&out) / length.max(1))
}

/// Where: two blends with zeros and their sum, each a loop with broadcasting, through buffers that are written and read.
pub(super) fn select(operands: &Operands<'_>) -> Option<CpuDetail> {
    const BLENDS: u128 = 2;
    const WRITE_AND_READ: u128 = 2;
    Some(CpuDetail {
        repacked_bytes: value_bytes(operands.output(0)?).saturating_mul(BLENDS * WRITE_AND_READ),
        runs: broadcast(operands)?.saturating_mul(BLENDS),
        row: None,
    })
}

/// Transpose: blocks that stay together are copied; where the innermost axis moves, small tiles are.
pub(super) fn transpose(operands: &Operands<'_>) -> Option<u128> {
    const TILE: u128 = 16;
    let shape = operands.input_shape(0)?;
    let elements = product(&shape);
    let permutation = operands.ints("perm").unwrap_or_default();
    let stays = |axis: &usize| {
        permutation
            .get(*axis)
            .is_some_and(|&to| usize::try_from(to) == Ok(*axis))
    };
    let block: Vec<u64> = (0..shape.len())
        .rev()
        .take_while(|axis| stays(axis) || shape[*axis] == 1)
        .map(|axis| shape[axis])
        .collect();
    let block = product(&block);
    Some(elements / if block == 1 { TILE } else { block.max(1) })
}

/// Softmax, normalization: one loop per row along the last axis.
pub(super) fn rows(operands: &Operands<'_>) -> Option<u128> {
    let shape = operands.input_shape(0)?;
    let (_, outer) = shape.split_last()?;
    Some(product(outer))
}

/// GatherElements: single elements, several of which a core has in flight.
pub(super) fn gather_elements(operands: &Operands<'_>) -> Option<u128> {
    const IN_FLIGHT: u128 = 16;
    Some(operands.output_elements(0)? / IN_FLIGHT)
}

/// Scatter: one copy per index.
pub(super) fn indices(operands: &Operands<'_>) -> Option<u128> {
    operands.input_elements(1)
}

/// GatherND, ScatterND: one copy per position; the last axis of the indices is one.
pub(super) fn tuples(operands: &Operands<'_>) -> Option<u128> {
    let indices = operands.input_shape(1)?;
    Some(product(&indices) / u128::from(*indices.last()?).max(1))
}

/// Gather and the like: one copy per index.
pub(super) fn gather(operands: &Operands<'_>) -> Option<u128> {
    let elements = operands.input_elements(1)?;
    let shape = operands.input_shape(0)?;
    let rank = i64::try_from(shape.len()).ok()?;
    let axis = operands.int("axis").unwrap_or(0);
    let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
    Some(elements.saturating_mul(product(shape.get(..axis)?)))
}

/// Slice, Pad, Concat, Split: one copy per stretch that is contiguous on both sides.
pub(super) fn copy(operands: &Operands<'_>) -> Option<u128> {
    let pieces = (0..operands.operand_slots()).filter_map(|index| operands.input_shape(index));
    let results = (0..operands.result_slots()).filter_map(|index| operands.output(index)?.known_shape());
    let (pieces, results): (Vec<_>, Vec<_>) = (pieces.collect(), results.collect());
    let whole = pieces.iter().chain(&results).max_by_key(|shape| product(shape))?;
    let parts = if results.len() == 1 && results.first() == Some(whole) {
        &pieces
    } else {
        &results
    };
    let same_rank = parts.iter().filter(|part| part.len() == whole.len());
    Some(
        same_rank
            .map(|part| stretches(part, whole))
            .fold(0, u128::saturating_add),
    )
}

/// Contiguous stretches of a box within a larger one.
fn stretches(part: &[u64], whole: &[u64]) -> u128 {
    let equal = part.iter().zip(whole).rev().take_while(|(a, b)| a == b).count();
    let outer = part.len().saturating_sub(equal + 1);
    product(&part[..outer])
}
