//! The limits of a search, counted in tries.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use remat_plan::StopReason;
use remat_solve::SolveControl;

/// Counts tries against the limits, and remembers why the search stopped.
pub(crate) struct Meter<'a> {
    control: &'a SolveControl<'a>,
    tries: u64,
    next_look: u64,
    stopped: Option<StopReason>,
}

/// So often the clock is read. A try takes up to about a millisecond on the largest instances that are searched.
const INTERVAL: u64 = 16;

impl<'a> Meter<'a> {
    pub(crate) fn new(control: &'a SolveControl<'a>) -> Self {
        Self {
            control,
            tries: 0,
            next_look: 0,
            stopped: None,
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
        if self.stopped.is_some() {
            return true;
        }
        if self.control.step_limit.is_some_and(|limit| self.tries >= limit) {
            self.stopped = Some(StopReason::StepLimit);
            return true;
        }
        if self.tries < self.next_look {
            return false;
        }
        self.next_look = self.tries + INTERVAL;
        if self.control.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            self.stopped = Some(StopReason::Cancelled);
        } else if self.control.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.stopped = Some(StopReason::TimeLimit);
        }
        self.stopped.is_some()
    }

    /// Whether to stop, where what comes after that takes this time.
    pub(crate) fn is_over_within(&mut self, time: Duration) -> bool {
        let looks = self.tries >= self.next_look;
        let is_near = |deadline: Instant| deadline.saturating_duration_since(Instant::now()) <= time;
        if !self.is_over() && looks && self.control.deadline.is_some_and(is_near) {
            self.stopped = Some(StopReason::TimeLimit);
        }
        self.stopped.is_some()
    }

    /// Why the search stopped: convergence where no limit did it.
    pub(crate) fn reason(&self) -> StopReason {
        self.stopped.unwrap_or(StopReason::Converged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_meter_says_why_it_stopped() {
        let control = SolveControl::new().step_limit(10);
        let mut meter = Meter::new(&control);
        meter.tick(9);
        assert!(!meter.is_over());
        meter.tick(1);
        assert!(meter.is_over());
        assert_eq!(meter.reason(), StopReason::StepLimit);

        let control = SolveControl::new().time_limit(Duration::ZERO);
        let mut meter = Meter::new(&control);
        assert!(meter.is_over());
        assert_eq!(meter.reason(), StopReason::TimeLimit);

        let control = SolveControl::new().time_limit(Duration::from_secs(3600));
        let mut meter = Meter::new(&control);
        assert!(!meter.is_over_within(Duration::from_secs(60)));
        meter.tick(INTERVAL);
        assert!(meter.is_over_within(Duration::from_secs(3600)));
        assert_eq!(meter.reason(), StopReason::TimeLimit);

        let flag = AtomicBool::new(false);
        let control = SolveControl::new().cancel(&flag);
        let mut meter = Meter::new(&control);
        assert!(!meter.is_over());
        assert_eq!(meter.reason(), StopReason::Converged);
        flag.store(true, Ordering::Relaxed);
        assert!(!meter.is_over(), "the flag is not read at every try");
        meter.tick(INTERVAL);
        assert!(meter.is_over());
        assert_eq!(meter.reason(), StopReason::Cancelled);
    }
}
