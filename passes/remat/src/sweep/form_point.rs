//! A plan of a front for the model in another form: in tiles, or with plans of its subgraphs.

use remat_plan::{PlanFile, Tiling};

use crate::{Model, Overhead, Solution};

/// A plan for one budget with the model in another form.
#[derive(Clone, Debug)]
pub struct FormPoint {
    /// Bytes at the peak.
    pub peak: u64,
    /// Its time and that of the original model.
    pub overhead: Overhead,
    /// The plan, which states the form: fused chains that run tile by tile, plans of subgraphs.
    pub plan: PlanFile,
}

impl FormPoint {
    pub(super) fn of(model: &Model, solution: &Solution) -> Self {
        Self {
            peak: solution.replay.peak,
            overhead: solution.overhead,
            plan: solution.plan_file(model),
        }
    }

    /// The fused chains that run tile by tile, where there are any.
    #[must_use]
    pub fn tiling(&self) -> Option<&Tiling> {
        self.plan.setup.as_ref()?.tiling.as_ref()
    }
}
