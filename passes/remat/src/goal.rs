//! What a plan is to be good at, and the second memory it may use for that.

use std::fmt;

use remat_plan::{Deadline, Objective, PagingMode, Problem};

/// What a plan is to be good at within its budget. The default is least time without deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Goal {
    /// What is minimized.
    pub objective: Objective,
    /// When the plan has to have ended, transfers included.
    pub deadline: Option<Deadline>,
}

impl Goal {
    /// States the goal in the problem. A problem read from a file keeps what the goal leaves open.
    pub(crate) fn apply(&self, problem: &mut Problem) {
        if self.objective != Objective::default() {
            problem.objective = self.objective;
        }
        if let Some(deadline) = self.deadline {
            problem.deadline = Some(deadline.nanoseconds(problem.total_duration()));
        }
    }
}

/// The use of a device's second memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecondMemory {
    /// Nothing moves.
    Unused,
    /// Storages may move.
    Used {
        /// Who moves them.
        mode: PagingMode,
        /// Bytes it holds; absent: what the device says.
        capacity: Option<u64>,
    },
}

impl fmt::Display for SecondMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unused => f.write_str("off"),
            Self::Used { mode, capacity } => {
                f.write_str(&format!("{mode:?}").to_lowercase())?;
                capacity.map_or(Ok(()), |bytes| write!(f, " with {bytes} bytes"))
            }
        }
    }
}
