//! The limits of a solve, and how what runs under them ends.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use remat_solve::SolveControl;

/// How long a library may take to stop once the caller said so; then its thread is left behind.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// Why a solver ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// The solution is optimal.
    Optimal,
    /// There is no solution.
    Infeasible,
    /// The deadline passed.
    TimeLimit,
    /// As many conflicts were met as were allowed.
    StepLimit,
    /// The caller asked to stop.
    Cancelled,
    /// The library rejected the model or gave no answer. The log says why.
    Failed,
    /// What the library says of rounded numbers could not be shown for the exact ones.
    Unproved,
}

/// The caller's limits, and how much of them is left.
pub(crate) struct Clock<'a> {
    pub(crate) control: &'a SolveControl<'a>,
    started: Instant,
    /// The deadline of a part of the work; never after that of the caller.
    deadline: Option<Instant>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(control: &'a SolveControl<'a>) -> Self {
        Self {
            control,
            started: Instant::now(),
            deadline: control.deadline,
        }
    }

    /// The same clock with a share of what is left of the time.
    pub(crate) fn share(&self, share: f64) -> Self {
        let part = self.left().map(|left| Instant::now() + left.mul_f64(share));
        Self {
            control: self.control,
            started: self.started,
            deadline: part,
        }
    }

    /// The same clock with so much of the time at most.
    pub(crate) fn within(&self, most: Duration) -> Self {
        let part = Instant::now().checked_add(most);
        Self {
            control: self.control,
            started: self.started,
            deadline: self.deadline.into_iter().chain(part).min(),
        }
    }

    /// When the time is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time until the deadline.
    pub(crate) fn left(&self) -> Option<Duration> {
        Some(self.deadline?.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    pub(crate) fn cancelled(&self) -> bool {
        self.control.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Why to stop now, if so.
    pub(crate) fn ended(&self) -> Option<Ended> {
        if self.cancelled() {
            Some(Ended::Cancelled)
        } else {
            self.is_over().then_some(Ended::TimeLimit)
        }
    }

    /// By how much the deadline may be overrun.
    pub(crate) fn grace(&self) -> Duration {
        let given = self.deadline.map_or(Duration::ZERO, |deadline| {
            deadline.saturating_duration_since(self.started)
        });
        given.mul_f64(0.03)
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
