//! Which results live in the memory of an operand: what the runtime's CPU kernels declare.

use crate::Node;

/// Operators whose first result is their first operand under another shape, always.
const VIEWS: &[&str] = &["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"];

/// Operators that wrap and unwrap: their result is their operand, whatever its kind.
const WRAPPERS: &[&str] = &["Optional", "OptionalGetElement"];

/// Operators of the default domain that may write their first result over their first operand (each seen to do so; the
/// column `in_place` of `passes/cost/data/workspace.csv`).
const OVERWRITE: &[&str] = &[
    "Cast",
    "Celu",
    "Clip",
    "Elu",
    "HardSigmoid",
    "LeakyRelu",
    "LogSoftmax",
    "Relu",
    "ScatterElements",
    "Shrink",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
];

/// The operand whose memory result `output` is, whatever the sizes; `tensor` says whether that result is a dense tensor.
pub(crate) fn alias(node: &Node, output: usize, tensor: bool) -> Option<usize> {
    let onnx = matches!(node.domain.as_str(), "" | "ai.onnx");
    let op_type = node.op_type.as_str();
    let alias = WRAPPERS.contains(&op_type) || (tensor && VIEWS.contains(&op_type));
    (onnx && output == 0 && alias).then_some(0)
}

/// The operand that result `output` may overwrite, if nobody needs it any more and the sizes are equal.
pub(crate) fn in_place(node: &Node, output: usize) -> Option<usize> {
    if output != 0 {
        return None;
    }
    match (node.domain.as_str(), node.op_type.as_str()) {
        ("" | "ai.onnx", op_type) => OVERWRITE.contains(&op_type).then_some(0),
        // The operand that is added before the activation.
        ("com.microsoft", "FusedConv" | "NhwcFusedConv") | ("com.microsoft.nchwc", "Conv") => Some(3),
        _ => None,
    }
}

/// Operators that hold their workspace on the plain heap, where the arena does not see it: offsets, candidates, indices.
const ON_THE_HEAP: &[&str] = &[
    "Expand",
    "GatherND",
    "NonMaxSuppression",
    "OneHot",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "TopK",
    "Unique",
];

/// Whether the kernel's workspace bypasses the arena.
pub(crate) fn bypasses_arena(node: &Node) -> bool {
    ON_THE_HEAP.contains(&node.op_type.as_str())
}

/// In how many equal pieces the kernel asks the arena for its workspace, about.
pub(crate) fn pieces(node: &Node) -> u64 {
    match node.op_type.as_str() {
        // Operand and result turned; both branches; the result and an operand.
        "Softmax" | "LogSoftmax" | "Hardmax" | "Where" | "Einsum" | "LRN" => 2,
        // Queries, keys, values and what follows; gates and states.
        "Attention" | "MultiHeadAttention" | "GroupQueryAttention" | "LSTM" | "GRU" => 4,
        _ => 1,
    }
}

/// The operand of which the kernel keeps a copy in the arena from load on, if it is a weight.
pub(crate) fn packed_in_arena(node: &Node) -> Option<usize> {
    let onnx = matches!(node.domain.as_str(), "" | "ai.onnx");
    (onnx && node.op_type == "ConvTranspose").then_some(1)
}
