//! A comparison as JSON: figures, no plans.

use remat_plan::{Accounting, BoundCovers, Evidence, OrderMode, Status, StopReason};
use remat_solve::SolveControl;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompareRequest, ComparedRun, Comparison};
use crate::finding::{FindingKind, millis};
use crate::{BaselineOf, Model};

/// The value of [`ComparisonFile::format`].
pub const COMPARISON_FORMAT: &str = "remat-comparison/1";

/// The figures of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonFile {
    /// [`COMPARISON_FORMAT`].
    pub format: String,
    /// Name of the model.
    pub model: String,
    /// Digest of the problem without a budget.
    pub problem: String,
    /// Which bytes count.
    pub accounting: Accounting,
    /// Whether first computes follow the reference order.
    pub order: OrderMode,
    /// What the model takes as it is: what shares are of.
    pub baseline_peak_bytes: u64,
    /// What says so.
    #[serde(default)]
    pub baseline_of: BaselineOf,
    /// Time of running every op once.
    pub baseline_duration: u64,
    /// The peak that no plan undercuts, in bytes.
    pub floor_bytes: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of threads of each run.
    pub threads: usize,
    /// Most steps of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_limit: Option<u64>,
    /// Longest time of each run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_per_run_ms: Option<u64>,
    /// Names that are no solvers of this build.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// One for each budget and solver, loose budgets first.
    pub runs: Vec<RunRecord>,
}

/// One solver under one budget. What follows `elapsed_ms` is there only where a plan was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// The budget as it was asked for.
    pub budget: String,
    /// The budget in bytes.
    pub budget_bytes: u64,
    /// Name of the solver.
    pub solver: String,
    /// What was found.
    pub finding: FindingKind,
    /// How many subgraphs of the model have plans of their own under this budget, which no solver compared here made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub planned_subgraphs: usize,
    /// Why there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the solver cannot be tried on such a problem.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// Time the run took, in milliseconds.
    pub elapsed_ms: u64,
    /// Peak of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Duration of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    /// Time beyond the baseline, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_percent: Option<f64>,
    /// How many runs of ops the plan adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recomputes: Option<usize>,
    /// What the solver claims about the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Lower bound on the duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<u64>,
    /// The plans the bound speaks about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_covers: Option<BoundCovers>,
    /// What the bound rests on; absent where it is no more than every plan takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Relative distance of duration and bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Why the solver stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// Which part of a portfolio found the plan, else the solver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_by: Option<String>,
}

impl ComparisonFile {
    /// The figures.
    #[must_use]
    pub fn new(model: &Model, comparison: &Comparison, request: &CompareRequest, control: &SolveControl<'_>) -> Self {
        let problem = model.problem();
        let by_budget = comparison.budgets.iter().enumerate();
        let runs = by_budget.flat_map(|(index, (budget, bytes))| {
            let solvers = comparison.solvers.iter();
            solvers.map(move |solver| RunRecord {
                budget: budget.to_string(),
                budget_bytes: *bytes,
                solver: solver.name.to_owned(),
                planned_subgraphs: comparison.bodies[index].len(),
                ..RunRecord::of(&solver.runs[index])
            })
        });
        Self {
            format: COMPARISON_FORMAT.to_owned(),
            model: problem.name.clone(),
            problem: problem.digest(),
            accounting: problem.accounting,
            order: problem.order,
            baseline_peak_bytes: model.baseline_peak().bytes,
            baseline_of: model.baseline_peak().of,
            baseline_duration: model.baseline().duration,
            floor_bytes: comparison.floor,
            seed: control.seed,
            threads: control.threads,
            step_limit: control.step_limit,
            time_per_run_ms: request.time_per_run.map(millis),
            skipped: comparison.skipped.clone(),
            runs: runs.collect(),
        }
    }

    /// The runs under each budget: one for each solver, in the same order.
    pub fn budgets(&self) -> impl Iterator<Item = &[RunRecord]> {
        self.runs.chunk_by(|one, other| one.budget_bytes == other.budget_bytes)
    }

    /// The best runs of other solvers, where one found a shorter plan than `solver`, or a plan where that found none.
    pub fn beaten(&self, solver: &str) -> impl Iterator<Item = &RunRecord> {
        self.budgets().filter_map(move |runs| {
            let own = runs.iter().find(|run| run.solver == solver)?;
            let found = runs.iter().filter_map(|run| Some((run.duration?, run)));
            let (duration, best) = found.min_by_key(|&(duration, _)| duration)?;
            let is_tried = own.finding != FindingKind::Untried;
            (is_tried && own.duration.is_none_or(|own| duration < own)).then_some(best)
        })
    }

    /// The figures as indented JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        remat_files::document::to_json(self)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl RunRecord {
    fn of(run: &ComparedRun) -> Self {
        let solution = run.solution();
        let certificate = solution.and_then(|solution| solution.certificate.as_ref());
        Self {
            budget: String::new(),
            budget_bytes: 0,
            solver: String::new(),
            planned_subgraphs: 0,
            finding: run.finding.kind(),
            reason: run.finding.reason().map(str::to_owned),
            is_refused: run.refused,
            elapsed_ms: millis(run.elapsed),
            peak_bytes: solution.map(|solution| solution.replay.peak),
            duration: solution.map(|solution| solution.replay.duration),
            overhead_percent: solution.map(|solution| solution.overhead.percent()),
            recomputes: solution.map(|solution| solution.plan.recomputes()),
            status: certificate.map(|certificate| certificate.status),
            bound: certificate.map(|certificate| certificate.bound),
            bound_covers: certificate.map(|certificate| certificate.bound_covers),
            evidence: certificate.and_then(|certificate| certificate.evidence.clone()),
            gap: certificate.and_then(|certificate| certificate.gap),
            stop: certificate.map(|certificate| certificate.stop),
            found_by: certificate.map(|certificate| certificate.solver.clone()),
        }
    }
}
