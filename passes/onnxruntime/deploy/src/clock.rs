//! The time that a deployment has: one limit for everything that counts.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use remat_onnxruntime_run::ChildLimits;
use remat_plan::Plan;
use remat_solve::{Activity, Doing, SolveControl};
use schemars::JsonSchema;
use serde::Serialize;

/// With less time left than this no search is started.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// What was left out because the time was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// Another plan, where measuring showed what the simulation leaves out, or a longer search would have found a better one.
    AnotherPlan,
    /// Other plans that are as good and may suit the arena better.
    OtherPlans,
    /// Room reserved for the arena.
    Reserves,
    /// Other lowering strategies.
    #[serde(rename = "variants")]
    Strategies,
    /// Memory with the arena on.
    ArenaPeaks,
    /// Bits on further inputs.
    FurtherSeeds,
    /// Times of the two models.
    Times,
    /// Times of the two models with the arena off.
    ExactTimes,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnotherPlan => "a further plan",
            Self::OtherPlans => "other plans for the memory arena",
            Self::Reserves => "bytes reserved for the memory arena",
            Self::Strategies => "other lowering strategies",
            Self::ArenaPeaks => "memory with the memory arena on",
            Self::FurtherSeeds => "bits on further inputs",
            Self::Times => "times of the two models",
            Self::ExactTimes => "times with the memory arena off",
        })
    }
}

/// The clock of one deployment. It stands still while the model as it came runs once, and the first file that is made of it. Runs of the two at
/// other sizes of free dimensions count, and take place even where the time is over: without them no file is written.
pub(crate) struct Clock<'a> {
    control: SolveControl<'a>,
    /// All the time there is.
    limit: Option<Duration>,
    /// When it is over, as far as is known.
    end: Cell<Option<Instant>>,
    /// Whether half of the limit is kept for whole ops while tiles are tried.
    keeps_half: Cell<bool>,
    left_out: RefCell<Vec<LeftOut>>,
}

impl<'a> Clock<'a> {
    /// A clock that starts now and runs until the deadline of `control`.
    pub(crate) fn start(control: &SolveControl<'a>) -> Self {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        Self {
            control: *control,
            limit: control.deadline.map(left),
            end: Cell::new(control.deadline),
            keeps_half: Cell::new(false),
            left_out: RefCell::default(),
        }
    }

    /// The limits of a search that begins now and takes no more than `share` of `time`.
    pub(crate) fn search(&self, time: Option<Duration>, share: f64) -> SolveControl<'a> {
        let mut control = self.control;
        control.deadline = time.and_then(|time| Instant::now().checked_add(time.mul_f64(share)));
        control
    }

    /// All the time there is; `None` without a limit.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Time left; `None` without a limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        let end = self.end.get()?;
        Some(end.saturating_duration_since(Instant::now()))
    }

    /// Whether that much time is left.
    pub(crate) fn has(&self, time: Duration) -> bool {
        self.left().is_none_or(|left| left >= time.max(TOO_SHORT))
    }

    /// Keeps half of the limit for whole ops from now on, which may keep what tiles do not, or none of it.
    pub(crate) fn keep_half_for_whole_ops(&self, keeps: bool) {
        self.keeps_half.set(keeps);
    }

    /// Time left for tiles, which are tried first.
    pub(crate) fn left_for_tiles(&self) -> Option<Duration> {
        let kept = self
            .limit
            .filter(|_| self.keeps_half.get() && self.is_timed())
            .map(|limit| limit / 2);
        let left = self.left()?;
        Some(left.saturating_sub(kept.unwrap_or_default()))
    }

    /// Whether the time is what ends searches: not where steps are counted, which gives the same result on every machine.
    pub(crate) fn is_timed(&self) -> bool {
        self.limit.is_some() && self.control.step_limit.is_none()
    }

    /// Whether the caller said that everything is to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.control.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Whether work is to end that something is there without: the caller said so, or the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || !self.has(Duration::ZERO)
    }

    /// Tells the observer whether there is a file to write, whenever everything ends.
    pub(crate) fn has_result(&self, is_there: bool) {
        if let Some(observer) = self.control.observer {
            observer.has_result(is_there);
        }
    }

    /// Does work that does not count: one run of each model, whatever the limit.
    pub(crate) fn apart<T>(&self, activity: Activity, detail: &str, work: impl FnOnce() -> T) -> T {
        self.tell(activity, detail, false);
        let started = Instant::now();
        let done = work();
        let later = |end: Instant| end.checked_add(started.elapsed());
        self.end.set(self.end.get().and_then(later));
        done
    }

    /// Does work that counts, whether or not there is time for it, and says what it is.
    pub(crate) fn during<T>(&self, activity: Activity, detail: &str, work: impl FnOnce() -> T) -> T {
        self.begins(activity, detail);
        work()
    }

    /// Limits of a process that runs models.
    pub(crate) fn child(&self, time: Option<Duration>) -> ChildLimits<'a> {
        ChildLimits {
            time,
            cancel: self.control.cancel,
        }
    }

    /// Tells the observer what begins.
    pub(crate) fn begins(&self, activity: Activity, detail: &str) {
        self.tell(activity, detail, true);
    }

    fn tell(&self, activity: Activity, detail: &str, counts: bool) {
        if let Some(observer) = self.control.observer {
            observer.begins(&Doing {
                activity,
                detail,
                left: self.left(),
                counts,
            });
        }
    }

    /// Notes that something is left out.
    pub(crate) fn leave_out(&self, what: LeftOut) {
        let mut left_out = self.left_out.borrow_mut();
        if !left_out.contains(&what) {
            tracing::info!(%what, "left out for want of time");
            left_out.push(what);
        }
    }

    /// What was left out so far.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.left_out.borrow().clone()
    }
}

/// How many files are made of a plan in any case.
const FILES: u32 = 2;

/// The time for one plan: its searches, and the files that are made of it.
pub(crate) struct Effort<'c, 'a> {
    pub(crate) clock: &'c Clock<'a>,
    end: Option<Instant>,
    /// What making a file and simulating it takes, as far as is known.
    file: Cell<Duration>,
}

impl<'c, 'a> Effort<'c, 'a> {
    /// That much time from now; `file` is what making a file is expected to take.
    pub(crate) fn new(clock: &'c Clock<'a>, time: Option<Duration>, file: Duration) -> Self {
        Self {
            clock,
            end: time.and_then(|time| Instant::now().checked_add(time)),
            file: Cell::new(file),
        }
    }

    /// Notes what making a file and simulating it took.
    pub(crate) fn file_took(&self, time: Duration) {
        self.file.set(time);
    }

    /// Time left for searching; `None` without a limit.
    fn left(&self) -> Option<Duration> {
        let left = self.end?.saturating_duration_since(Instant::now());
        // Where making files takes long, searching has half of the time all the same.
        Some(left.saturating_sub(self.file.get() * FILES).max(left / 2))
    }

    /// Whether there is time for another file.
    pub(crate) fn has_time_for_a_file(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() + self.file.get() <= end)
    }

    /// Whether the limit leaves time for another file that is so many times as large as the last one.
    pub(crate) fn limit_allows_a_file(&self, times: f64) -> bool {
        let took = Duration::try_from_secs_f64(self.file.get().as_secs_f64() * times).unwrap_or(Duration::MAX);
        !self.clock.is_cancelled() && self.clock.has(took)
    }

    /// Whether there is time for another search, and for the files that are made of its plan.
    pub(crate) fn has_time_for_a_search(&self) -> bool {
        self.end
            .is_none_or(|end| Instant::now() + self.file.get() * (FILES + 1) <= end)
    }

    /// Takes half of what the limit leaves, where that is time for another search: what was kept for measurements is of no use to a file that
    /// misses its budget.
    pub(crate) fn extend(&mut self) -> bool {
        let more = self.clock.left().map(|left| left / 2);
        let longer = Self::new(self.clock, more, self.file.get());
        let is_enough = longer.has_time_for_a_search();
        if is_enough {
            *self = longer;
        }
        is_enough
    }

    /// The limits of a search that begins now, from a plan that is known.
    pub(crate) fn search<'s>(&self, share: f64, start: Option<&'s Plan>) -> SolveControl<'s>
    where
        'a: 's,
    {
        let mut control: SolveControl<'s> = self.clock.search(self.left(), share);
        control.warm_start = start.or(control.warm_start);
        control
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_still_for_what_does_not_count() {
        let clock = Clock::start(&SolveControl::new().time_limit(Duration::from_secs(100)));
        clock.apart(Activity::Measure, "", || std::thread::sleep(Duration::from_millis(50)));
        let end = clock.end.get().expect("there is a limit");
        let unmoved = clock.control.deadline.expect("there is a limit");
        assert!(end >= unmoved + Duration::from_millis(50));
        assert!(clock.limit() <= Some(Duration::from_secs(100)));
    }

    #[test]
    fn searches_have_a_share_of_what_is_left() {
        let clock = Clock::start(&SolveControl::new().time_limit(Duration::from_secs(100)));
        let deadline = clock.search(clock.left(), 0.5).deadline.expect("there is a limit");
        let given = deadline.saturating_duration_since(Instant::now());
        assert!(given <= Duration::from_secs(50), "{given:?}");
        assert!(clock.has(Duration::from_secs(10)) && !clock.has(Duration::from_secs(1_000)));
    }

    #[test]
    fn without_a_limit_there_is_always_time() {
        let clock = Clock::start(&SolveControl::new());
        assert!(clock.has(Duration::MAX));
        assert_eq!((clock.left(), clock.search(None, 0.5).deadline), (None, None));
        assert!(!clock.is_timed());
    }

    #[test]
    fn what_is_left_out_is_named_once() {
        let clock = Clock::start(&SolveControl::new());
        clock.leave_out(LeftOut::Times);
        clock.leave_out(LeftOut::Times);
        assert_eq!(clock.left_out(), [LeftOut::Times]);
    }
}
