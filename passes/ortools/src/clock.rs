//! The limits of a solve, and how what runs under them ends.

use web_time::{Duration, Instant};

use remat_solve::SolveControl;

/// How long a library may take to stop once the caller said so; then its thread is left behind.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// Why a solver ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
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
pub struct Clock<'a> {
    /// The caller's limits and wishes.
    pub control: &'a SolveControl<'a>,
    started: Instant,
    /// The deadline of a part of the work; never after that of the caller.
    deadline: Option<Instant>,
}

impl<'a> Clock<'a> {
    /// The limits of a call that begins now.
    #[must_use]
    pub fn new(control: &'a SolveControl<'a>) -> Self {
        Self {
            control,
            started: Instant::now(),
            deadline: control.deadline,
        }
    }

    /// The same clock with a share of what is left of the time.
    #[must_use]
    pub fn share(&self, share: f64) -> Self {
        let part = self.left().map(|left| Instant::now() + left.mul_f64(share));
        Self {
            control: self.control,
            started: self.started,
            deadline: part,
        }
    }

    /// The same clock with so much of the time at most.
    #[must_use]
    pub fn within(&self, most: Duration) -> Self {
        let part = Instant::now().checked_add(most);
        Self {
            control: self.control,
            started: self.started,
            deadline: self.deadline.into_iter().chain(part).min(),
        }
    }

    /// When the time is over.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Time until the deadline.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        Some(self.deadline?.saturating_duration_since(Instant::now()))
    }

    /// Whether the deadline passed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether the caller asked to stop.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.control.is_cancelled()
    }

    /// Why to stop now, if so.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
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

    /// When the call began.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Time since the call began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
