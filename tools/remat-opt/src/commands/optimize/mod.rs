//! `remat-opt IN -o OUT`: the main job.

mod deployed;
mod document;
#[cfg_attr(not(feature = "mlir"), path = "no_mlir.rs")]
mod mlir;
mod proof;
mod report;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use remat::deploy::{DeployRequest, Deployment};
use remat::ort::Host;
use remat::solver::SolveControl;
use remat::{Format, Goal, Model, Output, Solution, SolveRequest, Target};

pub(crate) use document::{ModuleReport, Report};

use crate::cli::{OptimizeArgs, TargetArg};
use crate::console;
use crate::files::{self, Files};
use crate::progress::Spinner;

pub(crate) fn run(args: &OptimizeArgs, quiet: bool) -> anyhow::Result<()> {
    let started = Instant::now();
    let input = args.input.as_ref().context("no input is given")?;
    let mut files = args.load.files(input)?;
    files.reads("the plan (`--plan`)", args.plan.as_deref())?;
    files.writes("the result (`-o`)", args.output.as_deref())?;
    files.writes("the plan (`--emit-plan`)", args.emit_plan.as_deref())?;
    files.writes("the weights (`--mlir-weights file`)", args.weights().as_deref())?;
    let format = Format::of(input)?;
    if format == Format::Mlir {
        return mlir::run(args, input, started);
    }
    if args.pass_pipeline.is_some() {
        bail!(
            "`--pass-pipeline` is for modules of MLIR, and the input is {}",
            format.describe()
        );
    }
    if let Some(output) = &args.output {
        check_target(args, output)?;
        Output::of(output, format)?;
    }
    if let Some(host) = host(args, format)? {
        return deploy(args, files, host.as_ref(), started, quiet);
    }
    let model = Model::open(input, &args.load.options(input)?)?;
    files.reads_data_of(&model)?;
    let solution = match &args.plan {
        Some(path) => remat::check_plan(&model, &super::read_plan(path)?)?,
        None => search(args, &model, quiet)?,
    };
    if let Some(output) = &args.output {
        remat::save(&model, &solution, &target(args, format, output), output)?;
    }
    emit_plan(args, files, &model, &solution)?;
    let seconds = started.elapsed().as_secs_f64();
    console::report(
        &args.report,
        || report::text(args, &model, &solution, seconds),
        || Report::new(args, &model, &solution, seconds),
        Ok(()),
    )
}

/// What a file is written for where that is not ONNX Runtime.
fn target(args: &OptimizeArgs, format: Format, output: &Path) -> Target {
    match Output::of(output, format) {
        Ok(Output::Mlir) => args.mlir.target(),
        _ => Target::Onnx,
    }
}

/// What is written fits what it is made for.
fn check_target(args: &OptimizeArgs, output: &Path) -> anyhow::Result<()> {
    let (name, wanted): (_, &[&str]) = match args.target.target {
        None | Some(TargetArg::Ort) => return Ok(()),
        Some(TargetArg::Onnx) => ("onnx", &["onnx", "json", "sched", "remat", "dot"]),
        Some(TargetArg::Plan) => ("plan", &["json", "sched"]),
        Some(TargetArg::Mlir) => ("mlir", &["mlir"]),
    };
    let extension = output
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    if wanted.iter().any(|wanted| extension.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    let wanted: Vec<String> = wanted.iter().map(|wanted| format!("`.{wanted}`")).collect();
    bail!(
        "`{}` is not what `--target {name}` writes: {}",
        output.display(),
        wanted.join(", ")
    )
}

/// Whether the model is made for ONNX Runtime, and then the runtime if it is here.
fn host(args: &OptimizeArgs, format: Format) -> anyhow::Result<Option<Option<Host>>> {
    let is_wanted = args.target.target == Some(TargetArg::Ort);
    if is_wanted && format != Format::Onnx {
        bail!(
            "`--target ort` is for ONNX models, and the input is {}",
            format.describe()
        );
    }
    let is_mlir = |output: &Path| matches!(Output::of(output, format), Ok(Output::Mlir));
    if is_wanted && args.output.as_deref().is_some_and(is_mlir) {
        bail!("`--target ort` is for models that ONNX Runtime runs, which reads no MLIR");
    }
    let is_special = args.load.paging.second_memory().is_some() || args.goal.goal() != Goal::default();
    if is_special && is_wanted {
        bail!(
            "`--target ort` plans for least time in one memory: leave out `--paging`, `--objective` and `--deadline`"
        );
    }
    let writes_model = args.output.as_ref().is_some_and(|output| is_model(output));
    let is_for_others = matches!(
        args.target.target,
        Some(TargetArg::Onnx | TargetArg::Plan | TargetArg::Mlir)
    );
    if is_special || is_for_others || !(is_wanted || writes_model && format == Format::Onnx) {
        return Ok(None);
    }
    match args.load.runtime.host() {
        Ok(host) => Ok(Some(Some(host))),
        Err(error) if is_wanted => {
            tracing::warn!("{error}: nothing is fused and nothing is measured");
            Ok(Some(None))
        }
        Err(error) => {
            tracing::info!("{error}: the model is written for any runtime");
            Ok(None)
        }
    }
}

fn deploy(
    args: &OptimizeArgs,
    mut files: Files,
    host: Option<&Host>,
    started: Instant,
    quiet: bool,
) -> anyhow::Result<()> {
    let input = args.input.as_ref().context("no input is given")?;
    let is_measured = args.load.profile_is_measured();
    let load = if is_measured {
        args.load.options_without_profile()
    } else {
        args.load.options(input)?
    };
    // What the search says on the way is about the model as it came.
    let model = Model::open(input, &load)?;
    files.reads_data_of(&model)?;
    let plan = args.plan.as_deref().map(super::read_plan).transpose()?;
    let (written, other) = match args.output.as_deref() {
        Some(output) if is_model(output) => (Some(output), None),
        output => (None, output),
    };
    let profiler = |path: &Path| {
        let host = host.ok_or(remat::Error::NoRuntime)?;
        args.load.measured(host, path)
    };
    let request = DeployRequest {
        input,
        output: written,
        load: &load,
        solve: &solve_request(args),
        plan: plan.as_ref(),
        profile: if is_measured { Some(&profiler) } else { None },
        order: args.target.order_hint.hint(),
        arena: args.target.arena.is_on(),
        measure: !args.target.no_measure,
    };
    let found = with_spinner(args, &model, quiet, |control| {
        remat::deploy::deploy(&request, host, control)
    })?;
    if let Some(other) = other {
        remat::save(&found.model, &found.solution, &Target::Onnx, other)?;
    }
    emit_plan(args, files, &found.model, &found.solution)?;
    let seconds = started.elapsed().as_secs_f64();
    console::report(
        &args.report,
        || deployed::text(args, &found, seconds),
        || Report::deployed(args, &found, seconds),
        kept(&found),
    )
}

/// A promise that was not kept is a finding.
fn kept(found: &Deployment) -> anyhow::Result<()> {
    let measured = found.check.as_ref().and_then(|check| check.after.exact);
    match found.broken_promise().zip(measured) {
        None => Ok(()),
        Some((promised, measured)) => Err(remat::Error::BrokenPromise { promised, measured }.into()),
    }
}

/// Whether the extension is that of a model.
fn is_model(output: &Path) -> bool {
    Output::of(output, Format::Onnx).is_ok_and(|output| output == Output::Onnx)
}

fn emit_plan(args: &OptimizeArgs, mut files: Files, model: &Model, solution: &Solution) -> anyhow::Result<()> {
    let Some(path) = &args.emit_plan else { return Ok(()) };
    let written = args.output.as_deref().filter(|output| is_model(output));
    files.keeps_data_of(model, written)?;
    files::write(path, solution.plan_file(model).to_json())
}

fn solve_request(args: &OptimizeArgs) -> SolveRequest {
    SolveRequest {
        budget: args.budget,
        max_overhead: args.max_overhead,
        solver: args.goal.solver(&args.solver),
    }
}

fn search(args: &OptimizeArgs, model: &Model, quiet: bool) -> anyhow::Result<Solution> {
    let request = solve_request(args);
    with_spinner(args, model, quiet, |control| {
        remat::solve_for(model, &request, args.goal.goal(), control)
    })
}

/// Does `work` with the limits of the command line, while a person sees how far the search is.
fn with_spinner<T>(
    args: &OptimizeArgs,
    model: &Model,
    quiet: bool,
    work: impl FnOnce(&SolveControl<'_>) -> Result<T, remat::Error>,
) -> anyhow::Result<T> {
    let spinner = Spinner::start(quiet, model.baseline().duration);
    let mut control = args.search.control().time_limit(args.time_limit).observer(&spinner);
    if let Some(steps) = args.step_limit {
        control = control.step_limit(steps);
    }
    let result = work(&control);
    spinner.finish();
    Ok(result?)
}
