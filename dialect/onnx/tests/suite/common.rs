//! Builds small models, one line per node.

use std::collections::BTreeMap;

use remat_ir::{Graph, Op, TensorId};
use remat_onnx::proto::attribute_proto::AttributeType;
use remat_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, Message, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TypeProto, ValueInfoProto, tensor_shape_proto::Dimension,
};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};

/// Element type codes of the format.
pub(crate) const FLOAT: i32 = 1;
pub(crate) const UINT8: i32 = 2;
pub(crate) const INT8: i32 = 3;
pub(crate) const INT64: i32 = 7;
pub(crate) const BOOL: i32 = 9;

/// A tensor type; dimensions are numbers, names, or `?`: `"2 N ?"`.
pub(crate) fn tensor_type(element: i32, dims: &str) -> TypeProto {
    let mut ty = TypeProto::new();
    let tensor = ty.mut_tensor_type();
    tensor.elem_type = element;
    let shape = tensor.shape.mut_or_insert_default();
    for text in dims.split_whitespace() {
        let mut dim = Dimension::new();
        match text.parse::<i64>() {
            Ok(value) => dim.set_dim_value(value),
            Err(_) if text != "?" => dim.set_dim_param(text.to_owned()),
            Err(_) => {}
        }
        shape.dim.push(dim);
    }
    ty
}

pub(crate) fn value(name: &str, ty: Option<TypeProto>) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        type_: ty.into(),
        ..ValueInfoProto::default()
    }
}

pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let strings = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
    NodeProto {
        op_type: op.to_owned(),
        input: strings(inputs),
        output: strings(outputs),
        ..NodeProto::default()
    }
}

pub(crate) trait NodeExt {
    fn named(self, name: &str) -> Self;
    fn domain(self, domain: &str) -> Self;
    fn int(self, name: &str, value: i64) -> Self;
    fn ints(self, name: &str, values: &[i64]) -> Self;
    fn tensor(self, name: &str, value: TensorProto) -> Self;
    fn graph(self, name: &str, value: GraphProto) -> Self;
}

fn with(mut node: NodeProto, name: &str, kind: AttributeType, fill: impl FnOnce(&mut AttributeProto)) -> NodeProto {
    let mut attribute = AttributeProto {
        name: name.to_owned(),
        type_: kind.into(),
        ..AttributeProto::default()
    };
    fill(&mut attribute);
    node.attribute.push(attribute);
    node
}

impl NodeExt for NodeProto {
    fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }
    fn domain(mut self, domain: &str) -> Self {
        self.domain = domain.to_owned();
        self
    }
    fn int(self, name: &str, value: i64) -> Self {
        with(self, name, AttributeType::INT, |a| a.i = value)
    }
    fn ints(self, name: &str, values: &[i64]) -> Self {
        with(self, name, AttributeType::INTS, |a| a.ints = values.to_vec())
    }
    fn tensor(self, name: &str, value: TensorProto) -> Self {
        with(self, name, AttributeType::TENSOR, |a| a.t = Some(value).into())
    }
    fn graph(self, name: &str, value: GraphProto) -> Self {
        with(self, name, AttributeType::GRAPH, |a| a.g = Some(value).into())
    }
}

pub(crate) fn tensor(name: &str, element: i32, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: element,
        dims: dims.to_vec(),
        ..TensorProto::default()
    }
}

/// A vector of integers.
pub(crate) fn integers(name: &str, values: &[i64]) -> TensorProto {
    let mut vector = tensor(name, INT64, &[i64::try_from(values.len()).unwrap()]);
    vector.int64_data = values.to_vec();
    vector
}

/// A tensor whose values lie in `location`.
pub(crate) fn external(name: &str, dims: &[i64], entries: &[(&str, &str)]) -> TensorProto {
    let mut tensor = tensor(name, FLOAT, dims);
    tensor.data_location = remat_onnx::proto::tensor_proto::DataLocation::EXTERNAL.into();
    tensor.external_data = entries.iter().map(|(key, value)| entry(key, value)).collect();
    tensor
}

pub(crate) fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto {
        key: key.to_owned(),
        value: value.to_owned(),
        ..StringStringEntryProto::default()
    }
}

/// A graph: inputs with types, outputs by name.
pub(crate) fn graph(inputs: &[(&str, TypeProto)], nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: "g".to_owned(),
        node: nodes,
        input: inputs.iter().map(|(name, ty)| value(name, Some(ty.clone()))).collect(),
        output: outputs.iter().map(|name| value(name, None)).collect(),
        ..GraphProto::default()
    }
}

pub(crate) fn function(
    domain: &str,
    name: &str,
    inputs: &[&str],
    outputs: &[&str],
    nodes: Vec<NodeProto>,
) -> FunctionProto {
    let strings = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
    FunctionProto {
        name: name.to_owned(),
        domain: domain.to_owned(),
        input: strings(inputs),
        output: strings(outputs),
        node: nodes,
        opset_import: vec![opset("", 17), opset(domain, 1)],
        ..FunctionProto::default()
    }
}

pub(crate) fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto {
        domain: domain.to_owned(),
        version,
        ..OperatorSetIdProto::default()
    }
}

pub(crate) fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: 8,
        opset_import: vec![opset("", 17)],
        graph: Some(graph).into(),
        ..ModelProto::default()
    }
}

pub(crate) fn vector() -> TypeProto {
    tensor_type(FLOAT, "8")
}

pub(crate) fn open(model: &ModelProto) -> Result<OnnxModel, OnnxError> {
    open_with(model, &[], &[])
}

pub(crate) fn open_with(
    model: &ModelProto,
    dims: &[(&str, u64)],
    sizes: &[(&str, u64)],
) -> Result<OnnxModel, OnnxError> {
    let map = |pairs: &[(&str, u64)]| {
        pairs
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>()
    };
    let options = ImportOptions {
        open_sizes: false,
        dims: map(dims),
        sizes: map(sizes),
    };
    OnnxModel::from_bytes(&model.write_to_bytes().unwrap(), None, &options)
}

/// The model of a graph, imported.
pub(crate) fn import(graph: GraphProto) -> OnnxModel {
    open(&model(graph)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn error(graph: GraphProto) -> String {
    open(&model(graph)).expect_err("the model imports").to_string()
}

pub(crate) fn op<'g>(graph: &'g Graph, name: &str) -> &'g Op {
    graph
        .ops
        .iter()
        .find(|op| op.name == name)
        .unwrap_or_else(|| panic!("no op `{name}`"))
}

pub(crate) fn tensor_named(graph: &Graph, name: &str) -> TensorId {
    graph
        .tensors
        .iter_enumerated()
        .find(|(_, t)| t.name == name)
        .unwrap_or_else(|| panic!("no tensor `{name}`"))
        .0
}

pub(crate) fn bytes(graph: &Graph, name: &str) -> Option<u64> {
    graph.storages[graph.tensors[tensor_named(graph, name)].storage].bytes
}

/// Name of the storage a tensor lives in, with its class.
pub(crate) fn home(graph: &Graph, name: &str) -> String {
    let storage = graph.tensors[tensor_named(graph, name)].storage;
    format!("{} ({:?})", graph.storage_name(storage), graph.storages[storage].class)
}
