//! Values of named dimensions, given once for many models.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use remat::onnx::proto::ModelProto;
use remat::onnx::proto::tensor_shape_proto::dimension::Value;
use remat::onnx::proto::type_proto;

/// `NAME=N`.
pub(super) fn parse(text: &str) -> Result<(String, u64), String> {
    let (name, number) = text.rsplit_once('=').ok_or("write NAME=N")?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a size"))?;
    Ok((name.to_owned(), number))
}

/// Those of the given dimensions that an input of the model has.
///
/// # Errors
/// If the model cannot be read.
pub(super) fn of(path: &Path, given: &[(String, u64)]) -> anyhow::Result<BTreeMap<String, u64>> {
    if given.is_empty() {
        return Ok(BTreeMap::new());
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    todo!()
}
