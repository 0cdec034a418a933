//! Bytes that kernels take on top of operands and results while they run: ONNX Runtime 1.31 on a CPU, one thread.
//!
//! Measured on nodes run one at a time, against the heap, and read in the runtime's sources; every other kernel takes about
//! nothing.

use remat_ir::{Graph, Op, ValueType};

use crate::operands::{Operands, product, value_bytes};

/// The unfolded image of a convolution is worked off in pieces; no more than this was ever seen.
const LARGEST_CONV_BUFFER: u128 = 1_200_000;

/// Workspace of one run of `op`; 0 where shapes are unknown.
pub(crate) fn bytes(graph: &Graph, op: &Op) -> u64 {
    let operands = Operands::new(graph, op);
    let onnx = matches!(op.domain.as_str(), "" | "ai.onnx");
    let bytes = match op.op_type.as_str() {
        "Where" if onnx => where_op(&operands),
        "ConvTranspose" if onnx => conv_transpose(&operands),
        "Conv" if onnx => conv(&operands),
        "FusedConv" if op.domain == "com.microsoft" => conv(&operands),
        "Expand" | "ScatterElements" if onnx => operands.output(0).map(|ty| value_bytes(ty) / 2),
        _ => None,
    };
    u64::try_from(bytes.unwrap_or(0)).unwrap_or(u64::MAX)
}

/// Both branches are blended with zeros into buffers of their own: `broadcast(cond, X)` and `broadcast(cond, Y)`.
fn where_op(operands: &Operands<'_>) -> Option<u128> {
    let condition = operands.input_shape(0)?;
    let branch = |index: usize| {
        let ty = operands.input(index)?;
        let elements = broadcast_elements(&condition, &ty.known_shape()?)?;
        Some(bits(ty)?.saturating_mul(elements) / 8)
    };
    Some(branch(1)?.saturating_add(branch(2)?))
}

/// The product of weights and one image, before it is folded: `k_h k_w C_out/group x H_in W_in` elements.
fn conv_transpose(operands: &Operands<'_>) -> Option<u128> {
    let (x, w) = (operands.input_shape(0)?, operands.input_shape(1)?);
    let image = product(x.get(2..)?);
    let folded = product(w.get(1..)?);
    Some(bits(operands.input(0)?)?.saturating_mul(image).saturating_mul(folded) / 8)
}

/// One group of one image, unfolded: `k_h k_w C_in/group x H_out W_out` elements. A kernel of one point without strides needs
/// no unfolding.
fn conv(operands: &Operands<'_>) -> Option<u128> {
    let (y, w) = (operands.output(0)?.known_shape()?, operands.input_shape(1)?);
    if product(w.get(2..)?) == 1 && operands.ints("strides").is_none_or(|s| s.iter().all(|&s| s == 1)) {
        return Some(0);
    }
    let unfolded = product(w.get(1..)?).saturating_mul(product(y.get(2..)?));
    let bytes = bits(operands.input(0)?)?.saturating_mul(unfolded) / 8;
    Some(bytes.min(LARGEST_CONV_BUFFER))
}

fn bits(ty: &ValueType) -> Option<u128> {
    ty.element().map(|element| u128::from(element.bits()))
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
