//! How long a solver may work, how hard it tries, and who watches.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use web_time::{Duration, Instant};

use remat_plan::{Plan, StopReason};

use crate::profile::Profile;

/// Threads that a search has at most. Each holds a copy of what the search works on.
pub const MAX_THREADS: usize = 256;

/// Limits and wishes of the caller. The default has no limit but convergence, one thread, seed 0.
///
/// With one thread, and a step limit or convergence as what ends the search, the result depends on nothing but the problem, the
/// seed, the limit and the warm start. With a deadline it also depends on the speed of the machine.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SolveControl<'a> {
    /// When to stop. Solvers overrun it by at most 5 % of the time they were given, problems of 100,000 ops included.
    pub deadline: Option<Instant>,
    /// How many search steps each thread may take. One step is one change of the sequence, or as much other work.
    pub step_limit: Option<u64>,
    /// Number of threads, at least one. Each searches with a seed of its own; the best answer is returned.
    pub threads: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// A plan to start from; ignored where the order is fixed and it does not follow it.
    pub warm_start: Option<&'a Plan>,
    /// Stops the search soon after it becomes `true`; the best plan so far is returned.
    pub cancel: Option<&'a AtomicBool>,
    /// Is told of every improvement.
    pub observer: Option<&'a dyn Observer>,
    /// When to give up although time is left.
    pub patience: Patience,
    /// Bytes of memory the process may take. Solvers that build models refuse to build larger ones; callers of solvers watch
    /// the process and raises `cancel`.
    pub memory_limit: Option<u64>,
    /// Takes note of where the time of the local search goes.
    pub profile: Option<&'a Profile>,
}

/// When a search counts as converged: when it has a plan, and since its last improvement it took more steps than
/// `min_steps`, and more than `factor` times the steps it had taken to get there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Patience {
    /// Steps without improvement that are always allowed; per 100 ops in free order and where more than a twentieth of the time is still
    /// overhead, and four times as many where both is so, or without a plan. [`Patience::default`] has about as many as one thread takes in a few seconds on a
    /// graph of 1,000 ops.
    pub min_steps: u64,
    /// Further steps, as a multiple of those taken up to the last improvement.
    pub factor: f64,
}

impl Patience {
    /// Never gives up before another limit ends the search.
    pub const ENDLESS: Self = Self {
        min_steps: u64::MAX,
        factor: 0.0,
    };

    /// As many times as patient.
    pub(crate) fn times(self, times: u64) -> Self {
        Self {
            min_steps: self.min_steps.saturating_mul(times),
            ..self
        }
    }

    /// Whether that many steps in all, the last improvement at that one, are too many.
    #[must_use]
    pub fn is_over(self, steps: u64, last_improvement: u64) -> bool {
        let idle = steps.saturating_sub(last_improvement);
        idle > self.min_steps && idle as f64 > self.factor * last_improvement as f64
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            min_steps: 6_000_000,
            factor: 4.0,
        }
    }
}

impl Default for SolveControl<'_> {
    fn default() -> Self {
        Self {
            deadline: None,
            step_limit: None,
            threads: 1,
            seed: 0,
            warm_start: None,
            cancel: None,
            observer: None,
            patience: Patience::default(),
            memory_limit: None,
            profile: None,
        }
    }
}

impl<'a> SolveControl<'a> {
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

    /// Stops `limit` from now, where there is one, and not later than before.
    #[must_use]
    pub fn at_most(mut self, limit: Option<Duration>) -> Self {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        self.deadline = [end, self.deadline].into_iter().flatten().min();
        self
    }

    /// Stops after that share of the time that is left, where time is limited.
    #[must_use]
    pub fn share_of_time(mut self, share: f64) -> Self {
        let now = Instant::now();
        let part = |deadline: Instant| now + deadline.saturating_duration_since(now).mul_f64(share);
        self.deadline = self.deadline.map(part);
        self
    }

    /// Has at least so much time from now on, where time is limited.
    #[must_use]
    pub fn at_least(mut self, time: Duration) -> Self {
        let least = Instant::now().checked_add(time);
        self.deadline = self
            .deadline
            .map(|deadline| least.map_or(deadline, |least| deadline.max(least)));
        self
    }

    /// Stops after this many steps.
    #[must_use]
    pub fn step_limit(mut self, steps: u64) -> Self {
        self.step_limit = Some(steps);
        self
    }

    /// Searches with this many threads, with [`MAX_THREADS`] at most.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, MAX_THREADS);
        self
    }

    /// Seeds all random choices.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts from a plan.
    #[must_use]
    pub fn warm_start(mut self, plan: &'a Plan) -> Self {
        self.warm_start = Some(plan);
        self
    }

    /// Watches a flag.
    #[must_use]
    pub fn cancel(mut self, flag: &'a AtomicBool) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// Tells an observer of improvements.
    #[must_use]
    pub fn observer(mut self, observer: &'a dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Limits the memory of the process, in bytes.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Takes note of where the time of the local search goes.
    #[must_use]
    pub fn profile(mut self, profile: &'a Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Why to stop after so many steps, if at all.
    #[must_use]
    pub fn interruption(&self, steps: u64) -> Option<StopReason> {
        if self.is_cancelled() {
            Some(StopReason::Cancelled)
        } else if self.step_limit.is_some_and(|limit| steps >= limit) {
            Some(StopReason::StepLimit)
        } else {
            self.is_late().then_some(StopReason::TimeLimit)
        }
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether the flag that is watched is raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Sets when the search counts as converged.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }
}

/// What part of the search found an improvement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The first plan: recomputes added to the given order.
    Greedy,
    /// The way to a first plan where the direct one failed.
    Feasibility,
    /// Large neighbourhood search.
    Neighbourhood,
    /// Simulated annealing.
    Annealing,
    /// A mathematical model, solved exactly.
    Exact,
}

/// A new best plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Its duration, or a little more where it runs views again.
    pub objective: u64,
    /// Lower bound on the duration of every plan.
    pub bound: u64,
    /// Their relative distance, as [`remat_plan::Certificate::relative_gap`].
    pub gap: f64,
    /// Bytes the plan needs at most.
    pub peak: u64,
    /// Time since the solver was called.
    pub elapsed: Duration,
    /// Steps the thread that found it had taken.
    pub steps: u64,
    /// What found it.
    pub phase: Phase,
    /// Time of the model as it is, where whoever called the solver knows it: what the duration is above, as reports state it.
    pub baseline: Option<u64>,
}

/// What a program does, solving included. Displays as a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Activity {
    /// Reading a model.
    Import,
    /// Having a runtime fuse the nodes of a model.
    Fuse,
    /// Searching for a plan.
    Plan,
    /// Writing a plan down as a model.
    Lower,
    /// Simulating a runtime on a model.
    Simulate,
    /// Running models.
    Measure,
    /// Writing files.
    Write,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Import => "import",
            Self::Fuse => "fuse",
            Self::Plan => "plan",
            Self::Lower => "lower",
            Self::Simulate => "simulate",
            Self::Measure => "measure",
            Self::Write => "write",
        })
    }
}

/// What begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doing<'a> {
    /// What it is.
    pub activity: Activity,
    /// Which part of it, `2/3` for instance; may be empty.
    pub detail: &'a str,
    /// Time left for everything that counts, where that is limited.
    pub left: Option<Duration>,
    /// Whether its time counts.
    pub counts: bool,
}

impl<'a> Doing<'a> {
    /// Work whose time counts, where no limit is known.
    #[must_use]
    pub fn new(activity: Activity, detail: &'a str) -> Self {
        Self {
            activity,
            detail,
            left: None,
            counts: true,
        }
    }
}

/// Is told of improvements while a solver runs, and of what happens around it.
pub trait Observer: Sync {
    /// The caller of solvers begins something else; solvers themselves begin nothing.
    fn begins(&self, doing: &Doing<'_>) {
        let _ = doing;
    }

    /// Whether the caller of solvers has a result by now that it ends with, whenever it is told to end.
    fn has_result(&self, is_there: bool) {
        let _ = is_there;
    }

    /// A better plan than all before was found. Called from the thread that found it; the search waits. `plan` makes the plan, which
    /// takes about as long as checking it; `None` where the solver cannot make it, which is a bug of its own.
    fn improved(&self, progress: &Progress, plan: &dyn Fn() -> Option<Plan>);
}

/// Counts steps against the limits of one thread and remembers why it stopped.
pub struct Meter<'a> {
    control: &'a SolveControl<'a>,
    /// Raised when another thread proved that nothing better exists.
    done: Option<&'a AtomicBool>,
    started: Instant,
    stopped: Option<StopReason>,
    interval: u64,
    next_look: u64,
}

impl<'a> Meter<'a> {
    /// A meter for a problem with that many nodes.
    #[must_use]
    pub fn new(control: &'a SolveControl<'a>, done: &'a AtomicBool, started: Instant, nodes: usize) -> Self {
        Self {
            done: Some(done),
            started,
            // A step costs up to about 2 ns per node: the clock is read every 0.2 ms or so.
            ..Self::every(control, (100_000 / (nodes as u64 + 1)).clamp(1, 100))
        }
    }

    /// A meter of the only thread, which reads the clock after so many steps.
    #[must_use]
    pub fn every(control: &'a SolveControl<'a>, interval: u64) -> Self {
        Self {
            control,
            done: None,
            started: Instant::now(),
            stopped: None,
            interval,
            next_look: 0,
        }
    }

    /// Whether to stop, after `steps` steps in total. Cheap enough to be asked at every step.
    pub fn is_over(&mut self, steps: u64) -> bool {
        if self.stopped.is_some() {
            return true;
        }
        if self.control.step_limit.is_some_and(|limit| steps >= limit) {
            self.stopped = Some(StopReason::StepLimit);
            return true;
        }
        if steps < self.next_look {
            return false;
        }
        self.next_look = steps + self.interval;
        let is_done = self.done.is_some_and(|done| done.load(Ordering::Relaxed));
        self.stopped = is_done
            .then_some(StopReason::Proved)
            .or_else(|| self.control.interruption(steps));
        self.stopped.is_some()
    }

    /// Whether to stop, where what comes after that takes this time.
    pub fn is_over_within(&mut self, steps: u64, time: Duration) -> bool {
        let looks = steps >= self.next_look;
        let is_near = |deadline: Instant| deadline.saturating_duration_since(Instant::now()) <= time;
        if !self.is_over(steps) && looks && self.control.deadline.is_some_and(is_near) {
            self.stopped = Some(StopReason::TimeLimit);
        }
        self.stopped.is_some()
    }

    /// Ends the search for a reason of its own.
    pub fn stop(&mut self, reason: StopReason) {
        self.stopped.get_or_insert(reason);
    }

    /// Why it ended, if it did.
    #[must_use]
    pub fn reason(&self) -> Option<StopReason> {
        self.stopped
    }

    /// About how many steps are left: exact under a step limit, which takes precedence so that the search is reproducible; else
    /// estimated from the speed so far; `None` without limits.
    #[must_use]
    pub fn steps_left(&self, steps: u64) -> Option<u64> {
        if let Some(limit) = self.control.step_limit {
            return Some(limit.saturating_sub(steps));
        }
        let now = Instant::now();
        let left = self.control.deadline?.saturating_duration_since(now).as_secs_f64();
        let taken = now.saturating_duration_since(self.started).as_secs_f64();
        Some((left * (steps as f64 + 1.0) / taken.max(1e-6)) as u64)
    }

    /// Whether a share of the limits is used up; never without limits. A step limit takes precedence over the deadline.
    #[must_use]
    pub fn used_up(&self, share: f64, steps: u64) -> bool {
        if let Some(limit) = self.control.step_limit {
            return steps as f64 >= share * limit as f64;
        }
        self.control.deadline.is_some_and(|deadline| {
            let whole = deadline.saturating_duration_since(self.started);
            self.started.elapsed() >= whole.mul_f64(share.clamp(0.0, 1.0))
        })
    }

    /// The limits.
    pub(crate) fn control(&self) -> &'a SolveControl<'a> {
        self.control
    }

    /// When to give up although limits are left.
    #[must_use]
    pub fn patience(&self) -> Patience {
        self.control.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_only_after_both_the_minimum_and_the_multiple() {
        let patience = Patience {
            min_steps: 100,
            factor: 4.0,
        };
        assert!(!patience.is_over(100, 0));
        assert!(patience.is_over(101, 0));
        assert!(!patience.is_over(500, 100));
        assert!(patience.is_over(501, 100));
        assert!(!Patience::ENDLESS.is_over(u64::MAX, 0));
    }

    #[test]
    fn a_meter_says_why_it_stopped() {
        let done = AtomicBool::new(false);
        let flag = AtomicBool::new(false);
        let now = Instant::now();

        let control = SolveControl::new().step_limit(10);
        let mut meter = Meter::new(&control, &done, now, 5);
        assert!(!meter.is_over(9));
        assert!(meter.is_over(10));
        assert_eq!(meter.reason(), Some(StopReason::StepLimit));

        let control = SolveControl::new().time_limit(Duration::ZERO);
        let mut meter = Meter::new(&control, &done, now, 5);
        assert!(meter.is_over(0));
        assert_eq!(meter.reason(), Some(StopReason::TimeLimit));

        let control = SolveControl::new().time_limit(Duration::from_secs(3600));
        let mut meter = Meter::every(&control, 16);
        assert!(!meter.is_over_within(0, Duration::from_secs(60)));
        assert!(meter.is_over_within(16, Duration::from_secs(3600)));
        assert_eq!(meter.reason(), Some(StopReason::TimeLimit));

        let control = SolveControl::new().cancel(&flag);
        let mut meter = Meter::new(&control, &done, now, 5);
        assert!(!meter.is_over(0));
        flag.store(true, Ordering::Relaxed);
        assert!(!meter.is_over(1), "the flag is not read at every step");
        assert!(meter.is_over(1000));
        assert_eq!(meter.reason(), Some(StopReason::Cancelled));
    }
}
