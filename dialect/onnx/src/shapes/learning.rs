//! Shapes of the operators of classical machine learning, `ai.onnx.ml`, that the inference crate has no rules for.
//!
//! Source: the operator definitions of that domain in the ONNX specification; what a classifier's scores look like without a probability
//! model: ONNX Runtime, `core/providers/cpu/ml/svmclassifier.cc`.

use onnx_runtime_ir::{Attribute, DataType, Node};
use onnx_runtime_shape_inference::{DimExpr, NodeIo, TypeInfo};

/// The types of the results, by result.
pub(super) fn results(node: &Node, inputs: &[NodeIo]) -> Vec<Option<TypeInfo>> {
    let found = match node.op_type.as_str() {
        "LinearClassifier" | "TreeEnsembleClassifier" | "SVMClassifier" => classifier(node, inputs),
        "LinearRegressor" => regressor(node, inputs, "targets"),
        "TreeEnsemble" | "TreeEnsembleRegressor" => regressor(node, inputs, "n_targets"),
        "SVMRegressor" => rows(inputs).map(|rows| vec![table(DataType::Float32, rows, 1)]),
        "FeatureVectorizer" => features(node, inputs),
        "DictVectorizer" => {
            let vocabulary = length(node, &["string_vocabulary", "int64_vocabulary"]);
            vocabulary.map(|count| vec![table(DataType::Float32, DimExpr::constant(1), count)])
        }
        "OneHotEncoder" => one_hot(node, inputs),
        _ => None,
    };
    found.unwrap_or_default().into_iter().map(Some).collect()
}

/// The number of examples: one for a vector.
fn rows(inputs: &[NodeIo]) -> Option<DimExpr> {
    let info = inputs.first()?.type_info.as_ref()?;
    Some(if info.rank() < 2 {
        DimExpr::constant(1)
    } else {
        info.shape[0].clone()
    })
}

fn table(dtype: DataType, rows: DimExpr, columns: i64) -> TypeInfo {
    TypeInfo::new(dtype, vec![rows, DimExpr::constant(columns)])
}

/// The length of the first list attribute that is there and not empty.
fn length(node: &Node, names: &[&str]) -> Option<i64> {
    let lengths = names.iter().filter_map(|name| match node.attr(name)? {
        Attribute::Strings(list) => Some(list.len()),
        Attribute::Ints(list) => Some(list.len()),
        Attribute::Floats(list) => Some(list.len()),
        _ => None,
    });
    i64::try_from(lengths.into_iter().find(|&length| length > 0)?).ok()
}

/// A label for each example, and a score for each example and class.
fn classifier(node: &Node, inputs: &[NodeIo]) -> Option<Vec<TypeInfo>> {
    let strings = ["classlabels_strings"];
    let texts = length(node, &strings).is_some();
    let classes = length(node, &["classlabels_strings", "classlabels_ints", "classlabels_int64s"])?;
    let voting = node.op_type == "SVMClassifier" && length(node, &["prob_a"]).is_none();
    // Every pair of classes has a score.
    let scores = if voting && classes > 2 {
        classes.checked_mul(classes - 1)? / 2
    } else {
        classes
    };
    let label = if texts { DataType::String } else { DataType::Int64 };
    let rows = rows(inputs)?;
    Some(vec![
        TypeInfo::new(label, vec![rows.clone()]),
        table(DataType::Float32, rows, scores),
    ])
}

fn regressor(node: &Node, inputs: &[NodeIo], targets: &str) -> Option<Vec<TypeInfo>> {
    let targets = node.attr(targets).and_then(Attribute::as_int).unwrap_or(1);
    let double = inputs.first()?.type_info.as_ref()?.dtype == DataType::Float64 && node.op_type == "TreeEnsemble";
    let dtype = if double { DataType::Float64 } else { DataType::Float32 };
    Some(vec![table(dtype, rows(inputs)?, targets)])
}

fn features(node: &Node, inputs: &[NodeIo]) -> Option<Vec<TypeInfo>> {
    let dimensions = node.attr("inputdimensions").and_then(Attribute::as_ints)?;
    let columns = dimensions
        .iter()
        .try_fold(0_i64, |sum, &count| sum.checked_add(count))?;
    Some(vec![table(DataType::Float32, rows(inputs)?, columns)])
}

fn one_hot(node: &Node, inputs: &[NodeIo]) -> Option<Vec<TypeInfo>> {
    let categories = length(node, &["cats_int64s", "cats_strings"])?;
    let mut shape = inputs.first()?.type_info.as_ref()?.shape.clone();
    shape.push(DimExpr::constant(categories));
    Some(vec![TypeInfo::new(DataType::Float32, shape)])
}
