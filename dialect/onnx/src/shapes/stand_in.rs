//! Operators the inference crate has no rule for, or one that misses attributes, but whose result has the shape that another
//! operator would give.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::NodeIo;
use remat_operators::{Element, operator};

use super::symbols::data_type;

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
        let rule = operator(&node.domain, &node.op_type).stand_in;
        let rule = rule.filter(|_| !channels_last)?;
        let mut stand_in = node.clone();
        rule.name.clone_into(&mut stand_in.op_type);
        stand_in.domain.clear();
        let operands = rule.operands.iter();
        let picked = operands
            .clone()
            .map_while(|&index| inputs.get(index).cloned())
            .collect();
        stand_in.inputs = operands.map_while(|&index| node.inputs.get(index).copied()).collect();
        let element = match rule.element {
            Element::Same => None,
            Element::Is(element) => Some(data_type(element)),
            Element::OfOperand(index, default) => {
                let info = inputs.get(index).and_then(|io| io.type_info.as_ref());
                Some(info.map_or_else(|| data_type(default), |info| info.dtype))
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
