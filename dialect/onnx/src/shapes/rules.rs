//! Shapes of operators for which the inference crate has no rule.

use onnx_runtime_ir::Node;
use onnx_runtime_shape_inference::NodeIo;

use super::symbols::Symbols;

/// Fills outputs that are still unknown.
pub(super) fn complete(_node: &Node, _inputs: &[NodeIo], _results: &mut [NodeIo], _symbols: &mut Symbols<'_>) {}
