//! What is in memory at the peak of a plan.

use remat::plan::{OpId, Plan, Problem, Step, StorageId};
use remat::verify::{Replay, resident_at};
use schemars::JsonSchema;
use serde::Serialize;

/// A storage that is resident at the peak.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Resident {
    /// The tensor that it was made for.
    pub(crate) tensor: String,
    /// The op that makes it; absent for what comes from outside.
    pub(crate) made_by: Option<String>,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its size before it is rounded up, as a formula of the dimensions that the model leaves open; absent where none is open, or the data
    /// decides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_formula: Option<String>,
}

impl Resident {
    /// A storage without a formula.
    pub(crate) fn new(problem: &Problem, storage: StorageId, bytes: u64) -> Self {
        let producer = problem.tensors[problem.storages[storage].root].producer;
        Self {
            tensor: problem.storage_name(storage).to_owned(),
            made_by: producer.map(|op| problem.ops[op].name.clone()),
            bytes,
            bytes_formula: None,
        }
    }
}

/// The storages that are resident at the peak and their bytes, the largest first.
pub(crate) fn at_peak(problem: &Problem, plan: &Plan, replay: &Replay) -> Vec<(StorageId, u64)> {
    let mut resident = resident_at(problem, plan, replay.peak_step);
    resident.sort_by_key(|&(storage, bytes)| (std::cmp::Reverse(bytes), storage));
    resident
}

/// The op that runs at a step.
pub(crate) fn op_at(plan: &Plan, step: usize) -> Option<OpId> {
    match plan.steps.get(step) {
        Some(&(Step::Compute(op) | Step::Recompute(op))) => Some(op),
        _ => None,
    }
}
