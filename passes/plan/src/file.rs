//! The plan file: stable JSON in names instead of ids, so that people and other tools can read and write it.

use remat_files::{DocumentError, document, shown};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Accounting, Certificate, Objective, OpId, OrderMode, Plan, Problem, Setup, Step, StorageId};

/// The value of [`PlanFile::format`] that this version writes.
pub const PLAN_FORMAT: &str = "remat-plan/2";
/// The one that it reads as well: without [`PlanFile::setup`].
pub const PLAN_FORMAT_1: &str = "remat-plan/1";

/// The kind of a step, as written in a plan file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// First run of `node`.
    Compute,
    /// Another run of `node`.
    Recompute,
    /// `tensor`'s storage is freed.
    Free,
    /// `tensor`'s storage moves to the second memory.
    PageOut,
    /// `tensor`'s storage comes back.
    PageIn,
}

/// One step: `node` for compute and recompute, `tensor` (the one that roots the storage) for the others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepRecord {
    /// What happens.
    pub op: StepKind,
    /// The op that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The storage that is freed or moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<String>,
}

/// A plan with its figures, as JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanFile {
    /// [`PLAN_FORMAT`] or [`PLAN_FORMAT_1`].
    #[serde(default = "current_format")]
    pub format: String,
    /// Name of the model.
    #[serde(default)]
    pub model: String,
    /// Which bytes count.
    pub accounting: Accounting,
    /// Whether the plan claims to follow the reference order.
    #[serde(default = "free_order")]
    pub order: OrderMode,
    /// The budget in bytes; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<u64>,
    /// Largest number of bytes resident at a step.
    pub peak_bytes: u64,
    /// Time of all steps, in the unit of the problem (nanoseconds for models).
    pub duration: u64,
    /// What the plan was sought for; the certificate's objective is in its unit.
    #[serde(default, skip_serializing_if = "Objective::is_default")]
    pub objective: Objective,
    /// The deadline it was sought for, in the unit of the problem; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Energy of all runs and transfers, in picojoules; absent where the problem states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_pj: Option<u64>,
    /// Peak of running every op once in reference order.
    pub baseline_peak_bytes: u64,
    /// Time of running every op once.
    pub baseline_duration: u64,
    /// How the model was read; absent in plans written by hand and in those of the first format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// What the solver claims; absent in plans written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// The steps, in order.
    pub steps: Vec<StepRecord>,
}

fn free_order() -> OrderMode {
    OrderMode::Free
}

fn current_format() -> String {
    PLAN_FORMAT.to_owned()
}

/// Why a plan file does not fit a problem.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanFileError {
    /// The text is not a plan.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A step without its name.
    #[error("step {step} ({kind:?}) lacks `{field}`")]
    MissingName {
        /// Position of the step, from 0.
        step: usize,
        /// Its kind.
        kind: StepKind,
        /// `node` or `tensor`.
        field: &'static str,
    },
    /// The model has no such op.
    #[error("step {step}: there is no node `{node}`", node = shown(.node))]
    UnknownNode {
        /// Position of the step, from 0.
        step: usize,
        /// The name.
        node: String,
    },
    /// The model has no such storage.
    #[error("step {step}: there is no tensor `{tensor}` that roots a storage", tensor = shown(.tensor))]
    UnknownTensor {
        /// Position of the step, from 0.
        step: usize,
        /// The name.
        tensor: String,
    },
}

impl PlanFile {
    /// Reads a plan file.
    ///
    /// # Errors
    /// [`PlanFileError::Document`].
    pub fn from_json(text: &str) -> Result<Self, PlanFileError> {
        Ok(document::read("plan", &[PLAN_FORMAT, PLAN_FORMAT_1], text)?)
    }

    /// The plan file as JSON: one line per step, so that plans can be compared line by line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let head = Self {
            steps: Vec::new(),
            ..self.clone()
        };
        document::to_json_by_line(&head, "steps", &self.steps)
    }

    /// Writes a plan's steps with the names of the problem.
    #[must_use]
    pub fn records(problem: &Problem, plan: &Plan) -> Vec<StepRecord> {
        let node = |op: StepKind, id: OpId| StepRecord {
            op,
            node: Some(problem.ops[id].name.clone()),
            tensor: None,
        };
        let tensor = |op: StepKind, id: StorageId| {
            let tensor = Some(problem.storage_name(id).to_owned());
            StepRecord { op, node: None, tensor }
        };
        let record = |step: &Step| match *step {
            Step::Compute(op) => node(StepKind::Compute, op),
            Step::Recompute(op) => node(StepKind::Recompute, op),
            Step::Free(storage) => tensor(StepKind::Free, storage),
            Step::PageOut(storage) => tensor(StepKind::PageOut, storage),
            Step::PageIn(storage) => tensor(StepKind::PageIn, storage),
        };
        plan.steps.iter().map(record).collect()
    }

    /// The steps in the ids of `problem`.
    ///
    /// # Errors
    /// [`PlanFileError`] for the first step whose name is missing or not in the problem.
    pub fn plan(&self, problem: &Problem) -> Result<Plan, PlanFileError> {
        let ops: FxHashMap<&str, OpId> = problem
            .ops
            .iter_enumerated()
            .map(|(id, op)| (op.name.as_str(), id))
            .collect();
        let storages: FxHashMap<&str, StorageId> = problem
            .storages
            .keys()
            .map(|id| (problem.storage_name(id), id))
            .collect();
        let op = |step: usize, record: &StepRecord| {
            let Some(node) = &record.node else {
                return Err(PlanFileError::MissingName {
                    step,
                    kind: record.op,
                    field: "node",
                });
            };
            let unknown = || PlanFileError::UnknownNode {
                step,
                node: node.clone(),
            };
            ops.get(node.as_str()).copied().ok_or_else(unknown)
        };
        let storage = |step: usize, record: &StepRecord| {
            let Some(tensor) = &record.tensor else {
                return Err(PlanFileError::MissingName {
                    step,
                    kind: record.op,
                    field: "tensor",
                });
            };
            let unknown = || PlanFileError::UnknownTensor {
                step,
                tensor: tensor.clone(),
            };
            storages.get(tensor.as_str()).copied().ok_or_else(unknown)
        };
        let step = |(position, record): (usize, &StepRecord)| {
            Ok(match record.op {
                StepKind::Compute => Step::Compute(op(position, record)?),
                StepKind::Recompute => Step::Recompute(op(position, record)?),
                StepKind::Free => Step::Free(storage(position, record)?),
                StepKind::PageOut => Step::PageOut(storage(position, record)?),
                StepKind::PageIn => Step::PageIn(storage(position, record)?),
            })
        };
        let steps = self
            .steps
            .iter()
            .enumerate()
            .map(step)
            .collect::<Result<_, PlanFileError>>()?;
        Ok(Plan { steps })
    }
}
