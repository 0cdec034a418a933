//! How far a command is: what is being done, how much of the limit is used, and the best plan so far.

use std::fmt::{self, Write as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::units;

/// How far a command is.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Time since it began.
    pub elapsed: Duration,
    /// How much of the limit is used.
    pub used: Duration,
    /// The time that there is, where there is a limit.
    pub limit: Option<Duration>,
    /// What is being done.
    pub doing: String,
    /// The best plan so far.
    pub best: Option<Best>,
}

/// The best plan so far.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Best {
    /// Its peak in bytes.
    pub peak: u64,
    /// Time beyond that of the model as it is, in per cent; absent before that is known.
    pub overhead: Option<f64>,
    /// What no plan has less of, in per cent; absent where no more is known than that every op runs once.
    pub bound: Option<f64>,
}

/// What a line shows.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) started: Instant,
    /// The time that there is for everything that counts.
    pub(super) limit: Option<Duration>,
    pub(super) state: Mutex<State>,
    /// Told when the command is over.
    pub(super) ended: Condvar,
}

#[derive(Debug)]
pub(crate) struct State {
    /// What is being done, and since when.
    pub(super) doing: String,
    pub(super) since: Instant,
    /// How much of the limit was used then, and whether more is used now.
    pub(super) used: Duration,
    pub(super) counts: bool,
    /// The best plan so far.
    pub(super) best: Option<Best>,
    /// Duration without rematerialization, once it is known.
    pub(super) baseline: Option<u64>,
    pub(super) is_over: bool,
}

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peak {}", units::bytes(self.peak))?;
        if let Some(overhead) = self.overhead {
            write!(f, ", overhead {overhead:+.3} %")?;
        }
        self.bound.map_or(Ok(()), |bound| write!(f, ", bound {bound:+.3} %"))
    }
}

impl State {
    /// Nothing was done yet.
    pub(super) fn at(now: Instant) -> Self {
        Self {
            doing: String::new(),
            since: now,
            used: Duration::ZERO,
            counts: false,
            best: None,
            baseline: None,
            is_over: false,
        }
    }

    pub(super) fn used_now(&self) -> Duration {
        if self.counts {
            self.used + self.since.elapsed()
        } else {
            self.used
        }
    }
}

impl Shared {
    /// How far the command is; `None` where it is over.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let state = self.state();
        (!state.is_over).then(|| Snapshot {
            elapsed: self.started.elapsed(),
            used: self.used(&state),
            limit: self.limit,
            doing: state.doing.clone(),
            best: state.best,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn text(&self, state: &State) -> String {
        let mut text = format!("{} s", self.started.elapsed().as_secs());
        if let Some(limit) = self.limit {
            // Seconds as a clock shows them.
            let used = self.used(state).as_secs();
            let _ = write!(text, ", {used} of {} s", limit.as_secs_f64().ceil());
        }
        let _ = write!(text, ": {}", state.doing);
        if let Some(best) = &state.best {
            let _ = write!(text, "; {best}");
        }
        text
    }

    /// How much of the limit is used now.
    fn used(&self, state: &State) -> Duration {
        state.used_now().min(self.limit.unwrap_or(Duration::MAX))
    }
}
