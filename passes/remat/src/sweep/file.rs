//! The file of a front: what was found so far, and enough to go on from there.

use std::path::Path;

use remat_files::document;
use remat_plan::{Accounting, BoundCovers, BudgetSpec, Evidence, OrderMode, PlanFile};
use remat_solve::SolveControl;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::front::{Front, FrontPoint, KnownBound};
use super::request::{FrontFileError, SweepError, SweepRequest};
use crate::finding::{Finding, FindingKind, millis};
use crate::save::write;
use crate::{BaselineOf, BaselinePeak, Error, Model, check_plan};

/// The value of [`FrontFile::format`] that this version writes and reads.
pub const FRONT_FORMAT: &str = "remat-front/1";

/// A front as JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FrontFile {
    /// [`FRONT_FORMAT`].
    pub format: String,
    /// Name of the model.
    pub model: String,
    /// Digest of the problem without a budget; a front is continued for the same problem only.
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
    /// Who searched, and how hard.
    pub effort: Effort,
    /// The budgets, loose ones first.
    pub points: Vec<PointRecord>,
}

/// What must agree for a point to count as finished.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Effort {
    /// Name of the solver.
    pub solver: String,
    /// Seed of its random choices.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Most steps for one budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_limit: Option<u64>,
    /// Longest time for one budget, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_per_budget_ms: Option<u64>,
}

impl Effort {
    fn of(request: &SweepRequest, control: &SolveControl<'_>) -> Self {
        Self {
            solver: request.solver.clone(),
            seed: control.seed,
            threads: control.threads,
            step_limit: control.step_limit,
            time_per_budget_ms: request.time_per_budget.map(millis),
        }
    }
}

/// One budget of a front.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointRecord {
    /// The budget as it was asked for.
    pub budget: String,
    /// The budget in bytes; absent for `min`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
    /// What was found.
    pub finding: FindingKind,
    /// Why there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How often the solver worked on it, 2 when it is finished.
    pub visits: u8,
    /// The solver's bound on the duration for this budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<u64>,
    /// The plans the bound speaks about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_covers: Option<BoundCovers>,
    /// What the bound rests on; absent where it is no more than every plan takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Time beyond the baseline, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_percent: Option<f64>,
    /// The plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanFile>,
    /// A better plan for the model in tiles, which it states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_tiles: Option<PlanFile>,
    /// A better plan for the model with plans of its subgraphs, which it states (`bodies`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_bodies: Option<PlanFile>,
}

impl PointRecord {
    /// The bound with what it rests on; one that rests on nothing is no more than every plan takes, or not to be believed.
    fn known_bound(&self) -> Option<KnownBound> {
        let (bound, covers) = self.bound.zip(self.bound_covers)?;
        let evidence = Some(self.evidence.clone()?);
        Some(KnownBound {
            bound,
            covers,
            evidence,
        })
    }
}

impl FrontFile {
    /// The front as it is now.
    #[must_use]
    pub fn new(model: &Model, front: &Front, request: &SweepRequest, control: &SolveControl<'_>) -> Self {
        let problem = model.problem();
        let record = |point: &FrontPoint| PointRecord {
            budget: point.spec.to_string(),
            budget_bytes: point.budget,
            finding: point.finding.kind(),
            reason: point.finding.reason().map(str::to_owned),
            visits: point.visits,
            bound: point.bound.as_ref().map(|known| known.bound),
            bound_covers: point.bound.as_ref().map(|known| known.covers),
            evidence: point.bound.as_ref().and_then(|known| known.evidence.clone()),
            overhead_percent: point.solution().map(|solution| solution.overhead.percent()),
            plan: point.solution().map(|solution| solution.plan_file(model)),
            in_tiles: point.in_tiles.as_ref().map(|tiled| tiled.plan.clone()),
            in_bodies: point.in_bodies.as_ref().map(|found| found.plan.clone()),
        };
        Self {
            format: FRONT_FORMAT.to_owned(),
            model: problem.name.clone(),
            problem: problem.digest(),
            accounting: problem.accounting,
            order: problem.order,
            baseline_peak_bytes: model.baseline_peak().bytes,
            baseline_of: model.baseline_peak().of,
            baseline_duration: model.baseline().duration,
            floor_bytes: front.floor,
            effort: Effort::of(request, control),
            points: front.points.iter().map(record).collect(),
        }
    }

    /// What the model takes as it is, as the front has it: its budgets are shares of that, so a front is continued with it.
    #[must_use]
    pub fn baseline_peak(&self) -> BaselinePeak {
        BaselinePeak {
            bytes: self.baseline_peak_bytes,
            of: self.baseline_of,
        }
    }

    /// Reads a front.
    ///
    /// # Errors
    /// [`FrontFileError`] if the text is malformed or of another version.
    pub fn from_json(text: &str) -> Result<Self, FrontFileError> {
        Ok(document::read("front", &[FRONT_FORMAT], text)?)
    }

    /// The front as JSON, one line for each budget.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Plans may be large: the head is made without them.
        let head = Self {
            format: self.format.clone(),
            model: self.model.clone(),
            problem: self.problem.clone(),
            effort: self.effort.clone(),
            points: Vec::new(),
            ..*self
        };
        document::to_json_by_line(&head, "points", &self.points)
    }

    /// Writes the front. The file appears whole or not at all.
    ///
    /// # Errors
    /// [`SaveError::Io`](crate::SaveError::Io).
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        write(path, self.to_json())
    }

    /// Fills the points of `front` that the file knows. Plans are replayed; what was proved, and how far the search went, is
    /// believed where the effort is the same.
    pub(super) fn restore(
        &self,
        model: &Model,
        request: &SweepRequest,
        control: &SolveControl<'_>,
        front: &mut Front,
    ) -> Result<(), Error> {
        let expected = model.problem().digest();
        if self.problem != expected {
            let other = FrontFileError::OtherProblem {
                found: self.problem.clone(),
                model: self.model.clone(),
                expected,
            };
            return Err(SweepError::from(other).into());
        }
        let same_effort = self.effort == Effort::of(request, control);
        for record in &self.points {
            let is_same = |point: &FrontPoint| {
                point.budget == record.budget_bytes && (point.budget.is_some() || point.spec == BudgetSpec::Min)
            };
            let index = front.points.iter().position(is_same);
            if let Some(plan) = &record.plan {
                let solution = check_plan(model, plan)?;
                match index {
                    Some(index) if record.budget_bytes.is_none() || plan.budget_bytes == record.budget_bytes => {
                        front.points[index].bound = record.known_bound();
                        front.record(model, index, solution)?;
                    }
                    _ => front.offer(model, &solution)?,
                }
            }
            let Some(index) = index.filter(|_| same_effort) else {
                continue;
            };
            let point = &mut front.points[index];
            let reason = record.reason.clone().unwrap_or_default();
            match record.finding {
                FindingKind::Impossible if point.solution().is_none() => point.finding = Finding::Impossible { reason },
                FindingKind::NotFound if point.solution().is_none() => point.finding = Finding::NotFound { reason },
                FindingKind::Impossible | FindingKind::NotFound | FindingKind::Untried | FindingKind::Plan => {}
            }
            let unproved = record.finding == FindingKind::Plan && point.solution().is_none();
            point.visits = if unproved { 0 } else { record.visits };
        }
        Ok(())
    }
}
