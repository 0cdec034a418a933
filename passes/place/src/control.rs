//! The limits of a search, counted in tries.

use std::time::Duration;

use remat_plan::StopReason;
use remat_solve::SolveControl;

/// Counts tries against the limits, and remembers why the search stopped.
pub(crate) struct Meter<'a> {
    limits: remat_solve::Meter<'a>,
    tries: u64,
}

/// So often the clock is read. A try takes up to about a millisecond on the largest instances that are searched.
const INTERVAL: u64 = 16;

impl<'a> Meter<'a> {
    pub(crate) fn new(control: &'a SolveControl<'a>) -> Self {
        Self {
            limits: remat_solve::Meter::every(control, INTERVAL),
            tries: 0,
        }
    }

    pub(crate) fn tries(&self) -> u64 {
        self.tries
    }

    /// Counts tries.
    pub(crate) fn tick(&mut self, tries: u64) {
        self.tries += tries;
    }

    /// Whether to stop. Cheap enough to be asked at every try.
    pub(crate) fn is_over(&mut self) -> bool {
        self.limits.is_over(self.tries)
    }

    /// Whether to stop, where what comes after that takes this time.
    pub(crate) fn is_over_within(&mut self, time: Duration) -> bool {
        self.limits.is_over_within(self.tries, time)
    }

    /// Why the search stopped: convergence where no limit did it.
    pub(crate) fn reason(&self) -> StopReason {
        self.limits.reason().unwrap_or(StopReason::Converged)
    }
}
