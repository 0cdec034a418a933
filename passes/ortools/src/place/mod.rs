//! Offsets of buffers in one block, by CP-SAT: a second opinion where the search of `remat-place` gets no further.
//!
//! A buffer is a rectangle whose sides in time are fixed, and whose place in the block is sought: two intervals each, and
//! `no_overlap_2d` over all. What CP-SAT proves is not recounted by anything.

mod model;

use remat_plan::PlacementProof;
use remat_solve::{Packed, Packer, Packing, SolveControl};

use self::model::model;
use crate::clock::{Clock, Ended};
use crate::cpsat::minimize;
use crate::run::bytes_of;

/// More rectangles are not modelled: CP-SAT gets nowhere with them.
const MOST: usize = 2_000;
/// Ends of buffers stay below this, far enough from 2^63 for what CP-SAT does with them.
const HIGHEST: u64 = 1 << 58;

/// CP-SAT's constraint on rectangles that do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoOverlap;

impl Packer for NoOverlap {
    fn proof(&self) -> PlacementProof {
        PlacementProof::CpSat
    }

    fn pack(&self, packing: &Packing<'_>, control: &SolveControl<'_>) -> Option<Packed> {
        let rectangles: usize = packing.buffers.iter().map(|buffer| 1 + buffer.gaps.len()).sum();
        let bytes = bytes_of(2 * rectangles as u64);
        let is_modelled = rectangles <= MOST && packing.heights.end <= HIGHEST && !packing.heights.is_empty();
        if !is_modelled || control.memory_limit.is_some_and(|limit| bytes > limit) {
            tracing::info!(rectangles, "no second opinion");
            return None;
        }
        let clock = Clock::new(control);
        let (model, variables) = model(packing);
        let least = i64::try_from(packing.heights.start).ok()?;
        let mut offsets = None;
        let mut improved = |values: &[i64], _, _| offsets = Some(variables.offsets(packing, values));
        let answer = minimize(model, least, &clock, &mut improved);
        let bound = match answer.ended {
            Ended::Infeasible => packing.heights.end,
            _ => u64::try_from(answer.bound).unwrap_or(0),
        };
        tracing::debug!(?answer, bound, "second opinion");
        Some(Packed { offsets, bound })
    }
}
