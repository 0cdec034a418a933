//! What ONNX Runtime has no kernel for on a CPU and takes apart into sums, of which nothing can be made, written so that it can run in two passes.
//!
//! - `GroupNormalization`: as a normalization of instances between two reshapes. It has to run in two passes then: the runtime's own kernel for instances is
//!   further from double precision than what it takes apart, up to 150 times on images of 96 x 96.
//! - `Softmax` and `LogSoftmax` in half precision of many columns: in single precision, in which the runtime computes the sums, too.
//!
//! Source: ONNX operators, `GroupNormalization` of versions 18 (a scale for each group) and 21 (a scale for each channel), `Softmax` of version 13.

use std::collections::{BTreeSet, HashMap};

use onnx_protobuf::{GraphProto, NodeProto, TensorProto};
use remat_ir::{Attribute, ElementType, ValueType};

use crate::attributes::{attribute, int, to_proto};
use crate::opsets::{domain, opsets};
use crate::{OnnxModel, proto_type};

/// What normalizations add where they do not say.
const EPSILON: f32 = 1e-5;

/// The version of ONNX's operators from which on a softmax that says nothing is along the last axis.
const LAST_AXIS: u64 = 13;

/// Of the largest result an operand has at least this share, as a divisor: smaller ones stay as they are.
const LARGE: u64 = 10;

/// Writes the large normalizations of groups in the main `graph` of `model`, and its large softmaxes in half precision, so that they can run in two passes, where
/// their shapes are known; whether there are some.
pub fn write_for_two_passes(model: &OnnxModel, graph: &mut GraphProto) -> bool {
    let main = model.graph();
    let sized = main.tensors.iter().filter(|tensor| !tensor.ty.has_free_dims());
    let types: HashMap<&str, &ValueType> = sized.map(|tensor| (tensor.name.as_str(), &tensor.ty)).collect();
    let made = main.tensors.iter().filter(|tensor| tensor.producer.is_some());
    let largest = made.filter_map(|tensor| bytes(&tensor.ty)).max().unwrap_or(0);
    let version = opsets(&model.proto.opset_import).get("").copied().unwrap_or(0);
    let default_axis = if version < LAST_AXIS { 1 } else { -1 };
    let taken = model.reserved_names();
    let mut writer = Writer {
        taken: taken.into_iter().map(str::to_owned).collect(),
        nodes: Vec::with_capacity(graph.node.len()),
        constants: Vec::new(),
    };
    let mut is_changed = false;
    for node in std::mem::take(&mut graph.node) {
        if let Some(norm) = Norm::of(&node, &types, largest / LARGE) {
            writer.write(&norm);
        } else if is_half_softmax(&node, &types, (default_axis, largest / LARGE)) {
            writer.write_widened(node);
        } else {
            writer.nodes.push(node);
            continue;
        }
        is_changed = true;
    }
    graph.node = writer.nodes;
    graph.initializer.extend(writer.constants);
    is_changed
}

/// A normalization of groups.
struct Norm<'n> {
    node: &'n NodeProto,
    element: ElementType,
    dims: Vec<i64>,
    groups: i64,
    /// Whether scale and bias have an element for each channel, and not for each group.
    is_by_channel: bool,
}

impl<'n> Norm<'n> {
    /// What a node is, if it is a normalization whose operand has at least `least` bytes.
    fn of(node: &'n NodeProto, types: &HashMap<&str, &ValueType>, least: u64) -> Option<Self> {
        if !domain(&node.domain).is_empty() || node.op_type != "GroupNormalization" {
            return None;
        }
        let ([data, scale, bias], [_]) = (&node.input[..], &node.output[..]) else {
            return None;
        };
        let image = *types.get(data.as_str())?;
        let (element, dims) = (image.element()?, image.known_shape()?);
        let dims: Vec<i64> = dims.into_iter().map(i64::try_from).collect::<Result<_, _>>().ok()?;
        let groups = int(node, "num_groups").filter(|&groups| groups > 0)?;
        let &channels = dims
            .get(1)
            .filter(|&&channels| channels > 0 && channels % groups == 0)?;
        let length = |operand: &String| match types.get(operand.as_str())?.known_shape()?[..] {
            [length] => i64::try_from(length).ok(),
            _ => None,
        };
        let is_by_channel = length(scale)? == channels;
        let is_understood = (is_by_channel || length(scale)? == groups)
            && length(bias) == length(scale)
            && dims.len() > 2
            && bytes(image)? >= least
            && matches!(element, ElementType::Float32 | ElementType::Float16);
        is_understood.then_some(Self {
            node,
            element,
            dims,
            groups,
            is_by_channel: is_by_channel && channels != groups,
        })
    }
}

/// Whether a node is a softmax in half precision along the last axis, of which an operand of at least `least` bytes has more columns than each matrix has rows:
/// with as many rows, tiles of these take as little.
fn is_half_softmax(node: &NodeProto, types: &HashMap<&str, &ValueType>, (default_axis, least): (i64, u64)) -> bool {
    let is_softmax = domain(&node.domain).is_empty() && matches!(&*node.op_type, "Softmax" | "LogSoftmax");
    let operand = node.input.first().and_then(|operand| types.get(operand.as_str()));
    let is_long = |ty: &&ValueType| {
        let dims = ty.known_shape().unwrap_or_default();
        let last = i64::try_from(dims.len()).unwrap_or(0) - 1;
        let axis = int(node, "axis").unwrap_or(default_axis);
        let is_last = axis == -1 || axis == last;
        is_last && matches!(dims[..], [.., rows, columns] if columns > rows)
    };
    let is_half = |ty: &&ValueType| ty.element() == Some(ElementType::Float16);
    let is_large = |ty: &&ValueType| bytes(ty).is_some_and(|own| own >= least);
    is_softmax && operand.is_some_and(|ty| is_half(ty) && is_large(ty) && is_long(ty))
}

fn bytes(ty: &ValueType) -> Option<u64> {
    ty.bytes().ok().flatten()
}

struct Writer {
    taken: BTreeSet<String>,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
}

impl Writer {
    fn write(&mut self, norm: &Norm<'_>) {
        let [data, scale, bias] = &norm.node.input[..] else {
            return;
        };
        let result = norm.node.output.first().cloned().unwrap_or_default();
        let inside = self.integers(&result, "groups", &[norm.dims[0], norm.groups, -1]);
        let image = self.integers(&result, "image", &norm.dims);
        let grouped = self.node(norm, "Reshape", "grouped", &[data, &inside]);
        let (own_scale, own_bias) = match norm.is_by_channel {
            true => (self.repeated(norm, "ones", 1.0), self.repeated(norm, "zeros", 0.0)),
            false => (scale.clone(), bias.clone()),
        };
        let normalized = self.node(
            norm,
            "InstanceNormalization",
            "normalized",
            &[&grouped, &own_scale, &own_bias],
        );
        let epsilon = attribute(norm.node, "epsilon").map_or(EPSILON, |epsilon| epsilon.f);
        if let Some(node) = self.nodes.last_mut() {
            node.attribute.extend(to_proto("epsilon", &Attribute::Float(epsilon)));
        }
        if norm.is_by_channel {
            let mut by_channel = vec![1; norm.dims.len() - 1];
            by_channel[0] = norm.dims[1];
            let shape = self.integers(&result, "channels", &by_channel);
            let whole = self.node(norm, "Reshape", "whole", &[&normalized, &image]);
            let scale = self.node(norm, "Reshape", "scale", &[scale, &shape]);
            let bias = self.node(norm, "Reshape", "bias", &[bias, &shape]);
            let scaled = self.node(norm, "Mul", "scaled", &[&whole, &scale]);
            self.node(norm, "Add", "moved", &[&scaled, &bias]);
        } else {
            self.node(norm, "Reshape", "whole", &[&normalized, &image]);
        }
        // The last node takes the place of the normalization.
        if let Some(last) = self.nodes.last_mut() {
            last.name.clone_from(&norm.node.name);
            last.output = vec![result];
        }
    }

    /// The same op of single precision, between two casts.
    fn write_widened(&mut self, mut node: NodeProto) {
        let (operand, result, name) = (node.input[0].clone(), node.output[0].clone(), node.name.clone());
        let [wide, made] = ["wide", "made"].map(|suffix| self.claim(&result, suffix));
        let cast = |from: &str, [name, to]: [&str; 2], element| NodeProto {
            name: name.to_owned(),
            op_type: "Cast".to_owned(),
            input: vec![from.to_owned()],
            output: vec![to.to_owned()],
            attribute: to_proto("to", &Attribute::Int(i64::from(proto_type::code(element))))
                .into_iter()
                .collect(),
            ..NodeProto::default()
        };
        let before = cast(&operand, [&wide, &wide], ElementType::Float32);
        let after = cast(&made, [&name, &result], ElementType::Float16);
        node.name.clone_from(&made);
        node.input = vec![wide];
        node.output = vec![made];
        self.nodes.extend([before, node, after]);
    }

    fn node(&mut self, norm: &Norm<'_>, op_type: &str, suffix: &str, operands: &[&str]) -> String {
        let name = self.claim(&norm.node.output[0], suffix);
        self.nodes.push(NodeProto {
            name: name.clone(),
            op_type: op_type.to_owned(),
            input: operands.iter().map(|&operand| operand.to_owned()).collect(),
            output: vec![name.clone()],
            ..NodeProto::default()
        });
        name
    }

    /// The same number for each group.
    fn repeated(&mut self, norm: &Norm<'_>, suffix: &str, number: f32) -> String {
        let bytes = match norm.element {
            // One has the exponent 0, which is stored as 15, above ten bits of fraction.
            ElementType::Float16 => (if number == 0.0 { 0u16 } else { 15 << 10 }).to_le_bytes().to_vec(),
            _ => number.to_le_bytes().to_vec(),
        };
        let bytes = bytes.repeat(usize::try_from(norm.groups).unwrap_or(0));
        self.constant(&norm.node.output[0], suffix, (norm.element, norm.groups), bytes)
    }

    fn integers(&mut self, stem: &str, suffix: &str, elements: &[i64]) -> String {
        let length = i64::try_from(elements.len()).unwrap_or(0);
        let bytes = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        self.constant(stem, suffix, (ElementType::Int64, length), bytes)
    }

    fn constant(&mut self, stem: &str, suffix: &str, (element, length): (ElementType, i64), bytes: Vec<u8>) -> String {
        let name = self.claim(stem, suffix);
        self.constants.push(TensorProto {
            name: name.clone(),
            data_type: proto_type::code(element),
            dims: vec![length],
            raw_data: bytes,
            ..TensorProto::default()
        });
        name
    }

    /// A name that nobody has.
    fn claim(&mut self, stem: &str, suffix: &str) -> String {
        let mut name = format!("{stem}_{suffix}");
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}
