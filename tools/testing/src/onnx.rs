//! Builds small ONNX models, one line per node.

use onnx_protobuf::attribute_proto::AttributeType;
use onnx_protobuf::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, TypeProto, ValueInfoProto, tensor_shape_proto::Dimension,
};

/// 32-bit floating point, by the format's code of element types.
pub const FLOAT: i32 = 1;
/// Half precision.
pub const FLOAT16: i32 = 10;
/// Unsigned bytes.
pub const UINT8: i32 = 2;
/// Bytes.
pub const INT8: i32 = 3;
/// 64-bit integers.
pub const INT64: i32 = 7;
/// Truth values.
pub const BOOL: i32 = 9;

/// A tensor type; dimensions are numbers, names, or `?`: `"2 N ?"`.
#[must_use]
pub fn tensor_type(element: i32, dims: &str) -> TypeProto {
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

/// A value with its type.
#[must_use]
pub fn value(name: &str, ty: Option<TypeProto>) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        type_: ty.into(),
        ..ValueInfoProto::default()
    }
}

/// A node of the default domain.
#[must_use]
pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let strings = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect();
    NodeProto {
        op_type: op.to_owned(),
        input: strings(inputs),
        output: strings(outputs),
        ..NodeProto::default()
    }
}

/// What else a node has.
pub trait NodeExt {
    /// Its name.
    fn named(self, name: &str) -> Self;
    /// Its domain.
    fn domain(self, domain: &str) -> Self;
    /// An attribute.
    fn int(self, name: &str, value: i64) -> Self;
    /// An attribute.
    fn ints(self, name: &str, values: &[i64]) -> Self;
    /// An attribute.
    fn text(self, name: &str, value: &str) -> Self;
    /// An attribute.
    fn tensor(self, name: &str, value: TensorProto) -> Self;
    /// An attribute.
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
    fn text(self, name: &str, value: &str) -> Self {
        with(self, name, AttributeType::STRING, |a| {
            a.s = value.as_bytes().to_vec();
        })
    }
    fn tensor(self, name: &str, value: TensorProto) -> Self {
        with(self, name, AttributeType::TENSOR, |a| a.t = Some(value).into())
    }
    fn graph(self, name: &str, value: GraphProto) -> Self {
        with(self, name, AttributeType::GRAPH, |a| a.g = Some(value).into())
    }
}

/// A tensor without elements.
#[must_use]
pub fn tensor(name: &str, element: i32, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: element,
        dims: dims.to_vec(),
        ..TensorProto::default()
    }
}

/// A vector of integers.
#[must_use]
pub fn integers(name: &str, values: &[i64]) -> TensorProto {
    let mut vector = tensor(name, INT64, &[i64::try_from(values.len()).unwrap_or(i64::MAX)]);
    vector.int64_data = values.to_vec();
    vector
}

/// A tensor whose values lie in `location`.
#[must_use]
pub fn external(name: &str, dims: &[i64], entries: &[(&str, &str)]) -> TensorProto {
    let mut tensor = tensor(name, FLOAT, dims);
    tensor.data_location = onnx_protobuf::tensor_proto::DataLocation::EXTERNAL.into();
    tensor.external_data = entries.iter().map(|(key, value)| entry(key, value)).collect();
    tensor
}

/// A pair of texts.
#[must_use]
pub fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto {
        key: key.to_owned(),
        value: value.to_owned(),
        ..StringStringEntryProto::default()
    }
}

/// A graph: inputs with types, outputs by name.
#[must_use]
pub fn graph(inputs: &[(&str, TypeProto)], nodes: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    GraphProto {
        name: "g".to_owned(),
        node: nodes,
        input: inputs.iter().map(|(name, ty)| value(name, Some(ty.clone()))).collect(),
        output: outputs.iter().map(|name| value(name, None)).collect(),
        ..GraphProto::default()
    }
}

/// A function of a model.
#[must_use]
pub fn function(domain: &str, name: &str, inputs: &[&str], outputs: &[&str], nodes: Vec<NodeProto>) -> FunctionProto {
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

/// A version of a domain.
#[must_use]
pub fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto {
        domain: domain.to_owned(),
        version,
        ..OperatorSetIdProto::default()
    }
}

/// The model of a graph.
#[must_use]
pub fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: 8,
        opset_import: vec![opset("", 17)],
        graph: Some(graph).into(),
        ..ModelProto::default()
    }
}

/// A tensor of 32-bit floating-point numbers between -1 and 1, which look random.
#[must_use]
pub fn numbers(name: &str, dims: &[i64]) -> TensorProto {
    let count = dims.iter().product::<i64>();
    let number = |index: i64| ((index * 7_919 + 13) % 2_003) as f32 / 1_001.5 - 1.0;
    TensorProto {
        float_data: (0..count).map(number).collect(),
        ..tensor(name, FLOAT, dims)
    }
}
