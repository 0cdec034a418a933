//! `remat-opt inspect`: where the memory goes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use remat::fission::Candidate;
use remat::plan::{Accounting, BoundCovers, Plan, Problem, Step, StorageId, Tiling};
use remat::solver::{SolveControl, least_peak, once_order};
use remat::verify::{Replay, StepTrace, resident_at};
use remat::{BaselineOf, Format, Model, TilingOutlook};
use remat_files::{line, shown};
use remat_onnxruntime_deploy::Padding;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{Arguments, FissionArgs, INPUT, Inputs, LoadArgs, REPORT, ReportArgs};
use crate::bodies::BodyRecord;
use crate::document::Body;
use crate::job::{Job, LEAST, PATIENCE};
use crate::padding::padding_text;
use crate::runtime::{expected, limits};
use crate::{bodies, chart, console, floor, interrupt, tiles, units};

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Model (`.onnx`), node-link graph or saved problem (`.json`); `-` for stdin.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Show the timeline under this plan instead of the model's own order.
    #[arg(long, value_name = "PLAN", help_heading = INPUT)]
    plan: Option<PathBuf>,
    /// How many tensors to list.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = REPORT)]
    top: usize,
    #[command(flatten)]
    fission: FissionArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Tilings of larger graphs are not estimated.
const MOST_OPS: usize = 20_000;
/// The most tilings that are estimated.
const ESTIMATES: u64 = 400;
/// The longest time for that.
const TIME: Duration = Duration::from_secs(5);
/// Time that tiles may add, in millionths, as for the default budget of a plan.
const MOST_OVERHEAD: u64 = 50_000;

/// Where a model's memory goes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the model.
    model: String,
    /// The input.
    input: PathBuf,
    /// Which bytes count.
    accounting: Accounting,
    /// Number of ops.
    ops: usize,
    /// Number of tensors.
    tensors: usize,
    /// Number of pairs of ops of which the first never runs after the second; absent for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    anti_dependences: Option<usize>,
    /// Duration of all steps; in nanoseconds for models.
    duration: u64,
    /// What the model takes as it is: what shares of memory are of.
    baseline_peak_bytes: u64,
    /// What says so.
    baseline_of: BaselineOf,
    /// Most bytes resident at once.
    peak_bytes: u64,
    /// The step at which that is.
    peak_step: usize,
    /// The op that runs then.
    peak_node: String,
    /// The peak that no plan of whole ops undercuts, in bytes; in fixed order, none in this order. Tiles may.
    lower_bound_bytes: Option<u64>,
    /// The op that needs them; absent where the results that stay do.
    lower_bound_node: Option<String>,
    /// Every op once, in another order; absent where the order is fixed or the problem is not series-parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    once: Option<Once>,
    /// The subgraphs that have plans of their own, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<BodyRecord>,
    /// What running stretches tile by tile would give, by estimate; absent where that was not looked for.
    in_tiles: Option<InTiles>,
    /// What fills more than half of the memory because ONNX Runtime keeps it in blocks of channels; absent where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<Padding>,
    /// What is resident at the peak, the largest first.
    resident_at_peak: Vec<Resident>,
    /// Memory at each step.
    timeline: Vec<Moment>,
}

/// What orders in which every op runs once come to.
#[derive(Serialize, JsonSchema)]
struct Once {
    /// Bytes at the peak of the best order found.
    peak_bytes: u64,
    /// The peak that no such order undercuts, in bytes; absent where nothing is known.
    lower_bound_bytes: Option<u64>,
}

/// What fission gives, by estimate in reference order.
#[derive(Serialize, JsonSchema)]
struct InTiles {
    /// The lowest peak that adds at most 5 % of time; absent where no tiling lowers the peak.
    within_limit: Option<TilesAt>,
    /// The lowest peak that was found, whatever time it adds.
    lowest: Option<TilesAt>,
    /// Bytes that every tiling under the rules takes.
    bound_bytes: Option<u64>,
    /// The op that needs them.
    bound_node: Option<String>,
}

/// A tiling.
#[derive(Serialize, JsonSchema)]
struct TilesAt {
    /// Bytes at the peak in reference order.
    peak_bytes: u64,
    /// That as a share of the peak of whole ops in the same order, in per cent.
    peak_percent: f64,
    /// Time beyond that of the model as it is, in per cent.
    overhead_percent: f64,
    /// The stretches.
    tiling: Tiling,
}

/// A storage that is resident at the peak.
#[derive(Serialize, JsonSchema)]
struct Resident {
    /// The tensor that it was made for.
    tensor: String,
    /// Its size.
    bytes: u64,
}

/// Memory at one step.
#[derive(Serialize, JsonSchema)]
struct Moment {
    /// The op that runs; empty for other steps.
    node: String,
    /// Bytes resident while it runs.
    during: u64,
    /// Bytes resident after it.
    after: u64,
}

impl Body for Report {
    const FORMAT: &'static str = "remat-inspect/1";
}

/// Rows of the timeline.
const CHART_ROWS: usize = 10;

impl Arguments for InspectArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        self.load.inputs(std::iter::once(&mut self.input).chain(&mut self.plan))
    }

    fn run(&self, _quiet: bool) -> anyhow::Result<()> {
        let mut job = Job::resolve(&self.input, &self.load, &[("the plan", self.plan.as_ref())], &[])?;
        let Some(path) = &self.plan else {
            let model = job.open(None)?;
            let model = job.with_baseline(model);
            model.onnx().into_iter().for_each(super::warn_of_lost_marks);
            let outlook = self.outlook(&model, &job)?;
            let padding = padding(&model, &job);
            return Inspected {
                args: self,
                model: &model,
                plan: model.baseline_plan(),
                replay: model.baseline(),
                outlook: outlook.as_ref(),
                padding: padding.as_ref(),
            }
            .show();
        };
        let file = super::read_plan(path)?;
        let model = job.open(Some(&file))?;
        let model = job.with_baseline(model);
        let solution = remat::check_plan(&model, &file)?;
        Inspected {
            args: self,
            model: &model,
            plan: &solution.plan,
            replay: &solution.replay,
            outlook: None,
            padding: None,
        }
        .show()
    }
}

impl InspectArgs {
    /// What tiles would give an ONNX model.
    fn outlook(&self, model: &Model, job: &Job<'_>) -> anyhow::Result<Option<TilingOutlook>> {
        let Some(fission) = self.fission.request(true).filter(|_| model.format() == Format::Onnx) else {
            return Ok(None);
        };
        if model.problem().ops.len() > MOST_OPS {
            tracing::info!("tilings of more than {MOST_OPS} ops are not estimated");
            return Ok(None);
        }
        let control = SolveControl::new()
            .step_limit(ESTIMATES)
            .time_limit(TIME)
            .cancel(interrupt::flag());
        Ok(Some(remat::tiling_outlook(model, &job.load, &fission, &control)?))
    }
}

/// What the runtime fills the memory with for its blocks of channels, where there is one; models without convolutions have none.
fn padding(model: &Model, job: &Job<'_>) -> Option<Padding> {
    let host = job.host.as_ref().filter(|_| job.is_for_runtime(model))?;
    let has_images = model.graph()?.ops.iter().any(|op| op.op_type == "Conv");
    let limits = limits(Some(LEAST + expected(model).saturating_mul(PATIENCE)));
    let found = has_images.then(|| {
        remat_onnxruntime_deploy::padding((host, limits), job.input, &job.load, model.baseline_peak().bytes)
    })?;
    found.unwrap_or_else(|why| {
        tracing::info!("the layout of the runtime is not known: {why}");
        None
    })
}

/// A model and how it runs.
struct Inspected<'a> {
    args: &'a InspectArgs,
    model: &'a Model,
    plan: &'a Plan,
    replay: &'a Replay,
    outlook: Option<&'a TilingOutlook>,
    padding: Option<&'a Padding>,
}

impl Inspected<'_> {
    fn show(&self) -> anyhow::Result<()> {
        let mut resident = resident_at(self.model.problem(), self.plan, self.replay.peak_step);
        resident.sort_by_key(|&(storage, bytes)| (std::cmp::Reverse(bytes), storage));
        console::report(
            &self.args.report,
            || text(self, &resident),
            || Report::new(self, &resident),
            Ok(()),
        )
    }
}

/// Name of the op that runs at a step.
fn op_at<'a>(problem: &'a Problem, plan: &Plan, step: usize) -> &'a str {
    match plan.steps.get(step) {
        Some(&(Step::Compute(op) | Step::Recompute(op))) => &problem.ops[op].name,
        _ => "",
    }
}

fn text(inspected: &Inspected<'_>, resident: &[(StorageId, u64)]) -> String {
    let &Inspected {
        args,
        model,
        plan,
        replay,
        outlook,
        padding,
    } = inspected;
    let problem = model.problem();
    let mut lines = vec![format!(
        "{}: {}, {}, peak {} at step {} (`{}`)",
        shown(&problem.name),
        units::count(problem.ops.len(), "op"),
        units::count(problem.tensors.len(), "tensor"),
        units::bytes(replay.peak),
        replay.peak_step,
        shown(op_at(problem, plan, replay.peak_step)),
    )];
    let baseline = model.baseline_peak();
    if baseline.of != BaselineOf::FileOrder {
        lines.push(format!(
            "the model takes {} as it is, {}: shares are of that",
            units::bytes(baseline.bytes),
            baseline.of
        ));
    }
    if !problem.anti_dependences.is_empty() {
        lines.push(format!(
            "{}: ops that never run after another one, which overwrites what they read",
            units::count(problem.anti_dependences.len(), "anti-dependence"),
        ));
    }
    let least = least_peak(problem, &SolveControl::new());
    if !problem.ops.is_empty() {
        let what = floor::needed_for(problem, &least);
        lines.push(format!(
            "no plan of whole ops{} can go below {} ({:.1} %): {what}",
            if least.covers == BoundCovers::FixedOrder {
                " in this order"
            } else {
                ""
            },
            units::bytes(least.bytes),
            units::percent(least.bytes, baseline.bytes),
        ));
    }
    lines.extend(once_line(problem, baseline.bytes));
    let planned = bodies::lines(model.bodies()).into_iter();
    lines.extend(planned.map(|line| format!("with a plan for subgraph {line}")));
    lines.extend(outlook.into_iter().flat_map(in_tiles));
    lines.extend(padding.map(padding_text));
    let during: Vec<u64> = replay.trace.iter().map(|step| step.during).collect();
    lines.push(String::new());
    let timeline = chart::Timeline {
        values: &during,
        peak: replay.peak_step,
        bytes: &units::bytes,
        name: &|step| op_at(problem, plan, step),
    };
    lines.push(timeline.draw(chart::terminal_width(), CHART_ROWS));
    lines.push(String::new());
    lines.push(format!(
        "largest of {} in memory at the peak:",
        units::count(resident.len(), "storage")
    ));
    let mut table = console::table(["bytes", "share", "tensor", "made by"], 0..2);
    let running = plan.steps.get(replay.peak_step).and_then(|step| match *step {
        Step::Compute(op) | Step::Recompute(op) => Some(&problem.ops[op]),
        Step::Free(_) | Step::PageOut(_) | Step::PageIn(_) => None,
    });
    if let Some(op) = running.filter(|op| op.workspace > 0) {
        let share = format!("{:.1} %", units::percent(op.workspace, replay.peak));
        table.add_row([
            units::bytes(op.workspace),
            share,
            "(kernel workspace)".to_owned(),
            line(&op.name),
        ]);
    }
    for &(storage, bytes) in resident.iter().take(args.top) {
        let root = &problem.tensors[problem.storages[storage].root];
        let producer = root.producer.map_or("", |op| problem.ops[op].name.as_str());
        let share = format!("{:.1} %", units::percent(bytes, replay.peak));
        table.add_row([units::bytes(bytes), share, line(&root.name), line(producer)]);
    }
    lines.push(table.trim_fmt());
    lines.join("\n") + "\n"
}

/// The peak of every op once, in the best order known of a series-parallel problem.
fn once_line(problem: &Problem, baseline: u64) -> Option<String> {
    let order = once_order(problem, &SolveControl::new())?;
    let amount = |bytes| format!("{} ({:.1} %)", units::bytes(bytes), units::percent(bytes, baseline));
    let bound = match order.bound {
        _ if order.is_least() => "; no order has less".to_owned(),
        Some(bound) => format!("; no order has less than {}", amount(bound)),
        None => String::new(),
    };
    Some(format!(
        "series-parallel: every op once takes {} in the best order found{bound}",
        amount(order.peak)
    ))
}

/// What tiles give, in words.
fn in_tiles(outlook: &TilingOutlook) -> Vec<String> {
    let Some(whole) = outlook.front.first() else {
        return Vec::new();
    };
    let within = outlook.lowest(Some(MOST_OVERHEAD));
    let lowest = outlook.lowest(None).filter(|lowest| within != Some(lowest));
    let mut lines = Vec::new();
    for candidate in within.into_iter().chain(lowest) {
        lines.push(format!(
            "in tiles about {} ({:.1} % of the peak of whole ops in file order), {:+.1} % estimated time:",
            units::bytes(candidate.peak),
            units::percent(candidate.peak, whole.peak),
            overhead_percent(candidate),
        ));
        lines.extend(
            tiles::lines(&candidate.tiling)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    if lines.is_empty() {
        lines.push("no tiles were found that lower the peak".to_owned());
    }
    if let Some(bound) = &outlook.bound {
        lines.push(format!(
            "no tiling can go below {}: op `{}`",
            units::bytes(bound.bytes),
            shown(&bound.op)
        ));
    }
    lines
}

fn overhead_percent(candidate: &Candidate) -> f64 {
    candidate.time_ppm as f64 / 1e4 - 100.0
}

impl InTiles {
    fn of(outlook: &TilingOutlook) -> Self {
        let whole = outlook.front.first().map_or(0, |whole| whole.peak);
        let at = |candidate: &Candidate| TilesAt {
            peak_bytes: candidate.peak,
            peak_percent: units::percent(candidate.peak, whole),
            overhead_percent: overhead_percent(candidate),
            tiling: candidate.tiling.clone(),
        };
        Self {
            within_limit: outlook.lowest(Some(MOST_OVERHEAD)).map(at),
            lowest: outlook.lowest(None).map(at),
            bound_bytes: outlook.bound.as_ref().map(|bound| bound.bytes),
            bound_node: outlook.bound.as_ref().map(|bound| bound.op.clone()),
        }
    }
}

impl Report {
    fn new(inspected: &Inspected<'_>, resident: &[(StorageId, u64)]) -> Self {
        let (model, plan, replay) = (inspected.model, inspected.plan, inspected.replay);
        let problem = model.problem();
        let least = least_peak(problem, &SolveControl::new());
        let moment = |trace: &StepTrace| Moment {
            node: op_at(problem, plan, trace.step).to_owned(),
            during: trace.during,
            after: trace.after,
        };
        let at_peak = |&(storage, bytes): &(StorageId, u64)| Resident {
            tensor: problem.storage_name(storage).to_owned(),
            bytes,
        };
        Self {
            model: problem.name.clone(),
            input: inspected.args.input.clone(),
            accounting: problem.accounting,
            ops: problem.ops.len(),
            tensors: problem.tensors.len(),
            anti_dependences: Some(problem.anti_dependences.len()).filter(|&count| count > 0),
            duration: replay.duration,
            baseline_peak_bytes: model.baseline_peak().bytes,
            baseline_of: model.baseline_peak().of,
            peak_bytes: replay.peak,
            peak_step: replay.peak_step,
            peak_node: op_at(problem, plan, replay.peak_step).to_owned(),
            lower_bound_bytes: (!problem.ops.is_empty()).then_some(least.bytes),
            lower_bound_node: least.op.map(|op| problem.ops[op].name.clone()),
            once: once_order(problem, &SolveControl::new()).map(|order| Once {
                peak_bytes: order.peak,
                lower_bound_bytes: order.bound,
            }),
            bodies: BodyRecord::all(model.bodies()),
            in_tiles: inspected.outlook.map(InTiles::of),
            padding: inspected.padding.cloned(),
            resident_at_peak: resident.iter().map(at_peak).collect(),
            timeline: replay.trace.iter().map(moment).collect(),
        }
    }
}
