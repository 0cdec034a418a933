//! Nodes and constants of a model file.

use remat_onnx::proto::attribute_proto::AttributeType;
use remat_onnx::proto::{AttributeProto, NodeProto, TensorProto, tensor_proto};
use remat_operators::{Operator, operator};

/// What is known of the node's operator.
pub(crate) fn row(node: &NodeProto) -> &'static Operator {
    operator(&node.domain, &node.op_type)
}

/// A node of the default domain with one result, by whose name it is called.
pub(crate) fn node(op_type: &str, inputs: &[&str], output: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        name: output.to_owned(),
        op_type: op_type.to_owned(),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        output: vec![output.to_owned()],
        attribute: attributes,
        ..NodeProto::default()
    }
}

/// A node that makes a vector of 64-bit integers; runtimes take it for a weight.
pub(crate) fn constant(values: &[i64], output: &str) -> NodeProto {
    let value = TensorProto {
        dims: vec![i64::try_from(values.len()).unwrap_or(i64::MAX)],
        data_type: tensor_proto::DataType::INT64 as i32,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    };
    node("Constant", &[], output, vec![tensor(value)])
}

/// The attribute that makes one zero of so many bytes: a constant, or what ConstantOfShape fills its result with.
pub(crate) fn zero(data_type: tensor_proto::DataType, bytes: usize) -> AttributeProto {
    tensor(TensorProto {
        dims: vec![1],
        data_type: data_type as i32,
        raw_data: vec![0; bytes],
        ..TensorProto::default()
    })
}

/// The attribute `value`.
pub(crate) fn tensor(value: TensorProto) -> AttributeProto {
    AttributeProto {
        name: "value".to_owned(),
        type_: AttributeType::TENSOR.into(),
        t: Some(value).into(),
        ..AttributeProto::default()
    }
}

/// An integer attribute.
pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        type_: AttributeType::INT.into(),
        i: value,
        ..AttributeProto::default()
    }
}

/// An attribute that holds several integers.
pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        type_: AttributeType::INTS.into(),
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}
