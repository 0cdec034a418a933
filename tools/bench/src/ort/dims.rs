//! Values of named dimensions, given once for many models.

use std::collections::BTreeMap;
use std::path::Path;

use remat::ir::{Dim, Graph, ValueType};
use remat::onnx::{ImportOptions, OnnxModel};

/// `NAME=N`.
pub(crate) fn parse(text: &str) -> Result<(String, u64), String> {
    let (name, number) = text.rsplit_once('=').ok_or("write NAME=N")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a size"))?;
    Ok((name.to_owned(), number))
}

/// A model with its dimensions left open.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn open_model(path: &Path) -> Result<OnnxModel, remat::Error> {
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    Ok(OnnxModel::open(path, &looked_at)?)
}

/// Those of the given dimensions that the graph has.
pub(crate) fn of(graph: &Graph, given: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let names = graph.tensors.iter().flat_map(|tensor| open(&tensor.ty));
    names
        .filter_map(|name| Some((name.to_owned(), *given.get(name)?)))
        .collect()
}

/// Names of the open dimensions of a type, those of a sequence's elements among them.
pub(crate) fn open(ty: &ValueType) -> Vec<&str> {
    match ty {
        ValueType::Tensor { shape: Some(dims), .. } | ValueType::SparseTensor { shape: Some(dims), .. } => {
            let named = dims.iter().filter_map(|dim| match dim {
                Dim::Symbol(name) => Some(name.as_str()),
                Dim::Known(_) | Dim::Free { .. } | Dim::Unknown => None,
            });
            named.collect()
        }
        ValueType::Sequence(inner) | ValueType::Optional(inner) => open(inner),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dimension_is_given_by_name_and_size() {
        assert_eq!(parse("batch=8"), Ok(("batch".to_owned(), 8)));
        assert_eq!(parse("x[0]=8"), Ok(("x[0]".to_owned(), 8)));
        assert!(parse("batch").is_err());
        assert!(parse("batch=many").is_err());
    }
}
