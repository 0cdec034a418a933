//! A plan of a front in tiles.

use remat_plan::{PlanFile, Tiling};

use crate::{Model, Overhead, Solution};

/// A plan for one budget with the model in tiles.
#[derive(Clone, Debug)]
pub struct TiledPoint {
    /// The stretches.
    pub tiling: Tiling,
    /// Bytes at the peak.
    pub peak: u64,
    /// Its time and that of the model as it came.
    pub overhead: Overhead,
    /// The plan, which states the stretches.
    pub plan: PlanFile,
}

impl TiledPoint {
    pub(super) fn of(model: &Model, solution: &Solution) -> Option<Self> {
        Some(Self {
            tiling: model.tiling()?.clone(),
            peak: solution.replay.peak,
            overhead: solution.overhead,
            plan: solution.plan_file(model),
        })
    }
}
