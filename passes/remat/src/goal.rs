//! What a plan is to be good at, and the second memory it may use for that.

use std::fmt;
use std::str::FromStr;

use remat_plan::{Objective, PagingMode, Problem};
use remat_profile::Device;
use thiserror::Error;

use crate::Error;

/// A deadline on the command line: `1.5x` or `40ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// So many millionths of the time of running every op once.
    Factor(u64),
    /// So many nanoseconds.
    Nanoseconds(u64),
}

/// The text is not a deadline.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a deadline: write a multiple of the model's own time (`1.5x`), or a time (`40ms`, `2s`, `500us`)"
)]
pub struct DeadlineParseError(String);

impl Deadline {
    /// In nanoseconds, for a model that takes so long by itself.
    #[must_use]
    pub fn nanoseconds(self, baseline: u64) -> u64 {
        match self {
            Self::Nanoseconds(nanoseconds) => nanoseconds,
            Self::Factor(millionths) => {
                let time = u128::from(baseline) * u128::from(millionths) / 1_000_000;
                u64::try_from(time).unwrap_or(u64::MAX)
            }
        }
    }
}

impl FromStr for Deadline {
    type Err = DeadlineParseError;

    fn from_str(text: &str) -> Result<Self, DeadlineParseError> {
        let error = || DeadlineParseError(text.to_owned());
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(error)?;
        let (number, unit) = trimmed.split_at(split);
        let number: f64 = number.parse().map_err(|_| error())?;
        let scaled = |scale: f64| {
            let value = (number * scale).round();
            if value < 1e18 { Ok(value as u64) } else { Err(error()) }
        };
        match unit.trim() {
            "x" => scaled(1e6).map(Self::Factor),
            "ns" => scaled(1.0).map(Self::Nanoseconds),
            "us" | "µs" => scaled(1e3).map(Self::Nanoseconds),
            "ms" => scaled(1e6).map(Self::Nanoseconds),
            "s" => scaled(1e9).map(Self::Nanoseconds),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factor(millionths) => write!(f, "{}x", *millionths as f64 / 1e6),
            Self::Nanoseconds(nanoseconds) => write!(f, "{nanoseconds}ns"),
        }
    }
}

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
pub struct SecondMemory {
    /// Who moves storages.
    pub mode: PagingMode,
    /// Bytes it holds; absent: what the device says.
    pub capacity: Option<u64>,
}

impl SecondMemory {
    /// Lets plans use the second memory that the problem has already, else that of the device.
    pub(crate) fn apply(self, problem: &mut Problem, device: Option<&Device>) -> Result<(), Error> {
        let found = problem.paging.or_else(|| device?.second_memory);
        let Some(mut paging) = found else {
            let with_one = Device::presets().iter().filter(|device| device.second_memory.is_some());
            let known: Vec<_> = with_one.map(|device| format!("`{}`", device.name)).collect();
            return Err(Error::NoSecondMemory {
                device: device.map(|device| device.name.clone()),
                known: known.join(", "),
            });
        };
        paging.mode = self.mode;
        paging.capacity = self.capacity.or(paging.capacity);
        problem.paging = Some(paging);
        Ok(())
    }
}

/// Whether the problem is one for the solvers with paging.
pub(crate) fn is_special(problem: &Problem) -> bool {
    problem.paging.is_some() || problem.deadline.is_some() || problem.objective != Objective::Time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_and_times_are_deadlines() {
        for (text, deadline) in [
            ("1.5x", Deadline::Factor(1_500_000)),
            ("40ms", Deadline::Nanoseconds(40_000_000)),
            ("2 s", Deadline::Nanoseconds(2_000_000_000)),
            ("7us", Deadline::Nanoseconds(7_000)),
        ] {
            assert_eq!(text.parse(), Ok(deadline), "{text}");
        }
        assert_eq!(Deadline::Factor(1_500_000).nanoseconds(7), 10);
        assert_eq!(Deadline::Factor(u64::MAX).nanoseconds(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_is_no_deadline_is_rejected() {
        for text in ["", "x", "5", "-1x", "soon", "1.2.3s", "99999999999999999s"] {
            assert!(text.parse::<Deadline>().is_err(), "{text}");
        }
    }
}
