//! The plan file: stable JSON in names instead of ids, so that people and other tools can read and write it.

use std::collections::BTreeMap;

use remat_files::{DocumentError, document, shown};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Accounting, Block, BlockPlacement, Bound, Certificate, Objective, OpId, OrderMode, PlacedInterval, Plan, Problem,
    Resident, Setup, Step, StorageId,
};

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

/// One step: `node` for compute and recompute, `tensor` (the one that roots the storage) for the others; offsets where the plan has a
/// block.
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
    /// Where what becomes resident at this step lies in the block: an offset in bytes for each storage, by the tensor that roots it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, u64>,
    /// Where the workspace of `node` lies during this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_at: Option<u64>,
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
    /// What the budget bounds.
    #[serde(default, skip_serializing_if = "Bound::is_default")]
    pub bound: Bound,
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
    /// The plans of subgraphs, applied in this order: the plan is one for the model with these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<BodyPlan>,
    /// What the solver claims; absent in plans written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
    /// The block that storages lie in, where steps give offsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
    /// The steps, in order.
    pub steps: Vec<StepRecord>,
}

/// The plan of one subgraph of a node: of a branch of If, of what Loop and Scan repeat.
///
/// The subgraph is a problem of its own: what it reads from outside and what its node gives it counts as nothing. What the node takes while it runs
/// this subgraph is its workspace in the plan around it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BodyPlan {
    /// The node.
    pub node: String,
    /// The attribute that holds the subgraph, `then_branch` say.
    pub body: String,
    /// Bytes that the node takes for the subgraph without the plan, on top of operands and results.
    pub bytes_before: u64,
    /// Bytes that it takes with the plan.
    pub bytes: u64,
    /// The plan, with those of subgraphs of its own.
    pub plan: PlanFile,
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
    /// A step with offsets, and no block that they lie in.
    #[error("step {step} gives offsets, and the plan states no `block`")]
    NoBlock {
        /// Position of the step, from 0.
        step: usize,
    },
    /// A step that runs nothing gives an offset of a workspace.
    #[error("step {step} ({kind:?}) runs nothing and has no workspace")]
    NoRun {
        /// Position of the step, from 0.
        step: usize,
        /// Its kind.
        kind: StepKind,
    },
}

impl StepRecord {
    /// A step without offsets.
    #[must_use]
    pub fn new(op: StepKind, node: Option<String>, tensor: Option<String>) -> Self {
        Self {
            op,
            node,
            tensor,
            at: BTreeMap::new(),
            workspace_at: None,
        }
    }
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
        let node = |op: StepKind, id: OpId| StepRecord::new(op, Some(problem.ops[id].name.clone()), None);
        let tensor = |op: StepKind, id: StorageId| StepRecord::new(op, None, Some(problem.storage_name(id).to_owned()));
        let record = |step: &Step| match *step {
            Step::Compute(op) => node(StepKind::Compute, op),
            Step::Recompute(op) => node(StepKind::Recompute, op),
            Step::Free(storage) => tensor(StepKind::Free, storage),
            Step::PageOut(storage) => tensor(StepKind::PageOut, storage),
            Step::PageIn(storage) => tensor(StepKind::PageIn, storage),
        };
        plan.steps.iter().map(record).collect()
    }

    /// States where storages lie. The steps are those of the plan that was placed.
    #[must_use]
    pub fn placed(mut self, problem: &Problem, placement: &BlockPlacement) -> Self {
        for placed in &placement.intervals {
            let Some(record) = self.steps.get_mut(placed.step) else {
                continue;
            };
            match placed.what {
                Resident::Storage(id) => {
                    record.at.insert(problem.storage_name(id).to_owned(), placed.offset);
                }
                Resident::Workspace(_) => record.workspace_at = Some(placed.offset),
            }
        }
        self.block = Some(placement.block.clone());
        self
    }

    /// Where storages lie, in the ids of `problem`; `None` where the file does not say.
    ///
    /// # Errors
    /// [`PlanFileError`] for the first step whose offsets name nothing that is in the problem, or have no block.
    pub fn placement(&self, problem: &Problem) -> Result<Option<BlockPlacement>, PlanFileError> {
        let Some(block) = &self.block else {
            let has_offsets = |record: &StepRecord| !record.at.is_empty() || record.workspace_at.is_some();
            return match self.steps.iter().position(has_offsets) {
                Some(step) => Err(PlanFileError::NoBlock { step }),
                None => Ok(None),
            };
        };
        let names = Names::of(problem);
        let mut intervals = Vec::new();
        for (step, record) in self.steps.iter().enumerate() {
            for (tensor, &offset) in &record.at {
                let what = Resident::Storage(names.storage(step, tensor)?);
                intervals.push(PlacedInterval { step, what, offset });
            }
            if let Some(offset) = record.workspace_at {
                let kind = record.op;
                let node = record.node.as_ref().ok_or(PlanFileError::NoRun { step, kind })?;
                let what = Resident::Workspace(names.op(step, node)?);
                intervals.push(PlacedInterval { step, what, offset });
            }
        }
        intervals.sort_unstable();
        let block = block.clone();
        Ok(Some(BlockPlacement { block, intervals }))
    }

    /// The steps in the ids of `problem`.
    ///
    /// # Errors
    /// [`PlanFileError`] for the first step whose name is missing or not in the problem.
    pub fn plan(&self, problem: &Problem) -> Result<Plan, PlanFileError> {
        let names = Names::of(problem);
        let missing = |step: usize, record: &StepRecord, field| PlanFileError::MissingName {
            step,
            kind: record.op,
            field,
        };
        let op = |step: usize, record: &StepRecord| {
            let node = record.node.as_ref().ok_or_else(|| missing(step, record, "node"))?;
            names.op(step, node)
        };
        let storage = |step: usize, record: &StepRecord| {
            let tensor = record.tensor.as_ref().ok_or_else(|| missing(step, record, "tensor"))?;
            names.storage(step, tensor)
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

/// The ids of the problem by name.
struct Names<'a> {
    ops: FxHashMap<&'a str, OpId>,
    storages: FxHashMap<&'a str, StorageId>,
}

impl<'a> Names<'a> {
    fn of(problem: &'a Problem) -> Self {
        let ops = problem.ops.iter_enumerated();
        let storages = problem.storages.keys();
        Self {
            ops: ops.map(|(id, op)| (op.name.as_str(), id)).collect(),
            storages: storages.map(|id| (problem.storage_name(id), id)).collect(),
        }
    }

    fn op(&self, step: usize, node: &str) -> Result<OpId, PlanFileError> {
        let found = self.ops.get(node).copied();
        found.ok_or_else(|| PlanFileError::UnknownNode {
            step,
            node: node.to_owned(),
        })
    }

    fn storage(&self, step: usize, tensor: &str) -> Result<StorageId, PlanFileError> {
        let found = self.storages.get(tensor).copied();
        found.ok_or_else(|| PlanFileError::UnknownTensor {
            step,
            tensor: tensor.to_owned(),
        })
    }
}
