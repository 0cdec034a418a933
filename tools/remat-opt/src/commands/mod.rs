//! One file per command.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod max_batch;
pub(crate) mod measure_child;
pub(crate) mod optimize;
pub(crate) mod profile;
pub(crate) mod reduce;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod verify;
pub(crate) mod verify_models;

use std::path::Path;

use remat::Model;
use remat::onnx::OnnxModel;
use remat::plan::PlanFile;

use crate::cli::LoadArgs;

/// How many threads to search with: two unless told, one where there is one core.
pub(crate) fn threads(wanted: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    wanted.unwrap_or_else(|| cores().min(2))
}

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

/// Opens a model as it was read when the plan was made; options that the plan contradicts are refused.
pub(crate) fn open_for_plan(load: &LoadArgs, input: &Path, plan: &PlanFile) -> anyhow::Result<Model> {
    let options = load.options(input)?;
    let is_fused = plan.setup.as_ref().is_some_and(|setup| setup.fused_by.is_some());
    // Without a runtime, the library says what it is needed for.
    let host = if is_fused { load.runtime.host().ok() } else { None };
    let runtime = host.as_ref().map(|host| (host, crate::runtime::limits(None)));
    Ok(remat_onnxruntime_deploy::open_for_plan(input, &options, plan, runtime)?)
}
