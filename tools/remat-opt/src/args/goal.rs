//! What a plan is to be good at, and the second memory it may use, on the command line.

use clap::Args;
use remat::plan::{Deadline, Objective, PagingMode, PlanFile, parse_bytes};
use remat::poet::PagingSearch;
use remat::solver::Solver;
use remat::{Goal, Model, SecondMemory};

use super::{Choice, GOAL, SECOND_MEMORY};

const OBJECTIVES: Choice<Objective> = Choice(&[
    ("time", Objective::Time, "Least time"),
    ("energy", Objective::Energy, "Least energy"),
    ("peak", Objective::Peak, "Lowest peak; as `time` within a budget"),
]);

const PAGING: Choice<SecondMemory> = Choice(&[
    ("off", SecondMemory::Unused, "Nothing moves"),
    ("sync", moved(PagingMode::Sync), "Transfers and runs take turns"),
    ("dma", moved(PagingMode::Dma), "Transfers and runs overlap"),
]);

const fn moved(mode: PagingMode) -> SecondMemory {
    SecondMemory::Used { mode, capacity: None }
}

/// What a plan is to be good at.
#[derive(Debug, Args)]
pub(crate) struct GoalArgs {
    /// What the plan minimizes within the budget [default: time].
    #[arg(long, value_name = "GOAL", value_parser = OBJECTIVES, help_heading = GOAL, hide_short_help = true)]
    objective: Option<Objective>,
    /// Longest duration of the plan, transfers included: a multiple of the model's own time, `1.5x`, or a time, `40ms`.
    #[arg(long, value_name = "TIME", help_heading = GOAL, hide_short_help = true)]
    deadline: Option<Deadline>,
    /// Keep the budget by `--paging` alone, without recomputes.
    #[arg(long, conflicts_with = "solver", help_heading = SECOND_MEMORY, hide_short_help = true)]
    no_remat: bool,
}

/// Where a plan may move results.
#[derive(Debug, Args)]
pub(crate) struct PagingArgs {
    /// Move results to a second memory and back: `off`, `sync` or `dma` [default: off].
    ///
    /// The second memory is that of the device. With `sync` the processor moves results, with `dma` the bus does while the processor runs.
    #[arg(long = "paging", value_name = "MODE", value_parser = PAGING, hide_possible_values = true, help_heading = SECOND_MEMORY, hide_short_help = true)]
    mode: Option<SecondMemory>,
    /// Capacity of the second memory, `32GB` for instance [default: that of the device].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = SECOND_MEMORY, hide_short_help = true)]
    tier_capacity: Option<u64>,
}

impl GoalArgs {
    /// What the plan is to be good at.
    pub(crate) fn goal(&self) -> Goal {
        Goal {
            objective: self.objective.unwrap_or_default(),
            deadline: self.deadline,
        }
    }

    /// Checks that a plan was sought for what is asked for.
    pub(crate) fn check_plan(&self, plan: &PlanFile, model: &Model) -> Result<(), remat::Error> {
        Goal::check_plan((self.objective, self.deadline), plan, model.baseline().duration)
    }

    /// The solver to use where the caller names this one.
    pub(crate) fn solver(&self, named: &str) -> String {
        let solver = if self.no_remat {
            PagingSearch::TRANSFERS.name()
        } else {
            named
        };
        solver.to_owned()
    }
}

impl PagingArgs {
    /// The second memory, where something is said of it.
    pub(crate) fn second_memory(&self) -> Option<SecondMemory> {
        match self.mode? {
            SecondMemory::Unused => Some(SecondMemory::Unused),
            SecondMemory::Used { mode, .. } => {
                let capacity = self.tier_capacity;
                Some(SecondMemory::Used { mode, capacity })
            }
        }
    }
}
