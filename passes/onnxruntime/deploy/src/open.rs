//! The model that a strategy starts from: the input, or what the runtime makes of it when it fuses nodes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use remat::{LoadOptions, Model, ReadError, SaveError};
use remat_files::ScratchFolder;
use remat_onnx::proto::ModelProto;
use remat_onnx::{OnnxModel, rename_values};
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::{ChildLimits, Host, OptimizationLevel, Runner, RuntimeError};
use remat_plan::PlanFile;
use remat_solve::Activity;
use rustc_hash::FxHashMap;

use crate::bodies::apply::BodyWriter;
use crate::carry::{carried, open_carried};
use crate::clock::Clock;
use crate::lasting::make_lasting;
use crate::layout::Portable;
use crate::measure::Bench;
use crate::padding::Padding;
use crate::sizes::{looked_at, open_model};
use crate::strategy::{LAID_OUT, is_laid_out};
use crate::sums::put_sums_first;
use crate::{DeployError, DeployRequest};

/// Opens the input; if it `fuses`, the runtime fuses its nodes first.
pub(crate) fn open(
    request: &DeployRequest<'_>,
    bench: Option<&Bench<'_, '_>>,
    fuses: bool,
    clock: &Clock<'_>,
    scratch: &Path,
) -> Result<Model, DeployError> {
    let mut path = request.input.to_owned();
    let mut load = request.load.clone();
    if let Some(bench) = bench.filter(|_| fuses) {
        // A data file is called after it, and goes to the folder of the output.
        let runner = bench.first_runner();
        path = clock.during(Activity::Fuse, "", || {
            fuse(&runner, request.input, request.output.unwrap_or(request.input), scratch)
        })?;
        load = carried(request.input, &path, load)?;
    }
    if let Some(profiler) = request.profile {
        load.profile = Some(clock.during(Activity::Measure, "every op", || profiler(&path))?);
    }
    clock.begins(Activity::Import, "");
    match bench.filter(|_| fuses) {
        Some(bench) => {
            let model = open_carried(&path, load, Some(bench.first_runtime()))?;
            Ok(model.fused_by(runtime_name(bench.host)))
        }
        None => open_model(&path, &load, bench.map(Bench::first_runtime)),
    }
}

/// The model at `input` after the runtime fused its nodes within `limits`, with subgraphs and tiles as `plan` has them, and laid out if the plan for
/// it was made `by` a deployment that did, as a deployment plans on it.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub(crate) fn open_fused(
    (host, limits): (&Host, ChildLimits<'_>),
    input: &Path,
    (load, order): (&LoadOptions, OrderHint),
    by: &str,
    plan: &PlanFile,
) -> Result<Model, DeployError> {
    let scratch = scratch_folder()?;
    let runner = host.runner(limits);
    let (path, runtime) = (fuse(&runner, input, input, scratch.path())?, Some((host, limits)));
    let open = |path: &Path| open_carried(path, carried(input, path, load.clone())?, runtime);
    let name = runtime_name(host);
    let tiling = plan.setup.as_ref().and_then(|setup| setup.tiling.as_ref());
    if !is_laid_out(by) {
        let writer = BodyWriter { load, order };
        let model = open(&path)?.fused_by(name);
        let model = writer.bodies_of(&model, plan)?.unwrap_or(model);
        return Ok(match tiling {
            Some(tiling) => model.tiled(tiling, load)?,
            None => model,
        });
    }
    let laid_out_path = scratch.path().join("laid-out.onnx");
    let lay_out = |model: &OnnxModel| {
        laid_out(&runner, model, model.proto(), &laid_out_path)?;
        open(&with_lasting_names(&laid_out_path, model.proto(), scratch.path())?)
    };
    let name = format!("{name}{LAID_OUT}");
    let Some(tiling) = tiling else {
        let fused = OnnxModel::open(&path, &looked_at())?;
        return Ok(lay_out(&fused)?.fused_by(name));
    };
    let tiled = open(&path)?.tiled(tiling, load)?;
    let onnx = tiled.onnx().ok_or(DeployError::NoRuntime)?;
    Ok(lay_out(onnx)?.laid_out_from(&tiled).fused_by(name))
}

/// What blocks of channels fill the memory with in the model at `input`, which takes `peak` bytes as it is, where everything is optimized; `None`
/// where they do not fill more than half of it.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub fn padding(
    (host, limits): (&Host, ChildLimits<'_>),
    input: &Path,
    load: &LoadOptions,
    peak: u64,
) -> Result<Option<Padding>, DeployError> {
    let scratch = scratch_folder()?;
    let runner = host.runner(limits);
    let fused_path = fuse(&runner, input, input, scratch.path())?;
    let open = |path: &Path| open_carried(path, carried(input, path, load.clone())?, Some((host, limits)));
    let fused = OnnxModel::open(&fused_path, &looked_at())?;
    let path = scratch.path().join("laid-out.onnx");
    laid_out(&runner, &fused, fused.proto(), &path)?;
    let ops = open(&with_lasting_names(&path, fused.proto(), scratch.path())?)?;
    let nodes = open(&fused_path)?;
    Ok(ops
        .graph()
        .zip(nodes.graph())
        .and_then(|(ops, nodes)| Padding::of(ops, nodes, peak)))
}

/// The file that the runtime loads to save what it makes of it.
const TO_LOAD: &str = "to-load.onnx";

/// Writes to `path` what the runtime makes of a file of `model` where everything is optimized.
pub(crate) fn laid_out(
    runner: &Runner<'_>,
    model: &OnnxModel,
    proto: &ModelProto,
    path: &Path,
) -> Result<(), DeployError> {
    let written = path.with_file_name(TO_LOAD);
    model.save_proto(proto, &written)?;
    Ok(remat_onnxruntime_run::optimize(
        runner,
        &written,
        OptimizationLevel::All,
        path,
    )?)
}

/// The `fused` model as the runtime lays it out where everything is optimized, and how that is written; the fused model itself where that
/// changes nothing.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub(crate) fn lay_out(
    request: &DeployRequest<'_>,
    bench: &Bench<'_, '_>,
    fused: Model,
    clock: &Clock<'_>,
    scratch: &Path,
) -> Result<Result<(Model, Portable), Box<Model>>, DeployError> {
    let [path, loaded] = ["laid-out.onnx", "loaded.onnx"].map(|name| scratch.join(name));
    let lay_out = |onnx: &OnnxModel, proto: &ModelProto, path: &Path| {
        clock.during(Activity::Fuse, "", || {
            laid_out(&bench.first_runner(), onnx, proto, path)
        })
    };
    let onnx = request.onnx(&fused)?;
    lay_out(onnx, onnx.proto(), &path)?;
    let path = with_lasting_names(&path, onnx.proto(), scratch)?;
    let mut load = carried(request.input, &path, request.load.clone())?;
    load.profile = match request.profile {
        Some(profiler) => Some(clock.during(Activity::Measure, "every op", || profiler(&path))?),
        None => None,
    };
    clock.begins(Activity::Import, "");
    let runtime = Some(bench.first_runtime());
    let mut model = open_carried(&path, load.clone(), runtime)?;
    let name = format!("{}{LAID_OUT}", runtime_name(bench.host));
    let mut portable = match Portable::of(Box::new(fused), &model) {
        Ok(portable) => portable,
        Err(fused) => return Ok(Err(fused)),
    };
    let stated = request.load.profile.as_ref().filter(|_| request.profile.is_none());
    if stated.is_some() {
        let fused = scratch.join(TO_LOAD);
        load.profile = carried(request.input, &fused, request.load.clone())?
            .profile
            .map(|file| portable.profile(&model, file));
        model = open_carried(&path, load, runtime)?;
    }
    portable.decide(|portable, proto| {
        lay_out(request.onnx(&portable.model)?, proto, &loaded)?;
        Ok(OnnxModel::open(&loaded, &looked_at())?)
    })?;
    let model = match portable.model.tiling() {
        Some(_) => model.laid_out_from(&portable.model),
        None => model,
    };
    Ok(Ok((model.fused_by(name), portable)))
}

/// A folder for files on the way, which goes with the value.
pub(crate) fn scratch_folder() -> Result<ScratchFolder, DeployError> {
    let error = SaveError::io("a temporary folder".as_ref());
    ScratchFolder::new("deploy-").map_err(|source| remat::Error::from(error(source)).into())
}

/// What the runtime makes of the model at `input` when it fuses nodes, in a file of the scratch folder with the name of `named`.
fn fuse(runner: &Runner<'_>, input: &Path, named: &Path, scratch: &Path) -> Result<PathBuf, DeployError> {
    let name = named.file_name().unwrap_or_else(|| "fused.onnx".as_ref());
    let path = scratch.join(name);
    let optimize = |input: &Path| remat_onnxruntime_run::optimize(runner, input, OptimizationLevel::Extended, &path);
    match optimize(input) {
        // Where a function is called twice, it writes the names in it twice.
        Err(RuntimeError::Save { .. }) => {
            let model = OnnxModel::open(input, &looked_at())?;
            let inlined = folder_in(scratch, "inlined")?.join(name);
            model.save_proto(&model.inlined(), &inlined)?;
            optimize(&inlined)?;
        }
        other => other?,
    }
    with_sums_first(with_own_names(path, scratch)?, scratch)
}

/// The model at `path`, or a copy with the operands of additions in another order ([`put_sums_first`]).
fn with_sums_first(path: PathBuf, scratch: &Path) -> Result<PathBuf, DeployError> {
    let model = OnnxModel::open(&path, &looked_at())?;
    let mut proto = model.proto().clone();
    if put_sums_first(proto.graph.mut_or_insert_default()) == 0 {
        return Ok(path);
    }
    let copy = folder_in(scratch, "summed")?.join(path.file_name().unwrap_or_default());
    model.save_proto(&proto, &copy)?;
    Ok(copy)
}

/// How names begin that the runtime gives to casts. It gives them again when it loads the file, even if they are taken then.
const CAST_NAMES: &str = "InsertedPrecisionFreeCast_";

/// The model at `path`, or a copy in which no value has a name that the runtime may give again.
fn with_own_names(path: PathBuf, scratch: &Path) -> Result<PathBuf, DeployError> {
    let bytes = std::fs::read(&path).map_err(|source| {
        let path = path.clone();
        remat::Error::from(ReadError::Io { path, source })
    })?;
    if !bytes
        .windows(CAST_NAMES.len())
        .any(|window| window == CAST_NAMES.as_bytes())
    {
        return Ok(path);
    }
    let model = OnnxModel::open(&path, &looked_at())?;
    let mut proto = model.proto().clone();
    let graph = proto.graph.mut_or_insert_default();
    let fixed: HashSet<&str> = graph.output.iter().map(|value| value.name.as_str()).collect();
    let made = graph
        .node
        .iter()
        .flat_map(|node| &node.output)
        .filter(|name| !fixed.contains(name.as_str()));
    let renamed = made.filter_map(|name| Some((name.clone(), name.strip_prefix(CAST_NAMES)?)));
    let taken = model.reserved_names();
    let own = |name: &str| {
        let mut own = format!("{name}_cast");
        while taken.contains(own.as_str()) {
            own.push('_');
        }
        own
    };
    let names: FxHashMap<String, String> = renamed.map(|(old, name)| (old, own(name))).collect();
    rename_values(graph, &names);
    let copy = folder_in(scratch, "renamed")?.join(path.file_name().unwrap_or_default());
    model.save_proto(&proto, &copy)?;
    Ok(copy)
}

/// A copy of the laid-out model at `path`, which the runtime made of `before`, with names and an order that are the same each time.
fn with_lasting_names(path: &Path, before: &ModelProto, scratch: &Path) -> Result<PathBuf, DeployError> {
    let model = OnnxModel::open(path, &looked_at())?;
    let mut proto = model.proto().clone();
    make_lasting(proto.graph.mut_or_insert_default(), &before.graph);
    let copy = folder_in(scratch, "named")?.join(path.file_name().unwrap_or_default());
    model.save_proto(&proto, &copy)?;
    Ok(copy)
}

fn folder_in(scratch: &Path, name: &str) -> Result<PathBuf, DeployError> {
    let path = scratch.join(name);
    std::fs::create_dir_all(&path).map_err(|source| remat::Error::from(SaveError::io(&path)(source)))?;
    Ok(path)
}

fn runtime_name(host: &Host) -> String {
    format!("ONNX Runtime {}", host.version)
}
