//! Types of values: from the file's `TypeProto` to the graph's [`ValueType`].

use std::collections::{BTreeMap, BTreeSet};

use onnx_protobuf::{
    GraphProto, ModelProto, NodeProto, TensorShapeProto, TypeProto, tensor_shape_proto::dimension, type_proto,
};
use protobuf::MessageField;
use remat_formula::size_of;
use remat_ir::{Dim, ElementType, ValueType};

use crate::attributes::subgraphs;

/// Bytes of a dimension's name at most: every value that depends on the dimension holds the name.
pub(crate) const MAX_NAME: usize = 1024;

/// Values have at most this many dimensions; runtimes stop at 64 or before.
pub(crate) const MAX_RANK: usize = 256;

/// Values of named dimensions, as the caller gave them.
pub(crate) type Dims = BTreeMap<String, u64>;

/// The element type with this code in `TensorProto.DataType`; `Ok(None)` for code 0, which says nothing.
///
/// # Errors
/// A text, for codes that no version of the format up to IR 13 defines.
pub fn element(code: i32) -> Result<Option<ElementType>, String> {
    // `ElementType` lists the types in the order of their codes, from 1.
    let index = usize::try_from(code).map_err(|_| format!("element type {code} does not exist"))?;
    match index.checked_sub(1) {
        None => Ok(None),
        Some(index) => ElementType::ALL.get(index).copied().map(Some).ok_or_else(|| {
            format!(
                "element type {code} is newer than the types known, 1 to {}",
                ElementType::ALL.len()
            )
        }),
    }
}

/// The type, with the dimensions in `given` replaced by their values.
///
/// # Errors
/// A text, for negative dimensions (-1, which some exporters write for "unknown", is taken as that) and unknown types.
pub fn value_type(ty: &TypeProto, given: &BTreeMap<String, u64>) -> Result<ValueType, String> {
    let inner = |ty: &MessageField<TypeProto>| -> Result<Box<ValueType>, String> {
        Ok(Box::new(
            ty.as_ref().map_or(Ok(ValueType::Unknown), |ty| value_type(ty, given))?,
        ))
    };
    Ok(match &ty.value {
        Some(type_proto::Value::TensorType(tensor)) => match element(tensor.elem_type)? {
            None => ValueType::Unknown,
            Some(element) => ValueType::Tensor {
                element,
                shape: shape(tensor.shape.as_ref(), given)?,
            },
        },
        Some(type_proto::Value::SparseTensorType(tensor)) => match element(tensor.elem_type)? {
            None => ValueType::Unknown,
            Some(element) => ValueType::SparseTensor {
                element,
                shape: shape(tensor.shape.as_ref(), given)?,
            },
        },
        Some(type_proto::Value::SequenceType(sequence)) => ValueType::Sequence(inner(&sequence.elem_type)?),
        Some(type_proto::Value::OptionalType(optional)) => ValueType::Optional(inner(&optional.elem_type)?),
        Some(type_proto::Value::MapType(map)) => match element(map.key_type)? {
            None => ValueType::Unknown,
            Some(key) => ValueType::Map {
                key,
                value: inner(&map.value_type)?,
            },
        },
        // Nothing stated, or a kind of type that is newer than the parser.
        _ => ValueType::Unknown,
    })
}

fn shape(shape: Option<&TensorShapeProto>, given: &Dims) -> Result<Option<Vec<Dim>>, String> {
    let Some(shape) = shape else { return Ok(None) };
    if shape.dim.len() > MAX_RANK {
        return Err(format!("{} dimensions are more than {MAX_RANK}", shape.dim.len()));
    }
    let dims = shape.dim.iter().map(|dim| match &dim.value {
        Some(dimension::Value::DimValue(value)) if *value != -1 => u64::try_from(*value)
            .map(Dim::Known)
            .map_err(|_| format!("dimension {value} is negative")),
        Some(dimension::Value::DimParam(name)) if name.len() > MAX_NAME => Err(format!(
            "the name of a dimension has {} bytes, more than {MAX_NAME}",
            name.len()
        )),
        Some(dimension::Value::DimParam(name)) if !name.is_empty() => {
            Ok(size_of(name, given).map_or_else(|| Dim::Symbol(name.clone()), Dim::Known))
        }
        _ => Ok(Dim::Unknown),
    });
    dims.collect::<Result<Vec<_>, _>>().map(Some)
}

/// Which dimensions of a tensor have names with given sizes.
pub(crate) fn given_names(ty: &TypeProto, given: &Dims) -> Vec<bool> {
    let Some(type_proto::Value::TensorType(tensor)) = &ty.value else {
        return Vec::new();
    };
    let dims = tensor.shape.iter().flat_map(|shape| &shape.dim);
    let is_given = dims.map(|dim| match &dim.value {
        Some(dimension::Value::DimParam(name)) => size_of(name, given).is_some(),
        _ => false,
    });
    is_given.take(MAX_RANK).collect()
}

/// Every dimension name in the model, in subgraphs and functions too.
pub(crate) fn dimension_names(model: &ModelProto) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(graph) = model.graph.as_ref() {
        of_graph(graph, &mut names);
    }
    for function in &model.functions {
        function
            .value_info
            .iter()
            .filter_map(|v| v.type_.as_ref())
            .for_each(|ty| of_type(ty, &mut names));
        function.node.iter().for_each(|node| of_node(node, &mut names));
    }
    names
}

fn of_graph(graph: &GraphProto, names: &mut BTreeSet<String>) {
    let values = graph.input.iter().chain(&graph.output).chain(&graph.value_info);
    values
        .filter_map(|v| v.type_.as_ref())
        .for_each(|ty| of_type(ty, names));
    graph.node.iter().for_each(|node| of_node(node, names));
}

fn of_node(node: &NodeProto, names: &mut BTreeSet<String>) {
    subgraphs(node).for_each(|graph| of_graph(graph, names));
}

fn of_type(ty: &TypeProto, names: &mut BTreeSet<String>) {
    let shape = match &ty.value {
        Some(type_proto::Value::TensorType(tensor)) => tensor.shape.as_ref(),
        Some(type_proto::Value::SparseTensorType(tensor)) => tensor.shape.as_ref(),
        Some(type_proto::Value::SequenceType(sequence)) => {
            return sequence.elem_type.iter().for_each(|t| of_type(t, names));
        }
        Some(type_proto::Value::OptionalType(optional)) => {
            return optional.elem_type.iter().for_each(|t| of_type(t, names));
        }
        Some(type_proto::Value::MapType(map)) => return map.value_type.iter().for_each(|t| of_type(t, names)),
        _ => None,
    };
    for dim in shape.iter().flat_map(|shape| &shape.dim) {
        if let Some(dimension::Value::DimParam(name)) = &dim.value
            && !name.is_empty()
            && !names.contains(name)
        {
            names.insert(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_codes_are_those_of_the_format() {
        let pairs = [
            (1, ElementType::Float32),
            (7, ElementType::Int64),
            (8, ElementType::String),
            (10, ElementType::Float16),
            (16, ElementType::Bfloat16),
            (20, ElementType::Float8E5M2Fnuz),
            (22, ElementType::Int4),
            (23, ElementType::Float4E2M1),
            (26, ElementType::Int2),
        ];
        for (code, expected) in pairs {
            assert_eq!(element(code), Ok(Some(expected)));
        }
        assert_eq!(element(0), Ok(None));
        assert!(element(27).is_err() && element(-1).is_err());
    }
}
