//! A plan that was found, and the model that it is for.

use remat::plan::BudgetSpec;
use remat::{Model, PlacedPlan, Solution};

/// A plan, and the model that it is for: the one that was opened, or the same with chains in tiles.
pub(crate) struct Planned {
    pub(crate) tiled: Option<Model>,
    pub(crate) solution: Solution,
}

impl Planned {
    pub(crate) fn duration(&self) -> u64 {
        self.solution.replay.duration
    }

    /// This one, or the other one where it is better: of a lower peak where the lowest is sought, else faster.
    pub(crate) fn or_better(self, other: Option<Self>, budget: BudgetSpec) -> Self {
        let rank = |one: &Self| match budget {
            BudgetSpec::Min => (one.solution.replay.peak, one.duration()),
            _ => (one.duration(), one.solution.replay.peak),
        };
        match other {
            Some(other) if rank(&other) < rank(&self) => other,
            _ => self,
        }
    }
}

/// Bytes of the block of a plan.
pub(crate) fn block(solution: &Solution) -> u64 {
    solution
        .placement
        .as_ref()
        .map_or(solution.replay.peak, PlacedPlan::block)
}
