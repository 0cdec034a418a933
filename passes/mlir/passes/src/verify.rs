//! The pass `remat-verify`.

use std::collections::HashSet;

use remat::ir::{Graph, OpKind, StorageId};
use remat::plan::{OrderMode, Paging, PagingMode, Plan, Step, Transfer};
use remat::{LoadOptions, Model};
use remat_mlir::{Function, ImportOptions};

use crate::rematerialize::BUDGET;
use crate::{PassError, VerifyOptions, blocks};

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

/// Replays the schedule that stands in the function: every operation in its order, a tensor released at its `remat.dealloc` or, where there
/// is none, after its last reader, and away from its `remat.page_out` to its `remat.page_in`. Returns the peak.
///
/// A function whose buffers were put into a block has no tensors any more. There the views of the block are judged, and what is returned is
/// the size of the block.
///
/// # Errors
/// [`PassError::Schedule`] if something is read after it was released, or the peak exceeds the budget; [`PassError::Block`] if views of a
/// block break a rule.
pub fn verify<'c>(function: Function<'c>, options: &VerifyOptions) -> Result<u64, PassError<'c>> {
    let noted = || function.integer(BUDGET).and_then(|budget| u64::try_from(budget).ok());
    let budget = options.budget.or_else(noted);
    if let Some(bytes) = blocks::verify(function)? {
        return match budget {
            Some(budget) if bytes > budget => Err(PassError::Schedule(format!(
                "the block has {bytes} bytes, the budget is {budget} bytes"
            ))),
            _ => Ok(bytes),
        };
    }
    let import = ImportOptions {
        dynamic_extent: options.dynamic_extent,
        scheduled: true,
    };
    let mut imported = function.import(&import)?;
    if let Err(errors) = imported.graph().validate() {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(PassError::Schedule(format!(
            "the schedule is broken: {}",
            texts.join("; ")
        )));
    }
    let scheduled = imported.graph().clone();
    imported.drop_memory_ops();
    let load = LoadOptions {
        order: Some(OrderMode::Fixed),
        ..LoadOptions::default()
    };
    let model = Model::from_mlir(imported.graph().clone(), &load)?;
    let plan = as_it_stands(&scheduled, &model);
    let mut problem = model.problem().clone();
    problem.paging = Some(SECOND_MEMORY);
    let replay = remat::verify::replay(&problem, &plan)
        .map_err(|rejection| PassError::Schedule(format!("the schedule is broken: {rejection}")))?;
    if let Some(budget) = budget
        && replay.peak > budget
    {
        let at = match plan.steps.get(replay.peak_step) {
            Some(&Step::Compute(op)) => format!(" at `{}`", model.problem().ops[op].name),
            _ => String::new(),
        };
        return Err(PassError::Schedule(format!(
            "the schedule needs {} bytes{at}, the budget is {budget} bytes",
            replay.peak
        )));
    }
    Ok(replay.peak)
}

/// The plan that the graph with its markers says. Ops have the same order in the graph without them.
fn as_it_stands(scheduled: &Graph, model: &Model) -> Plan {
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
