//! The model that a strategy starts from: the input, or what the runtime makes of it when it fuses nodes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use remat::{LoadOptions, Model, SaveError};
use remat_cost::ProfileFile;
use remat_onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_run::{ChildLimits, Host, OptimizationLevel, Runner};
use remat_solve::Activity;
use tempfile::TempDir;

use crate::clock::Clock;
use crate::measure::Bench;
use crate::{DeployError, DeployRequest};

/// Opens the input; with a `bench`, the runtime fuses its nodes first.
pub(crate) fn open(
    request: &DeployRequest<'_>,
    bench: Option<&Bench<'_, '_>>,
    clock: &Clock<'_>,
    scratch: &Path,
) -> Result<Model, DeployError> {
    let mut path = request.input.to_owned();
    let mut load = request.load.clone();
    if let Some(bench) = bench {
        // A data file is called after it, and goes to the folder of the output.
        let runner = bench.first_runner();
        path = clock.apart(Activity::Fuse, "", || {
            fuse(&runner, request.input, request.output.unwrap_or(request.input), scratch)
        })?;
        load.profile = load.profile.map(|file| about_ops_of(&path, file)).transpose()?;
    }
    if let Some(profiler) = request.profile {
        load.profile = Some(clock.apart(Activity::Measure, "every op", || profiler(&path))?);
    }
    clock.begins(Activity::Import, "");
    let model = Model::open(&path, &load)?;
    Ok(match bench {
        Some(bench) => model.fused_by(runtime_name(bench.host)),
        None => model,
    })
}

/// The model at `input` after the runtime fused its nodes within `limits`, as a deployment plans on it.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub(crate) fn open_fused(
    (host, limits): (&Host, ChildLimits<'_>),
    input: &Path,
    load: &LoadOptions,
) -> Result<Model, DeployError> {
    let scratch = scratch_folder()?;
    let path = fuse(&host.runner(limits), input, input, scratch.path())?;
    Ok(Model::open(&path, load)?.fused_by(runtime_name(host)))
}

/// A folder for files on the way, which goes with the value.
pub(crate) fn scratch_folder() -> Result<TempDir, DeployError> {
    let error = SaveError::io("a temporary folder".as_ref());
    tempfile::tempdir().map_err(|source| remat::Error::from(error(source)).into())
}

/// What the runtime makes of the model at `input` when it fuses nodes, in a file of the scratch folder with the name of `named`.
fn fuse(runner: &Runner<'_>, input: &Path, named: &Path, scratch: &Path) -> Result<PathBuf, DeployError> {
    let path = scratch.join(named.file_name().unwrap_or_else(|| "fused.onnx".as_ref()));
    remat_onnxruntime_run::optimize(runner, input, OptimizationLevel::Extended, &path)?;
    Ok(path)
}

fn runtime_name(host: &Host) -> String {
    format!("ONNX Runtime {}", host.version)
}

/// What a profile says of ops that the model at `path` has.
fn about_ops_of(path: &Path, mut file: ProfileFile) -> Result<ProfileFile, DeployError> {
    let looked_at = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let model = OnnxModel::open(path, &looked_at)?;
    let names: HashSet<&str> = model.graph().ops.iter().map(|op| op.name.as_str()).collect();
    let stated = file.ops.len();
    file.ops.retain(|record| names.contains(record.node.as_str()));
    let (left, ops) = (file.ops.len(), names.len());
    if left < stated {
        tracing::warn!("the runtime fused nodes: {left} of {stated} measured times are about one of its {ops} nodes");
    }
    Ok(file)
}
