//! Blocks that the checker has accepted.

use remat_plan::{BlockPlacement, Plan, Problem};
use remat_verify::{Rejection, Replay, check_block};

/// Where the storages of a plan lie; the checker has accepted it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedPlan {
    /// The block and the offsets.
    pub placement: BlockPlacement,
    /// The largest sum of bytes at one step, which no block is smaller than.
    pub load: u64,
}

impl PlacedPlan {
    /// A placement of a plan, past the checker.
    ///
    /// # Errors
    /// [`Rejection`] where the checker does not accept it.
    pub(crate) fn of(
        problem: &Problem,
        plan: &Plan,
        replay: &Replay,
        placement: BlockPlacement,
    ) -> Result<Self, Rejection> {
        let load = check_block(problem, plan, replay, &placement)?.load;
        Ok(Self { placement, load })
    }

    /// The size of the block.
    #[must_use]
    pub fn block(&self) -> u64 {
        self.placement.block.bytes
    }
}
