//! Names and attributes of operations, as cost models read them.

use std::collections::BTreeMap;

use melior::ir::attribute::{IntegerAttribute, StringAttribute};
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute as MlirAttribute, OperationRef};
use remat_ir::Attribute;

use crate::ffi::OpFacts;

/// Longest list that is read: cost models want kernel sizes, not weights.
const MAX_LIST: usize = 16;

/// Domain and type of an operation in the graph: dialect and mnemonic, but for ONNX operators, which have the empty domain whichever
/// dialect carries them (`onnx.Conv`, `torch.operator "onnx.Conv"`).
pub(crate) fn identity(op: OperationRef<'_, '_>) -> (String, String) {
    let name = op.name();
    let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
    if name == "torch.operator"
        && let Ok(carried) = op.attribute("name").and_then(StringAttribute::try_from)
        && let Some(operator) = carried.value().strip_prefix("onnx.")
    {
        return (String::new(), operator.to_owned());
    }
    match name.split_once('.') {
        Some(("onnx", operator)) => (String::new(), operator.to_owned()),
        Some((dialect, mnemonic)) => (dialect.to_owned(), mnemonic.to_owned()),
        None => ("builtin".to_owned(), name),
    }
}

/// The small attributes of an operation under the names of their operator, and what its loops say.
pub(crate) fn attributes(op: OperationRef<'_, '_>, facts: OpFacts) -> BTreeMap<String, Attribute> {
    let mut read = BTreeMap::new();
    for (name, value) in op.attributes() {
        let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
        let name = name.strip_prefix("torch.onnx.").unwrap_or(&name);
        if let Some(value) = attribute(value) {
            read.insert(name.to_owned(), value);
        }
    }
    if facts.structured {
        let class = match (facts.contracts, facts.reduces, facts.transcendental) {
            (true, _, _) => "contraction",
            (_, true, _) => "reduction",
            (_, _, true) => "transcendental",
            (false, false, false) => "elementwise",
        };
        read.insert("loops".to_owned(), Attribute::String(class.as_bytes().to_vec()));
        read.insert(
            "operations".to_owned(),
            Attribute::Int(facts.iterations.max(0).saturating_mul(facts.body_ops)),
        );
    }
    read
}

fn attribute(value: MlirAttribute<'_>) -> Option<Attribute> {
    if let Ok(integer) = IntegerAttribute::try_from(value) {
        return Some(Attribute::Int(integer.value()));
    }
    if let Ok(text) = StringAttribute::try_from(value) {
        return Some(Attribute::String(text.value().as_bytes().to_vec()));
    }
    integers(value).map(Attribute::Ints)
}

/// A short list of integers, in either of the forms that lists have.
fn integers(value: MlirAttribute<'_>) -> Option<Vec<i64>> {
    use melior::ir::attribute::{ArrayAttribute, DenseI64ArrayAttribute};
    if let Ok(dense) = DenseI64ArrayAttribute::try_from(value) {
        return (dense.len() <= MAX_LIST).then(|| (0..dense.len()).filter_map(|index| dense.element(index).ok()).collect());
    }
    let array = ArrayAttribute::try_from(value).ok()?;
    if array.len() > MAX_LIST {
        return None;
    }
    let element = |index| Some(IntegerAttribute::try_from(array.element(index).ok()?).ok()?.value());
    (0..array.len()).map(element).collect()
}
