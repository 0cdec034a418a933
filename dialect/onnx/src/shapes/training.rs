//! Shapes of ONNX Runtime's operators of training whose results follow from an attribute, or from more than one operand.
//!
//! Source: ONNX Runtime, `orttraining/core/graph/training_op_defs.cc`.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, TypeInfo};

use crate::values::axis as place_of;

/// The types of the results, by result.
pub(super) fn results(node: &Node, inputs: &[NodeIo]) -> Vec<Option<TypeInfo>> {
    let info = |index: usize| inputs.get(index).and_then(|io| io.type_info.clone());
    match node.op_type.as_str() {
        "PassThrough" => (0..inputs.len()).map(info).collect(),
        "YieldOp" => {
            let skipped = node.attr("non_differentiable_outputs").and_then(Attribute::as_ints);
            let is_skipped = |index: &usize| {
                let skipped = skipped.unwrap_or_default();
                skipped.iter().any(|&other| usize::try_from(other) == Ok(*index))
            };
            // A gradient has the shape of the value that it is of.
            (0..inputs.len()).filter(|index| !is_skipped(index)).map(info).collect()
        }
        "ConcatTraining" => vec![
            joined(node, inputs),
            i64::try_from(inputs.len())
                .ok()
                .map(|count| TypeInfo::new(DataType::Int64, vec![DimExpr::constant(count)])),
        ],
        "LSTMTraining" => recurrent(inputs, 4).unwrap_or_default(),
        "GRUTraining" => recurrent(inputs, 3).unwrap_or_default(),
        "LSTMGrad" | "GRUGrad" => recurrent_gradients(node, inputs).unwrap_or_default(),
        "SoftmaxCrossEntropy" | "SparseSoftmaxCrossEntropy" => vec![loss(node, inputs), info(0)],
        "ReduceAllL2" => vec![info(0).map(|info| TypeInfo::new(info.dtype, Vec::new()))],
        _ => Vec::new(),
    }
}

fn joined(node: &Node, inputs: &[NodeIo]) -> Option<TypeInfo> {
    let infos: Vec<&TypeInfo> = inputs.iter().map(|io| io.type_info.as_ref()).collect::<Option<_>>()?;
    let mut info = (*infos.first()?).clone();
    let axis = place_of(node.attr("axis").and_then(Attribute::as_int)?, info.rank())?;
    let extents: Vec<&DimExpr> = infos.iter().map(|info| info.shape.get(axis)).collect::<Option<_>>()?;
    info.shape[axis] = extents
        .into_iter()
        .fold(DimExpr::constant(0), |sum, extent| sum.add(extent));
    Some(info)
}

/// The loss of each sample, or one number.
fn loss(node: &Node, inputs: &[NodeIo]) -> Option<TypeInfo> {
    let logits = inputs.first()?.type_info.as_ref()?;
    let mut shape = Vec::new();
    if node.attr("reduction").and_then(Attribute::as_str) == Some("none") {
        let labels = inputs.get(1)?.type_info.as_ref()?;
        shape.clone_from(&labels.shape);
        // One of them has a label for each class.
        if node.op_type == "SoftmaxCrossEntropy" {
            shape.pop();
        }
    }
    Some(TypeInfo::new(logits.dtype, shape))
}

/// Sequence, batch, directions and hidden size of a recurrent network: `X` is `sequence x batch x input`, `R` is
/// `directions x gates * hidden x hidden`.
fn extents(inputs: &[NodeIo]) -> Option<(DataType, [DimExpr; 4])> {
    let [x, weights] = [0, 2].map(|index: usize| inputs.get(index).and_then(|io| io.type_info.as_ref()));
    let (x, weights) = (x?, weights?);
    let [sequence, batch, _] = x.shape.as_slice() else {
        return None;
    };
    let [directions, _, hidden] = weights.shape.as_slice() else {
        return None;
    };
    Some((x.dtype, [sequence, batch, directions, hidden].map(Clone::clone)))
}

/// All states, the last ones, and what the gradient needs of each step, which has so many `gates`.
fn recurrent(inputs: &[NodeIo], gates: i64) -> Option<Vec<Option<TypeInfo>>> {
    let (dtype, [sequence, batch, directions, hidden]) = extents(inputs)?;
    let each = |width: DimExpr| TypeInfo::new(dtype, vec![sequence.clone(), directions.clone(), batch.clone(), width]);
    let last = TypeInfo::new(dtype, vec![directions.clone(), batch.clone(), hidden.clone()]);
    let states = each(hidden.clone());
    let steps = each(hidden.mul(&DimExpr::constant(gates)));
    let results = if gates == 4 {
        vec![states.clone(), last.clone(), last, states, steps]
    } else {
        vec![states, last, steps]
    };
    Some(results.into_iter().map(Some).collect())
}

/// Gradients of the operands: `X`, `W`, `R`, the biases, the first states, and for an LSTM the peepholes.
fn recurrent_gradients(node: &Node, inputs: &[NodeIo]) -> Option<Vec<Option<TypeInfo>>> {
    let (dtype, [_, batch, directions, hidden]) = extents(inputs)?;
    let info = |index: usize| inputs.get(index).and_then(|io| io.type_info.clone());
    let times = |count: i64| {
        let width = hidden.mul(&DimExpr::constant(count));
        Some(TypeInfo::new(dtype, vec![directions.clone(), width]))
    };
    let state = Some(TypeInfo::new(dtype, vec![directions.clone(), batch, hidden.clone()]));
    let weights = [0, 1, 2].map(info);
    let rest = if node.op_type == "LSTMGrad" {
        vec![times(8), state.clone(), state, times(3)]
    } else {
        vec![times(6), state]
    };
    Some(weights.into_iter().chain(rest).collect())
}
