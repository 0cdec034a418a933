//! Operators the inference crate has no rule for, or one that misses attributes, but whose result has the shape that another
//! operator would give.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::NodeIo;

/// Element type of the result.
#[derive(Clone, Copy)]
enum Element {
    /// That of the operator that stands in.
    Same,
    Is(DataType),
    /// That of an operand; the other one where it is left out.
    OfOperand(usize, DataType),
}

use Element::{Is, OfOperand, Same};

/// Domain and operator, the operator of the default domain that stands in for it, which operands that gets, element type.
/// Source: the operator definitions in the ONNX specification and in ONNX Runtime's `docs/ContribOperators.md`.
#[rustfmt::skip]
const STAND_INS: &[(&str, &str, &str, &[usize], Element)] = &[
    ("", "ConvInteger", "Conv", &[0, 1], Is(DataType::Int32)),
    ("", "DeformConv", "Conv", &[0, 1], Same),
    ("", "MatMulInteger", "MatMul", &[0, 1], Is(DataType::Int32)),
    ("", "QLinearConv", "Conv", &[0, 3], OfOperand(7, DataType::Uint8)),
    ("", "RegexFullMatch", "Identity", &[0], Is(DataType::Bool)),
    ("", "StringConcat", "Add", &[0, 1], Same),
    ("com.microsoft", "DequantizeLinear", "DequantizeLinear", &[0, 1, 2], Same),
    ("com.microsoft", "DynamicQuantizeMatMul", "MatMul", &[0, 1], Is(DataType::Float32)),
    ("com.microsoft", "FusedConv", "Conv", &[0, 1], Same),
    // The crate's own rule takes no notice of `transA` and `transB`.
    ("com.microsoft", "FusedGemm", "Gemm", &[0, 1, 2], Same),
    ("com.microsoft", "MatMulIntegerToFloat", "MatMul", &[0, 1], OfOperand(2, DataType::Float32)),
    ("com.microsoft", "QGemm", "Gemm", &[0, 3], OfOperand(8, DataType::Float32)),
    ("com.microsoft", "QLinearAdd", "Add", &[0, 3], Same),
    ("com.microsoft", "QLinearAveragePool", "AveragePool", &[0], Same),
    ("com.microsoft", "QLinearGlobalAveragePool", "GlobalAveragePool", &[0], Same),
    ("com.microsoft", "QLinearLeakyRelu", "Identity", &[0], Same),
    ("com.microsoft", "QLinearMul", "Add", &[0, 3], Same),
    ("com.microsoft", "QLinearSigmoid", "Identity", &[0], Same),
    ("com.microsoft", "QLinearSoftmax", "Identity", &[0], Same),
    ("com.microsoft", "QuantizeLinear", "QuantizeLinear", &[0, 1, 2], OfOperand(2, DataType::Uint8)),
];

/// A node whose rule says what a node without a rule gives.
pub(super) struct StandIn {
    pub(super) node: Node,
    pub(super) inputs: Vec<NodeIo>,
    element: Option<DataType>,
}

impl StandIn {
    /// The node that stands in for `node`; `None` where none does.
    pub(super) fn of(node: &Node, inputs: &[NodeIo]) -> Option<Self> {
        // The pools of the runtime's own domain know images with the channels last.
        let channels_last = node.attr("channels_last").and_then(Attribute::as_int).unwrap_or(0) != 0;
        let (_, _, rule, operands, element) = STAND_INS
            .iter()
            .find(|(domain, op, ..)| *domain == node.domain && *op == node.op_type)
            .filter(|_| !channels_last)?;
        let mut stand_in = node.clone();
        (*rule).clone_into(&mut stand_in.op_type);
        stand_in.domain.clear();
        stand_in.inputs = operands
            .iter()
            .map_while(|&index| node.inputs.get(index).copied())
            .collect();
        let picked = operands.iter().map_while(|&index| inputs.get(index).cloned()).collect();
        let element = match *element {
            Same => None,
            Is(element) => Some(element),
            OfOperand(index, default) => {
                let info = inputs.get(index).and_then(|io| io.type_info.as_ref());
                Some(info.map_or(default, |info| info.dtype))
            }
        };
        Some(Self {
            node: stand_in,
            inputs: picked,
            element,
        })
    }

    /// Puts the element type of the node itself into the results of its stand-in.
    pub(super) fn retype(&self, results: &mut [NodeIo]) {
        let info = results.first_mut().and_then(|io| io.type_info.as_mut());
        if let (Some(info), Some(element)) = (info, self.element) {
            info.dtype = element;
        }
    }
}
