//! When to stop: counted in tries, and by whoever watches.

use core::time::Duration;

/// Ends a search. A *try* is one buffer at one offset, or as much other work.
pub trait Limits {
    /// Whether to stop after so many tries in total. Asked at every try, so it has to be quick; once it said so, it says so again.
    fn is_over(&mut self, tries: u64) -> bool;

    /// Whether to stop where what comes next takes this time. Without a clock that is no reason of its own.
    fn is_over_within(&mut self, tries: u64, time: Duration) -> bool {
        let _ = time;
        self.is_over(tries)
    }

    /// Time since any moment; always 0 without a clock.
    fn elapsed(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// So often somebody is asked whether to stop.
const INTERVAL: u64 = 16;

/// Ends a search after a number of tries, or soon after `should_stop` says so, which is asked every 16 tries.
pub struct Tries<F> {
    most: u64,
    should_stop: F,
    next_look: u64,
    is_over: bool,
}

impl<F: FnMut() -> bool> Tries<F> {
    /// Both limits.
    pub fn new(most: u64, should_stop: F) -> Self {
        Self {
            most,
            should_stop,
            next_look: 0,
            is_over: false,
        }
    }
}

impl Tries<fn() -> bool> {
    /// No limit but a number of tries.
    #[must_use]
    pub fn at_most(most: u64) -> Self {
        Self::new(most, || false)
    }
}

impl<F: FnMut() -> bool> Limits for Tries<F> {
    fn is_over(&mut self, tries: u64) -> bool {
        if !self.is_over && tries >= self.next_look {
            self.next_look = tries.saturating_add(INTERVAL);
            self.is_over = (self.should_stop)();
        }
        self.is_over |= tries >= self.most;
        self.is_over
    }
}

/// Counts tries against limits.
pub(crate) struct Meter<'a> {
    limits: &'a mut dyn Limits,
    tries: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(limits: &'a mut dyn Limits) -> Self {
        Self { limits, tries: 0 }
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

    /// Whether to stop after so many tries in total.
    pub(crate) fn is_over_at(&mut self, tries: u64) -> bool {
        self.limits.is_over(tries)
    }

    /// Whether to stop, where what comes after that takes this time.
    pub(crate) fn is_over_within(&mut self, time: Duration) -> bool {
        self.limits.is_over_within(self.tries, time)
    }

    /// Time since any moment.
    pub(crate) fn elapsed(&mut self) -> Duration {
        self.limits.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_end_at_their_number_or_when_somebody_says_so() {
        let mut limits = Tries::at_most(10);
        assert!(!limits.is_over(9) && limits.is_over(10));
        let mut asked = 0;
        let mut limits = Tries::new(1_000, || {
            asked += 1;
            asked == 2
        });
        assert!(!limits.is_over(0) && !limits.is_over(1), "nobody is asked at every try");
        assert!(limits.is_over(INTERVAL) && limits.is_over(INTERVAL + 1));
    }
}
