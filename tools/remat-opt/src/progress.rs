//! What a person sees while a command runs: on a terminal one line that moves, elsewhere a line for each part of the work.
//!
//! The line says how long the command runs, how much of the limit is used, what is being done, and the best plan so far.

use std::fmt::{self, Write as _};
use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use remat::plan::Plan;
use remat::solver::{Activity, Doing, Observer, Progress};

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

/// How far a command is; `None` where it does not say.
pub(crate) fn snapshot(command: &Context) -> Option<Snapshot> {
    let shared = command.line().upgrade()?;
    let state = shared.state();
    (!state.is_over).then(|| Snapshot {
        elapsed: shared.started.elapsed(),
        used: shared.used(&state),
        limit: shared.limit,
        doing: state.doing.clone(),
        best: state.best,
    })
}

/// Shows what is being done until it is dropped.
pub(crate) struct Line {
    shared: Arc<Shared>,
}

/// What a line shows.
#[derive(Debug)]
pub(crate) struct Shared {
    started: Instant,
    limit: Option<Duration>,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug)]
struct State {
    /// What is being done, and since when.
    doing: String,
    since: Instant,
    /// How much of the limit was used then, and whether more is used now.
    used: Duration,
    counts: bool,
    /// The best plan so far.
    best: Option<Best>,
    /// Duration without rematerialization, once it is known.
    baseline: Option<u64>,
    is_over: bool,
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
            state: Mutex::new(State {
                doing: String::new(),
                since: now,
                used: Duration::ZERO,
                counts: false,
                best: None,
                baseline: None,
                is_over: false,
            }),
            ended: Condvar::new(),
        });
        *context::current().line() = Arc::downgrade(&shared);
        if !quiet && std::io::stderr().is_terminal() {
            show(&shared);
        } else if !quiet {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.write_lines());
        }
        Self { shared }
    }

    /// Says what begins, where the limit does not count it.
    pub(crate) fn apart(&self, activity: Activity, detail: &str) {
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
    fn used_now(&self) -> Duration {
        if self.counts {
            self.used + self.since.elapsed()
        } else {
            self.used
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, state: &State) -> String {
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

    /// Writes a line when something else is done, and now and then.
    fn write_lines(&self) {
        let mut written = (String::new(), Instant::now());
        let mut state = self.state();
        loop {
            let waited = self.ended.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.is_over {
                return;
            }
            if state.doing != written.0 || written.1.elapsed() >= AGAIN {
                console::write_stderr(&(self.text(&state) + "\n"));
                written = (state.doing.clone(), Instant::now());
            }
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
        line.apart(Activity::Import, "");
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
