//! `remat-opt inspect`: where the memory goes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use comfy_table::Table;
use remat::fission::Candidate;
use remat::plan::{Accounting, Plan, StorageId, Tiling};
use remat::solver::{SolveControl, once_order};
use remat::verify::{Replay, StepTrace};
use remat::{BaselineOf, Format, Model, TilingOutlook};
use remat_files::{line, shown};
use remat_onnxruntime_deploy::Padding;
use remat_onnxruntime_run::OptimizationLevel;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{Arguments, FissionArgs, INPUT, Inputs, LoadArgs, ProcessArgs, REPORT, ReportArgs, ShapeArgs, Talk};
use crate::bodies::BodyRecord;
use crate::document::Body;
use crate::floor::Floor;
use crate::job::{Job, LEAST, PATIENCE};
use crate::ledgers::ProcessRecord;
use crate::open_sizes::OpenSizes;
use crate::padding::padding_text;
use crate::range::RangeRecord;
use crate::resident::{self, Resident, op_at};
use crate::runtime::{expected, limits};
use crate::{bodies, chart, console, interrupt, ledgers, tiles, units};

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
    process: ProcessArgs,
    #[command(flatten)]
    shapes: ShapeArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Runs of a process that is measured, loading apart.
const PROCESS_RUNS: u32 = 12;
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
    /// Bytes that its kernel takes on top of operands and results.
    peak_workspace_bytes: u64,
    /// The peak that no plan undercuts; other tiles may.
    floor: Option<Floor>,
    /// Every op once, in another order; absent where the order is fixed or the problem is not series-parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    once: Option<Once>,
    /// The subgraphs that have plans of their own, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<BodyRecord>,
    /// What running fused chains tile by tile would give, by estimate; absent where that was not looked for.
    in_tiles: Option<InTiles>,
    /// What fills more than half of the memory because ONNX Runtime keeps it in blocks of channels; absent where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<Padding>,
    /// The dimensions that the model leaves open, and the peak as a formula of them; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<OpenSizes>,
    /// What runs of all shapes take; absent where none are stated (`--shapes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<RangeRecord>,
    /// What a process takes that loads the model in ONNX Runtime and runs it; absent for what is no model for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessRecord>,
    /// What is resident at the peak, the largest first.
    resident_at_peak: Vec<Resident>,
    /// Memory at each step.
    timeline: Vec<Moment>,
    /// How many of what is resident the text lists.
    #[serde(skip)]
    top: usize,
}

/// What orders in which every op runs once come to.
#[derive(Clone, Copy, Serialize, JsonSchema)]
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
    /// What every tiling takes that computes no element twice; absent where that is not known to be more than `bound_bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_once: Option<BoundOnceRecord>,
}

/// What must be there at one time if no element is computed twice.
#[derive(Serialize, JsonSchema)]
struct BoundOnceRecord {
    /// Bytes.
    bytes: u64,
    /// The op before whose first run they are there.
    node: String,
    /// The tensors that are there where they take the least, the largest first.
    held: Vec<HeldWhole>,
}

/// A tensor that must be there whole.
#[derive(Serialize, JsonSchema)]
struct HeldWhole {
    /// Its name.
    tensor: String,
    /// Its size.
    bytes: u64,
}

/// A tiling.
#[derive(PartialEq, Serialize, JsonSchema)]
struct TilesAt {
    /// Bytes at the peak in reference order.
    peak_bytes: u64,
    /// That as a share of the peak of whole ops in the same order, in per cent.
    peak_percent: f64,
    /// Time beyond that of the model as it is, in per cent.
    overhead_percent: f64,
    /// The fused chains.
    tiling: Tiling,
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
    const FORMAT: &'static str = "remat-inspect/2";

    fn text(&self) -> String {
        let share = |bytes: u64| {
            format!(
                "{} ({:.1} %)",
                units::bytes(bytes),
                units::percent(bytes, self.baseline_peak_bytes)
            )
        };
        let mut lines = vec![format!(
            "{}: {}, {}, peak {} at step {} (`{}`)",
            shown(&self.model),
            units::count(self.ops, "op"),
            units::count(self.tensors, "tensor"),
            units::bytes(self.peak_bytes),
            self.peak_step,
            shown(&self.peak_node),
        )];
        if self.baseline_of != BaselineOf::FileOrder {
            lines.push(format!(
                "the model takes {} as it is, {}: shares are of that",
                units::bytes(self.baseline_peak_bytes),
                self.baseline_of
            ));
        }
        lines.extend(self.open.iter().flat_map(OpenSizes::lines));
        lines.extend(self.range.iter().flat_map(RangeRecord::lines));
        if let Some(process) = &self.process {
            lines.extend(process.lines().iter().map(|line| format!("process: {line}")));
        }
        lines.extend(self.anti_dependences.map(|count| {
            format!(
                "{}: ops that never run after another one, which overwrites what they read",
                units::count(count, "anti-dependence"),
            )
        }));
        lines.extend(self.floor.as_ref().map(|floor| {
            // Tables and alignment apart.
            let is_higher = floor.bytes - floor.bytes / 100 > self.baseline_peak_bytes;
            let beside = if is_higher {
                "; as it is, the model takes less in ONNX Runtime, whose kernels may write a result over an operand where plans count both"
            } else {
                ""
            };
            format!(
                "no {} can go below {}: {}{beside}",
                floor.plans,
                share(floor.bytes),
                floor.needed_for()
            )
        }));
        lines.extend(self.once.map(|once| {
            let bound = match once.lower_bound_bytes {
                Some(bound) if bound == once.peak_bytes => "; no order has less".to_owned(),
                Some(bound) => format!("; no order has less than {}", share(bound)),
                None => String::new(),
            };
            format!(
                "series-parallel: every op once takes {} in the best order found{bound}",
                share(once.peak_bytes)
            )
        }));
        let planned = bodies::lines(&self.bodies).into_iter();
        lines.extend(planned.map(|line| format!("with a plan for subgraph {line}")));
        lines.extend(self.in_tiles.iter().flat_map(InTiles::lines));
        lines.extend(self.padding.as_ref().map(padding_text));
        lines.extend([String::new(), self.chart(), String::new()]);
        lines.push(format!(
            "largest of {} in memory at the peak:",
            units::count(self.resident_at_peak.len(), "storage")
        ));
        lines.push(self.table().trim_fmt());
        lines.join("\n") + "\n"
    }
}

/// Tensors of a bound that the text names.
const MOST_HELD: usize = 4;
/// Rows of the timeline.
const CHART_ROWS: usize = 10;

impl Arguments for InspectArgs {
    fn inputs(&mut self) -> Inputs<'_> {
        self.load.inputs(std::iter::once(&mut self.input).chain(&mut self.plan))
    }

    fn run(&self, _talk: Talk) -> anyhow::Result<()> {
        let reads = [
            ("the plan", self.plan.as_ref()),
            ("the shapes (`--weights`)", self.shapes.file()),
        ];
        let mut job = Job::resolve(&self.input, &self.load, &reads, &[])?;
        let shapes = self.shapes.read()?;
        shapes.complete(&mut job.load);
        let Some(path) = &self.plan else {
            let model = job.open(None)?;
            let model = job.with_baseline(model);
            model.onnx().into_iter().for_each(super::warn_of_lost_marks);
            let outlook = self.outlook(&model, &job)?;
            let padding = padding(&model, &job);
            let process = process(&model, &job, &self.process);
            return Inspected {
                args: self,
                model: &model,
                plan: model.baseline_plan(),
                replay: model.baseline(),
                outlook: outlook.as_ref(),
                padding: padding.as_ref(),
                process,
                range: RangeRecord::of_plan((&model, model.baseline_plan()), &shapes, &job.load, None),
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
            process: None,
            range: RangeRecord::of_plan((&model, &solution.plan), &shapes, &job.load, None),
        }
        .show()
    }
}

impl InspectArgs {
    /// What tiles would give an ONNX model.
    fn outlook(&self, model: &Model, job: &Job<'_>) -> anyhow::Result<Option<TilingOutlook>> {
        let Some(mut fission) = self.fission.request(true).filter(|_| model.format() == Format::Onnx) else {
            return Ok(None);
        };
        if model.problem().ops.len() > MOST_OPS {
            tracing::info!("tilings of more than {MOST_OPS} ops are not estimated");
            return Ok(None);
        }
        fission.exactness = fission.exactness.in_blocks();
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

/// What a process of a model takes in a default session: as predicted, and where there is a runtime as measured.
fn process(model: &Model, job: &Job<'_>, args: &ProcessArgs) -> Option<ProcessRecord> {
    if !job.is_for_runtime(model) {
        return None;
    }
    let predicted = ledgers::predicted(model, model.baseline_peak().bytes);
    let limits = limits(Some(LEAST + expected(model).saturating_mul(PROCESS_RUNS * PATIENCE)));
    let measured = job.host.as_ref().and_then(|host| {
        let runner = host.runner(limits);
        let level = OptimizationLevel::All;
        let found = ledgers::measured(&runner, (job.input, model), (level, &job.load), None);
        found
            .inspect_err(|why| tracing::info!("what a process takes is not measured: {why}"))
            .ok()
    });
    Some(ProcessRecord::new(predicted, measured, args.limit()))
}

/// A model and how it runs.
struct Inspected<'a> {
    args: &'a InspectArgs,
    model: &'a Model,
    plan: &'a Plan,
    replay: &'a Replay,
    outlook: Option<&'a TilingOutlook>,
    padding: Option<&'a Padding>,
    process: Option<ProcessRecord>,
    range: Option<RangeRecord>,
}

impl Inspected<'_> {
    fn show(&self) -> anyhow::Result<()> {
        let within = self.process.as_ref().and_then(ProcessRecord::within);
        let outcome = within.map_or(Ok(()), ledgers::require);
        console::report(&self.args.report, &Report::new(self), outcome)
    }
}

fn overhead_percent(candidate: &Candidate) -> f64 {
    candidate.time_ppm as f64 / 1e4 - 100.0
}

impl InTiles {
    fn of(outlook: &TilingOutlook) -> Option<Self> {
        let whole = outlook.front.first()?.peak;
        let at = |candidate: &Candidate| TilesAt {
            peak_bytes: candidate.peak,
            peak_percent: units::percent(candidate.peak, whole),
            overhead_percent: overhead_percent(candidate),
            tiling: candidate.tiling.clone(),
        };
        Some(Self {
            within_limit: outlook.lowest(Some(MOST_OVERHEAD)).map(at),
            lowest: outlook.lowest(None).map(at),
            bound_bytes: outlook.bound.as_ref().map(|bound| bound.bytes),
            bound_node: outlook.bound.as_ref().map(|bound| bound.op.clone()),
            bound_once: BoundOnceRecord::of(outlook),
        })
    }

    fn lines(&self) -> Vec<String> {
        let lowest = self
            .lowest
            .as_ref()
            .filter(|lowest| self.within_limit.as_ref() != Some(lowest));
        let mut lines = Vec::new();
        for tiles in self.within_limit.iter().chain(lowest) {
            lines.push(format!(
                "in tiles about {} ({:.1} % of the peak of whole ops in file order), {:+.1} % estimated time:",
                units::bytes(tiles.peak_bytes),
                tiles.peak_percent,
                tiles.overhead_percent,
            ));
            let chains = tiles::lines(&tiles.tiling).into_iter();
            lines.extend(chains.map(|line| format!("  {line}")));
        }
        if lines.is_empty() {
            lines.push("no tiles were found that lower the peak".to_owned());
        }
        if let Some((bytes, node)) = self.bound_bytes.zip(self.bound_node.as_ref()) {
            lines.push(format!(
                "no tiling can go below {}: op `{}`",
                units::bytes(bytes),
                shown(node)
            ));
        }
        lines.extend(self.bound_once.as_ref().map(BoundOnceRecord::line));
        lines
    }
}

impl BoundOnceRecord {
    fn of(outlook: &TilingOutlook) -> Option<Self> {
        let of_all = outlook.bound.as_ref().map_or(0, |bound| bound.bytes);
        let bound = outlook.bound_once.as_ref().filter(|bound| bound.bytes > of_all)?;
        let held = bound.held.iter().map(|(tensor, bytes)| HeldWhole {
            tensor: tensor.clone(),
            bytes: *bytes,
        });
        Some(Self {
            bytes: bound.bytes,
            node: bound.op.clone(),
            held: held.collect(),
        })
    }

    fn line(&self) -> String {
        let named = |held: &HeldWhole| format!("`{}` ({})", shown(&held.tensor), units::bytes(held.bytes));
        let mut held: Vec<String> = self.held.iter().take(MOST_HELD).map(named).collect();
        if self.held.len() > MOST_HELD {
            held.push("…".to_owned());
        }
        format!(
            "if nothing is computed twice, no tiling can go below {}: before `{}` first runs, {} are there, or others that take more",
            units::bytes(self.bytes),
            shown(&self.node),
            held.join(", "),
        )
    }
}

impl Report {
    /// Memory over the steps.
    fn chart(&self) -> String {
        let during: Vec<u64> = self.timeline.iter().map(|moment| moment.during).collect();
        let timeline = chart::Timeline {
            values: &during,
            peak: self.peak_step,
            bytes: &units::bytes,
            name: &|step| &self.timeline[step].node,
        };
        timeline.draw(chart::terminal_width(), CHART_ROWS)
    }

    /// What is resident at the peak.
    fn table(&self) -> Table {
        let formula = self.open.iter().map(|_| "as a formula");
        let titles = ["bytes", "share", "tensor", "made by"].into_iter().chain(formula);
        let mut table = console::table(titles, 0..2);
        let share = |bytes: u64| format!("{:.1} %", units::percent(bytes, self.peak_bytes));
        let mut row = |bytes: u64, tensor: String, node: &str, formula: &str| {
            let formula = self.open.iter().map(|_| line(formula));
            let cells = [units::bytes(bytes), share(bytes), tensor, line(node)];
            table.add_row(cells.into_iter().chain(formula));
        };
        if self.peak_workspace_bytes > 0 {
            let name = "(kernel workspace)".to_owned();
            row(self.peak_workspace_bytes, name, &self.peak_node, "");
        }
        for resident in self.resident_at_peak.iter().take(self.top) {
            let node = resident.made_by.as_deref().unwrap_or_default();
            let formula = resident.bytes_formula.as_deref().unwrap_or("?");
            row(resident.bytes, line(&resident.tensor), node, formula);
        }
        table
    }

    fn new(inspected: &Inspected<'_>) -> Self {
        let (model, plan, replay) = (inspected.model, inspected.plan, inspected.replay);
        let problem = model.problem();
        let resident = resident::at_peak(problem, plan, replay);
        let moment = |trace: &StepTrace| Moment {
            node: op_at(plan, trace.step).map_or_else(String::new, |op| problem.ops[op].name.clone()),
            during: trace.during,
            after: trace.after,
        };
        let running = op_at(plan, replay.peak_step);
        let sizes = model.size_formulas();
        let open = sizes
            .as_ref()
            .map(|sizes| OpenSizes::new(sizes, &resident, replay.peak));
        let names = sizes.as_ref().map(|sizes| sizes.variables.names());
        let formula = |storage| Some(names.as_ref()?.text(sizes.as_ref()?.bytes(storage)?));
        let at_peak = |&(storage, bytes): &(StorageId, u64)| Resident {
            bytes_formula: formula(storage),
            ..Resident::new(problem, storage, bytes)
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
            peak_node: running.map_or_else(String::new, |op| problem.ops[op].name.clone()),
            peak_workspace_bytes: running.map_or(0, |op| problem.ops[op].workspace),
            floor: Floor::of(model, &SolveControl::new()),
            once: once_order(problem, &SolveControl::new()).map(|order| Once {
                peak_bytes: order.peak,
                lower_bound_bytes: order.bound,
            }),
            bodies: BodyRecord::all(model.bodies()),
            in_tiles: inspected.outlook.and_then(InTiles::of),
            padding: inspected.padding.cloned(),
            process: inspected.process.clone(),
            open,
            range: inspected.range.clone(),
            resident_at_peak: resident.iter().map(at_peak).collect(),
            timeline: replay.trace.iter().map(moment).collect(),
            top: inspected.args.top,
        }
    }
}
