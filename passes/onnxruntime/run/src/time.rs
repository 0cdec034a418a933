//! Time of runs.

use std::time::{Duration, Instant};

/// The time for all runs but the first.
pub(crate) struct Rest {
    end: Option<Instant>,
    run: Duration,
}

impl Rest {
    /// It begins now; `run_ns` is what a run takes.
    pub(crate) fn new(time: Option<Duration>, run_ns: u64) -> Self {
        Self {
            end: time.and_then(|time| Instant::now().checked_add(time)),
            run: Duration::from_nanos(run_ns),
        }
    }

    /// Whether another run ends in time.
    pub(crate) fn has_room(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() + self.run <= end)
    }
}

/// Nanoseconds since `start`.
pub(crate) fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Sorts the times; the one in the middle, the lower of two: what disturbs a run only makes it longer.
pub(crate) fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}
