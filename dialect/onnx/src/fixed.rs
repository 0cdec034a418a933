//! Dimensions that are fixed: the model states their numbers in the place of their names, so that a runtime refuses every other size.

use onnx_protobuf::tensor_shape_proto::dimension::Value;
use onnx_protobuf::{GraphProto, ModelProto, TensorShapeProto, TypeProto, type_proto};

use remat_formula::size_of;

use crate::attributes::subgraphs_mut;
use crate::types::dimension_names;
use crate::{ImportOptions, OnnxError};

/// Puts the numbers of fixed dimensions into all types that the model states, and into its inputs where those have no name for them.
pub(crate) fn fix_dims(model: &mut ModelProto, options: &ImportOptions) {
    if options.fixed.is_empty() {
        return;
    }
    let mut fixed = options.dims.clone();
    fixed.retain(|name, _| options.fixed.contains(name));
    let value_of = |name: &str| i64::try_from(size_of(name, &fixed)?).ok();
    let Some(graph) = model.graph.as_mut() else { return };
    for input in &mut graph.input {
        for (axis, dim) in input.type_.as_mut().into_iter().flat_map(unnamed) {
            if let Some(value) = value_of(&format!("{}[{axis}]", input.name)) {
                *dim = Some(Value::DimValue(value));
            }
        }
    }
    fix_graph(graph, &value_of);
    for function in &mut model.functions {
        let stated = function.value_info.iter_mut();
        let types = stated.filter_map(|value| value.type_.as_mut());
        types.for_each(|ty| fix_type(ty, &value_of));
        for graph in function.node.iter_mut().flat_map(subgraphs_mut) {
            fix_graph(graph, &value_of);
        }
    }
}

/// # Errors
/// [`OnnxError::UnknownDim`] if the model has no dimension of a name that is fixed, [`OnnxError::FixedWithoutValue`].
pub(crate) fn check_fixed(model: &ModelProto, options: &ImportOptions) -> Result<(), OnnxError> {
    let mut names = None;
    for name in &options.fixed {
        if !options.dims.contains_key(name) {
            return Err(OnnxError::FixedWithoutValue(name.clone()));
        }
        let known = names.get_or_insert_with(|| {
            let mut names = dimension_names(model);
            for input in &model.graph.get_or_default().input {
                let mut ty = input.type_.get_or_default().clone();
                names.extend(unnamed(&mut ty).map(|(axis, _)| format!("{}[{axis}]", input.name)));
            }
            names
        });
        if !known.contains(name) {
            return Err(OnnxError::UnknownDim {
                name: name.clone(),
                known: known.iter().cloned().collect(),
            });
        }
    }
    Ok(())
}

fn fix_graph(graph: &mut GraphProto, value_of: &dyn Fn(&str) -> Option<i64>) {
    let values = graph
        .input
        .iter_mut()
        .chain(&mut graph.output)
        .chain(&mut graph.value_info);
    for ty in values.filter_map(|value| value.type_.as_mut()) {
        fix_type(ty, value_of);
    }
    for inner in graph.node.iter_mut().flat_map(subgraphs_mut) {
        fix_graph(inner, value_of);
    }
}

fn fix_type(ty: &mut TypeProto, value_of: &dyn Fn(&str) -> Option<i64>) {
    for dim in shape(ty).into_iter().flat_map(|shape| &mut shape.dim) {
        if let Some(Value::DimParam(name)) = &dim.value
            && let Some(value) = value_of(name)
        {
            dim.value = Some(Value::DimValue(value));
        }
    }
}

/// The shape that a type states, in sequences that of the elements.
fn shape(ty: &mut TypeProto) -> Option<&mut TensorShapeProto> {
    match ty.value.as_mut()? {
        type_proto::Value::TensorType(tensor) => tensor.shape.as_mut(),
        type_proto::Value::SparseTensorType(tensor) => tensor.shape.as_mut(),
        type_proto::Value::SequenceType(sequence) => shape(sequence.elem_type.as_mut()?),
        type_proto::Value::OptionalType(optional) => shape(optional.elem_type.as_mut()?),
        _ => None,
    }
}

/// The dimensions of a type that have neither number nor name, by axis.
fn unnamed(ty: &mut TypeProto) -> impl Iterator<Item = (usize, &mut Option<Value>)> {
    let dims = shape(ty).into_iter().flat_map(|shape| &mut shape.dim).enumerate();
    dims.filter_map(|(axis, dim)| {
        let is_open = match &dim.value {
            None => true,
            Some(Value::DimParam(name)) => name.is_empty(),
            Some(Value::DimValue(value)) => *value == -1,
            Some(_) => false,
        };
        is_open.then_some((axis, &mut dim.value))
    })
}
