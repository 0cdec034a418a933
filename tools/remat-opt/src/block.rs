//! The block of a plan in reports and as a chart.

use remat::Solution;
use remat::plan::{Bound, PlacementCertificate, PlacementProof, Resident, Status, Step, StopReason};
use remat::verify::{Interval, intervals};
use remat_chart::{BlockChart, DrawError, Taken, TakenBy};
use schemars::JsonSchema;
use serde::Serialize;

use crate::units;

/// A block, and how it compares with what is needed at once.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BlockRecord {
    /// What the budget bounds.
    bound: Bound,
    /// The largest sum of bytes at one step of the plan: no block is smaller.
    load_bytes: u64,
    /// Size of the block.
    block_bytes: u64,
    /// What the block takes above the load.
    above_load_bytes: u64,
    /// Every offset is a multiple of this.
    alignment: u64,
    /// Graph outputs lie in the first so many bytes; absent where there are none, or they lie anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs_bytes: Option<u64>,
    /// What is claimed about the lowest block for this plan.
    certificate: Option<PlacementCertificate>,
}

impl BlockRecord {
    /// The block of a solution, where it has one.
    pub(crate) fn of(solution: &Solution) -> Option<Self> {
        let placed = solution.placement.as_ref()?;
        let block = &placed.placement.block;
        Some(Self {
            bound: solution.bound,
            load_bytes: placed.load,
            block_bytes: block.bytes,
            above_load_bytes: block.bytes.saturating_sub(placed.load),
            alignment: block.alignment,
            outputs_bytes: block.outputs_bytes,
            certificate: block.certificate.clone(),
        })
    }

    /// The block in a line, which begins with `word`.
    pub(crate) fn line(&self, word: &str) -> String {
        let above = match self.above_load_bytes {
            0 => "the load".to_owned(),
            more => {
                let percent = units::percent(self.block_bytes, self.load_bytes) - 100.0;
                format!(
                    "{} above the load of {} ({percent:+.2} %)",
                    units::bytes(more),
                    units::bytes(self.load_bytes)
                )
            }
        };
        let mut line = format!("{word}{}, {above}", exact(self.block_bytes));
        if let Some(outputs) = self.outputs_bytes {
            line += &format!(", outputs in the first {}", units::bytes(outputs));
        }
        if let Some(certificate) = &self.certificate {
            line += &format!("; {}", proof(certificate, true));
        }
        line
    }
}

/// What is known of a placement, in words.
pub(crate) fn proof(certificate: &PlacementCertificate, is_lowest: bool) -> String {
    let bound = exact(certificate.bound);
    let stop = match certificate.stop {
        StopReason::TimeLimit => "stopped at the time limit",
        StopReason::StepLimit => "stopped at the step limit",
        StopReason::Cancelled => "interrupted",
        _ => "stopped after no progress for long",
    };
    match (certificate.status, certificate.proof) {
        (Status::Optimal, _) if !is_lowest => "all buffers fit".to_owned(),
        (Status::Optimal, PlacementProof::Load) => "optimal: so much is needed at one time".to_owned(),
        (Status::Optimal, PlacementProof::Refutation) => "optimal: everything lower was tried".to_owned(),
        (Status::Optimal, PlacementProof::CpSat) => "optimal: CP-SAT finds nothing lower".to_owned(),
        (Status::Infeasible, PlacementProof::Load) => format!("impossible: {bound} are needed at one time"),
        (Status::Infeasible, PlacementProof::Refutation) => "impossible: everything was tried".to_owned(),
        (Status::Infeasible, PlacementProof::CpSat) => "impossible: CP-SAT finds nothing".to_owned(),
        (Status::Feasible, PlacementProof::CpSat) => format!("none is below {bound}, says CP-SAT; {stop}"),
        (Status::Feasible, _) => format!("none is below {bound}; {stop}"),
        (Status::Unknown, _) => format!("neither found nor excluded; {stop}"),
    }
}

/// Bytes exactly, and from a kibibyte on also in the unit that fits.
pub(crate) fn exact(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    format!("{} ({bytes} bytes)", units::bytes(bytes))
}

/// The block over the steps of the plan, as SVG; `None` where the plan has no block.
pub(crate) fn chart(solution: &Solution) -> Option<Result<String, DrawError>> {
    let placed = solution.placement.as_ref()?;
    let title = format!("{}: the block of the plan", solution.problem.name);
    // Of an accepted placement both lists name the same in the same order.
    let needed = intervals(&solution.problem, &solution.plan, &solution.replay);
    let offsets = placed.placement.intervals.iter().map(|placed| placed.offset);
    let chart = BlockChart {
        bytes: placed.block(),
        load: placed.load,
        steps: solution.plan.steps.len(),
        taken: needed
            .iter()
            .zip(offsets)
            .map(|(interval, offset)| taken(solution, interval, offset))
            .collect(),
    };
    Some(remat_chart::block(&title, &chart))
}

fn taken(solution: &Solution, interval: &Interval, offset: u64) -> Taken {
    let (problem, plan) = (&solution.problem, &solution.plan);
    let (by, name) = match (interval.what, plan.steps.get(interval.steps.start)) {
        (Resident::Workspace(op), _) => (TakenBy::Workspace, format!("workspace of {}", problem.ops[op].name)),
        (Resident::Storage(storage), step) => {
            let by = match step {
                _ if interval.is_output => TakenBy::Output,
                Some(Step::Recompute(_)) => TakenBy::Again,
                Some(Step::PageIn(_)) => TakenBy::Back,
                _ => TakenBy::Result,
            };
            (by, problem.storage_name(storage).to_owned())
        }
    };
    Taken {
        by,
        name,
        steps: (interval.steps.start, interval.steps.end),
        bytes: (offset, interval.bytes),
    }
}
