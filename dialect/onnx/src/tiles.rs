//! What a graph after fission needs in a file: slices and joins as nodes, constants that the passes made, weights cut in advance.
//!
//! ONNX Runtime merges nodes that have the same type, operands and attributes. Of a part that is computed again after its memory was freed
//! only one node would be left, so such nodes get an attribute that tells them apart. Attributes whose names begin with two underscores
//! are accepted on any op, by runtimes and by `onnx.checker`, and no kernel sees them.

use std::borrow::Cow;
use std::ops::Range;

use onnx_protobuf::attribute_proto::AttributeType;
use onnx_protobuf::{AttributeProto, GraphProto, Message, NodeProto, StringStringEntryProto, TensorProto};
use remat_ir::{Attribute, ElementType, Graph, Op, StorageClass, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::external::is_external;
use crate::opsets::opsets;
use crate::scope::claim;
use crate::tensor::{dense_type, values};
use crate::{OnnxError, OnnxModel, attributes, proto_type, scope};

/// Key in a node's metadata under which stands the part of a tensor that it computes after fission.
pub const PART: &str = "remat.part";

/// The attribute of a tile that keeps runtimes from merging it with another one; its value differs from tile to tile.
pub const TILE_MARK: &str = "__tile";

/// From this version on `Slice` has its bounds as operands.
const BOUNDS_ARE_OPERANDS: u64 = 10;

/// From this version of the format on, initializers that are listed among the inputs can be replaced.
const INPUTS_OVERRIDE: i64 = 4;

/// What fission added to a graph that is written.
pub(crate) struct Tiles<'a> {
    graph: &'a Graph,
    /// Version of the default set of operators, where the model imports it.
    version: Option<u64>,
    /// What stands for a constant that equals another one.
    same: FxHashMap<TensorId, TensorId>,
    /// Constants of the file whose elements lie in it and stay what they are.
    held: FxHashMap<&'a str, &'a TensorProto>,
    /// Constants cut from those, in the order of the graph.
    cut: Vec<(TensorId, TensorProto)>,
    /// By what they were cut from, and where.
    cuts: FxHashMap<(TensorId, Vec<Range<usize>>), TensorId>,
    /// Constants that the graph states and the file does not have.
    integers: Vec<TensorId>,
}

impl<'a> Tiles<'a> {
    /// Nothing, unless the graph has tiles.
    pub(crate) fn new(model: &'a OnnxModel, graph: &'a Graph) -> Self {
        let mut tiles = Self {
            graph,
            version: opsets(&model.proto.opset_import).get("").copied(),
            same: FxHashMap::default(),
            held: FxHashMap::default(),
            cut: Vec::new(),
            cuts: FxHashMap::default(),
            integers: Vec::new(),
        };
        if graph.ops.iter().all(|op| op.parts.is_empty()) {
            return tiles;
        }
        let main = model.proto.graph.get_or_default();
        let inputs = main.input.iter().map(|input| input.name.as_str());
        let inputs: FxHashSet<&str> = inputs.filter(|_| model.proto.ir_version >= INPUTS_OVERRIDE).collect();
        let stays = |tensor: &&TensorProto| !is_external(tensor) && !inputs.contains(tensor.name.as_str());
        tiles.held = main
            .initializer
            .iter()
            .filter(stays)
            .map(|tensor| (tensor.name.as_str(), tensor))
            .collect();
        let known: FxHashSet<&str> = model.graph.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        let mut first = FxHashMap::default();
        for (&id, elements) in &graph.values {
            let tensor = &graph.tensors[id];
            if tensor.producer.is_some() || known.contains(tensor.name.as_str()) {
                continue;
            }
            let first = *first.entry((&tensor.ty, elements)).or_insert(id);
            if first == id {
                tiles.integers.push(id);
            } else {
                tiles.same.insert(id, first);
            }
        }
        tiles
    }

    /// The name under which a tensor stands in the file.
    pub(crate) fn name(&self, tensor: TensorId) -> &'a str {
        &self.graph.tensors[self.written(tensor)].name
    }

    fn written(&self, tensor: TensorId) -> TensorId {
        self.same.get(&tensor).copied().unwrap_or(tensor)
    }

    /// Cuts a constant that lies in the file, if `op` does nothing else; then it needs no node.
    pub(crate) fn hold(&mut self, op: &Op) -> bool {
        let is_slice = op.source.is_none() && !op.parts.is_empty() && op.domain.is_empty() && op.op_type == "Slice";
        let (Some(Some(data)), Some(Some(result))) = (op.inputs.first(), op.outputs.first()) else {
            return false;
        };
        let (data, result) = (self.written(*data), *result);
        if !is_slice || self.graph.outputs.contains(&result) {
            return false;
        }
        let Some(ranges) = self.ranges(op) else { return false };
        if let Some(&same) = self.cuts.get(&(data, ranges.clone())) {
            self.same.insert(result, same);
            return true;
        }
        let name = self.name(data);
        let made = self.cut.iter().find(|(id, _)| *id == data).map(|(_, tensor)| tensor);
        let Some(tensor) = made.or_else(|| self.held.get(name).copied()) else {
            return false;
        };
        let Some(cut) = cut(tensor, &ranges, &self.graph.tensors[result].name) else {
            return false;
        };
        // Zeros, say, are the same in every piece.
        let is_same = |other: &TensorProto| {
            (other.data_type, &other.dims, &other.raw_data) == (cut.data_type, &cut.dims, &cut.raw_data)
        };
        match self.cut.iter().find(|(_, other)| is_same(other)).map(|&(id, _)| id) {
            Some(same) => {
                self.same.insert(result, same);
                self.cuts.insert((data, ranges), same);
            }
            None => {
                self.cut.push((result, cut));
                self.cuts.insert((data, ranges), result);
            }
        }
        true
    }

    /// The rows that a `Slice` of constants takes, by axis; `None` where it takes every second row, say, or the graph does not know.
    fn ranges(&self, op: &Op) -> Option<Vec<Range<usize>>> {
        let operand = |position: usize| op.inputs.get(position).copied().flatten();
        let is_constant = |id: TensorId| {
            let storage = self.graph.tensors[id].storage;
            self.graph.storages[storage].class == StorageClass::Constant || self.cut.iter().any(|&(cut, _)| cut == id)
        };
        let data = self.written(operand(0)?);
        let dims = self.graph.tensors[data]
            .ty
            .known_shape()
            .filter(|_| is_constant(data))?;
        let mut ranges: Vec<Range<usize>> = dims
            .iter()
            .map(|&dim| Some(0..usize::try_from(dim).ok()?))
            .collect::<Option<_>>()?;
        let bounds = self.bounds(op)?;
        for ((axis, start), end) in bounds.axes.iter().zip(&bounds.starts).zip(&bounds.ends) {
            let rank = i64::try_from(ranges.len()).ok()?;
            let axis = if *axis < 0 { *axis + rank } else { *axis };
            let range = ranges.get_mut(usize::try_from(axis).ok()?)?;
            let rows = i64::try_from(range.end).ok()?;
            let row = |bound: i64| if bound < 0 { bound.saturating_add(rows) } else { bound }.clamp(0, rows);
            *range = usize::try_from(row(*start)).ok()?..usize::try_from(row(*end)).ok()?;
        }
        (ranges.iter().all(|range| range.start < range.end)).then_some(ranges)
    }

    /// The bounds of a `Slice` in steps of one row; `None` where the graph does not know them.
    fn bounds(&self, op: &Op) -> Option<Bounds> {
        let operand = |position: usize| op.inputs.get(position).copied().flatten();
        let list = |position: usize| Some(self.graph.values.get(&operand(position)?)?.clone());
        let starts = list(1)?;
        let axes = match operand(3) {
            Some(_) => list(3)?,
            None => (0..i64::try_from(starts.len()).ok()?).collect(),
        };
        let is_plain = operand(4).is_none() || list(4)?.iter().all(|&step| step == 1);
        let ends = list(2)?;
        (is_plain && starts.len() == ends.len() && starts.len() == axes.len()).then_some(Bounds { starts, ends, axes })
    }

    /// The node of a `Slice`, a `Concat`, a `MaxPool` of single elements, or a `Sum`, `Max` or `Min` of parts that fission made, without its metadata.
    pub(crate) fn made(&self, op: &Op) -> Result<NodeProto, OnnxError> {
        let is_known = matches!(
            op.op_type.as_str(),
            "Slice" | "Concat" | "MaxPool" | "Sum" | "Max" | "Min"
        );
        if !op.domain.is_empty() || !is_known {
            return Err(OnnxError::foreign(&op.name, "it names no node of the model"));
        }
        let unsupported = |what: &str| OnnxError::Unsupported {
            name: op.name.clone(),
            what: what.to_owned(),
        };
        let version = self
            .version
            .ok_or_else(|| unsupported("the model does not import the operators of ONNX, of which it is one"))?;
        let mut wanted = op.attributes.clone();
        let mut operands = &op.inputs[..];
        if op.op_type == "Slice" && version < BOUNDS_ARE_OPERANDS {
            let bounds = self.bounds(op).ok_or_else(|| {
                unsupported("before version 10 of the operators, bounds must be known, and steps one")
            })?;
            for (name, list) in [("starts", bounds.starts), ("ends", bounds.ends), ("axes", bounds.axes)] {
                wanted.insert(name.to_owned(), Attribute::Ints(list));
            }
            operands = &operands[..operands.len().min(1)];
        }
        let name = |tensor: &Option<TensorId>| tensor.map_or_else(String::new, |t| self.name(t).to_owned());
        let mut node = NodeProto {
            op_type: op.op_type.clone(),
            input: operands.iter().map(name).collect(),
            output: op.outputs.iter().map(name).collect(),
            ..NodeProto::default()
        };
        attributes::change(&mut node, &wanted, self.version)
            .map_err(|name| OnnxError::foreign(&op.name, &format!("only a file could hold its attribute `{name}`")))?;
        Ok(node)
    }

    /// Adds the constants that nodes read, and takes away what nothing reads and what is said of values that are no more.
    pub(crate) fn finish(
        self,
        main: &mut GraphProto,
        reserved: &std::collections::BTreeSet<&str>,
    ) -> Result<(), OnnxError> {
        let read = read(main);
        let is_read = |name: &str| read.contains(name);
        main.initializer.retain(|tensor| is_read(&tensor.name));
        let mut taken = FxHashSet::default();
        for id in self.integers {
            let tensor = &self.graph.tensors[id];
            if is_read(&tensor.name) {
                claim(&tensor.name, reserved, &mut taken)?;
                let elements = self.graph.values.get(&id).map_or(&[][..], Vec::as_slice);
                main.initializer.push(integers(self.graph, id, elements)?);
            }
        }
        let cut = self.cut.into_iter().map(|(_, tensor)| tensor);
        main.initializer.extend(cut.filter(|tensor| is_read(&tensor.name)));
        let made = main.node.iter().flat_map(|node| &node.output);
        let given = main.input.iter().map(|input| &input.name);
        let held = main.initializer.iter().map(|tensor| &tensor.name);
        let defined: FxHashSet<&String> = made.chain(given).chain(held).collect();
        main.value_info.retain(|value| defined.contains(&value.name));
        main.quantization_annotation
            .retain(|annotation| defined.contains(&annotation.tensor_name));
        Ok(())
    }
}

struct Bounds {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Vec<i64>,
}

/// What stands in a node's metadata of the parts that it computes.
pub(crate) fn part_entry(op: &Op) -> impl Iterator<Item = StringStringEntryProto> {
    op.parts.iter().flatten().map(|part| StringStringEntryProto {
        key: PART.to_owned(),
        value: part.to_string(),
        ..StringStringEntryProto::default()
    })
}

/// Marks every tile that computes what another node computes, too. `tiles` are positions of nodes.
///
/// Nodes that read results of nodes that could be merged need no mark of their own: those are not.
pub(crate) fn mark_repeated(nodes: &mut [NodeProto], tiles: &[usize]) {
    let key = |node: &NodeProto| {
        let what = NodeProto {
            input: node.input.clone(),
            op_type: node.op_type.clone(),
            domain: node.domain.clone(),
            attribute: node.attribute.clone(),
            ..NodeProto::default()
        };
        what.write_to_bytes().unwrap_or_default()
    };
    let types: FxHashSet<&str> = tiles.iter().map(|&tile| nodes[tile].op_type.as_str()).collect();
    let alike = nodes.iter().filter(|node| types.contains(node.op_type.as_str()));
    let mut count: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
    for node in alike {
        *count.entry(key(node)).or_default() += 1;
    }
    let repeated: Vec<usize> = tiles
        .iter()
        .copied()
        .filter(|&tile| count.get(&key(&nodes[tile])).is_some_and(|&count| count > 1))
        .collect();
    for (number, tile) in (0..).zip(repeated) {
        nodes[tile].attribute.push(AttributeProto {
            name: TILE_MARK.to_owned(),
            type_: AttributeType::INT.into(),
            i: number,
            ..AttributeProto::default()
        });
    }
}

/// What nodes, subgraphs, annotations and the signature of a graph name.
fn read(main: &GraphProto) -> FxHashSet<String> {
    let operands = main.node.iter().flat_map(|node| &node.input).cloned();
    let captured = main.node.iter().flat_map(scope::captures).map(str::to_owned);
    let signature = main.input.iter().chain(&main.output).map(|value| value.name.clone());
    let annotations = main.quantization_annotation.iter();
    let scales = annotations.flat_map(|a| a.quant_parameter_tensor_names.iter().map(|entry| entry.value.clone()));
    operands.chain(captured).chain(signature).chain(scales).collect()
}

/// A constant of integers as an initializer.
fn integers(graph: &Graph, id: TensorId, elements: &[i64]) -> Result<TensorProto, OnnxError> {
    let tensor = &graph.tensors[id];
    let bad = || OnnxError::BadTensor {
        tensor: tensor.name.clone(),
        why: "its elements are not integers of 32 or 64 bits".to_owned(),
    };
    let element = tensor.ty.element().ok_or_else(bad)?;
    let raw_data = match element {
        ElementType::Int64 => elements.iter().flat_map(|element| element.to_le_bytes()).collect(),
        ElementType::Int32 => {
            let narrow: Result<Vec<i32>, _> = elements.iter().map(|&element| i32::try_from(element)).collect();
            narrow
                .map_err(|_| bad())?
                .into_iter()
                .flat_map(i32::to_le_bytes)
                .collect()
        }
        _ => return Err(bad()),
    };
    let dims = tensor.ty.known_shape().ok_or_else(bad)?;
    Ok(TensorProto {
        name: tensor.name.clone(),
        data_type: proto_type::code(element),
        dims: dims
            .iter()
            .map(|&dim| i64::try_from(dim))
            .collect::<Result<_, _>>()
            .map_err(|_| bad())?,
        raw_data,
        ..TensorProto::default()
    })
}

/// The rows of a tensor that lies in the file; `None` for strings, elements smaller than a byte, and tensors that are not what they say.
fn cut(tensor: &TensorProto, ranges: &[Range<usize>], name: &str) -> Option<TensorProto> {
    let ty = dense_type(tensor, "an initializer").ok()?;
    let element = ty.element()?;
    if element == ElementType::String || element.bits() < 8 {
        return None;
    }
    let dims: Vec<usize> = tensor
        .dims
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .collect::<Option<_>>()?;
    let is_inside = dims.len() == ranges.len() && dims.iter().zip(ranges).all(|(&dim, range)| range.end <= dim);
    let data = match &tensor.raw_data[..] {
        [] => Cow::Owned(values(tensor)?),
        raw => Cow::Borrowed(raw),
    };
    if !is_inside || data.len() as u64 != ty.bytes().ok().flatten()? {
        return None;
    }
    let mut raw_data = Vec::new();
    rows(&data, &dims, ranges, &mut raw_data);
    Some(TensorProto {
        name: name.to_owned(),
        data_type: tensor.data_type,
        dims: ranges
            .iter()
            .map(|range| i64::try_from(range.len()).ok())
            .collect::<Option<_>>()?,
        raw_data,
        ..TensorProto::default()
    })
}

/// Appends the elements in a box of an array, in row-major order.
fn rows(data: &[u8], dims: &[usize], ranges: &[Range<usize>], out: &mut Vec<u8>) {
    let (Some((&dim, dims)), Some((range, ranges))) = (dims.split_first(), ranges.split_first()) else {
        out.extend_from_slice(data);
        return;
    };
    let row = data.len() / dim.max(1);
    let is_whole = dims.iter().zip(ranges).all(|(&dim, range)| *range == (0..dim));
    if is_whole {
        out.extend_from_slice(&data[range.start * row..range.end * row]);
        return;
    }
    for index in range.clone() {
        rows(&data[index * row..(index + 1) * row], dims, ranges, out);
    }
}
