//! `remat-opt max-batch`: the largest batch that fits into memory, with and without rematerialization.

mod check;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use comfy_table::Table;
use remat::plan::{Accounting, Tiling, parse_bytes, parse_duration, parse_share, percent};
use remat::solver::{Activity, SolveControl};
use remat::{
    BaselineOf, BatchFinding, BatchRequest, BatchTrial, BodyPlanner, Format, LoadOptions, MaxBatch, Model, Overhead,
    SolveRequest,
};
use remat_files::shown;
use remat_onnxruntime_deploy::{PlannedBodies, ProcessLimit, with_simulated_baseline};
use schemars::JsonSchema;
use serde::Serialize;

use self::check::Check;
use crate::args::{Arguments, FissionArgs, GOAL, INPUT, Inputs, PlanningArgs, ProgramArgs, SEARCH, ShapeArgs, Talk};
use crate::bodies::BodyRecord;
use crate::document::Body;
use crate::progress::Line;
use crate::range::RangeRecord;
use crate::{console, ledgers, units};

const NOTES: &str = "\
The overhead of one extra forward pass, which the Checkmate paper allows, is about 33 % for a training step: its backward pass \
takes about twice as long as its forward pass.

Sizes are tried by doubling and halving, each at first with a quarter of the limits; above 100 the answer is good to 1 %. That no plan was \
found is no proof that there is none: the report says `impossible` only where it is proved. Where ONNX Runtime is installed, the answer is \
a size for which the main command wrote a file that was measured within the memory; the report has that command.

No peak counts weights and inputs, which belong to the session and the caller; the report names them. What a process of a model takes beside its \
runs, weights among it, is taken off the memory; `--fixed-memory` says what is taken off instead, the state of an optimizer and the like.";

/// The solver, unless one is named.
const SOLVER: &str = "auto";
/// Share of the time for the search, where what it finds is then tried.
const SEARCHING: f64 = 0.4;
/// Shares of the time of one size for plans of subgraphs, and for finding fused chains that run tile by tile.
const BODIES: f64 = 0.4;
const TILING: f64 = 0.5;

#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct MaxBatchArgs {
    /// Available memory, such as `16GiB`: of a model, for the whole process.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = GOAL)]
    memory: u64,
    /// Part of it that every plan takes [default: of a model what the process takes beside its runs, else nothing].
    ///
    /// What the process takes is predicted: code of ONNX Runtime, its graph, weights and the program (`--program`).
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = GOAL)]
    fixed_memory: Option<u64>,
    #[command(flatten)]
    program: ProgramArgs,
    /// The symbolic dimension to enlarge, for models; others are set with `--dim`.
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "batch_factor",
        conflicts_with = "batch_factor",
        help_heading = INPUT
    )]
    batch_dim: Option<String>,
    /// For graphs and problems, which have no dimensions: the batch that their sizes are for; all sizes grow with it.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u64).range(1..), help_heading = INPUT)]
    batch_factor: Option<u64>,
    /// Time that may be added, as a share of the time without rematerialization at the same size.
    #[arg(long, value_name = "SHARE", default_value = "100%", value_parser = parse_share, help_heading = GOAL)]
    max_overhead: u64,
    /// Largest size to try.
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..), help_heading = SEARCH, hide_short_help = true)]
    largest: u64,
    /// Solver to use; `auto` searches, then proves what it can.
    #[arg(long, value_name = "NAME", default_value = SOLVER, help_heading = SEARCH)]
    solver: String,
    /// Time limit of the command; one run of the model comes on top.
    ///
    /// All sizes share it; a search ends as soon as a plan is short enough.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration, help_heading = SEARCH)]
    time_limit: Duration,
    /// Maximum number of search steps for one size.
    #[arg(long, value_name = "N", help_heading = SEARCH, hide_short_help = true)]
    step_limit: Option<u64>,
    #[command(flatten)]
    fission: FissionArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    planning: PlanningArgs,
}

impl MaxBatchArgs {
    /// What the process takes beside its runs.
    ///
    /// # Errors
    /// If that is more than there is.
    fn beside_runs(&self, model: &Model) -> anyhow::Result<u64> {
        let limit = ProcessLimit {
            bytes: self.memory,
            program: self.program.program,
        };
        let process = ledgers::predicted(model, 0);
        let left = limit.left_for_runs(&process, model.baseline_peak().bytes);
        left.map(|left| self.memory - left)
            .ok_or_else(|| ledgers::too_large(&limit, &process))
    }
}

/// The largest batch, and what was tried on the way.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the model.
    model: String,
    /// The input.
    input: PathBuf,
    /// Which bytes count.
    accounting: Accounting,
    /// Memory there is.
    memory_bytes: u64,
    /// Memory of it that is taken whatever the plan.
    fixed_bytes: u64,
    /// Bytes of weights, which no peak counts; absent for graphs.
    weights_bytes: Option<u64>,
    /// Bytes of inputs at the size that was found, which no peak counts; absent for graphs.
    inputs_bytes: Option<u64>,
    /// Time that may be added, in per cent.
    max_overhead_percent: f64,
    /// Name of the solver.
    solver: String,
    /// The largest size without rematerialization.
    without: Option<u64>,
    /// The largest size with it.
    with: Option<u64>,
    /// Time that is added at that size, in per cent.
    overhead_percent: Option<f64>,
    /// What runs of all shapes take at that size, as plans count it, and in which of them it is within the memory; absent where none are stated
    /// (`--shapes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<RangeRecord>,
    /// Whether the time limit was reached before all was tried: larger sizes may fit.
    is_out_of_time: bool,
    /// Whether the main command wrote a file for that size which was measured within the memory.
    is_checked: bool,
    /// The command that makes the model at that size; absent for graphs, and where it fits as it is.
    command: Option<String>,
    /// The sizes that were tried.
    trials: Vec<Trial>,
    /// Time all of it took.
    seconds: f64,
}

/// One size.
#[derive(Serialize, JsonSchema)]
struct Trial {
    /// The size.
    batch: u64,
    /// What the model takes as it is; 0 where it cannot be read.
    baseline_peak_bytes: u64,
    /// What says so; absent where it cannot be read.
    baseline_of: Option<BaselineOf>,
    /// Duration without rematerialization.
    baseline_duration: u64,
    /// `fits as it is`, `found`, `impossible`, `not found` or `unreadable`.
    found: &'static str,
    /// Why it does not fit.
    reason: Option<String>,
    /// Peak of the plan.
    peak_bytes: Option<u64>,
    /// Duration of the plan.
    duration: Option<u64>,
    /// Time beyond the baseline, in per cent.
    overhead_percent: Option<f64>,
    /// The fused chains that run tile by tile in it, where there are any.
    tiling: Option<Tiling>,
    /// The subgraphs with plans of their own in it, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<BodyRecord>,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-max-batch/2";

    fn text(&self) -> String {
        let fixed = match self.fixed_bytes {
            0 => String::new(),
            fixed => format!(", {} of it fixed", units::bytes(fixed)),
        };
        let mut lines = vec![format!("memory    {}{fixed}", units::bytes(self.memory_bytes))];
        if let Some((weights, inputs)) = self.weights_bytes.zip(self.inputs_bytes) {
            lines.push(format!(
                "apart     weights {}, inputs {}: no peak counts them",
                units::bytes(weights),
                units::bytes(inputs)
            ));
        }
        lines.extend([String::new(), table(&self.trials).trim_fmt(), String::new()]);
        let size = |size: Option<u64>| size.map_or_else(|| "none".to_owned(), |size| size.to_string());
        lines.push(format!("without   {}", size(self.without)));
        let gain = match (self.with, self.without) {
            (Some(with), Some(without)) => format!(", {:.2} times as large", with as f64 / without as f64),
            _ => String::new(),
        };
        lines.push(format!("with      {}{gain}", size(self.with)));
        let shapes = self.range.iter().flat_map(RangeRecord::lines);
        lines.extend(shapes.map(|line| format!("shapes    {line}")));
        let mut reasons = self
            .trials
            .iter()
            .filter_map(|trial| Some((trial, trial.reason.as_ref()?)));
        lines.extend(
            reasons
                .next()
                .map(|(trial, reason)| format!("at {:<7}{}: {}", trial.batch, trial.found, shown(reason))),
        );
        if let Some(command) = &self.command {
            let checked = if self.is_checked {
                "written and measured within the memory by"
            } else {
                "not measured in ONNX Runtime; to be made by"
            };
            lines.push(format!("file      {checked}:\n          {command}"));
        }
        if self.is_out_of_time {
            lines.push(
                "          time limit reached before all was tried: `--time-limit` may find a larger size".to_owned(),
            );
        }
        lines.push(format!("time      {:.2} s", self.seconds));
        lines.join("\n") + "\n"
    }
}

impl Arguments for MaxBatchArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        self.planning.inputs()
    }

    fn prepare(&self) -> anyhow::Result<()> {
        self.planning.search.find_library()
    }

    fn run(&self, talk: Talk) -> anyhow::Result<()> {
        let started = Instant::now();
        let reads = [("the shapes (`--weights`)", self.shapes.file())];
        let mut job = self.planning.job(&reads, &[])?;
        let shapes = self.shapes.read()?;
        if let Some(name) = self.batch_dim.as_ref().filter(|name| shapes.ranges.has(name)) {
            bail!(
                "the sizes of `{}` are what is looked for: leave it out of `--shapes` and `--weights`",
                shown(name)
            );
        }
        shapes.complete_with_largest(&mut job.load);
        let line = Line::start(talk.quiet, None);
        line.untimed(Activity::Import, "");
        job.measure()?;
        let mut whole = self
            .planning
            .search
            .control()
            .observer(&line)
            .time_limit(self.time_limit);
        whole.step_limit = self.step_limit;
        if self.batch_dim.is_some() {
            // Without one, the answer is not tried.
            _ = job.find_runtime();
        }
        let mut request = BatchRequest {
            memory: self.memory,
            fixed: self.fixed_memory.unwrap_or(0),
            max_overhead: self.max_overhead,
            solver: self.solver.clone(),
            largest: self.largest,
        };
        let report = |answer: &Answer, of_answer: &Model, fixed: u64| -> anyhow::Result<()> {
            let took = started.elapsed();
            line.finish();
            let report = Report::new(self, answer, (of_answer, fixed), took);
            let range = answer.range.as_ref();
            let kept = || range.map_or(Ok(()), RangeRecord::require_budget);
            let outcome = answer.found.require_size();
            let outcome = outcome.and_then(|()| Ok(kept()?)).map_err(Into::into);
            console::report(&self.planning.report, &report, outcome)
        };
        if let Some(name) = &self.batch_dim {
            let options = |size: u64| {
                let mut options = job.load.clone();
                options.dims.insert(name.clone(), size);
                options
            };
            let open = |size: u64| {
                let model = Model::open(job.input, &options(size))?;
                Ok(if job.is_for_runtime(&model) {
                    with_simulated_baseline(model)
                } else {
                    model
                })
            };
            let smallest = open(1)?;
            let is_for_runtime = job.is_for_runtime(&smallest);
            if is_for_runtime && self.fixed_memory.is_none() {
                request.fixed = self.beside_runs(&smallest)?;
            }
            let host = job.host.as_ref().filter(|_| is_for_runtime);
            let control = if host.is_some() {
                whole.share_of_time(SEARCHING)
            } else {
                whole
            };
            let fission = self.fission.request(is_for_runtime);
            let other_form = |size: u64, model: &Model, request: &SolveRequest, control: &SolveControl<'_>| {
                let load = options(size);
                let planner = PlannedBodies { load: &load };
                let planned = planner.plan(model, request, &control.share_of_time(BODIES))?;
                let Some(fission) = &fission else { return Ok(planned) };
                let whole = planned.as_ref().unwrap_or(model);
                let found = remat::tile(whole, &load, request, fission, &control.share_of_time(TILING))?;
                Ok(found.into_iter().next().or(planned))
            };
            let mut found = remat::max_batch(&open, Some(&other_form), &request, &control)?;
            let is_checked = match host {
                Some(host) => {
                    let check = Check {
                        input: job.input,
                        host,
                        load: &options,
                        open: &open,
                        fission: fission.as_ref(),
                        solver: &self.solver,
                        max_overhead: self.max_overhead,
                    };
                    check.confirm(&mut found, &whole)?
                }
                None => false,
            };
            let needs_plan = found.with.filter(|_| found.with > found.without);
            let command = needs_plan.and_then(|size| command(self, &options(size), found.budget));
            let size = found.with.unwrap_or(1);
            let of_answer = open(size)?;
            let form = found.form.as_deref().unwrap_or(&of_answer);
            let plan = match &found.plan {
                Some(solution) => Some(&solution.plan),
                None => Some(of_answer.baseline_plan()).filter(|_| found.with == found.without),
            };
            let range =
                plan.and_then(|plan| RangeRecord::of_plan((form, plan), &shapes, &options(size), Some(found.budget)));
            let answer = Answer {
                found,
                range,
                is_checked,
                command,
            };
            return report(&answer, &of_answer, request.fixed);
        }
        let model = Model::open(job.input, &job.load)?;
        if model.format() == Format::Onnx {
            bail!("the sizes of an ONNX model do not all grow with the batch: name its dimension with `--batch-dim`");
        }
        let base = self.batch_factor.unwrap_or(1);
        let found = remat::max_batch(&|size| model.scaled(size, base), None, &request, &whole)?;
        let of_answer = model.scaled(found.with.unwrap_or(1), base)?;
        let answer = Answer {
            found,
            range: None,
            is_checked: false,
            command: None,
        };
        report(&answer, &of_answer, request.fixed)
    }
}

/// The main command for the model as `load` reads it, as a line for a shell.
fn command(args: &MaxBatchArgs, load: &LoadOptions, budget: u64) -> Option<String> {
    let mut words = vec!["remat-opt".to_owned(), args.planning.input.to_str()?.to_owned()];
    words.extend(["-o".to_owned(), "small.onnx".to_owned()]);
    words.extend(args.planning.load.words(load));
    words.extend(args.shapes.words());
    words.extend(["--budget".to_owned(), budget.to_string()]);
    words.extend(["--max-overhead".to_owned(), percent(args.max_overhead)]);
    if args.solver != SOLVER {
        words.extend(["--solver".to_owned(), args.solver.clone()]);
    }
    words.extend(args.fission.words());
    words.extend(args.planning.search.words());
    if let Some(steps) = args.step_limit {
        words.extend(["--step-limit".to_owned(), steps.to_string()]);
    }
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

/// The answer, and what is known of it.
struct Answer {
    found: MaxBatch,
    range: Option<RangeRecord>,
    /// Whether the main command wrote a file for that size which was measured within the memory.
    is_checked: bool,
    command: Option<String>,
}

fn table(trials: &[Trial]) -> Table {
    let mut table = console::table(["batch", "baseline", "peak", "overhead", "found"], 0..4);
    for trial in trials {
        let fits = trial.found == state(&BatchFinding::Baseline);
        let peak = trial.peak_bytes.or(fits.then_some(trial.baseline_peak_bytes));
        let overhead = trial.overhead_percent.or(fits.then_some(0.0));
        let in_tiles = if trial.tiling.is_some() { " in tiles" } else { "" };
        let subgraphs = match trial.bodies.len() {
            0 => String::new(),
            bodies => format!(" with {}", units::count(bodies, "planned subgraph")),
        };
        table.add_row([
            trial.batch.to_string(),
            units::bytes(trial.baseline_peak_bytes),
            peak.map_or_else(String::new, units::bytes),
            overhead.map_or_else(String::new, |overhead| format!("{overhead:+.2} %")),
            format!("{}{in_tiles}{subgraphs}", trial.found),
        ]);
    }
    table
}

/// Time that the plan for the answer adds, in per cent.
fn overhead_percent(found: &MaxBatch) -> Option<f64> {
    let trial = found.trials.iter().find(|trial| Some(trial.size) == found.with)?;
    let BatchFinding::Plan { duration, .. } = trial.finding else {
        return None;
    };
    let baseline = trial.baseline_duration;
    Some(Overhead { duration, baseline }.percent())
}

/// A finding in a word or two.
fn state(finding: &BatchFinding) -> &'static str {
    match finding {
        BatchFinding::Baseline => "fits as it is",
        BatchFinding::Plan { .. } => "found",
        BatchFinding::Impossible { .. } => "impossible",
        BatchFinding::NotFound { .. } => "not found",
        BatchFinding::Unreadable { .. } => "unreadable",
    }
}

impl Report {
    fn new(args: &MaxBatchArgs, answer: &Answer, (of_answer, fixed_bytes): (&Model, u64), took: Duration) -> Self {
        let found = &answer.found;
        let trial = |trial: &BatchTrial| {
            let (peak_bytes, duration) = match trial.finding {
                BatchFinding::Plan { peak, duration } => (Some(peak), Some(duration)),
                _ => (None, None),
            };
            let baseline = trial.baseline_duration;
            let overhead = |duration| Overhead { duration, baseline }.percent();
            Trial {
                batch: trial.size,
                baseline_peak_bytes: trial.baseline.map_or(0, |baseline| baseline.bytes),
                baseline_of: trial.baseline.map(|baseline| baseline.of),
                baseline_duration: trial.baseline_duration,
                found: state(&trial.finding),
                reason: trial.finding.reason().map(str::to_owned),
                peak_bytes,
                duration,
                overhead_percent: duration.map(overhead),
                tiling: trial.tiling.clone(),
                bodies: BodyRecord::all(&trial.bodies),
            }
        };
        let external = of_answer.external_bytes().filter(|_| args.batch_dim.is_some());
        Self {
            model: of_answer.problem().name.clone(),
            input: args.planning.input.clone(),
            accounting: of_answer.problem().accounting,
            memory_bytes: args.memory,
            fixed_bytes,
            weights_bytes: external.map(|external| external.constants),
            inputs_bytes: external.map(|external| external.inputs),
            max_overhead_percent: args.max_overhead as f64 / 1e4,
            solver: args.solver.clone(),
            without: found.without,
            with: found.with,
            overhead_percent: overhead_percent(found),
            range: answer.range.clone(),
            is_out_of_time: found.is_out_of_time,
            is_checked: answer.is_checked,
            command: answer.command.clone(),
            trials: found.trials.iter().map(trial).collect(),
            seconds: took.as_secs_f64(),
        }
    }
}
