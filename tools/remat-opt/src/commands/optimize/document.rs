//! The object that `--format json` prints of the main job, and of which every text is made.

use std::path::{Path, PathBuf};
use std::time::Instant;

use remat::plan::{Accounting, Certificate, Step, Tiling};
use remat::{BaselineOf, Format, Model, Solution};
use remat_files::document::to_json;
use remat_onnxruntime_deploy::{Check, Missed, Outputs, ProcessWritten, SettingsTried};
use remat_onnxruntime_run::Closeness;
use schemars::JsonSchema;
use serde::Serialize;

use super::args::OptimizeArgs;
use super::in_runtime::InRuntime;
use super::memory::Memory;
use super::proof;
use super::sizes::DimsRecord;
use crate::block::BlockRecord;
use crate::bodies::BodyRecord;
use crate::document::{Body, Document};
use crate::floor::Floor;
use crate::ledgers::ProcessRecord;
use crate::lines::Entry;
use crate::range::RangeRecord;
use crate::units;

/// A plan: what it gains and costs, and how good it is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Name of the model.
    pub(super) model: String,
    /// The input.
    pub(super) input: Option<PathBuf>,
    /// The report in seven entries, for people.
    pub(super) summary: Vec<Entry>,
    /// By how much the budget is missed, where no file keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) missed: Option<Missed>,
    /// The budget in bytes, where there is one.
    pub(super) budget_bytes: Option<u64>,
    /// What the model takes before and after, both by the same measure.
    pub(super) memory: Memory,
    /// What runs of all shapes take; absent where none are stated (`--shapes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range: Option<RangeRecord>,
    /// Which bytes count in plans.
    pub(super) accounting: Accounting,
    /// What the model takes as it is: what shares are of.
    pub(super) baseline_peak_bytes: u64,
    /// What says so.
    pub(super) baseline_of: BaselineOf,
    /// Peak of the plan, as plans count it.
    pub(super) peak_bytes: u64,
    /// Results with data-dependent sizes: figures, and a plan of memory, are for those that were seen in a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) data_dependent_sizes: Vec<String>,
    /// Dimensions that were given, where there are any.
    #[serde(flatten)]
    pub(super) dims: DimsRecord,
    /// Measured time beyond the original, in per cent; absent where it was not measured.
    pub(super) measured_overhead_percent: Option<f64>,
    /// Estimated time beyond the baseline, in per cent.
    pub(super) estimated_overhead_percent: f64,
    /// The most time that may be added, in per cent, for a file that was made for ONNX Runtime under such a limit. Plans keep it by estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed_overhead_percent: Option<f64>,
    /// Duration of running every op once.
    pub(super) baseline_duration: u64,
    /// Duration of the plan.
    pub(super) duration: u64,
    /// The unit of durations: `ns` for models, `units` of the input for graphs.
    pub(super) duration_unit: DurationUnit,
    /// Energy of running every op once in picojoules; 0 where nothing states it.
    pub(super) baseline_energy_pj: u64,
    /// Energy of the plan.
    pub(super) energy_pj: u64,
    /// How the outputs compare with those of the original.
    pub(super) outputs: OutputsCompared,
    /// The largest difference between an element of an output and that of the original, as a share of the largest magnitude of the output, on
    /// ordinary inputs; where outputs are `close`. `measured.closeness` has it by output and by the kind of inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) relative_difference: Option<f64>,
    /// The lowest ratio of the range of an image among the outputs to the mean square of its difference, in decibels; where outputs are `close` and
    /// one is an image, which has four axes and up to four channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) psnr_db: Option<f64>,
    /// Number of ops.
    pub(super) ops: usize,
    /// How many runs of ops the plan adds.
    pub(super) recomputes: usize,
    /// The fused chains that run tile by tile, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tiling: Option<Tiling>,
    /// With one to this many threads within an op the tiles keep every bit, by the rule that they were chosen by. Absent without tiles, and where
    /// sums may be rounded otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exact_threads: Option<u32>,
    /// The subgraphs that have plans of their own, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) bodies: Vec<BodyRecord>,
    /// What the second memory holds and moves; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) second_memory: Option<SecondMemoryRecord>,
    /// How good the plan is, in words.
    pub(super) verdict: Option<String>,
    /// What the solver claims about the plan.
    pub(super) certificate: Option<Certificate>,
    /// The peak that no plan undercuts; for `-v` and pages, where there is time to find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) floor: Option<Floor>,
    /// The block that everything lies in, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) block: Option<BlockRecord>,
    /// Whether a model is written where one is asked for: none is where no file takes less than the original, or keeps the budget.
    pub(super) is_written: bool,
    /// What was written.
    pub(super) output: Option<PathBuf>,
    /// Time all of it took.
    pub(super) seconds: f64,
    /// What lowers memory further, in words.
    pub(super) less: Vec<String>,
    /// Whether the model would be made for ONNX Runtime, were it found.
    pub(super) is_without_runtime: bool,
    /// What holds in ONNX Runtime, for models that are made for it.
    #[serde(flatten)]
    pub(super) in_runtime: Option<InRuntime>,
    /// The loadable form, where one was written (`--process`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) form: Option<ProcessWritten>,
    /// What a process takes that loads what was written, and runs it; where it was measured (`--process`, `--memory`, `-v`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<ProcessRecord>,
    /// The page that was written.
    #[serde(skip)]
    pub(super) page: Option<PathBuf>,
    /// The output that was asked for.
    #[serde(skip)]
    pub(super) wanted: Option<PathBuf>,
    /// Whether the input is a model.
    #[serde(skip)]
    pub(super) is_model: bool,
    /// Whether the text has details.
    #[serde(skip)]
    pub(super) is_verbose: bool,
}

/// The unit of durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DurationUnit {
    /// Nanoseconds.
    Ns,
    /// That of the input.
    Units,
}

/// How the outputs of what was made compare with those of the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutputsCompared {
    /// Both ran, and every bit is the same.
    BitIdentical,
    /// Both ran, and sums are rounded otherwise: `relative_difference` says how far outputs lie apart.
    Close,
    /// Nothing was run.
    NotCompared,
}

impl OutputsCompared {
    pub(super) fn of(check: Option<&Check>) -> Self {
        let Some(check) = check else {
            return Self::NotCompared;
        };
        let is_identical = check.closeness.as_ref().is_some_and(Closeness::is_identical);
        match check.outputs {
            Outputs::Close { .. } if !is_identical => Self::Close,
            Outputs::Close { .. } | Outputs::Identical => Self::BitIdentical,
        }
    }
}

/// What the second memory holds and moves.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(super) struct SecondMemoryRecord {
    /// Most bytes in it at once.
    pub(super) peak_bytes: u64,
    /// How many storages come back from it.
    pub(super) page_ins: usize,
    /// Duration of all transfers.
    pub(super) duration: u64,
}

/// What a report says beside model and plan.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) args: &'a OptimizeArgs,
    /// When the command was started.
    pub(super) started: Instant,
    /// The peak that no plan undercuts, where it is known.
    pub(super) floor: Option<&'a Floor>,
    /// What runs of all shapes take, where any are stated.
    pub(super) range: Option<&'a RangeRecord>,
    /// Whether the text has details.
    pub(super) is_verbose: bool,
}

impl Report {
    /// The figures of a plan, with nothing that is read by people.
    pub(super) fn new(
        About {
            args,
            started,
            floor,
            range,
            is_verbose,
        }: About<'_>,
        (model, solution): (&Model, &Solution),
        memory: Memory,
    ) -> Self {
        let (problem, replay) = (&solution.problem, &solution.replay);
        let is_page_in = |step: &&Step| matches!(step, Step::PageIn(_));
        let certificate = solution.certificate.as_ref();
        Self {
            model: problem.name.clone(),
            input: args.input.clone(),
            summary: Vec::new(),
            missed: None,
            budget_bytes: problem.budget,
            memory,
            range: range.cloned(),
            accounting: problem.accounting,
            baseline_peak_bytes: model.baseline_peak().bytes,
            baseline_of: model.baseline_peak().of,
            peak_bytes: replay.peak,
            data_dependent_sizes: model.measured_sizes().keys().cloned().collect(),
            dims: DimsRecord::of(model),
            measured_overhead_percent: None,
            estimated_overhead_percent: solution.overhead.percent(),
            allowed_overhead_percent: None,
            baseline_duration: solution.overhead.baseline,
            duration: replay.duration,
            duration_unit: match model.format() {
                Format::Onnx => DurationUnit::Ns,
                _ => DurationUnit::Units,
            },
            baseline_energy_pj: problem.total_energy(),
            energy_pj: replay.energy,
            outputs: OutputsCompared::NotCompared,
            relative_difference: None,
            psnr_db: None,
            ops: problem.ops.len(),
            recomputes: solution.plan.recomputes(),
            tiling: model.tiling().cloned(),
            exact_threads: args.exact_threads(model),
            bodies: BodyRecord::all(model.bodies()),
            second_memory: problem.paging.is_some().then(|| SecondMemoryRecord {
                peak_bytes: replay.second_peak,
                page_ins: solution.plan.steps.iter().filter(is_page_in).count(),
                duration: replay.paging_duration,
            }),
            verdict: certificate.map(|certificate| proof::verdict(certificate, model, problem)),
            certificate: certificate.cloned(),
            floor: floor.cloned(),
            block: BlockRecord::of(solution),
            is_written: true,
            output: args.output.clone(),
            seconds: started.elapsed().as_secs_f64(),
            less: Vec::new(),
            is_without_runtime: false,
            in_runtime: None,
            form: None,
            process: None,
            page: args.page.page.clone(),
            wanted: args.output.clone(),
            is_model: model.format() == Format::Onnx,
            is_verbose,
        }
    }
}

/// The settings that were tried on a model.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettingsReport(SettingsTried);

impl Body for SettingsReport {
    const FORMAT: &'static str = "remat-settings/1";

    fn text(&self) -> String {
        self.0.python.clone()
    }
}

/// What is written of settings: what makes a session with the best of them, or all of it as JSON, as the path says.
pub(super) fn settings(path: &Path, settings: &SettingsTried) -> String {
    let report = SettingsReport(settings.clone());
    if remat::extension(path) == "py" {
        report.text()
    } else {
        to_json(&Document::new(&report, None))
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
    /// How many fused chains run tile by tile.
    pub(super) fused_chains: usize,
    /// Whether it is proved that no plan is better.
    pub(super) optimal: bool,
}

impl Body for ModuleReport {
    const FORMAT: &'static str = "remat-module/2";

    fn text(&self) -> String {
        let mut text: String = self.functions.iter().map(FunctionRecord::line).collect();
        if let Some(output) = &self.output {
            text += &format!("written   {}\n", output.display());
        }
        text
    }
}

impl FunctionRecord {
    fn line(&self) -> String {
        let name = remat_files::shown(&self.name);
        let added = self.duration.saturating_sub(self.baseline_duration);
        let added = 100.0 * added as f64 / self.baseline_duration.max(1) as f64;
        let transfers = match self.transfers {
            0 => String::new(),
            count => format!(", {count} brought back from the second memory"),
        };
        let chains = match self.fused_chains {
            0 => String::new(),
            chains => format!(", {} in tiles", units::count(chains, "fused chain")),
        };
        format!(
            "@{name}: peak {} -> {} ({:.1} %), {} recomputed{transfers}{chains}, time +{added:.2} %{}\n",
            units::bytes(self.baseline_peak_bytes),
            units::bytes(self.peak_bytes),
            units::percent(self.peak_bytes, self.baseline_peak_bytes),
            self.recomputes,
            if self.optimal { ", optimal" } else { "" },
        )
    }
}
