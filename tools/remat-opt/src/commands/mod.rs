//! One file per command.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod inspect;
pub(crate) mod max_batch;
pub(crate) mod measure_child;
pub(crate) mod optimize;
pub(crate) mod place;
pub(crate) mod profile;
pub(crate) mod reduce;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod verify;

use std::path::Path;

use remat::onnx::OnnxModel;
use remat::plan::PlanFile;

/// Reads a plan file.
pub(crate) fn read_plan(path: &Path) -> anyhow::Result<PlanFile> {
    let text = String::from_utf8_lossy(&remat::read(path)?).into_owned();
    Ok(PlanFile::from_json(&text).map_err(remat::Error::from)?)
}

/// Says that a rewritten model has lost what the rewriting added to it.
pub(crate) fn warn_of_lost_marks(model: &OnnxModel) {
    if let Some(lost) = model.lost_marks() {
        tracing::warn!("{lost}");
    }
}
