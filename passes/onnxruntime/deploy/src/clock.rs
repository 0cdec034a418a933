//! The time that a deployment has: one limit for everything that counts.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use remat_onnxruntime_run::ChildLimits;
use remat_plan::Plan;
use remat_solve::{Activity, Doing, Patience, SolveControl};
use schemars::JsonSchema;
use serde::Serialize;

/// With less time left than this no search is started.
const TOO_SHORT: Duration = Duration::from_millis(20);

/// What searches are for: each may take a share of the time that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// Plans of subgraphs, of the time that is left.
    Bodies,
    /// Finding tiles and weighing them, of the time that is left for tiles.
    Tiles,
    /// A plan whose file may exceed the budget, so that another search follows, of the time for the plan.
    Budgeted,
    /// All of it.
    Whole,
    /// One of so many searches that follow each other.
    OneOf(u64),
}

impl Share {
    fn of(self) -> f64 {
        match self {
            Self::Bodies | Self::Tiles => 0.4,
            Self::Budgeted => 0.7,
            Self::Whole => 1.0,
            Self::OneOf(searches) => 1.0 / searches as f64,
        }
    }
}

/// Work that is begun only where there is time to run the model so often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Memory with the arena.
    ArenaPeaks,
    /// Bits with more threads.
    Threads,
    /// A file in tiles where there is none yet.
    FirstTiles,
    /// The same plan without a reserve.
    WithoutReserve,
    /// Further files in tiles, beside one that is good.
    OtherTiles,
    /// The file of another strategy, beside one that is good.
    Rival,
}

impl Work {
    fn runs(self) -> u32 {
        match self {
            Self::ArenaPeaks | Self::Threads | Self::FirstTiles => 2,
            Self::WithoutReserve => 4,
            Self::OtherTiles => 5,
            Self::Rival => 8,
        }
    }
}

/// What decides over the time for a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanOf {
    /// Whether a number of bytes, or a plan, is asked for.
    pub(crate) is_bounded: bool,
    /// Whether it is one of tiles.
    pub(crate) is_in_tiles: bool,
    /// How many other files in tiles are to follow.
    pub(crate) others: usize,
    /// How many plans of the same model were measured.
    pub(crate) round: usize,
    /// Ops of the model, where a small one is given less.
    pub(crate) ops: Option<usize>,
    /// What making a file of it takes.
    pub(crate) file: Duration,
    /// What measuring one takes.
    pub(crate) run: Duration,
    /// What completing the measurements takes.
    pub(crate) completing: Duration,
}

/// How much of the time that there is a plan is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Span {
    /// All that there is for it.
    Whole,
    /// Little, because a longer search is to follow.
    Short,
    /// What its model needs by its size: a longer search follows only where it finds nothing.
    Measured,
}

impl PlanOf {
    /// Share of the time, as a divisor, that is kept for completing the measurements at most.
    const COMPLETING: u32 = 4;
    /// Measuring takes little where it takes less than this share of the time left, as a divisor.
    const LITTLE: u32 = 8;
    /// Share of the time for a first plan, where measuring takes little: then a file is there early, and what it shows is known.
    const FIRST_ROUND: f64 = 0.2;
    /// Share of the time for each plan that another one may have to follow.
    const LATER_ROUND: f64 = 0.6;
}

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

/// The clock of one deployment. It stands still while the original model runs once, and the first file that is made of it. Runs of the two at
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

    /// The limits of a search that begins now and takes no more than its share of `time`.
    pub(crate) fn search(&self, time: Option<Duration>, share: Share) -> SolveControl<'a> {
        let mut control = self.control;
        control.deadline = time.and_then(|time| Instant::now().checked_add(time.mul_f64(share.of())));
        if let Some(limit) = self.limit.filter(|_| self.is_timed()) {
            // Of searches that follow each other each has its part.
            let parts = if matches!(share, Share::OneOf(_)) { OTHERS } else { 1 };
            control.patience = patience_within(limit / parts);
        }
        control
    }

    /// The most that a search is given on a model of so many ops: small ones are searched through soon, and what a search does not gain by then it
    /// gains slowly. Who waits longer is given more.
    pub(crate) fn most_for(&self, ops: usize) -> Option<Duration> {
        let share = (ops as f64 / LARGE as f64).clamp(LEAST_SHARE, 1.0);
        self.limit.filter(|_| self.is_timed()).map(|limit| limit.mul_f64(share))
    }

    /// Time for a plan. The rest is for completing the measurements. `None` where nothing counts time.
    pub(crate) fn time_for(&self, plan: &PlanOf) -> (Option<Duration>, Span) {
        let (time, span) = self.share_for(plan);
        let most = plan.ops.and_then(|ops| self.most_for(ops));
        let most = most.map(|most| most + plan.file * FILES);
        match time.zip(most) {
            Some((time, most)) if most < time => (Some(most), Span::Measured),
            _ => (time, span),
        }
    }

    /// The same for a model of any size.
    fn share_for(&self, plan: &PlanOf) -> (Option<Duration>, Span) {
        let Some((limit, left)) = self.limit.zip(self.left()) else {
            return (None, Span::Whole);
        };
        let kept = if self.is_timed() {
            plan.completing.min(limit / PlanOf::COMPLETING)
        } else {
            Duration::ZERO
        };
        // Under a budget whole ops may have to follow tiles.
        if (plan.is_bounded && plan.is_in_tiles || plan.others > 0) && self.is_timed() {
            let tiles = self.left_for_tiles().unwrap_or(left);
            let each = tiles / u32::try_from(plan.others + 1).unwrap_or(u32::MAX);
            return (
                Some(each.saturating_sub(kept).max(each / PlanOf::COMPLETING)),
                Span::Whole,
            );
        }
        let all = left.saturating_sub(kept);
        let measuring = plan.run + plan.file * FILES;
        let may_try_twice = self.is_timed() && measuring * PlanOf::LITTLE < all;
        let later = all.saturating_sub(measuring).mul_f64(PlanOf::LATER_ROUND);
        match plan.round {
            0 if may_try_twice => (Some(all.mul_f64(PlanOf::FIRST_ROUND)), Span::Short),
            0 if plan.is_bounded && self.is_timed() => (Some(later.max(all / 2)), Span::Whole),
            0 => (Some(all), Span::Whole),
            _ if plan.is_bounded => (Some(later), Span::Whole),
            _ => (Some(all.saturating_sub(measuring)), Span::Whole),
        }
    }

    /// Whether there is time for work, where a process that runs the model takes so long.
    pub(crate) fn allows(&self, work: Work, run: Duration) -> bool {
        self.has(run * work.runs())
    }

    /// The same of work on tiles, which are tried first.
    pub(crate) fn allows_tiles(&self, work: Work, run: Duration) -> bool {
        let left = self.left_for_tiles();
        !self.is_cancelled() && left.is_none_or(|left| !left.is_zero() && left >= run * work.runs())
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
    pub(crate) fn untimed<T>(&self, activity: Activity, detail: &str, work: impl FnOnce() -> T) -> T {
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

/// Searches within a limit end when improvements have ceased for that part of it, by steps: a search gains little by what it does not gain soon, and
/// who waits longer is given more.
fn patience_within(limit: Duration) -> Patience {
    let whole = Patience::default();
    let share = limit.as_secs_f64() / PATIENT.as_secs_f64();
    match share < 1.0 {
        true => Patience {
            min_steps: (whole.min_steps as f64 * share) as u64,
            factor: whole.factor * share.max(LEAST_PATIENCE),
        },
        false => whole,
    }
}

/// From so many ops on, searches get all of the time that there is for them, and smaller models this share of the limit at least.
const LARGE: usize = 1_000;
const LEAST_SHARE: f64 = 0.05;

/// From this limit on, searches are as patient as they are without one.
const PATIENT: Duration = Duration::from_secs(60);

/// So many searches that follow each other count as one.
const OTHERS: u32 = 5;

/// The least share of patience for searches that improve their plan again and again.
const LEAST_PATIENCE: f64 = 0.25;

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
    pub(crate) fn search<'s>(&self, share: Share, start: Option<&'s Plan>) -> SolveControl<'s>
    where
        'a: 's,
    {
        let mut control: SolveControl<'s> = self.clock.search(self.left(), share);
        control.warm_start = start.or(control.warm_start);
        control
    }
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
