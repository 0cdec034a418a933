//! Watching a solver at work: its improvements are checked before anybody sees them, and it is stopped when it takes too much memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use web_time::{Duration, Instant};

use remat_plan::{Certificate, Plan, Problem, StopReason};
use remat_solve::{Observer, Progress};
use remat_verify::replay;

/// Share of the time that checking improvements may take, as a divisor.
const CHECKING: u32 = 20;
/// What checking may take beyond that share: enough for every improvement of a small problem, and for the first of a large one.
const GRACE: Duration = Duration::from_millis(20);
/// How often the watched process is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Hands on improvements that the checker accepts, with the checker's figures.
///
/// While checking has taken more than its share of the time, improvements are left out: what a caller misses is a step on the way,
/// never the end, which [`crate::solve`] checks itself.
pub(crate) struct Checked<'a> {
    problem: &'a Problem,
    /// Time of the model as it is.
    baseline: u64,
    inner: &'a dyn Observer,
    started: Instant,
    last: Mutex<Last>,
}

struct Last {
    /// Time that checking has taken.
    spent: Duration,
    /// Lowest duration that was handed on; peaks count where the budget is what is sought.
    best: (u64, u64),
}

impl<'a> Checked<'a> {
    pub(crate) fn new(problem: &'a Problem, baseline: u64, inner: &'a dyn Observer) -> Self {
        let last = Mutex::new(Last {
            spent: Duration::ZERO,
            best: (u64::MAX, u64::MAX),
        });
        Self {
            problem,
            baseline,
            inner,
            started: Instant::now(),
            last,
        }
    }

    fn rank(&self, duration: u64, peak: u64) -> (u64, u64) {
        if self.problem.budget.is_some() {
            (duration, peak)
        } else {
            (peak, duration)
        }
    }
}

impl Observer for Checked<'_> {
    fn improved(&self, progress: &Progress, plan: &dyn Fn() -> Option<Plan>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        let allowed = started.saturating_duration_since(self.started) / CHECKING + GRACE;
        if last.spent > allowed || self.rank(progress.objective, progress.peak) >= last.best {
            return;
        }
        let Some(plan) = plan() else { return };
        let checked = replay(self.problem, &plan);
        last.spent += started.elapsed();
        match checked {
            Ok(replay) => {
                let rank = self.rank(replay.duration, replay.peak);
                if rank >= last.best {
                    return;
                }
                last.best = rank;
                let figures = Progress {
                    objective: replay.duration,
                    peak: replay.peak,
                    baseline: Some(self.baseline),
                    gap: Certificate::relative_gap(replay.duration, progress.bound),
                    ..*progress
                };
                tracing::info!(duration = replay.duration, peak = replay.peak, elapsed = ?progress.elapsed, "improved");
                self.inner.improved(&figures, &|| Some(plan.clone()));
            }
            Err(rejection) => tracing::error!(%rejection, "an improvement was rejected by the checker"),
        }
    }
}

/// Stops a solver when its caller says so or the process takes more memory than it may.
pub(crate) struct Guard<'a> {
    caller: Option<&'a AtomicBool>,
    limit: u64,
    /// What the solver looks at.
    pub(crate) stop: AtomicBool,
    over: AtomicBool,
    ended: Mutex<bool>,
    wake: Condvar,
}

impl<'a> Guard<'a> {
    /// A guard that also passes on what `caller` says.
    pub(crate) fn new(limit: u64, caller: Option<&'a AtomicBool>) -> Self {
        Self {
            caller,
            limit,
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            ended: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    /// Runs `work` under guard.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        // Warnings of the watch are the caller's.
        let caller = tracing::dispatcher::get_default(Clone::clone);
        std::thread::scope(|scope| {
            let watch = || tracing::dispatcher::with_default(&caller, || self.watch());
            // Without a thread, in a browser for instance, nobody else is there to set the caller's flag.
            let _watch = std::thread::Builder::new().spawn_scoped(scope, watch);
            // Also where `work` panics, or the scope would wait for the watch for ever.
            let _end = End(self);
            work()
        })
    }

    /// Why the solver stopped, where it says that it was asked to.
    pub(crate) fn reason(&self, stop: StopReason) -> StopReason {
        if stop == StopReason::Cancelled && self.over.load(Ordering::Relaxed) {
            StopReason::MemoryLimit
        } else {
            stop
        }
    }

    fn watch(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            let resident = memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64);
            if resident > self.limit && !self.over.swap(true, Ordering::Relaxed) {
                tracing::warn!(resident, limit = self.limit, "stopped: more memory than allowed");
                self.stop.store(true, Ordering::Relaxed);
            }
            if self.caller.is_some_and(|caller| caller.load(Ordering::Relaxed)) {
                self.stop.store(true, Ordering::Relaxed);
            }
            let waited = self.wake.wait_timeout(ended, LOOK);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

struct End<'a, 'b>(&'a Guard<'b>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{LoadOptions, Model};

    #[derive(Default)]
    struct Seen(Mutex<Vec<u64>>);

    impl Observer for Seen {
        fn improved(&self, progress: &Progress, plan: &dyn Fn() -> Option<Plan>) {
            assert!(plan().is_some());
            self.0.lock().unwrap().push(progress.objective);
        }
    }

    fn model() -> Model {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/mlp_tiny_train.onnx");
        Model::open(&path, &LoadOptions::default()).unwrap()
    }

    fn claim(objective: u64) -> Progress {
        Progress {
            objective,
            bound: 0,
            gap: 0.0,
            peak: 0,
            elapsed: Duration::ZERO,
            steps: 0,
            phase: remat_solve::Phase::Greedy,
            baseline: None,
        }
    }

    #[test]
    fn improvements_are_seen_with_the_checkers_figures_and_wrong_ones_are_not() {
        let model = model();
        let mut problem = model.problem().clone();
        problem.budget = Some(model.baseline().peak);
        let seen = Seen::default();
        let checked = Checked::new(&problem, problem.total_duration(), &seen);
        let wrong = Plan {
            steps: model.baseline_plan().steps[1..].to_vec(),
        };
        checked.improved(&claim(1), &|| Some(wrong.clone()));
        assert!(seen.0.lock().unwrap().is_empty(), "the plan leaves a step out");
        checked.improved(&claim(7), &|| Some(model.baseline_plan().clone()));
        assert_eq!(
            *seen.0.lock().unwrap(),
            [model.baseline().duration],
            "whatever is claimed"
        );
    }

    #[test]
    fn a_process_that_takes_too_much_memory_is_stopped_and_says_why() {
        let guard = Guard::new(1, None);
        let stopped = guard.run(|| {
            let begin = Instant::now();
            while !guard.stop.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(60) {
                std::thread::yield_now();
            }
            guard.stop.load(Ordering::Relaxed)
        });
        assert!(stopped);
        assert_eq!(guard.reason(StopReason::Cancelled), StopReason::MemoryLimit);
        assert_eq!(guard.reason(StopReason::Proved), StopReason::Proved);
    }

    #[test]
    fn what_the_caller_says_is_passed_on() {
        let flag = AtomicBool::new(true);
        let guard = Guard::new(u64::MAX, Some(&flag));
        guard.run(|| {
            while !guard.stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        assert_eq!(guard.reason(StopReason::Cancelled), StopReason::Cancelled);
    }
}
