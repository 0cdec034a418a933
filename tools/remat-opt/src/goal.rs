//! What a plan is to be good at, and the second memory it may use, on the command line.

use clap::{Args, ValueEnum};
use remat::plan::{Deadline, Objective, PagingMode, PlanFile, parse_bytes};
use remat::solver::Solver;
use remat::solver::paging::PagingSearch;
use remat::{Goal, Model, SecondMemory};

use crate::cli::{GOAL, SECOND_MEMORY};

/// What a plan is to be good at.
#[derive(Debug, Args)]
pub(crate) struct GoalArgs {
    /// What the plan is to be good at, within the budget [default: time].
    #[arg(long, value_name = "GOAL", help_heading = GOAL, hide_short_help = true)]
    objective: Option<ObjectiveArg>,
    /// When the plan has to have ended: a multiple of the model's own time, `1.5x`, or a time, `40ms`.
    ///
    /// Transfers count.
    #[arg(long, value_name = "TIME", help_heading = GOAL, hide_short_help = true)]
    deadline: Option<Deadline>,
    /// Keep the budget by `--paging` alone: nothing is computed twice.
    #[arg(long, conflicts_with = "solver", help_heading = SECOND_MEMORY, hide_short_help = true)]
    no_remat: bool,
}

/// Where a plan may move results.
#[derive(Debug, Args)]
pub(crate) struct PagingArgs {
    /// Move results to a second memory and back: `off`, `sync` or `dma` [default: off].
    ///
    /// The memory is that of the device. With `sync` the processor moves them, with `dma` the bus does so beside it.
    #[arg(long = "paging", value_name = "MODE", hide_possible_values = true, help_heading = SECOND_MEMORY, hide_short_help = true)]
    mode: Option<PagingArg>,
    /// What the second memory holds, `32GB` for instance [default: what the device says].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = SECOND_MEMORY, hide_short_help = true)]
    tier_capacity: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ObjectiveArg {
    /// Least time.
    Time,
    /// Least energy.
    Energy,
    /// Lowest peak; as `time` within a budget.
    Peak,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PagingArg {
    /// Nothing moves.
    Off,
    /// Transfers and runs take turns.
    Sync,
    /// Transfers and runs overlap.
    Dma,
}

impl GoalArgs {
    /// What the plan is to be good at.
    pub(crate) fn goal(&self) -> Goal {
        Goal {
            objective: self.objective().unwrap_or_default(),
            deadline: self.deadline,
        }
    }

    fn objective(&self) -> Option<Objective> {
        self.objective.map(|objective| match objective {
            ObjectiveArg::Time => Objective::Time,
            ObjectiveArg::Energy => Objective::Energy,
            ObjectiveArg::Peak => Objective::Peak,
        })
    }

    /// Checks that a plan was sought for what is asked for.
    pub(crate) fn check_plan(&self, plan: &PlanFile, model: &Model) -> Result<(), remat::Error> {
        Goal::check_plan((self.objective(), self.deadline), plan, model.baseline().duration)
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
        let used = |mode| SecondMemory::Used {
            mode,
            capacity: self.tier_capacity,
        };
        self.mode.map(|mode| match mode {
            PagingArg::Off => SecondMemory::Unused,
            PagingArg::Sync => used(PagingMode::Sync),
            PagingArg::Dma => used(PagingMode::Dma),
        })
    }
}
