//! The limits of a search, with a clock.

use web_time::{Duration, Instant};

use remat_plan::StopReason;
use remat_planner::Limits;
use remat_solve::{Meter, SolveControl};

/// So often the clock is read. A try takes up to about a millisecond on the largest instances that are searched.
const INTERVAL: u64 = 16;

/// Ends the search as a control says, and remembers why.
pub(crate) struct Control<'a> {
    meter: Meter<'a>,
    started: Instant,
}

impl<'a> Control<'a> {
    pub(crate) fn new(control: &'a SolveControl<'a>) -> Self {
        Self {
            meter: Meter::every(control, INTERVAL),
            started: Instant::now(),
        }
    }

    /// Why the search stopped: convergence where no limit did it.
    pub(crate) fn reason(&self) -> StopReason {
        self.meter.reason().unwrap_or(StopReason::Converged)
    }
}

impl Limits for Control<'_> {
    fn is_over(&mut self, tries: u64) -> bool {
        self.meter.is_over(tries)
    }

    fn is_over_within(&mut self, tries: u64, time: Duration) -> bool {
        self.meter.is_over_within(tries, time)
    }

    fn elapsed(&mut self) -> Duration {
        self.started.elapsed()
    }
}
