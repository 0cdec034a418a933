//! The models that files are made of: the input, what the runtime makes of it when it fuses nodes and lays out images, and that for a plan that is
//! given.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use remat::{Error, LoadOptions, Model, ReadError, SaveError, Setting, contradiction};
use remat_files::ScratchFolder;
use remat_onnx::proto::{GraphProto, ModelProto};
use remat_onnx::{OnnxError, OnnxModel, order_like, rename_values, write_for_two_passes};
use remat_onnxruntime_lower::{LayoutMapping, OrderHint, canonicalize_names, put_sums_first};
use remat_onnxruntime_observe::map_to_fused;
use remat_onnxruntime_predict::BodyWriter;
use remat_onnxruntime_run::{ChildLimits, Host, OptimizationLevel, Runner, RuntimeError, optimize_without_blocks};
use remat_plan::PlanFile;
use remat_solve::Activity;
use rustc_hash::FxHashMap;

use crate::clock::Clock;
use crate::context::Context;
use crate::error::DeployError;
use crate::layout::LaidOut;
use crate::layout::Padding;
use crate::measure::Bench;
use crate::original::{looked_at, open_model};
use crate::plain::PlainConvolutions;
use crate::request::{DeployRequest, has_half};
use crate::strategy::{FOR_TWO_PASSES, LAID_OUT, OPTIMIZED, is_for_two_passes, is_laid_out, is_optimized, runtime_of};

/// Has the runtime make something of a model, and opens that.
struct Maker<'m> {
    host: &'m Host,
    limits: ChildLimits<'m>,
    input: &'m Path,
    load: &'m LoadOptions,
    /// Whether a model in half precision is optimized to the end before it is planned.
    optimizes_halves: bool,
    /// Where files on the way go.
    scratch: &'m Path,
}

impl Maker<'_> {
    fn runner(&self) -> Runner<'_> {
        self.host.runner(self.limits)
    }

    /// The model with its nodes fused, in a file with the name of `named`, and the runtime that did it. Where outputs may round otherwise, in the class
    /// `close`, what the runtime would take apart is written for two passes before.
    fn fused(&self, named: &Path, close: bool) -> Result<(PathBuf, String), DeployError> {
        let mut runtime = format!("ONNX Runtime {}", self.host.version);
        let mut input = self.input.to_owned();
        if close {
            input = changed(input, self.scratch, "two-passes", write_for_two_passes)?;
        }
        let original = OnnxModel::open(&input, &looked_at())?;
        let is_optimized = self.optimizes_halves && has_half(original.graph());
        if is_optimized {
            runtime.push_str(OPTIMIZED);
        }
        if input != self.input {
            runtime.push_str(FOR_TWO_PASSES);
        }
        Ok((self.fuse((&input, &original), is_optimized, named)?, runtime))
    }

    /// What the runtime makes of a model when it fuses nodes, in a file of the scratch folder with the name of `named`.
    fn fuse(
        &self,
        (input, original): (&Path, &OnnxModel),
        is_optimized: bool,
        named: &Path,
    ) -> Result<PathBuf, DeployError> {
        let (runner, scratch) = (&self.runner(), self.scratch);
        let name = named.file_name().unwrap_or_else(|| "fused.onnx".as_ref());
        let path = scratch.join(name);
        // Halves are converted late, and more is fused behind that where everything is optimized.
        let optimize = |input: &Path| match is_optimized {
            true => optimize_without_blocks(runner, input, &path),
            false => remat_onnxruntime_run::optimize(runner, input, OptimizationLevel::Extended, &path),
        };
        match optimize(input) {
            // Where a function is called twice, it writes the names in it twice.
            Err(RuntimeError::Save { .. }) => {
                let inlined = folder_in(scratch, "inlined")?.join(name);
                original.save_proto(&original.inlined(), &inlined)?;
                optimize(&inlined)?;
            }
            other => other?,
        }
        // The runtime may not fuse otherwise where ops run again, nor give a name again that is taken. Its order is that of its search for nodes: what a
        // loss needs of labels comes first, losses come last.
        changed(path, scratch, "own", |model, graph| {
            let is_ordered = order_like(graph, &original.proto().graph);
            let is_renamed = give_own_names(model, graph);
            put_sums_first(graph) > 0 || is_renamed || is_ordered
        })
    }

    /// What the runtime lays a model out to where everything is optimized, with names that are the same each time. What is `plain` stays as it is.
    fn laid_out(&self, onnx: &OnnxModel, plain: &PlainConvolutions) -> Result<PathBuf, DeployError> {
        let path = self.scratch.join("laid-out.onnx");
        let mut proto = onnx.proto().clone();
        let opened = plain.open_weights(onnx.graph(), proto.graph.mut_or_insert_default());
        laid_out(&self.runner(), onnx, &proto, &path)?;
        changed(path, self.scratch, "named", |_, graph| {
            graph.input.retain(|input| !opened.contains(&input.name));
            canonicalize_names(graph, &onnx.proto().graph);
            true
        })
    }

    /// What of `load` is about a file that the runtime made of the model.
    fn load(&self, path: &Path) -> Result<LoadOptions, DeployError> {
        Ok(map_to_fused(self.input, path, self.load.clone())?)
    }

    fn open(&self, path: &Path) -> Result<Model, DeployError> {
        self.open_with(path, self.load(path)?)
    }

    /// Opens a file. Dimensions of values that the runtime dropped are given in vain.
    fn open_with(&self, path: &Path, mut load: LoadOptions) -> Result<Model, DeployError> {
        loop {
            match open_model(path, &load, Some((self.host, self.limits))) {
                Err(DeployError::Pipeline(Error::Read(ReadError::Onnx(OnnxError::UnknownDim { name, .. }))))
                    if load.dims.remove(&name).is_some() =>
                {
                    load.fixed_dims.remove(&name);
                }
                other => return other,
            }
        }
    }
}

/// A runtime that lays out images besides.
fn with_layout(runtime: &str) -> String {
    format!("{runtime}{LAID_OUT}")
}

impl<'c> Context<'c, '_> {
    fn maker<'m>(&'m self, bench: &'m Bench<'_, '_>) -> Maker<'m> {
        let (host, limits) = bench.first_runtime();
        Maker {
            host,
            limits,
            input: self.request.input,
            load: self.request.load,
            optimizes_halves: self.request.optimizes_halves(),
            scratch: self.scratch,
        }
    }
}

/// Opens the input.
///
/// # Errors
/// Those of [`Model::open`].
pub(crate) fn open_input(
    request: &DeployRequest<'_>,
    bench: Option<&Bench<'_, '_>>,
    clock: &Clock<'_>,
) -> Result<Model, DeployError> {
    let mut load = request.load.clone();
    profiled(request, clock, request.input, &mut load)?;
    clock.begins(Activity::Import, "");
    open_model(request.input, &load, bench.map(Bench::first_runtime))
}

/// Costs of the model at `path`, where those are measured.
fn profiled(
    request: &DeployRequest<'_>,
    clock: &Clock<'_>,
    path: &Path,
    load: &mut LoadOptions,
) -> Result<(), DeployError> {
    if let Some(profiler) = request.profile {
        load.profile = Some(clock.during(Activity::Measure, "every op", || profiler(path))?);
    }
    Ok(())
}

/// Opens the input; if it `fuses`, the runtime fuses its nodes first, those of the class `close` if outputs may round otherwise.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub(crate) fn open(context: &Context<'_, '_>, fuses: bool, close: bool) -> Result<Model, DeployError> {
    let (request, clock) = (context.request, context.clock);
    let Some(bench) = context.bench.filter(|_| fuses) else {
        return open_input(request, context.bench, clock);
    };
    let maker = context.maker(bench);
    // A data file is called after it, and goes to the folder of the output.
    let named = request.output.unwrap_or(request.input);
    let (path, runtime) = clock.during(Activity::Fuse, "", || maker.fused(named, close))?;
    let mut load = maker.load(&path)?;
    profiled(request, clock, &path, &mut load)?;
    clock.begins(Activity::Import, "");
    Ok(maker.open_with(&path, load)?.fused_by(runtime))
}

/// So often at most are convolutions looked for that stay in the usual layout.
const MOST_LAYOUTS: usize = 4;

/// The `fused` model as the runtime lays it out where everything is optimized, and how that is written; the fused model itself where that
/// changes nothing. Where outputs may round otherwise, convolutions stay in the usual layout beside which more than `most` bytes are in memory.
///
/// # Errors
/// [`DeployError::Runtime`] and those of [`Model::open`].
pub(crate) fn lay_out(
    context: &Context<'_, '_>,
    fused: Model,
    most: Option<u64>,
) -> Result<Result<(Model, LaidOut), Box<Model>>, DeployError> {
    let (request, clock) = (context.request, context.clock);
    let Some(bench) = context.bench else {
        return Ok(Err(Box::new(fused)));
    };
    let maker = context.maker(bench);
    let runtime = runtime_of(&fused).map(with_layout).unwrap_or_default();
    let onnx = request.onnx(&fused)?;
    let mut plain = PlainConvolutions::of(&fused);
    let mut rounds = most.map_or(1, |_| MOST_LAYOUTS);
    let (path, mut model, mapping, mut load) = loop {
        let path = clock.during(Activity::Fuse, "", || maker.laid_out(onnx, &plain))?;
        let mut load = LoadOptions {
            profile: None,
            ..maker.load(&path)?
        };
        profiled(request, clock, &path, &mut load)?;
        clock.begins(Activity::Import, "");
        let model = maker.open_with(&path, load.clone())?;
        let graphs = fused.graph().zip(model.graph());
        let mapping = graphs.and_then(|(nodes, ops)| LayoutMapping::of(nodes, ops));
        let Some((mut mapping, nodes)) = mapping.zip(fused.graph()) else {
            return Ok(Err(Box::new(fused)));
        };
        rounds -= 1;
        let most = most.filter(|_| rounds > 0);
        if !most.map_or(Ok(false), |most| plain.add_those_above(most, nodes, &model, &mapping))? {
            mapping.layout.plain = plain.results(nodes);
            break (path, model, mapping, load);
        }
    };
    let mut laid_out_model = LaidOut { model: fused, mapping };
    if request.load.profile.is_some() && request.profile.is_none() {
        let stated = maker.load(&context.scratch.join(TO_LOAD))?.profile;
        load.profile = stated.map(|file| laid_out_model.profile(&model, file));
        model = maker.open_with(&path, load)?;
    }
    let loaded = context.scratch.join("loaded.onnx");
    laid_out_model.state_shapes(|onnx, proto| {
        clock.during(Activity::Fuse, "", || laid_out(&maker.runner(), onnx, proto, &loaded))?;
        Ok(OnnxModel::open(&loaded, &looked_at())?)
    })?;
    if laid_out_model.model.tiling().is_some() {
        model = model.laid_out_from(&laid_out_model.model, plain.names());
    }
    Ok(Ok((model.fused_by(runtime), laid_out_model)))
}

/// Opens a model as it was read when the plan was made. Of `options`, what is set must not contradict the plan. `runtime` is where models run, and how
/// long they may, for plans that are about the graph which it makes of the model.
///
/// # Errors
/// Those of [`Model::open`] and [`LoadOptions::for_plan`]; [`DeployError::FusedPlan`] for a plan that needs the runtime where there is none.
pub fn open_for_plan(
    path: &Path,
    options: &LoadOptions,
    plan: &PlanFile,
    runtime: Option<(&Host, ChildLimits<'_>)>,
) -> Result<Model, DeployError> {
    let load = &options.for_plan(plan)?;
    let order = order_for_plan(None, Some(plan))?;
    let setup = plan.setup.as_ref();
    let tiling = setup.and_then(|setup| setup.tiling.as_ref());
    let writer = BodyWriter { load, order };
    let planned_inside = |model: Model| -> Result<Model, DeployError> {
        let model = writer.bodies_of(&model, plan)?.unwrap_or(model);
        match tiling {
            Some(tiling) => Ok(model.tiled(tiling, load)?),
            None => Ok(model),
        }
    };
    let Some(by) = setup.and_then(|setup| setup.fused_by.as_ref()) else {
        return planned_inside(open_model(path, load, runtime)?);
    };
    let (host, limits) = runtime.ok_or_else(|| DeployError::FusedPlan { by: by.clone() })?;
    let scratch = scratch_folder()?;
    let maker = Maker {
        host,
        limits,
        input: path,
        load,
        optimizes_halves: is_optimized(by),
        scratch: scratch.path(),
    };
    let (fused, runtime) = maker.fused(path, is_for_two_passes(by))?;
    if !is_laid_out(by) {
        return planned_inside(maker.open(&fused)?.fused_by(runtime));
    }
    let Some(tiling) = tiling else {
        let fused = OnnxModel::open(&fused, &looked_at())?;
        let model = maker.open(&maker.laid_out(&fused, &PlainConvolutions::default())?)?;
        return Ok(model.fused_by(with_layout(&runtime)));
    };
    let tiled = maker.open(&fused)?.tiled(tiling, load)?;
    let onnx = tiled.onnx().ok_or(DeployError::NoRuntime)?;
    let plain = PlainConvolutions::of(&tiled);
    let model = maker.open(&maker.laid_out(onnx, &plain)?)?;
    Ok(model
        .laid_out_from(&tiled, plain.names())
        .fused_by(with_layout(&runtime)))
}

/// The execution orders that a file is made for: what is given, else what the file of the plan was made for, else any.
///
/// # Errors
/// `Contradiction` if the plan says something else.
pub fn order_for_plan(given: Option<OrderHint>, plan: Option<&PlanFile>) -> Result<OrderHint, DeployError> {
    let made_for = plan.and_then(|plan| plan.setup.as_ref()?.order_hint.as_deref());
    match (given, made_for) {
        (Some(given), Some(plan)) if given.name() != plan => {
            Err(contradiction(Setting::OrderHint, given.name(), plan).into())
        }
        (Some(given), _) => Ok(given),
        (None, Some("priority")) => Ok(OrderHint::Priority),
        (None, _) => Ok(OrderHint::Any),
    }
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
    let maker = Maker {
        host,
        limits,
        input,
        load,
        optimizes_halves: true,
        scratch: scratch.path(),
    };
    let (path, _) = maker.fused(input, false)?;
    let onnx = OnnxModel::open(&path, &looked_at())?;
    let ops = maker.open(&maker.laid_out(&onnx, &PlainConvolutions::default())?)?;
    let nodes = maker.open(&path)?;
    let graphs = ops.graph().zip(nodes.graph());
    Ok(graphs.and_then(|(ops, nodes)| Padding::of(ops, nodes, peak)))
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
    let optimized = remat_onnxruntime_run::optimize(runner, &written, OptimizationLevel::All, path);
    optimized.map_err(Into::into)
}

/// A folder for files on the way, which goes with the value.
pub(crate) fn scratch_folder() -> Result<ScratchFolder, DeployError> {
    let error = SaveError::io("a temporary folder".as_ref());
    ScratchFolder::new("deploy-").map_err(|source| Error::from(error(source)).into())
}

/// The model at `path`, or a copy in a `folder` of its own, where something is changed in it.
fn changed(
    path: PathBuf,
    scratch: &Path,
    folder: &str,
    change: impl FnOnce(&OnnxModel, &mut GraphProto) -> bool,
) -> Result<PathBuf, DeployError> {
    let model = OnnxModel::open(&path, &looked_at())?;
    let mut proto = model.proto().clone();
    if !change(&model, proto.graph.mut_or_insert_default()) {
        return Ok(path);
    }
    let copy = folder_in(scratch, folder)?.join(path.file_name().unwrap_or_default());
    model.save_proto(&proto, &copy)?;
    Ok(copy)
}

/// How names begin that the runtime gives to casts. It gives them again when it loads the file, even if they are taken then.
const CAST_NAMES: &str = "InsertedPrecisionFreeCast_";

/// Renames the values with names that the runtime may give again; whether there are some.
fn give_own_names(model: &OnnxModel, graph: &mut GraphProto) -> bool {
    let fixed: HashSet<&str> = graph.output.iter().map(|value| value.name.as_str()).collect();
    let made = graph.node.iter().flat_map(|node| &node.output);
    let made = made.filter(|name| !fixed.contains(name.as_str()));
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
    !names.is_empty()
}

fn folder_in(scratch: &Path, name: &str) -> Result<PathBuf, DeployError> {
    let path = scratch.join(name);
    std::fs::create_dir_all(&path).map_err(|source| Error::from(SaveError::io(&path)(source)))?;
    Ok(path)
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
