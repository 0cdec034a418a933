//! Names and attributes of operations, as cost models read them.

use std::collections::BTreeMap;

use melior::ir::operation::OperationLike;
use melior::ir::{Attribute as MlirAttribute, OperationRef};
use remat_ir::Attribute;

use crate::ffi;

/// What StableHLO calls the inner dimensions of operand 0 of a product.
const INNER: &str = "lhs_contracting_dimensions";

/// Longest list that is read: cost models want kernel sizes, not weights.
const MAX_LIST: usize = 16;

/// Domain and type of an operation in the graph: dialect and mnemonic, but for ONNX operators, which have the empty domain whichever
/// dialect carries them (`onnx.Conv`, `torch.operator "onnx.Conv"`).
pub(crate) fn identity(op: OperationRef<'_, '_>) -> (String, String) {
    let name = op.name();
    let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
    if name == "torch.operator"
        && let Some((_, carried)) = ffi::attributes(op).into_iter().find(|(name, _)| name == "name")
        && let Some(operator) = ffi::text(carried).and_then(|text| text.strip_prefix("onnx.").map(str::to_owned))
    {
        return (String::new(), operator);
    }
    match name.split_once('.') {
        Some(("onnx", operator)) => (String::new(), operator.to_owned()),
        Some((dialect, mnemonic)) => (dialect.to_owned(), mnemonic.to_owned()),
        None => ("builtin".to_owned(), name),
    }
}

/// The small attributes of an operation under the names of their operator.
pub(crate) fn attributes(op: OperationRef<'_, '_>) -> BTreeMap<String, Attribute> {
    let mut read = BTreeMap::new();
    for (name, value) in ffi::attributes(op) {
        let name = name.strip_prefix("torch.onnx.").unwrap_or(&name);
        // `kernel` is how TOSA calls it.
        let name = if name == "kernel" { "kernel_shape" } else { name };
        if name == "dot_dimension_numbers" {
            read.extend(contracted(&value.to_string()).map(|dims| (INNER.to_owned(), Attribute::Ints(dims))));
        }
        if let Some(value) = attribute(value) {
            read.insert(name.to_owned(), value);
        }
    }
    read
}

/// The inner dimensions of operand 0 of StableHLO's `dot_general`, out of the text of an attribute of its dialect. None are printed where there
/// are none.
fn contracted(text: &str) -> Option<Vec<i64>> {
    let inside = text.strip_prefix("#stablehlo.dot<")?;
    let Some((_, rest)) = inside.split_once(INNER) else {
        return Some(Vec::new());
    };
    let list = rest.split_once('[')?.1.split_once(']')?.0;
    list.split(',').map(|dim| dim.trim().parse().ok()).collect()
}

/// An integer, a text, or a short list of integers.
fn attribute(value: MlirAttribute<'_>) -> Option<Attribute> {
    let number = || ffi::integer(value).map(Attribute::Int);
    let text = || ffi::text(value).map(|text| Attribute::String(text.into_bytes()));
    let list = || ffi::integers(value, MAX_LIST).map(Attribute::Ints);
    number().or_else(text).or_else(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_dimensions_are_read_from_the_text_of_the_attribute() {
        let text = "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], \
                    lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [1, 2]>";
        assert_eq!(contracted(text), Some(vec![2, 3]));
        assert_eq!(contracted("#stablehlo.dot<>"), Some(Vec::new()), "an outer product");
        assert_eq!(contracted("#stablehlo.dot<lhs_contracting_dimensions = [x]>"), None);
        assert_eq!(contracted("[1]"), None);
    }
}
