//! Values of named dimensions, given once for many models.

use std::collections::BTreeMap;
use std::path::Path;

use remat::ir::{Dim, ValueType};
use remat::onnx::{ImportOptions, OnnxModel};

/// `NAME=N`.
pub(crate) fn parse(text: &str) -> Result<(String, u64), String> {
    let (name, number) = text.rsplit_once('=').ok_or("write NAME=N")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a size"))?;
    Ok((name.to_owned(), number))
}

/// Those of the given dimensions that the model has.
///
/// # Errors
/// If the model cannot be read.
pub(super) fn of(path: &Path, given: &[(String, u64)]) -> Result<BTreeMap<String, u64>, remat::Error> {
    if given.is_empty() {
        return Ok(BTreeMap::new());
    }
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let model = OnnxModel::open(path, &looked_at)?;
    let has = |name: &str| model.graph().tensors.iter().any(|tensor| is_named(&tensor.ty, name));
    Ok(given.iter().filter(|(name, _)| has(name)).cloned().collect())
}

/// Whether a dimension of the type has this name.
fn is_named(ty: &ValueType, name: &str) -> bool {
    let ValueType::Tensor { shape: Some(dims), .. } = ty else {
        return false;
    };
    dims.iter()
        .any(|dim| matches!(dim, Dim::Symbol(symbol) if symbol == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use remat::ir::ElementType;

    #[test]
    fn a_dimension_is_given_by_name_and_size() {
        assert_eq!(parse("batch=8"), Ok(("batch".to_owned(), 8)));
        assert_eq!(parse("x[0]=8"), Ok(("x[0]".to_owned(), 8)));
        assert!(parse("batch").is_err());
        assert!(parse("batch=many").is_err());
    }

    #[test]
    fn only_dimensions_of_the_same_name_are_found() {
        let ty = ValueType::Tensor {
            element: ElementType::Float32,
            shape: Some(vec![Dim::Known(3), Dim::Symbol("batch".to_owned()), Dim::Unknown]),
        };
        assert!(is_named(&ty, "batch"));
        assert!(!is_named(&ty, "length"));
    }
}
