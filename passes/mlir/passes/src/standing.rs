//! The plan that stands in a function.

use std::collections::{BTreeMap, HashSet};

use remat::Model;
use remat::ir::{Graph, OpId, OpKind, StorageId};
use remat::plan::{Paging, PagingMode, Plan, Step, Transfer};
use remat::verify::Replay;

use crate::PassError;

/// A second memory of any size: how long transfers take is not asked here.
const SECOND_MEMORY: Paging = Paging {
    mode: PagingMode::Sync,
    capacity: None,
    page_out: FREE_OF_CHARGE,
    page_in: FREE_OF_CHARGE,
};

const FREE_OF_CHARGE: Transfer = Transfer {
    latency_ns: 0,
    bytes_per_s: u64::MAX,
    energy_pj: 0,
    energy_pj_per_byte: 0,
};

/// Replays a block in the order of its operations; a tensor is there until its marker or, where there is none, its last reader. `scheduled` has
/// the markers, the model does not.
pub(crate) fn as_it_stands<'c>(scheduled: &Graph, model: &Model) -> Result<(Plan, Replay), PassError<'c>> {
    let plan = plan(scheduled, model);
    let mut problem = model.problem().clone();
    problem.paging = Some(SECOND_MEMORY);
    let replay = remat::verify::replay(&problem, &plan)
        .map_err(|rejection| PassError::Schedule(format!("the schedule is broken: {rejection}")))?;
    Ok((plan, replay))
}

/// The plan that the graph with its markers says: its ops in their order, views too, which other plans run before their first readers only.
/// The problem has the same ops in the same order, without the markers.
fn plan(scheduled: &Graph, model: &Model) -> Plan {
    let marked: HashSet<StorageId> = scheduled
        .ops
        .iter()
        .filter(|op| op.kind == OpKind::Dealloc)
        .flat_map(|op| op.reads().map(|tensor| scheduled.tensors[tensor].storage))
        .collect();
    let unmarked = released_after(model, &marked);
    let mut computes = model.problem().ops.keys();
    let mut steps = Vec::new();
    for op in &scheduled.ops {
        if let Some(step) = memory_step(op.kind) {
            steps.extend(op.reads().map(|tensor| step(scheduled.tensors[tensor].storage)));
        } else if let Some(op) = computes.next() {
            steps.push(Step::Compute(op));
            steps.extend(unmarked.get(&op).into_iter().flatten().copied().map(Step::Free));
        }
    }
    Plan { steps }
}

/// What is released after an op because it is the last one that reads or makes it: all that plans release but what has a marker.
fn released_after(model: &Model, marked: &HashSet<StorageId>) -> BTreeMap<OpId, Vec<StorageId>> {
    let problem = model.problem();
    let mut last = BTreeMap::new();
    for (id, op) in problem.ops.iter_enumerated() {
        let touched = op.reads.iter().chain(&op.defines);
        last.extend(touched.map(|&tensor| (problem.tensors[tensor].storage, id)));
    }
    let mut released: BTreeMap<OpId, Vec<StorageId>> = BTreeMap::new();
    for step in &model.baseline_plan().steps {
        if let Step::Free(storage) = step
            && !marked.contains(storage)
            && let Some(&op) = last.get(storage)
        {
            released.entry(op).or_default().push(*storage);
        }
    }
    released
}

/// What an op that only says where memory goes is in a plan.
fn memory_step(kind: OpKind) -> Option<fn(StorageId) -> Step> {
    match kind {
        OpKind::Compute | OpKind::Recompute { .. } => None,
        OpKind::Dealloc => Some(Step::Free),
        OpKind::PageOut => Some(Step::PageOut),
        OpKind::PageIn => Some(Step::PageIn),
    }
}
