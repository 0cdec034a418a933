//! Offsets in a block for the buffers of runs.
//!
//! A run says which plan it follows by the sizes that it allocates, so where two plans begin with the same sizes, these buffers get the same
//! offsets in both: it makes no difference then which of the two a run is thought to follow before they part.

use std::cmp::Reverse;
use std::time::Duration;

use remat::place::BufferFile;
use remat::verify::PlacementFigures;
use remat_onnxruntime_arena::{ALIGNMENT, ArenaPlan, PlannedBuffer};
use remat_onnxruntime_run::{RecordedBuffer, RecordedRun, Recording};
use remat_plan::{Blocks, Buffer};
use remat_solve::SolveControl;

use crate::error::ArenaPlanError;

/// Longest time to place the buffers of a run.
const PLACING: Duration = Duration::from_secs(3);

/// A plan for every run of these recordings, each made with so many threads.
pub(super) fn plans(
    recorded: &[(usize, Recording)],
    control: &SolveControl<'_>,
) -> Result<Vec<Vec<ArenaPlan>>, ArenaPlanError> {
    // Runs of several cases and one after the other are often the same: they are placed once.
    let mut runs: Vec<&RecordedRun> = Vec::new();
    for run in recorded.iter().flat_map(|(_, recording)| &recording.runs) {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    // The first ones are free, and the block is as large as the largest plan, so those that need most come first.
    runs.sort_by_cached_key(|run| Reverse(unplaced(run).load()));
    let mut known: Vec<Placed<'_>> = Vec::new();
    for run in runs {
        let beginnings = known.iter().map(|placed| placed.beginning_of(run));
        let fixed = beginnings.max_by_key(|fixed| fixed.len()).unwrap_or_default();
        // Buffers that are alive together here but not in the other run cannot lie where that has them.
        let found = placed(run, fixed, control).or_else(|_| placed(run, &[], control))?;
        known.push(found);
    }
    let plans = |(threads, recording): &(usize, Recording)| {
        let of = |run| {
            let placed = known.iter().find(|placed| placed.run == run)?;
            Some(placed.plan(recording.inputs.clone(), *threads))
        };
        recording.runs.iter().filter_map(of).collect()
    };
    Ok(recorded.iter().map(plans).collect())
}

/// A run, and where its buffers lie.
#[derive(Clone)]
struct Placed<'r> {
    run: &'r RecordedRun,
    offsets: Vec<Option<u64>>,
    block_bytes: u64,
    /// Whether no block is smaller.
    is_lowest: bool,
}

impl Placed<'_> {
    /// The offsets of those buffers with which this run and another one begin.
    fn beginning_of(&self, other: &RecordedRun) -> &[Option<u64>] {
        let pairs = self.run.buffers.iter().zip(&other.buffers);
        let same = pairs.take_while(|(one, other)| one.bytes == other.bytes).count();
        self.offsets.get(..same).unwrap_or_default()
    }

    fn plan(&self, inputs: Vec<(String, Vec<i64>)>, threads: usize) -> ArenaPlan {
        let mut plan = unplaced(self.run);
        for (buffer, &offset) in plan.buffers.iter_mut().zip(&self.offsets) {
            buffer.offset = offset;
        }
        ArenaPlan {
            threads,
            inputs,
            block_bytes: self.block_bytes,
            ..plan
        }
    }
}

/// The plan of a run, with all of its buffers at offset 0.
fn unplaced(run: &RecordedRun) -> ArenaPlan {
    let buffer = |recorded: &RecordedBuffer| PlannedBuffer {
        bytes: recorded.bytes,
        first: recorded.first,
        last: recorded.last.unwrap_or(run.end),
        offset: Some(0),
        is_output: recorded.last.is_none(),
    };
    ArenaPlan {
        threads: 1,
        inputs: Vec::new(),
        block_bytes: 0,
        buffers: run.buffers.iter().map(buffer).collect(),
    }
}

/// The buffers of a run in one block, the first ones at fixed offsets: with the outputs stacked at its start, or wherever they make it lower.
fn placed<'r>(
    run: &'r RecordedRun,
    fixed: &[Option<u64>],
    control: &SolveControl<'_>,
) -> Result<Placed<'r>, ArenaPlanError> {
    // Outputs may not lie where fixed buffers do.
    let stacked = place(run, fixed, true, control).ok();
    if let Some(stacked) = stacked.as_ref().filter(|stacked| stacked.is_lowest) {
        return Ok(stacked.clone());
    }
    let free = place(run, fixed, false, control)?;
    Ok(stacked
        .filter(|stacked| stacked.block_bytes <= free.block_bytes)
        .unwrap_or(free))
}

/// The same, one way or the other. With `stacks`, outputs lie at the start of the block, those that are live longest first.
fn place<'r>(
    run: &'r RecordedRun,
    fixed: &[Option<u64>],
    stacks: bool,
    control: &SolveControl<'_>,
) -> Result<Placed<'r>, ArenaPlanError> {
    let mut top = 0;
    let buffer = |(place, recorded): (usize, &RecordedBuffer)| {
        let bytes = recorded.bytes.next_multiple_of(ALIGNMENT);
        let stacked = (stacks && recorded.last.is_none()).then_some(top);
        top += if stacked.is_some() { bytes } else { 0 };
        Buffer {
            alignment: ALIGNMENT,
            pinned: fixed.get(place).copied().flatten().or(stacked),
            ..Buffer::new(
                place.to_string(),
                bytes,
                recorded.first..recorded.last.unwrap_or(run.end),
            )
        }
    };
    let file = BufferFile {
        buffers: run.buffers.iter().enumerate().map(buffer).collect(),
        hints: None,
    };
    let mut limited = SolveControl::new().seed(control.seed);
    (limited.cancel, limited.deadline) = (control.cancel, control.deadline);
    limited = limited.at_most(Some(PLACING));
    let placed = remat::place_buffers(&file, &Blocks::Lowest, &limited)?;
    let block_bytes = placed.figures.as_ref().map_or(0, PlacementFigures::height);
    let places = placed.outcome.placement.map(|placement| placement.places);
    let places = places.unwrap_or_default().into_iter();
    Ok(Placed {
        run,
        offsets: places.map(|place| place.map(|place| place.offset)).collect(),
        block_bytes,
        is_lowest: placed.outcome.certificate.bound >= block_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(buffers: &[(u64, u64, Option<u64>)]) -> Recording {
        let buffer = |&(bytes, first, last)| RecordedBuffer { bytes, first, last };
        let run = RecordedRun {
            buffers: buffers.iter().map(buffer).collect(),
            end: 8,
            threads: 1,
        };
        Recording {
            inputs: Vec::new(),
            runs: vec![run],
        }
    }

    #[test]
    fn plans_that_begin_with_the_same_sizes_have_the_same_offsets_there() {
        // Scratch of a kernel is larger where more threads take part.
        let buffers = |scratch| {
            [
                (256, 0, Some(3)),
                (512, 1, None),
                (scratch, 2, Some(4)),
                (512, 5, Some(7)),
            ]
        };
        let runs = [(1, 64), (2, 2048), (4, 512)].map(|(threads, scratch)| (threads, recorded(&buffers(scratch))));
        let plans = plans(&runs, &SolveControl::new()).expect("they can be placed");
        let offsets = |plan: &ArenaPlan| plan.buffers.iter().map(|buffer| buffer.offset).collect();
        let all: Vec<Vec<Option<u64>>> = plans.iter().flatten().map(offsets).collect();
        assert_eq!(all.len(), 3);
        assert!(all.iter().all(|offsets| offsets[..2] == all[0][..2]), "{all:?}");
        let most = plans.iter().flatten().map(|plan| plan.block_bytes).max();
        assert_eq!(most, Some(256 + 512 + 2048));
        assert_eq!(plans[2][0].threads, 4);
    }

    #[test]
    fn a_run_that_cannot_agree_with_the_one_before_is_placed_by_itself() {
        // Its first two buffers are alive together, those of the larger one are not and share their bytes.
        let larger = recorded(&[(256, 0, Some(1)), (256, 2, Some(3)), (2048, 4, Some(5))]);
        let smaller = recorded(&[(256, 0, Some(3)), (256, 1, Some(2)), (64, 4, Some(5))]);
        let plans = plans(&[(1, larger), (2, smaller)], &SolveControl::new()).expect("both can be placed");
        let offsets: Vec<Option<u64>> = plans[1][0].buffers.iter().map(|buffer| buffer.offset).collect();
        assert_ne!(offsets[0], offsets[1]);
        assert_eq!(plans[1][0].block_bytes, 512);
    }
}
