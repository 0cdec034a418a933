//! Input that the inference rules do not get to see, because they trust it in places: lengths that would become ranks, long axis
//! lists (compared pairwise), and window attributes that overflow plain integer arithmetic.

use onnx_runtime_ir::{Attribute, Node};
use onnx_runtime_shape_inference::NodeIo;
use remat_operators::operator;

use crate::types::MAX_RANK;

/// Windows, strides and paddings are at most this large.
const MAX_WINDOW: u64 = 1 << 31;

/// Attributes of convolutions and pooling that rules do arithmetic with.
const WINDOW_ATTRIBUTES: &[&str] = &[
    "dilations",
    "kernel_shape",
    "output_padding",
    "output_shape",
    "pads",
    "strides",
];

/// Says why a node must not reach its rule.
pub(super) fn objection(node: &Node, inputs: &[NodeIo]) -> Option<String> {
    if !node.is_default_domain() || node.op_type == "Constant" {
        return None;
    }
    for &index in operator(&node.domain, &node.op_type).lists {
        let info = inputs.get(index).and_then(|io| io.type_info.as_ref());
        let length = info
            .filter(|info| info.rank() == 1)
            .and_then(|info| info.shape[0].as_const());
        if let Some(length) = length.filter(|&length| usize::try_from(length).is_ok_and(|length| length > 2 * MAX_RANK))
        {
            return Some(format!("input {index} lists {length} dimensions"));
        }
    }
    for name in ["axes", "perm"].iter().chain(WINDOW_ATTRIBUTES) {
        let values = node.attr(name).and_then(Attribute::as_ints).unwrap_or_default();
        if values.len() > 2 * MAX_RANK {
            return Some(format!("attribute `{name}` lists {} dimensions", values.len()));
        }
        if WINDOW_ATTRIBUTES.contains(name)
            && let Some(value) = values.iter().find(|value| value.unsigned_abs() > MAX_WINDOW)
        {
            return Some(format!("attribute `{name}` holds {value}"));
        }
    }
    None
}
