//! Which outputs live in the memory of an input.
//!
//! The rules are those of ONNX Runtime's allocation planner, which decides in this order for each output:
//! 1. An output of the main graph gets memory of its own, whatever computes it: the caller keeps it after the run, so it can
//!    neither be an input's or weight's memory nor share that of another value. A view operator then copies.
//! 2. The output of a view operator is the memory of its first input, be that a graph input, a weight,
//!    an intermediate or a graph output. Views of views share the same memory.
//! 3. An output that a kernel writes over an operand in any case (`updates` in the table of operators) is the memory of that operand.
//! 4. Everything else gets memory of its own. (Writing a result over a dead operand is a decision of the runtime at load; where it is
//!    certain, [`OnnxModel::with_kernels_in_place`](crate::OnnxModel::with_kernels_in_place) says so.)
//!
//! Only dense tensors are shared: the planner gives sequences, maps and optional values memory of their own even for
//! `Identity`. `Constant` nodes become weights of the session at load, hence [`Placement::Constant`].
//!
//! Source: `onnxruntime/core/framework/allocation_planner.cc`, and kernel definitions with `Alias(0, 0)`.

use onnx_protobuf::NodeProto;
use remat_ir::{Effects, Placement, TensorId, ValueType};
use remat_operators::operator;

use crate::opsets::domain;

/// Where output `index` of a node lives. `base` is an input of the node by its place, with its type, `is_graph_output` tells whether
/// the output is one of the main graph, `is_call` whether the node calls a function of the model.
pub(crate) fn placement<'t>(
    node: &NodeProto,
    index: usize,
    effects: Effects,
    base: impl Fn(usize) -> Option<(TensorId, &'t ValueType)>,
    is_graph_output: bool,
    is_call: bool,
) -> Placement {
    if is_call {
        return Placement::New;
    }
    if domain(&node.domain).is_empty() && index == 0 && node.op_type == "Constant" {
        return Placement::Constant;
    }
    let row = operator(&node.domain, &node.op_type);
    let operand = match row.updates.operand_of(index) {
        Some(operand) if !effects.recomputable() => Some(operand),
        _ => (domain(&node.domain).is_empty() && index == 0 && row.is_view()).then_some(0),
    };
    match operand.and_then(base) {
        Some((base, ValueType::Tensor { .. })) if !is_graph_output => Placement::ViewOf(base),
        _ => Placement::New,
    }
}
