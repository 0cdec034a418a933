//! Kernels that move, choose and interpolate.

use crate::operands::{Operands, bits, product, value_bytes};

/// Both branches are blended with zeros into buffers of their own: `broadcast(cond, X)` and `broadcast(cond, Y)`.
pub(super) fn where_op(operands: &Operands<'_>) -> Option<u128> {
    let condition = operands.input_shape(0)?;
    let branch = |index: usize| {
        let ty = operands.input(index)?;
        let elements = broadcast_elements(&condition, &ty.known_shape()?)?;
        Some(bits(ty)?.max(operands_bits(operands)).saturating_mul(elements) / 8)
    };
    Some(branch(1)?.saturating_add(branch(2)?))
}

/// Half precision is widened before it is blended.
fn operands_bits(operands: &Operands<'_>) -> u128 {
    match operands.output(0).and_then(remat_ir::ValueType::element) {
        Some(remat_ir::ElementType::Float16) => 32,
        _ => 0,
    }
}

/// An offset per stretch that is copied: the part of the operand before its last axes of equal size.
pub(super) fn expand(operands: &Operands<'_>) -> Option<u128> {
    let (x, y) = (operands.input_shape(0)?, operands.output(0)?.known_shape()?);
    let equal = x.iter().rev().zip(y.iter().rev()).take_while(|(a, b)| a == b).count();
    Some(product(&x[..x.len() - equal]).saturating_mul(8))
}

/// An offset per index tuple.
pub(super) fn tuples(operands: &Operands<'_>) -> Option<u128> {
    let indices = operands.input_shape(1)?;
    let (_, tuples) = indices.split_last()?;
    Some(product(tuples).saturating_mul(8))
}

/// Cubic interpolation caches coefficients, linear interpolation two indices and two weights per row and column,
/// antialiasing keeps one image that is resized along one axis.
pub(super) fn resize(operands: &Operands<'_>) -> Option<u128> {
    let (x, y) = (operands.input_shape(0)?, operands.output(0)?.known_shape()?);
    let (height, width) = (u128::from(*x.get(2)?), u128::from(*y.get(3)?));
    if operands.flag("antialias") {
        let image = u128::from(x[1]).saturating_mul(height).saturating_mul(width);
        return Some(bits(operands.input(0)?)?.saturating_mul(image) / 8);
    }
    match operands.text("mode")? {
        "cubic" => Some(height.saturating_mul(width).saturating_mul(36)),
        "linear" => Some(u128::from(y[2]).saturating_add(width).saturating_mul(16)),
        _ => None,
    }
}

/// Where each point of one image samples, and how.
pub(super) fn grid_sample(operands: &Operands<'_>) -> Option<u128> {
    Some(product(operands.output(0)?.known_shape()?.get(2..)?).saturating_mul(56))
}

/// Squares of one image with `size - 1` more channels, and the scale of everything.
pub(super) fn local_norm(operands: &Operands<'_>) -> Option<u128> {
    let x = operands.input_shape(0)?;
    let size = u128::try_from(operands.int("size")?).ok()?;
    let channels = u128::from(*x.get(1)?).saturating_add(size.saturating_sub(1));
    let padded = product(x.get(2..)?).saturating_mul(channels).saturating_mul(4);
    Some(value_bytes(operands.output(0)?).saturating_add(padded))
}

/// Elements of the shape that two shapes broadcast to; `None` if they do not fit together.
fn broadcast_elements(a: &[u64], b: &[u64]) -> Option<u128> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[u64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        dims.push(match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        });
    }
    Some(product(&dims))
}
