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

#[cfg(test)]
mod tests {
    use remat_ir::{Attribute, ElementType, GraphBuilder, OpSpec};

    use super::*;

    fn workspace(spec: OpSpec, inputs: &[(ElementType, &[u64])], output: &[u64]) -> u64 {
        let mut builder = GraphBuilder::new("one");
        let mut spec = spec;
        for (position, (element, shape)) in inputs.iter().enumerate() {
            let ty = ValueType::tensor(*element, shape);
            spec = spec.reads(builder.input(format!("x{position}"), ty).unwrap());
        }
        let spec = spec.defines("y", ValueType::tensor(ElementType::Float32, output));
        builder.op(spec).unwrap();
        let graph = builder.finish();
        bytes(&graph, graph.ops.first().unwrap())
    }

    const F32: ElementType = ElementType::Float32;

    #[test]
    fn where_blends_both_branches_at_the_size_they_broadcast_to() {
        let inputs: [(_, &[u64]); 3] = [(ElementType::Bool, &[8, 1]), (F32, &[8, 100]), (F32, &[])];
        assert_eq!(
            workspace(OpSpec::new("op", "Where"), &inputs, &[8, 100]),
            4 * 800 + 4 * 8
        );
        let misfit: [(_, &[u64]); 3] = [(ElementType::Bool, &[3]), (F32, &[4]), (F32, &[])];
        assert_eq!(workspace(OpSpec::new("op", "Where"), &misfit, &[4]), 0);
    }

    #[test]
    fn conv_transpose_holds_one_image_before_it_is_folded() {
        let inputs: [(_, &[u64]); 2] = [(F32, &[8, 6, 5, 7]), (F32, &[6, 3, 2, 2])];
        assert_eq!(
            workspace(OpSpec::new("op", "ConvTranspose"), &inputs, &[8, 3, 10, 14]),
            4 * (3 * 2 * 2) * (5 * 7)
        );
    }

    #[test]
    fn conv_unfolds_one_group_of_one_image_up_to_a_limit() {
        let conv = || OpSpec::new("op", "Conv");
        let small: [(_, &[u64]); 2] = [(F32, &[8, 4, 5, 5]), (F32, &[6, 4, 3, 3])];
        assert_eq!(workspace(conv(), &small, &[8, 6, 5, 5]), 4 * (4 * 9) * 25);
        let large: [(_, &[u64]); 2] = [(F32, &[1, 64, 99, 99]), (F32, &[6, 64, 3, 3])];
        assert_eq!(workspace(conv(), &large, &[1, 6, 99, 99]), 1_200_000);
        let pointwise: [(_, &[u64]); 2] = [(F32, &[1, 64, 9, 9]), (F32, &[6, 64, 1, 1])];
        assert_eq!(workspace(conv(), &pointwise, &[1, 6, 9, 9]), 0);
        let mut strided = conv();
        strided.attributes.insert("strides".into(), Attribute::Ints(vec![2, 2]));
        assert_eq!(workspace(strided, &pointwise, &[1, 6, 5, 5]), 4 * 64 * 25);
    }

    #[test]
    fn other_ops_and_other_domains_take_nothing() {
        let inputs: [(_, &[u64]); 1] = [(F32, &[1, 50])];
        assert_eq!(workspace(OpSpec::new("op", "Expand"), &inputs, &[2, 50]), 200);
        assert_eq!(workspace(OpSpec::new("op", "Relu"), &inputs, &[1, 50]), 0);
        let mut foreign = OpSpec::new("op", "Expand");
        foreign.domain = "org.example".into();
        assert_eq!(workspace(foreign, &inputs, &[2, 50]), 0);
    }
}
