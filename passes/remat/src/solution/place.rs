//! The block of a plan: an offset for everything that counts.

use remat_place::place;
use remat_plan::{
    Accounting, Block, BlockPlacement, Blocks, Buffer, BufferId, PlacedInterval, Placement, PlacementCertificate,
};
use remat_solve::SolveControl;
use remat_verify::{Interval, intervals};
use typed_index_collections::TiVec;

use super::{PlacedPlan, Solution};
use crate::{Error, Model, PlacementError};

/// Where graph outputs lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outputs {
    /// At the beginning of the block, in the order in which they come, so that what is free above them is never split.
    First,
    /// Anywhere.
    Anywhere,
}

/// A plan as buffers: one for each interval of residency.
pub(crate) struct Request {
    needed: Vec<Interval>,
    buffers: TiVec<BufferId, Buffer>,
    alignment: u64,
    /// Where the outputs end.
    outputs: Option<u64>,
}

impl Request {
    pub(crate) fn of(model: &Model, solution: &Solution, order: Outputs) -> Self {
        let needed = intervals(&solution.problem, &solution.plan, &solution.replay);
        let alignment = model.alignment();
        let mut buffers = TiVec::with_capacity(needed.len());
        let mut outputs = None;
        for interval in &needed {
            let times = interval.steps.start as u64..interval.steps.end as u64;
            let mut buffer = Buffer::new(format!("{:?}", interval.what), interval.bytes, times);
            buffer.alignment = alignment;
            if interval.is_output && order == Outputs::First {
                let offset = outputs.unwrap_or(0u64).next_multiple_of(alignment);
                buffer.pinned = Some(offset);
                outputs = Some(offset + interval.bytes);
            }
            buffers.push(buffer);
        }
        Self {
            needed,
            buffers,
            alignment,
            outputs,
        }
    }

    /// A placement within so many bytes, if one is found.
    ///
    /// # Errors
    /// [`PlacementError::Buffers`] where all are too large together.
    pub(crate) fn within(&self, bytes: u64, control: &SolveControl<'_>) -> Result<Option<Placement>, PlacementError> {
        Ok(place(&self.buffers, &Blocks::Given(vec![bytes]), None, control)?.placement)
    }

    /// The lowest placement that is found, not higher than `start`.
    ///
    /// # Errors
    /// [`PlacementError::Buffers`] where all are too large together.
    pub(crate) fn lowest(
        &self,
        start: Option<&Placement>,
        control: &SolveControl<'_>,
    ) -> Result<BlockPlacement, PlacementError> {
        let outcome = place(&self.buffers, &Blocks::Lowest, start, control)?;
        // Without capacity there always is one.
        let placement = outcome.placement.unwrap_or_default();
        Ok(self.placed(&placement, outcome.certificate))
    }

    fn placed(&self, placement: &Placement, certificate: PlacementCertificate) -> BlockPlacement {
        let offsets = placement.places.iter().map(|place| place.map(|place| place.offset));
        let given = self.needed.iter().zip(offsets);
        let mut intervals: Vec<PlacedInterval> = given
            .filter_map(|(interval, offset)| {
                Some(PlacedInterval {
                    step: interval.steps.start,
                    what: interval.what,
                    offset: offset?,
                })
            })
            .collect();
        intervals.sort_unstable();
        BlockPlacement {
            block: Block {
                bytes: certificate.height.unwrap_or(0),
                alignment: self.alignment,
                outputs_bytes: self.outputs,
                certificate: Some(certificate),
            },
            intervals,
        }
    }
}

impl Solution {
    /// Gives everything that counts an offset in one block, as low as is found; the checker judges it. Graph outputs lie at the beginning
    /// of the block. Of `control` count what [`place`] looks at.
    ///
    /// # Errors
    /// [`PlacementError`] where all are too large together, or the checker rejects what was found.
    pub fn place(&mut self, model: &Model, control: &SolveControl<'_>) -> Result<(), Error> {
        let placement = Request::of(model, self, Outputs::First).lowest(None, control)?;
        let placed = PlacedPlan::of(&self.problem, &self.plan, &self.replay, placement);
        self.placement = Some(placed.map_err(PlacementError::Rejected)?);
        Ok(())
    }
}

impl Model {
    /// What offsets in a block are multiples of: what the device aligns buffers to; 1 where sizes are not aligned.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        let profile = self
            .profile()
            .filter(|_| self.problem().accounting == Accounting::Runtime);
        profile.map_or(1, |profile| profile.alignment.max(1))
    }
}
