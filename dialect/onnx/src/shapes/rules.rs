//! What the inference crate's rules leave open although it follows: results that are typed as an operand is, operators without a rule,
//! and results whose rank is known even if their extents are not.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, TypeInfo};
use remat_operators::{ResultType, operator};

use super::blocked;
use super::learning;
use super::symbols::{Symbols, data_type};
use super::training;
use crate::types::MAX_RANK;

/// Adds known types to the results of a node.
pub(super) fn complete(node: &Node, inputs: &[NodeIo], results: &mut [NodeIo], symbols: &mut Symbols<'_>) {
    let row = operator(&node.domain, &node.op_type);
    for (result, &stated) in results.iter_mut().zip(row.results) {
        if is_open(result) {
            result.type_info = by_operand(stated, inputs);
        }
    }
    let others = match node.domain.as_str() {
        "ai.onnx.ml" => learning::results(node, inputs),
        // Some operators of training are registered in the default domain.
        "com.microsoft" | "" => training::results(node, inputs),
        _ => Vec::new(),
    };
    for (result, info) in results.iter_mut().zip(others) {
        if is_open(result) {
            result.type_info = info;
        }
    }
    if node.domain == "com.microsoft.nchwc"
        && let Some(result) = results.first_mut().filter(|result| is_open(result))
    {
        result.type_info = blocked::result(node, inputs);
    }
    if let Some(result) = results
        .first_mut()
        .filter(|result| node.is_default_domain() && is_open(result))
    {
        result.type_info = shape(node, inputs, symbols);
    }
}

fn is_open(result: &NodeIo) -> bool {
    result.type_info.is_none() && result.value_type.is_none()
}

/// The type of a result of which the table says that it follows from operands.
fn by_operand(stated: ResultType, inputs: &[NodeIo]) -> Option<TypeInfo> {
    let info = |index: usize| inputs.get(index)?.type_info.as_ref();
    Some(match stated {
        ResultType::Other => return None,
        ResultType::Like(index) => info(index)?.clone(),
        ResultType::LikeOf(index, element) => TypeInfo::new(data_type(element), info(index)?.shape.clone()),
        ResultType::Leading(index) => {
            let info = info(index)?;
            TypeInfo::new(info.dtype, vec![info.shape.first()?.clone()])
        }
        ResultType::Listed { shape, element } => {
            let list = inputs
                .get(shape)?
                .shape_data
                .as_ref()
                .filter(|list| list.float_elems.is_none())?;
            TypeInfo::new(info(element)?.dtype, list.elems.clone())
        }
        ResultType::Flag => TypeInfo::new(DataType::Bool, vec![DimExpr::constant(1)]),
    })
}

/// The type of a result whose extents depend on values that are not known, but whose rank does not.
fn shape(node: &Node, inputs: &[NodeIo], symbols: &mut Symbols<'_>) -> Option<TypeInfo> {
    let first = inputs.first()?.type_info.as_ref();
    // Number of elements of a vector operand.
    let length = |index: usize| {
        let [length] = inputs.get(index)?.type_info.as_ref()?.shape.as_slice() else {
            return None;
        };
        length
            .as_const()
            .and_then(|length| usize::try_from(length).ok())
            .filter(|&length| length <= MAX_RANK)
    };
    let mut open = |rank: usize| (0..rank).map(|_| symbols.interner.fresh_dim()).collect::<Vec<_>>();
    match node.op_type.as_str() {
        "Trilu" => first.cloned(),
        // One window of each channel for each region.
        "RoiAlign" | "MaxRoiPool" => {
            let (info, regions) = (first?, inputs.get(1)?.type_info.as_ref()?);
            let pooled = node.attr("pooled_shape").and_then(Attribute::as_ints);
            let extent = |name| node.attr(name).and_then(Attribute::as_int).unwrap_or(1);
            let window = match pooled {
                Some(&[height, width]) => [height, width],
                _ => [extent("output_height"), extent("output_width")],
            };
            let [regions, channels] = [regions.shape.first()?.clone(), info.shape.get(1)?.clone()];
            let [height, width] = window.map(DimExpr::constant);
            Some(TypeInfo::new(info.dtype, vec![regions, channels, height, width]))
        }
        "Upsample" => {
            let info = first?;
            let scales = match node.attr("scales") {
                Some(Attribute::Floats(scales)) => scales.iter().map(|&scale| f64::from(scale)).collect(),
                _ => inputs.get(1)?.shape_data.as_ref()?.float_elems.clone()?,
            };
            let extent = |(dim, scale): (&DimExpr, f64)| {
                let scaled = (dim.as_const()? as f64 * scale).floor();
                (0.0..9e15).contains(&scaled).then(|| DimExpr::constant(scaled as i64))
            };
            let shape = (scales.len() == info.rank()).then(|| info.shape.iter().zip(scales).map(extent).collect());
            Some(TypeInfo::new(info.dtype, shape.flatten()?))
        }
        "ConstantOfShape" => {
            let dtype = match node.attr("value") {
                Some(Attribute::Tensor(value)) => value.dtype,
                _ => DataType::Float32,
            };
            Some(TypeInfo::new(dtype, open(length(0)?)))
        }
        op if op.starts_with("Reduce") => {
            let info = first?;
            let keeps = node.attr("keepdims").and_then(Attribute::as_int).unwrap_or(1) != 0;
            let rank = if keeps {
                info.rank()
            } else {
                info.rank().checked_sub(length(1)?)?
            };
            Some(TypeInfo::new(info.dtype, open(rank)))
        }
        _ => None,
    }
}
