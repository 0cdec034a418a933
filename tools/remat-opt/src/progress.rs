//! What a person sees while a command runs: on a terminal one line that moves, elsewhere a line for each part of the work.
//!
//! The line says how long the command runs, how much of the limit is used, what is being done, and the best plan so far.

pub(crate) mod state;

use std::fmt::{self, Write as _};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use remat::plan::Plan;
use remat::solver::{Activity, Doing, Observer, Progress};

pub use self::state::Snapshot;
use self::state::{Best, Shared, State};
use crate::context::{self, Context};
use crate::{console, units};

/// How often a line is looked at where there is no terminal; what takes less than that is silent.
const LOOK: Duration = Duration::from_secs(1);
/// How often a line is written there although the same is still being done.
const AGAIN: Duration = Duration::from_secs(10);

/// The line on the terminal, for the code that ends the program.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Takes the line off the terminal.
pub(crate) fn clear() {
    // The thread that holds the lock is about to do the same.
    if let Ok(mut shown) = SHOWN.try_lock()
        && let Some(bar) = shown.take()
    {
        bar.finish_and_clear();
    }
}

/// Shows what is being done until it is dropped.
pub(crate) struct Line {
    shared: Arc<Shared>,
    /// The command that it is the line of; threads that search are of none.
    command: &'static Context,
    /// Whether there is a result for good.
    is_settled: AtomicBool,
}

impl Line {
    /// Starts the line. `limit` is the time that there is for everything that counts.
    pub(crate) fn start(quiet: bool, limit: Option<Duration>) -> Self {
        Self::start_at(Instant::now(), quiet, limit)
    }

    /// The same for a command that began before.
    pub(crate) fn start_at(now: Instant, quiet: bool, limit: Option<Duration>) -> Self {
        let shared = Arc::new(Shared {
            started: now,
            limit,
            state: Mutex::new(State::at(now)),
            ended: Condvar::new(),
        });
        *context::current().line() = Arc::downgrade(&shared);
        if !quiet && std::io::stderr().is_terminal() {
            show(&shared);
        } else if !quiet {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || write_lines(&shared));
        }
        Self {
            shared,
            command: context::current(),
            is_settled: AtomicBool::new(false),
        }
    }

    /// There is a result, and what follows, to the end of the command, writes and reports it: a signal does not cut that off.
    pub(crate) fn settle(&self) {
        self.has_result(true);
        self.is_settled.store(true, Ordering::SeqCst);
    }

    /// Says what begins, where the limit does not count it.
    pub(crate) fn untimed(&self, activity: Activity, detail: &str) {
        self.begins(&Doing {
            counts: false,
            ..Doing::new(activity, detail)
        });
    }

    /// When the limit is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.shared.started.checked_add(self.shared.limit?)
    }

    /// The duration without rematerialization is known.
    pub(crate) fn baseline(&self, duration: u64) {
        self.shared.state().baseline = Some(duration);
    }

    /// Ends the line, before something else is printed.
    pub(crate) fn finish(&self) {
        self.shared.state().is_over = true;
        self.shared.ended.notify_all();
        clear();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Observer for Line {
    fn begins(&self, doing: &Doing<'_>) {
        let shared = &self.shared;
        let mut state = shared.state();
        let used = match (shared.limit, doing.left) {
            (Some(limit), Some(left)) => limit.saturating_sub(left),
            _ => state.used_now(),
        };
        state.used = used;
        state.counts = doing.counts;
        state.since = Instant::now();
        state.doing = doing.activity.to_string();
        if !doing.detail.is_empty() {
            let _ = write!(state.doing, " {}", doing.detail);
        }
    }

    fn has_result(&self, is_there: bool) {
        if !self.is_settled.load(Ordering::SeqCst) {
            self.command.has_result.store(is_there, Ordering::SeqCst);
        }
    }

    fn improved(&self, progress: &Progress, _: &dyn Fn() -> Option<Plan>) {
        let mut state = self.shared.state();
        // What was planned on may be another model than the one that was read, such as one in tiles.
        let baseline = progress.baseline.or(state.baseline);
        let beyond = |duration: u64| baseline.map(|baseline| units::percent(duration, baseline) - 100.0);
        state.best = Some(Best {
            peak: progress.peak,
            overhead: beyond(progress.objective),
            // That every op runs once is known without a solver.
            bound: beyond(progress.bound).filter(|&bound| bound > 0.0),
        });
    }
}

/// Writes a line when something else is done, and now and then.
fn write_lines(shared: &Shared) {
    let mut written = (String::new(), Instant::now());
    let mut state = shared.state();
    loop {
        let waited = shared.ended.wait_timeout(state, LOOK);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_over {
            return;
        }
        if state.doing != written.0 || written.1.elapsed() >= AGAIN {
            console::write_stderr(&(shared.text(&state) + "\n"));
            written = (state.doing.clone(), Instant::now());
        }
    }
}

/// Shows the line on the terminal.
fn show(shared: &Arc<Shared>) {
    let bar = ProgressBar::new_spinner();
    let line = Arc::clone(shared);
    let style = ProgressStyle::with_template("{spinner} {line}").expect("the template is constant");
    bar.set_style(
        style.with_key("line", move |_: &indicatif::ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&line.text(&line.state()));
        }),
    );
    bar.enable_steady_tick(Duration::from_millis(100));
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(limit: Option<Duration>) -> Line {
        Line::start(true, limit)
    }

    fn text(line: &Line) -> String {
        line.shared.text(&line.shared.state())
    }

    #[test]
    fn the_line_names_what_is_done_and_how_much_of_the_limit_is_used() {
        let line = line(Some(Duration::from_secs(10)));
        line.untimed(Activity::Import, "");
        assert_eq!(text(&line), "0 s, 0 of 10 s: import");
        line.begins(&Doing {
            left: Some(Duration::from_secs(4)),
            counts: false,
            ..Doing::new(Activity::Measure, "2/6")
        });
        assert_eq!(text(&line), "0 s, 6 of 10 s: measure 2/6");
    }

    #[test]
    fn the_best_plan_is_told_with_its_bound() {
        let line = line(None);
        line.baseline(1000);
        line.begins(&Doing::new(Activity::Plan, ""));
        let mut progress = Progress {
            objective: 1050,
            bound: 1000,
            gap: 0.05,
            peak: 1 << 20,
            elapsed: Duration::ZERO,
            steps: 7,
            phase: remat::solver::Phase::Greedy,
            baseline: None,
        };
        line.improved(&progress, &|| None);
        assert_eq!(text(&line), "0 s: plan; peak 1.0 MiB, overhead +5.000 %");
        progress.bound = 1020;
        line.improved(&progress, &|| None);
        assert_eq!(
            text(&line),
            "0 s: plan; peak 1.0 MiB, overhead +5.000 %, bound +2.000 %"
        );
        progress.baseline = Some(840);
        line.improved(&progress, &|| None);
        assert!(
            text(&line).contains("overhead +25.000 %"),
            "that of the model that is planned"
        );
    }
}
