//! Shapes through the bodies of `If`, `Loop`, `Scan` and `SequenceMap`.
//!
//! Source: the operator definitions in the ONNX specification.

use onnx_protobuf::{GraphProto, NodeProto};
use onnx_runtime_ir::DataType;
use onnx_runtime_shape_inference::{DimExpr, NodeIo, ShapeData, TensorType, TypeInfo, ValueType as Container};

use super::value::Value;
use crate::OnnxError;
use crate::attributes::{attribute, int};
use crate::opsets::domain;
use crate::values::axis as place_of;

/// Control flow at one place, with what it asks of the inference around it.
pub(super) trait ControlFlow<'m> {
    /// The version of the standard operators.
    fn opset(&self) -> Option<u64>;

    /// The types of a node's operands.
    fn operands(&self, node: &NodeProto) -> Vec<NodeIo>;

    /// Runs a body whose first inputs are bound to `inputs`.
    fn body(&mut self, graph: &'m GraphProto, inputs: Vec<NodeIo>) -> Result<Vec<Value>, OnnxError>;

    /// Notes how often one run of its node runs a body.
    fn note_trips(&mut self, graph: &'m GraphProto, trips: Option<i64>);

    /// A dimension of which nothing is known.
    fn fresh_dim(&mut self) -> DimExpr;

    /// The outputs of a node that runs subgraphs, `None` if it is not one of the four.
    fn control_flow(&mut self, node: &'m NodeProto) -> Result<Option<Vec<Value>>, OnnxError> {
        if !domain(&node.domain).is_empty() {
            return Ok(None);
        }
        let graph = |name| attribute(node, name).and_then(|a| a.g.as_ref());
        match (node.op_type.as_str(), graph("body")) {
            ("If", _) => match (graph("then_branch"), graph("else_branch")) {
                // A condition that is known decides.
                (Some(then), Some(other)) => match self.operands(node).first().and_then(scalar) {
                    Some(0) => self.body(other, Vec::new()).map(Some),
                    Some(_) => self.body(then, Vec::new()).map(Some),
                    None => self.branches(then, other).map(Some),
                },
                _ => Ok(None),
            },
            ("Loop", Some(body)) => self.iterate(node, body).map(Some),
            ("Scan", Some(body)) if self.opset().is_none_or(|version| version >= 9) => self.scan(node, body).map(Some),
            ("SequenceMap", Some(body)) => self.map_sequence(node, body).map(Some),
            _ => Ok(None),
        }
    }

    fn branches(&mut self, then: &'m GraphProto, other: &'m GraphProto) -> Result<Vec<Value>, OnnxError> {
        let mut outputs = self.body(then, Vec::new())?;
        let others = self.body(other, Vec::new())?;
        for (value, other) in outputs.iter_mut().zip(others) {
            self.unify(&mut value.io, &other.io);
            value.tensor = None;
            value.keep_elements_like(&other);
        }
        Ok(outputs)
    }

    /// The types that a body gives if it runs more than once.
    fn types_of_body(&mut self, graph: &'m GraphProto, inputs: Vec<NodeIo>) -> Result<Vec<NodeIo>, OnnxError> {
        let outputs = self.body(graph, inputs)?;
        Ok(outputs.into_iter().map(|value| value.io).collect())
    }

    /// `Loop(M, cond, v...) -> (v..., scans...)` with a body `(i, cond, v...) -> (cond, v..., scans...)`.
    fn iterate(&mut self, node: &'m NodeProto, body: &'m GraphProto) -> Result<Vec<Value>, OnnxError> {
        let operands = self.operands(node);
        let carried_count = body.input.len().saturating_sub(2);
        let mut carried: Vec<NodeIo> = operands.iter().skip(2).take(carried_count).cloned().collect();
        carried.resize_with(carried_count, NodeIo::default);
        // A carried value may change its values, so only its type enters the body, and where the body changes that too,
        // a second pass starts from what both have in common.
        carried.iter_mut().for_each(|io| io.shape_data = None);
        let mut outputs = self.types_of_body(body, loop_inputs(&carried))?;
        let mut changed = false;
        for (io, output) in carried.iter_mut().zip(outputs.iter().skip(1)) {
            let before = (io.type_info.clone(), io.value_type.clone());
            self.unify(io, output);
            changed |= before != (io.type_info.clone(), io.value_type.clone());
        }
        if changed {
            outputs = self.types_of_body(body, loop_inputs(&carried))?;
        }
        let endless = outputs.first().is_some_and(|cond| scalar(cond) == Some(1));
        let starts = node.input.get(1).is_none_or(String::is_empty) || operands.get(1).and_then(scalar) == Some(1);
        let trips = operands
            .first()
            .and_then(scalar)
            .filter(|&count| count >= 0 && endless && starts);
        self.note_trips(body, trips);
        let extent = trips.map_or_else(|| self.fresh_dim(), DimExpr::constant);
        let mut results = Vec::with_capacity(outputs.len());
        for (index, mut io) in outputs.into_iter().skip(1).enumerate() {
            io.shape_data = None;
            match carried.get_mut(index) {
                Some(start) => {
                    self.unify(start, &io);
                    results.push(std::mem::take(start).into());
                }
                None => {
                    io.type_info = io.type_info.map(|info| stacked(&info, 0, extent.clone()));
                    results.push(io.into());
                }
            }
        }
        Ok(results)
    }

    /// `Scan` from opset 9: state variables, then slices of the scanned inputs.
    fn scan(&mut self, node: &'m NodeProto, body: &'m GraphProto) -> Result<Vec<Value>, OnnxError> {
        let scanned = int(node, "num_scan_inputs")
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(0);
        let Some(states) = body.input.len().checked_sub(scanned) else {
            return Ok(Vec::new());
        };
        let axes = |name: &str| attribute(node, name).map_or(&[][..], |a| a.ints.as_slice());
        let mut length = None;
        let mut inputs = self.operands(node);
        for (index, io) in inputs.iter_mut().enumerate() {
            io.shape_data = None;
            let Some(position) = index.checked_sub(states) else {
                continue;
            };
            let axis = axes("scan_input_axes").get(position).copied().unwrap_or(0);
            io.type_info = io.type_info.take().and_then(|mut info| {
                let axis = place_of(axis, info.rank())?;
                let extent = info.shape.remove(axis);
                length.get_or_insert(extent);
                Some(info)
            });
        }
        let outputs = self.types_of_body(body, inputs)?;
        let length = length.unwrap_or_else(|| self.fresh_dim());
        self.note_trips(body, length.as_const());
        let mut results = Vec::with_capacity(outputs.len());
        for (index, mut io) in outputs.into_iter().enumerate() {
            io.shape_data = None;
            if let Some(position) = index.checked_sub(states) {
                let axis = axes("scan_output_axes").get(position).copied().unwrap_or(0);
                io.type_info = io.type_info.and_then(|info| {
                    let axis = place_of(axis, info.rank() + 1)?;
                    Some(stacked(&info, axis, length.clone()))
                });
            }
            results.push(io.into());
        }
        Ok(results)
    }

    /// `SequenceMap`: each element of the sequences through the body.
    fn map_sequence(&mut self, node: &'m NodeProto, body: &'m GraphProto) -> Result<Vec<Value>, OnnxError> {
        let mut inputs = self.operands(node);
        for io in &mut inputs {
            if let Some(Container::Sequence(element)) = io.value_type.take() {
                *io = match *element {
                    Container::Tensor(tensor) => NodeIo {
                        type_info: tensor.to_type_info(),
                        ..NodeIo::default()
                    },
                    container => NodeIo::container(container),
                };
            }
        }
        let outputs = self.types_of_body(body, inputs)?;
        let wrap = |io: NodeIo| {
            let element = io
                .value_type
                .or_else(|| io.type_info.map(|info| Container::Tensor(TensorType::from(info))));
            element.map_or_else(NodeIo::default, |element| {
                NodeIo::container(Container::sequence(element))
            })
        };
        Ok(outputs.into_iter().map(|io| wrap(io).into()).collect())
    }

    /// Keeps what two types have in common.
    fn unify(&mut self, io: &mut NodeIo, other: &NodeIo) {
        io.shape_data = None;
        io.type_info = match (io.type_info.take(), &other.type_info) {
            (Some(mut info), Some(other)) if info.dtype == other.dtype && info.rank() == other.rank() => {
                for (dim, other) in info.shape.iter_mut().zip(&other.shape) {
                    if dim != other {
                        *dim = self.fresh_dim();
                    }
                }
                Some(info)
            }
            _ => None,
        };
        io.value_type = match (io.value_type.take(), &other.value_type) {
            (Some(container), Some(other)) => self.common(container, other),
            _ => None,
        };
    }

    fn common(&mut self, container: Container, other: &Container) -> Option<Container> {
        match (container, other) {
            (container, other) if container == *other => Some(container),
            (Container::Sequence(a), Container::Sequence(b)) => Some(Container::sequence(self.common(*a, b)?)),
            (Container::Optional(a), Container::Optional(b)) => {
                Some(Container::Optional(Box::new(self.common(*a, b)?)))
            }
            (Container::Tensor(a), Container::Tensor(b)) if a.dtype == b.dtype => {
                Some(Container::Tensor(TensorType::dtype_only(a.dtype)))
            }
            _ => None,
        }
    }
}

fn loop_inputs(carried: &[NodeIo]) -> Vec<NodeIo> {
    let iteration = NodeIo::typed(TypeInfo::new(DataType::Int64, Vec::new()));
    let mut condition = NodeIo::typed(TypeInfo::new(DataType::Bool, Vec::new()));
    condition.shape_data = Some(ShapeData::scalar(DataType::Bool, DimExpr::constant(1)));
    [iteration, condition]
        .into_iter()
        .chain(carried.iter().cloned())
        .collect()
}

/// A tensor type with a dimension inserted.
fn stacked(info: &TypeInfo, axis: usize, extent: DimExpr) -> TypeInfo {
    let mut info = info.clone();
    info.shape.insert(axis.min(info.shape.len()), extent);
    info
}

/// The value of a scalar, or of a vector of one element, that is a known number.
fn scalar(io: &NodeIo) -> Option<i64> {
    let data = io.shape_data.as_ref()?;
    if let [value] = data.elems.as_slice() {
        value.as_const()
    } else {
        None
    }
}
