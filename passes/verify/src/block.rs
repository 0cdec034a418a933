//! The block of a plan: every interval of residency, held against the rules of the family `P`.

use remat_files::shown;
use remat_plan::{
    Block, BlockPlacement, Blocks, Buffer, BufferId, Place, PlacedInterval, Placement, Plan, Problem, Resident,
};
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

use crate::intervals::{Interval, intervals};
use crate::placement::{PlacementFigures, claims, judge};
use crate::rejection::Findings;
use crate::text::Bytes;
use crate::{Code, Rejection, Replay};

/// Checks where the storages of a plan lie; `replay` is what the checker found of the plan.
///
/// # Errors
/// [`Rejection`] with all rules of the family `P` that the placement and what is claimed about it break.
pub fn check_block(
    problem: &Problem,
    plan: &Plan,
    replay: &Replay,
    placement: &BlockPlacement,
) -> Result<PlacementFigures, Rejection> {
    let mut findings = Findings::default();
    let figures = judge_block(problem, plan, replay, placement, &mut findings);
    findings.judge(figures)
}

/// All rules; the figures are those of the placement where nothing is found.
pub(crate) fn judge_block(
    problem: &Problem,
    plan: &Plan,
    replay: &Replay,
    placement: &BlockPlacement,
    findings: &mut Findings,
) -> PlacementFigures {
    let needed = intervals(problem, plan, replay);
    let buffers = buffers(problem, &needed, placement.block.alignment);
    let block = &placement.block;
    let offsets = offsets(problem, &needed, &placement.intervals, findings);
    for (interval, offset) in needed.iter().zip(&offsets) {
        check_output(problem, block, interval, *offset, findings);
    }
    let place = |offset: Option<u64>| offset.map(|offset| Place { block: 0, offset });
    let places = Placement {
        places: offsets.into_iter().map(place).collect(),
    };
    let figures = judge(&buffers, &Blocks::Given(vec![block.bytes]), &places, findings);
    if let Some(certificate) = &block.certificate {
        let height = Some(figures.height());
        let outputs = block.outputs_bytes.unwrap_or(0);
        claims(&buffers, &Blocks::Lowest, height, outputs, certificate, findings);
    }
    figures
}

/// What is placed: a buffer for each interval, whose times are steps.
fn buffers(problem: &Problem, needed: &[Interval], alignment: u64) -> TiVec<BufferId, Buffer> {
    let buffer = |interval: &Interval| {
        let times = interval.steps.start as u64..interval.steps.end as u64;
        let mut buffer = Buffer::new(name(problem, interval), interval.bytes, times);
        buffer.alignment = alignment;
        buffer
    };
    needed.iter().map(buffer).collect()
}

/// What an interval is called in messages.
fn name(problem: &Problem, interval: &Interval) -> String {
    let step = interval.steps.start;
    match interval.what {
        Resident::Storage(id) if interval.is_duplicate => {
            format!("duplicate of {} at step {step}", problem.storage_name(id))
        }
        Resident::Storage(id) => format!("{} from step {step}", problem.storage_name(id)),
        Resident::Workspace(op) => format!("workspace of {} at step {step}", problem.ops[op].name),
    }
}

/// The offset that is given for each interval; what is given and is no interval is a violation.
fn offsets(
    problem: &Problem,
    needed: &[Interval],
    given: &[PlacedInterval],
    findings: &mut Findings,
) -> Vec<Option<u64>> {
    let mut offsets = vec![None; needed.len()];
    let keys = needed.iter().map(|interval| (interval.steps.start, interval.what));
    let index_of: FxHashMap<(usize, Resident), usize> = keys.zip(0..).collect();
    for placed in given {
        let step = placed.step;
        let found = index_of.get(&(step, placed.what)).map(|&index| &mut offsets[index]);
        match found {
            Some(offset @ None) => *offset = Some(placed.offset),
            Some(Some(_)) => findings.add(Code::P009, Some(step), || {
                format!("step {step} gives two offsets for {}", named(problem, placed.what))
            }),
            None => findings.add(Code::P009, Some(step), || {
                let what = named(problem, placed.what);
                format!("step {step} gives an offset for {what}, which takes no bytes from this step on")
            }),
        }
    }
    offsets
}

fn named(problem: &Problem, what: Resident) -> String {
    let unknown = "what is not there";
    match what {
        Resident::Storage(id) if id.index() < problem.storages.len() => {
            format!("`{}`", shown(problem.storage_name(id)))
        }
        Resident::Workspace(op) if op.index() < problem.ops.len() => {
            format!("the workspace of `{}`", shown(&problem.ops[op].name))
        }
        Resident::Storage(_) | Resident::Workspace(_) => unknown.to_owned(),
    }
}

/// A graph output lies at the end of the block that is for outputs.
fn check_output(problem: &Problem, block: &Block, interval: &Interval, offset: Option<u64>, findings: &mut Findings) {
    let (Some(outputs), Some(offset)) = (block.outputs_bytes.filter(|_| interval.is_output), offset) else {
        return;
    };
    let end = offset.saturating_add(interval.bytes);
    if end > outputs {
        findings.add(Code::P005, Some(interval.steps.start), || {
            let name = name(problem, interval);
            format!(
                "buffer `{}` holds a graph output and ends at {end}, outputs lie in the first {}",
                shown(&name),
                Bytes(outputs)
            )
        });
    }
}
