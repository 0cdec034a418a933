//! Mixed-integer programs on HiGHS.

use std::ffi::c_int;
use std::sync::mpsc::Sender;

use super::Program;
use super::highs_capi::{Highs, Outcome, Watcher};
use super::watch::{Message, Solve, Stop};
use crate::clock::Clock;

/// What a solve stops at, apart from the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Solutions this close to the bound are optimal.
    pub(crate) absolute_gap: f64,
}

/// Minimizes, starting from a solution if there is one; the messages end with [`Message::Done`].
pub(crate) fn minimize(program: Program, start: Option<Vec<f64>>, limits: Limits, clock: &Clock<'_>) -> Solve {
    let time_limit = clock.left().map(|left| 0.98 * left.as_secs_f64());
    let seed = c_int::try_from(clock.control.seed & 0x3fff_ffff).unwrap_or(0);
    Solve::start(move |send, stop| {
        let Some(mut highs) = Highs::new(&program, true) else {
            return (Outcome::Failed, f64::NEG_INFINITY);
        };
        highs.integer(c"random_seed", seed);
        highs.number(c"mip_rel_gap", 0.0);
        highs.number(c"mip_abs_gap", limits.absolute_gap);
        if let Some(limit) = time_limit {
            highs.number(c"time_limit", limit);
        }
        if let Some(start) = &start {
            highs.start_from(start);
        }
        let outcome = highs.run(&Messages { send, stop });
        let bound = highs.mip_bound();
        if outcome == Outcome::Optimal {
            // HiGHS does not tell of every solution when it finds it.
            let _ = send.send(Message::Improved(highs.solution().columns, bound));
        }
        (outcome, bound)
    })
}

struct Messages<'a> {
    send: &'a Sender<Message>,
    stop: &'a Stop,
}

impl Watcher for Messages<'_> {
    fn stop(&self) -> bool {
        self.stop.is_raised()
    }

    fn improved(&self, solution: &[f64], bound: f64) {
        // Nobody listens any more where the thread was left behind.
        let _ = self.send.send(Message::Improved(solution.to_vec(), bound));
    }
}
