//! Types of values back in the words of the file, for models that are made of parts of others.

use onnx_protobuf::tensor_shape_proto::{Dimension, dimension};
use onnx_protobuf::{TensorShapeProto, TypeProto, ValueInfoProto, type_proto};
use remat_ir::{Dim, ElementType, ValueType};

/// The entry of a list of values that says a value's type; `None` where ONNX cannot say it.
#[must_use]
pub fn value_info(name: &str, ty: &ValueType) -> Option<ValueInfoProto> {
    Some(ValueInfoProto {
        name: name.to_owned(),
        type_: Some(type_proto(ty)?).into(),
        ..ValueInfoProto::default()
    })
}

/// The type as the file would state it, what [`crate::value_type`] reads; `None` where nothing is known.
#[must_use]
pub fn type_proto(ty: &ValueType) -> Option<TypeProto> {
    let inner = |ty: &ValueType| type_proto(ty).into();
    let value = match ty {
        ValueType::Tensor { element, shape } => type_proto::Value::TensorType(type_proto::Tensor {
            elem_type: code(*element),
            shape: shape.as_deref().map(shape_proto).into(),
            ..type_proto::Tensor::default()
        }),
        ValueType::SparseTensor { element, shape } => type_proto::Value::SparseTensorType(type_proto::SparseTensor {
            elem_type: code(*element),
            shape: shape.as_deref().map(shape_proto).into(),
            ..type_proto::SparseTensor::default()
        }),
        ValueType::Sequence(element) => type_proto::Value::SequenceType(type_proto::Sequence {
            elem_type: inner(element),
            ..type_proto::Sequence::default()
        }),
        ValueType::Optional(element) => type_proto::Value::OptionalType(type_proto::Optional {
            elem_type: inner(element),
            ..type_proto::Optional::default()
        }),
        ValueType::Map { key, value } => type_proto::Value::MapType(type_proto::Map {
            key_type: code(*key),
            value_type: inner(value),
            ..type_proto::Map::default()
        }),
        ValueType::Unknown => return None,
    };
    Some(TypeProto {
        value: Some(value),
        ..TypeProto::default()
    })
}

/// The code of an element type: `ElementType` lists them in the order of their codes, from 1.
pub(crate) fn code(element: ElementType) -> i32 {
    let index = ElementType::ALL.iter().position(|&other| other == element);
    index.and_then(|index| i32::try_from(index + 1).ok()).unwrap_or(0)
}

fn shape_proto(dims: &[Dim]) -> TensorShapeProto {
    let dim = |dim: &Dim| Dimension {
        value: match dim {
            Dim::Known(size) => i64::try_from(*size).ok().map(dimension::Value::DimValue),
            Dim::Symbol(name) | Dim::Free { name: Some(name), .. } => Some(dimension::Value::DimParam(name.clone())),
            Dim::Free { name: None, .. } | Dim::Unknown => None,
        },
        ..Dimension::default()
    };
    TensorShapeProto {
        dim: dims.iter().map(dim).collect(),
        ..TensorShapeProto::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn types_read_back() {
        let tensor = ValueType::Tensor {
            element: ElementType::Int4,
            shape: Some(vec![Dim::Known(3), Dim::Symbol("n".into()), Dim::Unknown]),
        };
        let nested = ValueType::Optional(Box::new(ValueType::Sequence(Box::new(tensor.clone()))));
        let map = ValueType::Map {
            key: ElementType::String,
            value: Box::new(tensor.clone()),
        };
        for ty in [tensor, nested, map] {
            let proto = type_proto(&ty).expect("it is known");
            assert_eq!(crate::value_type(&proto, &BTreeMap::new()), Ok(ty));
        }
        assert_eq!(type_proto(&ValueType::Unknown), None);
    }
}
