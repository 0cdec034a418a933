//! A packer as the method that is asked where the search gets no further.

use remat_plan::{Buffer, BufferId};
use remat_planner::place::{Opinion, Question, Second};
use remat_solve::{Packer, Packing, SolveControl};
use typed_index_collections::TiVec;

use crate::nameless::named;

/// The share of the time that is left which the packer has.
const SHARE: f64 = 0.5;
/// The most steps that it has: what ends it where time is not limited.
const STEPS: u64 = 400_000;

/// Somebody to ask.
pub(crate) struct Asked<'a> {
    pub(crate) packer: &'a dyn Packer,
    pub(crate) control: &'a SolveControl<'a>,
}

impl Second for Asked<'_> {
    fn ask(&mut self, question: &Question<'_>) -> Option<Opinion> {
        let buffers = question.buffers.iter().enumerate();
        let buffers: TiVec<BufferId, Buffer> = buffers.map(|(at, buffer)| named(at, buffer)).collect();
        let start: TiVec<BufferId, u64> = question.start.iter().copied().collect();
        let packing = Packing {
            buffers: &buffers,
            heights: question.heights.clone(),
            start: &start,
        };
        let mut control = self.control.share_of_time(SHARE);
        control.step_limit = Some(STEPS);
        let packed = self.packer.pack(&packing, &control)?;
        Some(Opinion {
            offsets: packed.offsets.map(|offsets| offsets.raw),
            bound: packed.bound,
        })
    }
}
