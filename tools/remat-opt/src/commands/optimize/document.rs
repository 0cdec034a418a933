//! What `--format json` prints of the main job.

use std::path::{Path, PathBuf};
use std::time::Instant;

use remat::plan::{Accounting, Certificate, Tiling};
use remat::{BaselineOf, Model, Solution};
use remat_files::document::to_json;
use remat_onnxruntime_deploy::ArenaPlanned;
use remat_onnxruntime_deploy::{Check, LeftOut, Missed, Offer, Padding, Rejected, Setting, SettingsTried, Strategy};
use remat_onnxruntime_run::OptimizationLevel;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::{OptimizeArgs, is_model};
use super::deployed::Deployed;
use super::headline::Headline;
use super::proof::Plans;
use super::session::SessionRecord;
use super::sizes::DimsRecord;
use crate::block::BlockRecord;
use crate::bodies::BodyRecord;
use crate::document::{Body, Document};

/// A plan: what it gains and costs, and how good it is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the model.
    model: String,
    /// The input.
    input: Option<PathBuf>,
    /// What was written.
    output: Option<PathBuf>,
    /// Which bytes count.
    accounting: Accounting,
    /// The budget in bytes, where there is one.
    budget_bytes: Option<u64>,
    /// What the model takes as it is: what shares are of.
    baseline_peak_bytes: u64,
    /// What says so.
    baseline_of: BaselineOf,
    /// Peak of the plan, as plans count it.
    peak_bytes: u64,
    /// What the model takes before and after, both by the same measure.
    memory: Headline,
    /// Duration of running every op once; in nanoseconds for models.
    baseline_duration: u64,
    /// Duration of the plan.
    duration: u64,
    /// Time beyond the baseline, in per cent.
    overhead_percent: f64,
    /// Number of ops.
    ops: usize,
    /// How many runs of ops the plan adds.
    recomputes: usize,
    /// Energy of the plan in picojoules; 0 where nothing states it.
    energy_pj: u64,
    /// Most bytes in the second memory at once.
    second_memory_bytes: u64,
    /// The subgraphs that have plans of their own, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<BodyRecord>,
    /// The stretches that run tile by tile, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    tiling: Option<Tiling>,
    /// Dimensions that were given, where there are any.
    #[serde(flatten)]
    dims: DimsRecord,
    /// With one to this many threads within an op the tiles keep every bit, by the rule that they were chosen by. Absent without tiles, and where
    /// sums may be rounded otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact_threads: Option<u32>,
    /// What the solver claims about the plan.
    certificate: Option<Certificate>,
    /// The plans that this claim is about: `plan of whole ops in this order`, for instance.
    certificate_about: Option<String>,
    /// The block that everything lies in, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<BlockRecord>,
    /// What holds in ONNX Runtime, for models that are made for it.
    #[serde(flatten)]
    in_runtime: Option<InRuntime>,
    /// Time all of it took.
    seconds: f64,
}

/// What holds in ONNX Runtime.
#[derive(Serialize, JsonSchema)]
struct InRuntime {
    /// `ort`.
    target: &'static str,
    /// The level at which the runtime optimizes the model when it loads it.
    level: OptimizationLevel,
    /// A lower level at which a file gains, where none gains at this one.
    offer: Option<Offer>,
    /// Whether a model is written where one is asked for: none is where no file takes less than the model as it came.
    is_written: bool,
    /// Whether all nodes stand in a branch, for which the runtime has no memory pattern.
    in_branch: bool,
    /// How the model is written.
    variant: Strategy,
    /// By how much the budget is missed, where no file keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<Missed>,
    /// What was tried before, and why it was rejected.
    abandoned: Vec<RejectedRecord>,
    /// Predicted peak with the memory arena off.
    promised_peak_bytes: u64,
    /// Predicted peak of the first run with the memory arena on.
    promised_arena_bytes: u64,
    /// Whether that peak was measured on this file; else it is predicted only.
    arena_is_measured: bool,
    /// Predicted peak of later runs with the memory arena on.
    promised_arena_steady_bytes: u64,
    /// Whether that peak was measured on this file; else it is predicted only.
    arena_steady_is_measured: bool,
    /// How much of the predicted peak was added after a measurement.
    learned_bytes: u64,
    /// Whether nodes run in the order of the plan.
    follows_plan: bool,
    /// Whether shapes of large results are made dynamic.
    hides_shapes: bool,
    /// How many nodes were added to fix the order.
    readers: usize,
    /// Bytes that are allocated and freed at the start of a run, for the sake of the arena.
    reserved_bytes: u64,
    /// Nodes with subgraphs of which data decides what they take; the predicted peaks are without that.
    open_nodes: Vec<String>,
    /// Estimated time beyond the baseline where nothing is set in the runtime, in per cent.
    promised_overhead_percent: f64,
    /// The same for the file with memory arena and memory pattern off.
    promised_arena_off_overhead_percent: f64,
    /// Bytes that each run takes anew from the system with the memory arena off.
    promised_fresh_bytes: u64,
    /// Whether memory arena and memory pattern off are recommended: the process grows by no more, and the time is within the limit.
    /// Absent where it was not measured that the heap peak is lower then.
    recommends_arena_off: Option<bool>,
    /// What sessions of the written model need, or gain by.
    session: SessionRecord,
    /// How many results have sizes that the data decides: figures, and a plan of memory, are for those that were seen in a run.
    data_sizes: usize,
    /// Whether nothing is written for that reason.
    is_left_to_data: bool,
    /// What was measured.
    measured: Option<Check>,
    /// What fills the memory because the runtime keeps it in blocks of channels; absent where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    padding: Option<Padding>,
    /// What there was no time for.
    left_out: Vec<LeftOut>,
    /// The plan of the model's memory, where one was asked for.
    arena_plan: Option<ArenaPlanned>,
    /// The settings that were tried, where they were asked for.
    settings: Option<SettingsTried>,
    /// Whether the measured peak is the predicted one, within its tolerance, and the growth of the process with a plan of memory.
    keeps_promise: Option<bool>,
}

/// A lowering strategy that was rejected.
#[derive(Serialize, JsonSchema)]
struct RejectedRecord {
    /// The strategy.
    variant: Strategy,
    /// What was wrong with it.
    why: String,
}

impl From<&Rejected> for RejectedRecord {
    fn from(rejected: &Rejected) -> Self {
        Self {
            variant: rejected.strategy,
            why: rejected.reason.to_string(),
        }
    }
}

impl Body for Report {
    const FORMAT: &'static str = "remat-report/1";
}

impl Report {
    /// A plan as such.
    pub(super) fn new(
        args: &OptimizeArgs,
        model: &Model,
        solution: &Solution,
        memory: Headline,
        started: Instant,
    ) -> Self {
        let about = |certificate: &Certificate| Plans::of(model).covered(certificate.bound_covers);
        Self {
            model: solution.problem.name.clone(),
            input: args.input.clone(),
            output: args.output.clone(),
            accounting: solution.problem.accounting,
            budget_bytes: solution.problem.budget,
            baseline_peak_bytes: model.baseline_peak().bytes,
            baseline_of: model.baseline_peak().of,
            peak_bytes: solution.replay.peak,
            memory,
            baseline_duration: solution.overhead.baseline,
            duration: solution.replay.duration,
            overhead_percent: solution.overhead.percent(),
            ops: solution.problem.ops.len(),
            recomputes: solution.plan.recomputes(),
            energy_pj: solution.replay.energy,
            second_memory_bytes: solution.replay.second_peak,
            bodies: BodyRecord::all(model.bodies()),
            tiling: model.tiling().cloned(),
            dims: DimsRecord::of(model),
            exact_threads: args.exact_threads(model),
            certificate_about: solution.certificate.as_ref().map(about),
            certificate: solution.certificate.clone(),
            block: BlockRecord::of(solution),
            in_runtime: None,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// A model that was made for ONNX Runtime.
    pub(super) fn deployed(
        args: &OptimizeArgs,
        Deployed {
            found,
            headline,
            arena,
            settings,
            ..
        }: Deployed<'_>,
        started: Instant,
    ) -> Self {
        let recommends_arena_off = match settings {
            Some(settings) => Some(settings.recommended == Setting::ArenaOff),
            None => found.arena_off().map(|off| off.is_recommended()),
        };
        let is_above = found.missed.is_some() || found.exceeded_prediction().is_some();
        let exceeds = is_above || arena.is_some_and(|arena| arena.exceeded().is_some());
        Self {
            in_runtime: Some(InRuntime {
                target: "ort",
                level: args.target.level,
                offer: found.offer,
                is_written: found.is_written,
                in_branch: found.lowering.in_branch,
                missed: found.missed,
                variant: found.strategy,
                abandoned: found.rejected.iter().map(RejectedRecord::from).collect(),
                promised_peak_bytes: found.prediction.peak_bytes,
                promised_arena_bytes: found.prediction.arena_bytes,
                arena_is_measured: found.arena_is_measured(),
                promised_arena_steady_bytes: found.prediction.arena_steady_bytes,
                arena_steady_is_measured: found.arena_steady_is_measured(),
                learned_bytes: found.prediction.calibration_bytes,
                follows_plan: found.prediction.follows_plan,
                hides_shapes: found.lowering.hides_shapes,
                readers: found.lowering.readers,
                reserved_bytes: found.lowering.reserved,
                open_nodes: found.prediction.open_nodes.clone(),
                promised_overhead_percent: found.solution.overhead.percent(),
                promised_arena_off_overhead_percent: found.arena_off_overhead_percent(),
                promised_fresh_bytes: found.prediction.fresh_bytes,
                recommends_arena_off,
                session: SessionRecord::of(args, found, settings),
                data_sizes: found.model.measured_sizes().len(),
                is_left_to_data: found.is_left_to_data(),
                measured: found.check.clone(),
                padding: found.padding.clone(),
                left_out: found.left_out.clone(),
                arena_plan: arena.cloned(),
                settings: settings.cloned(),
                keeps_promise: (found.check.is_some() || arena.is_some()).then_some(!exceeds),
            }),
            budget_bytes: found.budget.or(found.solution.problem.budget),
            output: args
                .output
                .clone()
                .filter(|output| found.is_written || !is_model(output)),
            ..Self::new(args, &found.model, &found.solution, headline, started)
        }
    }
}

/// The settings that were tried on a model.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingsReport(SettingsTried);

impl Body for SettingsReport {
    const FORMAT: &'static str = "remat-settings/1";
}

/// What is written of settings: what makes a session with the best of them, or all of it as JSON, as the path says.
pub(super) fn settings(path: &Path, settings: &SettingsTried) -> String {
    if remat::extension(path) == "py" {
        settings.python.clone()
    } else {
        to_json(&Document::new(SettingsReport(settings.clone()), None))
    }
}

/// The plans of a module of MLIR.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModuleReport {
    /// The input.
    pub(super) input: PathBuf,
    /// What was written.
    pub(super) output: Option<PathBuf>,
    /// One for each function.
    pub(super) functions: Vec<FunctionRecord>,
    /// Time all of it took.
    pub(super) seconds: f64,
}

/// The plan of a function.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FunctionRecord {
    /// Name of the function.
    pub(super) name: String,
    /// Peak of running every op once in its order.
    pub(super) baseline_peak_bytes: u64,
    /// Peak of the plan.
    pub(super) peak_bytes: u64,
    /// Duration of running every op once.
    pub(super) baseline_duration: u64,
    /// Duration of the plan.
    pub(super) duration: u64,
    /// How many runs of ops the plan adds.
    pub(super) recomputes: usize,
    /// How many storages come back from the second memory.
    pub(super) transfers: usize,
    /// How many stretches of operations run tile by tile.
    pub(super) stretches: usize,
    /// Whether it is proved that no plan is better.
    pub(super) optimal: bool,
}

impl Body for ModuleReport {
    const FORMAT: &'static str = "remat-module/1";
}
