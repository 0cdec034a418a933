//! How long a placement may be sought, and how hard.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use remat_plan::{Placement, StopReason};

/// Limits and wishes of the caller. The default has no limit but convergence, and seed 0.
///
/// With a limit of tries or convergence as what ends the search, the result depends on nothing but the buffers, the seed, the limit and the
/// warm start. With a deadline it also depends on the speed of the machine.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct PlaceControl<'a> {
    /// When to stop.
    pub deadline: Option<Instant>,
    /// How often a buffer may be tried at an offset.
    pub try_limit: Option<u64>,
    /// Seed of all random choices.
    pub seed: u64,
    /// A placement to start from; ignored where it is not valid.
    pub warm_start: Option<&'a Placement>,
    /// Stops the search soon after it becomes `true`; the best placement so far is returned.
    pub cancel: Option<&'a AtomicBool>,
}

impl<'a> PlaceControl<'a> {
    /// No limit but convergence.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops `limit` from now. A limit beyond the end of the clock is none.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.deadline = Instant::now().checked_add(limit);
        self
    }

    /// Stops after this many tries.
    #[must_use]
    pub fn try_limit(mut self, tries: u64) -> Self {
        self.try_limit = Some(tries);
        self
    }

    /// Seeds all random choices.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts from a placement.
    #[must_use]
    pub fn warm_start(mut self, placement: &'a Placement) -> Self {
        self.warm_start = Some(placement);
        self
    }

    /// Watches a flag.
    #[must_use]
    pub fn cancel(mut self, flag: &'a AtomicBool) -> Self {
        self.cancel = Some(flag);
        self
    }
}

/// Counts tries against the limits, and remembers why the search stopped.
pub(crate) struct Meter<'a> {
    control: &'a PlaceControl<'a>,
    tries: u64,
    next_look: u64,
    stopped: Option<StopReason>,
}

/// So often the clock is read. A try takes up to about a millisecond on the largest instances that are searched.
const INTERVAL: u64 = 16;

impl<'a> Meter<'a> {
    pub(crate) fn new(control: &'a PlaceControl<'a>) -> Self {
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
        if self.control.try_limit.is_some_and(|limit| self.tries >= limit) {
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

    /// Why the search stopped: convergence where no limit did it.
    pub(crate) fn reason(&self) -> StopReason {
        self.stopped.unwrap_or(StopReason::Converged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_says_why_it_stopped() {
        let control = PlaceControl::new().try_limit(10);
        let mut meter = Meter::new(&control);
        meter.tick(9);
        assert!(!meter.is_over());
        meter.tick(1);
        assert!(meter.is_over());
        assert_eq!(meter.reason(), StopReason::StepLimit);

        let control = PlaceControl::new().time_limit(Duration::ZERO);
        let mut meter = Meter::new(&control);
        assert!(meter.is_over());
        assert_eq!(meter.reason(), StopReason::TimeLimit);

        let flag = AtomicBool::new(false);
        let control = PlaceControl::new().cancel(&flag);
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
