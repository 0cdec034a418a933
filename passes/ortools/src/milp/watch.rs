//! A foreign solver in a thread of its own, so that the caller can watch the clock.
//!
//! Where the library does not return soon after it was told to stop, its thread is left behind: a deadline is a promise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use web_time::{Duration, Instant};

use super::highs_capi::Outcome;
use crate::clock::{Clock, Ended, PATIENCE};

/// How often the clock is looked at.
const POLL: Duration = Duration::from_millis(10);

/// What a solver tells while it works.
pub(crate) enum Message {
    /// A better solution, and a bound on all.
    Improved(Vec<f64>, f64),
    /// How it ended, and a bound on all solutions.
    Done(Outcome, f64),
}

/// Tells a solver to stop.
#[derive(Default)]
pub(crate) struct Stop {
    raised: AtomicBool,
}

impl Stop {
    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}

/// A solve under way.
pub(crate) struct Solve {
    receive: Receiver<Message>,
    stop: Arc<Stop>,
}

impl Solve {
    /// Runs `task` in a thread.
    pub(crate) fn start(task: impl FnOnce(&Sender<Message>, &Stop) -> (Outcome, f64) + Send + 'static) -> Self {
        let (send, receive) = channel();
        let stop = Arc::new(Stop::default());
        let shared = Arc::clone(&stop);
        std::thread::spawn(move || {
            let (outcome, bound) = task(&send, &shared);
            // Nobody listens any more where the thread was left behind.
            let _ = send.send(Message::Done(outcome, bound));
        });
        Self { receive, stop }
    }

    /// Waits for the end, or until the clock says so; `improved` is told of solutions with the bound at that time. Returns how the
    /// solve ended, and the bound.
    pub(crate) fn finish(self, clock: &Clock<'_>, improved: &mut dyn FnMut(&[f64], f64)) -> (Ended, f64) {
        let mut give_up: Option<(Instant, Ended)> = None;
        let mut known = f64::NEG_INFINITY;
        loop {
            match self.receive.recv_timeout(POLL) {
                Ok(Message::Improved(solution, bound)) => {
                    known = known.max(bound);
                    improved(&solution, known);
                    continue;
                }
                Ok(Message::Done(outcome, bound)) => {
                    let ended = match outcome {
                        Outcome::Optimal => Ended::Optimal,
                        Outcome::Infeasible => Ended::Infeasible,
                        Outcome::Failed => Ended::Failed,
                        Outcome::Stopped => clock
                            .ended()
                            .or(give_up.map(|(_, ended)| ended))
                            .unwrap_or(Ended::TimeLimit),
                    };
                    return (ended, known.max(bound));
                }
                Err(RecvTimeoutError::Disconnected) => return (Ended::Failed, known),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            match (give_up, clock.ended()) {
                (Some((when, ended)), _) if now >= when => {
                    tracing::info!("a solver does not stop in time, its thread is left behind");
                    return (ended, known);
                }
                (None, Some(ended)) => {
                    self.stop.raised.store(true, Ordering::Relaxed);
                    let grace = if ended == Ended::Cancelled {
                        PATIENCE
                    } else {
                        clock.grace()
                    };
                    give_up = Some((now + grace, ended));
                }
                (Some(_) | None, _) => {}
            }
        }
    }
}
