//! The plan that stands in a function.

use std::collections::HashSet;

use remat::Model;
use remat::ir::{Graph, OpKind, StorageId};
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

/// The plan that the graph with its markers says. Ops have the same order in the graph without them.
fn plan(scheduled: &Graph, model: &Model) -> Plan {
    let marked: HashSet<StorageId> = scheduled
        .ops
        .iter()
        .filter(|op| op.kind == OpKind::Dealloc)
        .flat_map(|op| op.reads().map(|tensor| scheduled.tensors[tensor].storage))
        .collect();
    let mut of_baseline = model.baseline_plan().steps.iter().peekable();
    let mut steps = Vec::new();
    for op in &scheduled.ops {
        if let Some(step) = memory_step(op.kind) {
            steps.extend(op.reads().map(|tensor| step(scheduled.tensors[tensor].storage)));
            continue;
        }
        steps.extend(of_baseline.next().copied());
        while let Some(&&step) = of_baseline.peek() {
            let Step::Free(storage) = step else { break };
            if !marked.contains(&storage) {
                steps.push(step);
            }
            of_baseline.next();
        }
    }
    Plan { steps }
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
