//! `remat-opt IN -o OUT`: the main job.

mod args;
mod cuda;
mod details;
mod document;
mod figures;
mod in_runtime;
mod less;
mod memory;
#[cfg_attr(not(feature = "mlir"), path = "no_mlir.rs")]
mod mlir;
mod planned;
mod process;
mod proof;
mod report;
mod session;
mod settings;
mod sizes;
mod summary;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use remat::plan::{Bound, BudgetSpec, Objective, PlanFile};
use remat::solver::{Activity, Doing, Observer, SolveControl};
use remat::{ErrorKind, FissionRequest, Format, Goal, LoadOptions, Model, Output, Solution, SolveRequest, Target};
use remat_files::document::to_json;
use remat_files::shown;
use remat_onnxruntime_deploy::{
    DeployError, DeployRequest, Deployment, OrderHint, SettingsRequest, has_arena_library, open_model, try_settings,
    with_pages_of_the_runtime, with_planned_bodies, write_arena_library,
};
use remat_onnxruntime_run::OptimizationLevel;

pub(crate) use args::OptimizeArgs;
pub(crate) use cuda::Report as CudaReport;
pub(crate) use document::{ModuleReport, Report, SettingsReport};

use self::args::TargetArg;
use self::document::About;
use self::planned::{ArenaJob, forget_plan, memory_limits, plan_memory};
use crate::args::{Arguments, Inputs, OutputPath, ReportFormat, Shapes, Talk, named};
use crate::document::Document;
use crate::files::{self, Files};
use crate::floor::Floor;
use crate::job::{Job, LEAST};
use crate::ledgers::{self, ProcessRecord};
use crate::page::{self, AsItCame, Said};
use crate::progress::Line;
use crate::range::RangeRecord;
use crate::runtime::{expected, limits};
use crate::{block, bodies, console, interrupt};

/// Time for placing the plan of a model for ONNX Runtime, however long measuring took.
const LEAST_PLACING: Duration = Duration::from_millis(500);

impl Arguments for OptimizeArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        self.load.inputs(self.input.iter_mut().chain(&mut self.plan))
    }

    fn outputs(&mut self) -> anyhow::Result<Vec<OutputPath<'_>>> {
        let form = self.output_form()?;
        named([
            (&mut self.output, form),
            (&mut self.emit_plan, "json"),
            (&mut self.block.block_svg, "svg"),
            (&mut self.page.page, "html"),
            (&mut self.target.emit_settings, "json"),
        ])
    }

    fn prepare(&self) -> anyhow::Result<()> {
        self.search.find_library()
    }

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
        run(self, talk)
    }
}

fn run(args: &OptimizeArgs, talk: Talk) -> anyhow::Result<()> {
    let started = Instant::now();
    let input = args.input.as_ref().context("no input is given")?;
    let reads = [
        ("the plan (`--plan`)", args.plan.as_ref()),
        ("the shapes (`--weights`)", args.shapes.file()),
        ("the requests (`--requests`)", args.target.requests.as_ref()),
    ];
    let weights = args.weights();
    let [arena_plan, arena_library] = args.arena_files().map_or([None, None], |files| files.map(Some));
    let arena_library = arena_library.or_else(|| args.pages_library());
    let arena_library = arena_library.or_else(|| cuda::library(args));
    let writes = [
        (
            "the result (`-o`)",
            args.output.as_ref().filter(|_| !args.target.process),
        ),
        ("the plan (`--emit-plan`)", args.emit_plan.as_ref()),
        ("the chart (`--block-svg`)", args.block.block_svg.as_ref()),
        ("the page (`--report`)", args.page.page.as_ref()),
        ("the weights (`--mlir-weights file`)", weights.as_ref()),
        ("the plan of memory", arena_plan.as_ref()),
        ("the arena library", arena_library.as_ref()),
        ("the settings (`--emit-settings`)", args.target.emit_settings.as_ref()),
    ];
    let mut job = Job::resolve(input, &args.load, &reads, &writes)?;
    let shapes = args.shapes.read()?;
    shapes.complete(&mut job.load);
    let format = Format::of(input)?;
    if format == Format::Mlir {
        args.shapes.refuse(format.describe())?;
        job.measure()?;
        return mlir::run(args, &job, started);
    }
    if cuda::is_asked(args, format)? {
        return cuda::run(args, &job, &shapes, started, talk);
    }
    if args.pass_pipeline.is_some() {
        bail!(
            "`--pass-pipeline` is for modules of MLIR, and the input is {}",
            format.describe()
        );
    }
    if let Some(output) = args.output.as_ref().filter(|_| !args.target.process) {
        check_target(args, output)?;
        Output::of(output, format)?;
    }
    let is_about_memory = args.is_about_memory();
    if is_about_memory {
        check_device(args)?;
        job.find_runtime()?;
    }
    let plan = args.plan.as_deref().map(super::read_plan).transpose()?;
    let runtime = runtime(args, &mut job, format, plan.as_ref())?;
    let is_written = args.model_output().is_some();
    if is_about_memory && (runtime != Runtime::Wanted || !is_written) {
        let option = args.memory_option();
        let output = if args.target.process { "-o DIR" } else { "-o OUT.onnx" };
        bail!("`{option}` is about the memory of a model that is written for ONNX Runtime: `{output}`");
    }
    if runtime == Runtime::Wanted {
        return deploy(args, job, &shapes, plan.as_ref(), started, talk);
    }
    let is_missing = runtime == Runtime::Missing;
    if is_missing && args.report.format == ReportFormat::Json {
        tracing::warn!("{}", summary::WITHOUT_RUNTIME);
    }
    let line = Line::start_at(started, talk.quiet, Some(args.time_limit));
    let model = job.open_shown(plan.as_ref(), None, &line)?;
    let as_planned_for = model.baseline().peak;
    let before = args.page.page.as_ref().map(|path| (path, AsItCame::of(&model)));
    let model = match plan.is_none() && has_bodies(args, format) {
        true => in_bodies(args, &job, model, &line)?,
        false => model,
    };
    warn_of_bodies(args, format, &model);
    let model = match args.fission.request(false).filter(|_| plan.is_none()) {
        Some(fission) => in_tiles(args, &job, model, &fission, &line)?,
        None => model,
    };
    let solution = match &plan {
        Some(plan) => {
            args.goal.check_plan(plan, &model)?;
            let mut solution = remat::check_plan(&model, plan)?;
            if args.block.places() {
                solution.place(&model, &args.control(&line))?;
            }
            solution
        }
        None => search(args, &model, &shapes, &line)?,
    };
    line.settle();
    line.untimed(Activity::Write, "");
    if let Some(output) = &args.output {
        remat::save(&model, &solution, &target(args, format, output), output)?;
    }
    emit_plan(args, job.files, &model, &solution)?;
    draw_block(args, &solution)?;
    let floor = floor(args, talk, &model, &args.control(&line));
    let budget = args.budget.bytes(model.baseline_peak().bytes);
    let range = RangeRecord::of_plan((&model, &solution.plan), &shapes, &job.load, budget);
    line.finish();
    let about = About {
        args,
        started,
        floor: floor.as_ref(),
        range: range.as_ref(),
        is_verbose: talk.verbose,
    };
    let report = Report::of_plan(about, as_planned_for, (&model, &solution), is_missing);
    if let Some((path, before)) = &before {
        page::write(
            path,
            before,
            &model,
            &solution,
            said(&report, page::title(input, &model)),
        )?;
    }
    console::report(&args.report, &report, in_every_shape(range.as_ref()))
}

/// That the budget holds for every shape that is stated is what is promised.
fn in_every_shape(range: Option<&RangeRecord>) -> anyhow::Result<()> {
    let kept = range.map_or(Ok(()), RangeRecord::require_budget);
    Ok(kept.map_err(remat::Error::from)?)
}

/// What the page of a report shows beside its charts.
fn said(report: &Report, title: String) -> Said {
    Said {
        title,
        figures: figures::of(report),
        summary: report.all_entries().collect(),
        report: to_json(&Document::new(report, None)),
        ..Said::default()
    }
}

/// The peak that no plan undercuts, where a report has it; none where there is no time left for it.
fn floor(args: &OptimizeArgs, talk: Talk, model: &Model, control: &SolveControl<'_>) -> Option<Floor> {
    let is_said = talk.verbose || args.page.page.is_some();
    let is_over = control.deadline.is_some_and(|deadline| deadline <= Instant::now());
    if !is_said || is_over || interrupt::status().is_some() {
        return None;
    }
    Floor::of(model, control)
}

/// Share of the time for finding fused chains that run tile by tile.
const TILING: f64 = 0.4;

/// Share of the time for plans of subgraphs.
const BODIES: f64 = 0.4;

/// Whether what is written says how subgraphs run: models and plans do, device programs, MLIR, text and drawings leave them as they are.
fn has_bodies(args: &OptimizeArgs, format: Format) -> bool {
    let output = args.output.as_ref().map(|output| Output::of(output, format));
    format == Format::Onnx && matches!(output, None | Some(Ok(Output::Onnx | Output::Plan)))
}

/// Names the nodes whose subgraphs stay as they are because the output cannot represent their plans.
fn warn_of_bodies(args: &OptimizeArgs, format: Format, model: &Model) {
    let Some(output) = args.output.as_ref() else { return };
    if has_bodies(args, format) || format != Format::Onnx || args.budget == BudgetSpec::None {
        return;
    }
    let peak = model.baseline_peak().bytes;
    if args.budget.bytes(peak).is_some_and(|budget| peak <= budget) {
        return;
    }
    let nodes: Vec<String> = bodies::nodes(model)
        .iter()
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    if !nodes.is_empty() {
        tracing::warn!(
            "`.{}` files cannot represent plans of subgraphs: those of {} stay as they are; `.onnx` and `.json` can",
            remat::extension(output),
            nodes.join(", ")
        );
    }
}

/// The model with plans for those of its subgraphs that have to take less.
fn in_bodies(args: &OptimizeArgs, job: &Job<'_>, model: Model, line: &Line) -> anyhow::Result<Model> {
    let control = args.control(line).share_of_time(BODIES);
    Ok(with_planned_bodies(
        model,
        &job.load,
        OrderHint::Any,
        &args.request(),
        &control,
    )?)
}

/// The model with those fused chains tile by tile that pay.
fn in_tiles(
    args: &OptimizeArgs,
    job: &Job<'_>,
    model: Model,
    fission: &FissionRequest,
    line: &Line,
) -> anyhow::Result<Model> {
    let control = args.control(line).share_of_time(TILING);
    let tiled = remat::tile(&model, &job.load, &args.request(), fission, &control)?;
    Ok(tiled.into_iter().next().unwrap_or(model))
}

/// Memory is planned, and settings are tried, on the processor only.
fn check_device(args: &OptimizeArgs) -> anyhow::Result<()> {
    if !args.is_on_processor() {
        bail!(
            "`{}` is for the memory of the processor, `--device cpu`: that of a GPU was never measured, and nothing is planned for \
             `{}`",
            args.memory_option(),
            args.load.device.as_deref().unwrap_or_default()
        );
    }
    Ok(())
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
    if wanted.contains(&remat::extension(output).as_str()) {
        return Ok(());
    }
    let wanted: Vec<String> = wanted.iter().map(|wanted| format!("`.{wanted}`")).collect();
    bail!(
        "`{}` is not what `--target {name}` writes: {}",
        output.display(),
        wanted.join(", ")
    )
}

/// What ONNX Runtime has to do with a model.
#[derive(PartialEq, Eq)]
enum Runtime {
    /// The model is made for others.
    Unwanted,
    /// The model would be made for it, were it found.
    Missing,
    /// The model is made for it, even where it is not found: that is what was asked for.
    Wanted,
}

/// Whether the model is made for ONNX Runtime; then the job has the runtime, if it is found.
fn runtime(args: &OptimizeArgs, job: &mut Job<'_>, format: Format, plan: Option<&PlanFile>) -> anyhow::Result<Runtime> {
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
    let is_special = args.goal.goal() != Goal::default() || plan.is_some_and(is_special) && !is_wanted;
    if is_special && is_wanted {
        bail!("`--target ort` plans for least time: leave out `--objective` and `--deadline`");
    }
    let is_paged = args.is_paged() || plan.is_some_and(is_paged);
    if is_paged && is_wanted && !has_arena_library() {
        bail!("`--target ort` moves results to a second memory with the arena library, which this program has not");
    }
    let is_special = is_special || is_paged && !has_arena_library();
    if args.block.bound == Bound::Block && is_wanted {
        bail!(
            "`--bound block` is for plans whose offsets are followed, and ONNX Runtime places results itself: write it for \
             others (`--target onnx`), or write the plan"
        );
    }
    let writes_model = args.model_output().is_some();
    let is_for_others = matches!(
        args.target.target,
        Some(TargetArg::Onnx | TargetArg::Plan | TargetArg::Mlir)
    );
    let is_in_block = args.block.bound == Bound::Block;
    if is_special || is_in_block || is_for_others || !(is_wanted || writes_model && format == Format::Onnx) {
        return Ok(Runtime::Unwanted);
    }
    match job.find_runtime() {
        Ok(_) => Ok(Runtime::Wanted),
        Err(error) if args.load.runtime.is_named() => Err(error),
        Err(error) if is_wanted => {
            tracing::warn!("{error}: nothing is fused and nothing is measured");
            Ok(Runtime::Wanted)
        }
        Err(error) => {
            tracing::info!("{error}: the model is written for any runtime");
            Ok(Runtime::Missing)
        }
    }
}

/// Whether a plan was not made for least time.
fn is_special(plan: &PlanFile) -> bool {
    plan.objective != Objective::Time || plan.deadline.is_some()
}

/// Whether a plan was made with a second memory.
fn is_paged(plan: &PlanFile) -> bool {
    plan.setup.as_ref().is_some_and(|setup| setup.paging.is_some())
}

fn deploy(
    args: &OptimizeArgs,
    mut job: Job<'_>,
    shapes: &Shapes,
    plan: Option<&PlanFile>,
    started: Instant,
    talk: Talk,
) -> anyhow::Result<()> {
    let load = match plan {
        Some(plan) => job.load.for_plan(plan)?,
        None => with_pages_of_the_runtime(job.load.clone())?,
    };
    let line = Line::start_at(started, talk.quiet, Some(args.time_limit));
    line.begins(&Doing::new(Activity::Import, ""));
    // What the search says on the way is about the original, whose ops a plan for the fused graph does not know.
    let as_it_came = LoadOptions {
        profile: load.profile.clone().filter(|_| plan.is_none()),
        ..load.clone()
    };
    let model = open_model(
        job.input,
        &as_it_came,
        job.host
            .as_ref()
            .map(|host| (host, limits(Some(args.time_limit + LEAST)))),
    )?;
    job.files.reads_data_of(&model)?;
    line.baseline(model.baseline().duration);
    let written = args.model_output();
    let (written, other) = match written.as_deref() {
        Some(written) => (Some(written), None),
        None => (None, args.output.as_deref()),
    };
    let staging = args.output.as_deref().filter(|_| args.target.process);
    let staging = staging.map(process::begin).transpose()?;
    // A graph in tiles has no pages.
    let fission = args.fission.request(true).filter(|_| !args.is_paged());
    let profiler = |path: &Path| job.profile_of(path, expected(&model));
    let limit = args.whole.limit();
    let wanted = match &limit {
        Some(limit) => process::within(args, limit, &model, args.request())?,
        None => args.request(),
    };
    let request = DeployRequest {
        input: job.input,
        output: written,
        load: &load,
        solve: &wanted,
        baseline: (!job.is_for_runtime(&model)).then(|| model.baseline_peak()),
        plan,
        profile: if job.measures { Some(&profiler) } else { None },
        order: remat_onnxruntime_deploy::order_for_plan(args.target.order_hint, plan)?,
        arena: args.target.arena,
        fission: fission.as_ref().filter(|_| plan.is_none()),
        untouched: (args.plans_memory() || args.target.settings) && args.budget == BudgetSpec::None,
        force: args.target.force || is_for_most_shapes(args, shapes),
        writes_as_it_came: args.target.force || args.target.settings || args.target.process || shapes.are_stated(),
        plans_memory: args.plans_memory(),
        level: args.target.level,
        measure: !args.target.no_measure,
        expected: expected(&model),
    };
    let whole = args.control(&line);
    let control = args.control_before_placing(&line);
    let mut found = match remat_onnxruntime_deploy::deploy(&request, job.host.as_ref(), &control) {
        Err(error) if is_out_of_reach(error.kind()) && is_for_most_shapes(args, shapes) => {
            tracing::info!("at the sizes that are planned for, {error}");
            let lowest = DeployRequest {
                solve: &lowest(&wanted),
                ..request
            };
            let again = control.at_least(args.time_limit / 2);
            remat_onnxruntime_deploy::deploy(&lowest, job.host.as_ref(), &again)?
        }
        found => found?,
    };
    line.settle();
    if args.block.places() {
        // Measuring may have taken all of the time; the passes alone say too much of the block.
        found.solution.place(&found.model, &whole.at_least(LEAST_PLACING))?;
    }
    found.lower_level_result = remat_onnxruntime_deploy::offer(&found, &request, job.host.as_ref(), &control);
    line.untimed(Activity::Write, "");
    if let Some(other) = other {
        remat::save(&found.model, &found.solution, &Target::Onnx, other)?;
    }
    if let Some(library) = args
        .pages_library()
        .filter(|_| found.is_written && found.lowering.transfers > 0)
    {
        write_arena_library(&library).map_err(DeployError::from)?;
    }
    let written = written.filter(|_| found.is_written).zip(job.host.as_ref());
    let arena_job = ArenaJob {
        written: written.map_or(Path::new(""), |(file, _)| file),
        original: job.input,
        keeps_bits: found.model.tiling().is_none_or(|tiling| !tiling.close)
            && found.check.as_ref().is_none_or(|check| check.closeness.is_none()),
        is_as_it_came: !found.strategy.fixes_copies() && args.target.level == OptimizationLevel::All,
        load: &load,
        shapes,
    };
    let arena = match written.filter(|_| args.plans_memory()) {
        Some((_, host)) => plan_memory((args, &found.model), arena_job, host, expected(&model), &whole)?,
        None => Err(String::new()),
    };
    let mut written = written;
    if let Some((file, _)) = written.filter(|_| arena.is_err()) {
        forget_plan(file)?;
        // Data files that the model shares with another one are not touched.
        if found.is_for_a_plan && found.model.onnx().is_some_and(|onnx| onnx.files().len() <= 1) {
            planned::remove(file)?;
            (found.is_written, written) = (false, None);
        }
    }
    let process = match staging.zip(written) {
        Some((staging, (_, host))) => {
            let models = (&model, &found.model);
            let host = (host, expected(&model));
            Some(process::write(staging, args, models, arena_job, host, &whole)?)
        }
        None => None,
    };
    let is_asked = limit.is_some() || talk.verbose;
    let whole_process = match (&process, written) {
        (Some(form), _) => Some(ProcessRecord::of_form(form, limit)),
        (None, Some(written)) if is_asked => Some(process::record(
            args,
            written,
            (&model, &found),
            (&load, arena.as_ref().ok()),
            expected(&model),
        )?),
        _ => None,
    };
    let settings = written.filter(|_| args.target.settings);
    let settings = settings.map(|(written, host)| {
        let request = SettingsRequest {
            model: written,
            level: args.target.level,
            dims: &load.dims,
            limits: memory_limits(expected(&model)),
            predicted: found.prediction.peak_bytes,
            is_slow_without_arena: found.arena_off().is_some_and(|off| off.is_slow()),
        };
        try_settings(&request, host, &whole).map_err(DeployError::from)
    });
    let settings = unless_interrupted("settings", settings.transpose().map_err(anyhow::Error::from))?;
    if let Some((path, settings)) = args.target.emit_settings.as_ref().zip(settings.as_ref()) {
        files::write(path, document::settings(path, settings))?;
    }
    emit_plan(args, job.files, &found.model, &found.solution)?;
    draw_block(args, &found.solution)?;
    let floor = floor(args, talk, &found.model, &whole);
    let budget = args.budget.bytes(found.model.baseline_peak().bytes);
    let range = match &arena {
        Ok(planned) => RangeRecord::of_memory(planned, shapes, budget),
        Err(_) => RangeRecord::of_plan((&found.model, &found.solution.plan), shapes, &load, budget),
    };
    line.finish();
    let about = About {
        args,
        started,
        floor: floor.as_ref(),
        range: range.as_ref(),
        is_verbose: talk.verbose,
    };
    let before = model.baseline().peak;
    let report = Report::of_file(
        about,
        before,
        &found,
        (&arena, settings.as_ref()),
        (process, whole_process.clone()),
    );
    if let Some(path) = &args.page.page {
        let (rewritten, solution) = (&found.model, &found.solution);
        let said = said(&report, page::title(job.input, &model));
        page::write(path, &AsItCame::of(&model), rewritten, solution, said)?;
    }
    // Where it is known in which shapes the budget holds, that it is missed in one of them is part of it.
    let outcome = match found.missed.is_some() && report.missed.is_none() {
        true => Ok(()),
        false => as_predicted(&found),
    };
    let within = whole_process.as_ref().and_then(ProcessRecord::within);
    let outcome = outcome.and_then(|()| in_every_shape(range.as_ref()));
    let outcome = outcome.and_then(|()| within.map_or(Ok(()), ledgers::require));
    console::report(&args.report, &report, outcome)
}

/// What was to be found for a file that is written: nothing where a signal came before, which says so and takes nothing from the report.
fn unless_interrupted<T>(what: &str, found: anyhow::Result<Option<T>>) -> anyhow::Result<Option<T>> {
    match found {
        Err(error) if interrupt::status().is_some() => {
            tracing::warn!("interrupted before there was {what} for the file that is written: {error}");
            Ok(None)
        }
        found => found,
    }
}

/// A budget that no file keeps is a finding, and a prediction that a measured peak exceeds.
fn as_predicted(found: &Deployment) -> anyhow::Result<()> {
    if let Some(missed) = found.missed {
        return Err(DeployError::BudgetMissed(missed).into());
    }
    let measured = found.check.as_ref().and_then(|check| check.after.arena_off);
    match found.exceeded_prediction().zip(measured) {
        None => Ok(()),
        Some((predicted, measured)) => Err(DeployError::PredictionExceeded { predicted, measured }.into()),
    }
}

fn emit_plan(args: &OptimizeArgs, mut files: Files, model: &Model, solution: &Solution) -> anyhow::Result<()> {
    let Some(path) = &args.emit_plan else { return Ok(()) };
    let written = args.model_output();
    files.keeps_data_of(model, written.as_deref())?;
    files::write(path, solution.plan_file(model).to_json())
}

fn search(args: &OptimizeArgs, model: &Model, shapes: &Shapes, line: &Line) -> anyhow::Result<Solution> {
    let control = args.control(line);
    let left = Some(args.time_limit);
    line.begins(&Doing {
        left,
        ..Doing::new(Activity::Plan, "")
    });
    let (request, goal) = (args.request(), args.goal.goal());
    if args.block.places() {
        return Ok(remat::solve_in_block(
            model,
            &request,
            goal,
            args.block.bound,
            &control,
        )?);
    }
    let found = remat::solve_or_explain(model, &request, goal, &control);
    match found {
        Err(error) if is_out_of_reach(error.kind()) && is_for_most_shapes(args, shapes) => {
            tracing::info!("at the sizes that are planned for, {error}");
            Ok(remat::solve_or_explain(model, &lowest(&request), goal, &control)?)
        }
        found => Ok(found?),
    }
}

/// Whether a budget that is out of reach at the sizes that are planned for is to hold for as many other shapes as may be.
fn is_for_most_shapes(args: &OptimizeArgs, shapes: &Shapes) -> bool {
    shapes.are_stated() && matches!(args.budget, BudgetSpec::Bytes(_))
}

fn is_out_of_reach(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Negative | ErrorKind::Limit)
}

/// The same for the lowest peak.
fn lowest(request: &SolveRequest) -> SolveRequest {
    SolveRequest {
        budget: BudgetSpec::Min,
        ..request.clone()
    }
}

fn draw_block(args: &OptimizeArgs, solution: &Solution) -> anyhow::Result<()> {
    match args.block.block_svg.as_ref().zip(block::chart(solution)) {
        Some((path, chart)) => files::write(path, chart?),
        None => Ok(()),
    }
}
