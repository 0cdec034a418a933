//! A plan for the runtime: the budget is kept by the file that comes of it, and the file suits the arena.

use std::cell::Cell;
use std::time::{Duration, Instant};

use remat_onnxruntime_lower::{Lowered, LoweringOptions, LoweringReport, OrderHint};
use remat_onnxruntime_run::RuntimeError;
use remat_plan::{BudgetSpec, Plan, Status};
use remat_solve::{Activity, SolveControl};

use crate::DeployError;
use crate::clock::{Clock, LeftOut};
use crate::promise::{Promise, promise};
use crate::run::{DeployRequest, onnx};
use crate::variant::Variant;
use remat::explained;
use remat::{Goal, Model, Solution, SolveRequest};

/// How often the budget of the search is lowered, if need be, because the runtime takes more than the plan has.
const TIGHTENINGS: usize = 3;

/// By how much of the peak, in thousandths, a plan may be higher that suits the arena.
const LITTLE_MORE_PERMILLE: u64 = 15;

/// Where the best plan is found at once, how many more of that kind are looked at for one that suits the arena.
const OTHER_PLANS: u64 = 5;

/// Share of a run, in thousandths, that filling a reserve may take at a tenth of the device's bandwidth, which is that of a cache.
const MOST_FILLING_PERMILLE: u64 = 10;

/// What a reserve must leave of the arena's memory at most, in thousandths, to be worth the time to fill it.
const LEAST_GAIN_PERMILLE: u128 = 900;

/// Share of the time left for a search that another one may have to follow, because the written file exceeds the budget.
const FIRST_SEARCH: f64 = 0.7;

/// How many files are made of a plan in any case.
const FILES: u32 = 2;

/// The time for one plan: its searches, and the files that are made of it.
pub(crate) struct Effort<'c, 'a> {
    clock: &'c Clock<'a>,
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

    /// Time left for searching; `None` without a limit.
    fn left(&self) -> Option<Duration> {
        let left = self.end?.saturating_duration_since(Instant::now());
        // Where making files takes long, searching has half of the time all the same.
        Some(left.saturating_sub(self.file.get() * FILES).max(left / 2))
    }

    /// Whether there is time for another file.
    fn has_time_for_a_file(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() + self.file.get() <= end)
    }

    /// Whether there is time for another search, and for the files that are made of its plan.
    fn has_time_for_a_search(&self) -> bool {
        self.end
            .is_none_or(|end| Instant::now() + self.file.get() * (FILES + 1) <= end)
    }

    /// The limits of a search that begins now, from a plan that is known.
    fn search<'s>(&self, share: f64, start: Option<&'s Plan>) -> SolveControl<'s>
    where
        'a: 's,
    {
        let mut control: SolveControl<'s> = self.clock.search(self.left(), share);
        control.warm_start = start.or(control.warm_start);
        control
    }
}

/// A plan and its file.
pub(crate) struct Planned {
    pub(crate) solution: Solution,
    pub(crate) lowered: Lowered,
    pub(crate) promise: Promise,
}

/// A plan whose file, simulated, keeps the budget: what the runtime takes beyond the plan comes off the budget of the search, and so do
/// bytes that the simulation is known to leave out. The search starts from `start`.
pub(crate) fn plan(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_, '_>,
    left_out: u64,
    start: Option<&Plan>,
) -> Result<Planned, DeployError> {
    if variant == Variant::Untouched {
        return as_it_came(request, model, effort);
    }
    if let Some(file) = request.plan {
        return lower(request, variant, model, effort, remat::check_plan(model, file)?);
    }
    let mut asked = request.solve.on_device(model)?;
    let budget = asked.budget.bytes(model.baseline().peak);
    let mut besides = 0;
    if let Some(budget) = budget {
        besides = left_out.saturating_add(beyond_the_plan(request, variant, model, effort)?);
        asked.budget = BudgetSpec::Bytes(budget.saturating_sub(besides));
    }
    let share = if budget.is_some() { FIRST_SEARCH } else { 1.0 };
    let mut best: Option<Planned> = None;
    for _ in 0..TIGHTENINGS {
        effort.clock.begins(Activity::Plan, "");
        let known = best.as_ref().map(|best| &best.solution.plan).or(start);
        let solution = match remat::solve(model, &asked, &effort.search(share, known)) {
            Ok(solution) => solution,
            // What is found already is within the budget but for what the runtime adds.
            Err(error) if best.is_some() || left_out > 0 => return best.ok_or(error.into()),
            Err(error) => {
                let control = effort.search(1.0, None);
                explained(error, model, request.solve, Goal::default(), &control, besides)?
            }
        };
        if effort.clock.is_cancelled() && request.measure {
            // There is no time to measure what would come of it.
            let model = request.input.to_owned();
            return Err(RuntimeError::Cancelled { model }.into());
        }
        let searched = solution.problem.budget;
        let planned = lower(request, variant, model, effort, solution)?;
        let takes = planned.promise.peak_bytes.saturating_add(left_out);
        best = Some(planned);
        let beyond = budget.map_or(0, |budget| takes.saturating_sub(budget));
        let Some(searched) = searched.filter(|_| beyond > 0) else {
            break;
        };
        if effort.clock.is_cancelled() {
            break;
        }
        if !effort.has_time_for_a_search() {
            effort.clock.leave_out(LeftOut::AnotherPlan);
            break;
        }
        asked.budget = BudgetSpec::Bytes(searched.saturating_sub(beyond));
    }
    let best = best.ok_or_else(|| DeployError::NoVariant { abandoned: Vec::new() })?;
    let is_free = best.solution.replay.duration == model.baseline().duration;
    if request.arena && (is_free || is_quickly_optimal(&best.solution, effort)) {
        return suit_the_arena(request, variant, model, effort, &asked, best);
    }
    Ok(best)
}

/// The model as it came.
fn as_it_came(request: &DeployRequest<'_>, model: &Model, effort: &Effort<'_, '_>) -> Result<Planned, DeployError> {
    let solution = remat::solve(model, &without_budget(), &effort.search(1.0, None))?;
    let lowered = Lowered {
        proto: onnx(model, request)?.proto().clone(),
        report: LoweringReport::default(),
        reserve: None,
    };
    let graph = remat::rewrite(model, &solution)?.unwrap_or_default();
    let promise = promise(model, &graph, &lowered, request.order)?;
    Ok(Planned {
        solution,
        lowered,
        promise,
    })
}

/// A plan that is as good as `best`, or higher by little where no budget is to be kept, and takes less where the arena is left on, among
/// a few, as far as there is time.
fn suit_the_arena(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_, '_>,
    asked: &SolveRequest,
    mut best: Planned,
) -> Result<Planned, DeployError> {
    let little_more = best.promise.peak_bytes / 1_000 * (1_000 + LITTLE_MORE_PERMILLE);
    let highest = request.solve.budget.bytes(model.baseline().peak).unwrap_or(little_more);
    let mut asked = asked.clone();
    if best.solution.problem.budget.is_some() && asked.budget.bytes(0).is_none() {
        // The lowest budget is known now.
        asked.budget = BudgetSpec::Bytes(best.solution.replay.peak / 1_000 * (1_000 + LITTLE_MORE_PERMILLE));
    }
    for seed in 1..=OTHER_PLANS {
        if effort.clock.is_cancelled() {
            break;
        }
        if !effort.has_time_for_a_search() {
            effort.clock.leave_out(LeftOut::OtherPlans);
            break;
        }
        effort
            .clock
            .begins(Activity::Plan, &format!("for the arena {seed}/{OTHER_PLANS}"));
        let control = effort.search(1.0 / (OTHER_PLANS + 1 - seed) as f64, None);
        let Ok(solution) = remat::solve(model, &asked, &control.seed(control.seed + seed)) else {
            continue;
        };
        let other = lower(request, variant, model, effort, solution)?;
        let is_as_good =
            other.promise.peak_bytes <= highest && other.solution.replay.duration <= best.solution.replay.duration;
        if is_as_good && other.promise.arena_square() < best.promise.arena_square() {
            best = other;
        }
    }
    Ok(best)
}

/// Whether other plans are to be had that are as good, in a fraction of the time.
fn is_quickly_optimal(solution: &Solution, effort: &Effort<'_, '_>) -> bool {
    let time = effort.clock.limit().unwrap_or(Duration::MAX);
    let proved = solution
        .certificate
        .as_ref()
        .filter(|proof| proof.status == Status::Optimal);
    proved.is_some_and(|proof| Duration::from_millis(proof.elapsed_ms) * 4 < time)
}

/// What the runtime takes on top of the plan's peak (tables, small results of nodes that were added), as far as the baseline shows it.
fn beyond_the_plan(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_, '_>,
) -> Result<u64, DeployError> {
    let solution = remat::solve(model, &without_budget(), &effort.search(1.0, None))?;
    let planned = lower(request, variant, model, effort, solution)?;
    let peak = planned.solution.replay.peak;
    Ok(planned.promise.peak_bytes.saturating_sub(peak))
}

/// What asks for nothing: the search has nothing to look for.
fn without_budget() -> SolveRequest {
    SolveRequest {
        budget: BudgetSpec::None,
        max_overhead: None,
        solver: "search".to_owned(),
    }
}

/// The file, and what the simulated runtime makes of it.
fn lower(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_, '_>,
    solution: Solution,
) -> Result<Planned, DeployError> {
    let refused = || DeployError::NotForRuntime {
        path: request.input.to_owned(),
    };
    let clock = effort.clock;
    let graph = remat::rewrite(model, &solution)?.ok_or_else(refused)?;
    let options = variant.options(request.order);
    let write = |options: &LoweringOptions| {
        let started = Instant::now();
        clock.begins(Activity::Lower, "");
        let lowered = remat_onnxruntime_lower::lower(onnx(model, request)?, &graph, options)?;
        clock.begins(Activity::Simulate, "");
        let promise = promise(model, &graph, &lowered, request.order)?;
        effort.file.set(started.elapsed());
        Ok::<_, DeployError>((lowered, promise))
    };
    // Where the runtime's order is as good without readers, they are left out: they cost time, and blocked layouts are undone for them.
    let mut order = request.order;
    let mut plain = write(&options)?;
    if order == OrderHint::Any {
        let lean = write(&LoweringOptions {
            order: OrderHint::Priority,
            ..options
        })?;
        if lean.1.peak_bytes <= plain.1.peak_bytes && lean.1.arena_square() <= plain.1.arena_square() {
            (order, plain) = (OrderHint::Priority, lean);
        }
    }
    if !(request.arena && options.hide_shapes) {
        return Ok(planned(solution, plain));
    }
    let enough = plain.1.arena_square() / 1_000_000 * LEAST_GAIN_PERMILLE * LEAST_GAIN_PERMILLE;
    let mut best: Option<(Lowered, Promise)> = None;
    for reserve in reserves(plain.1.peak_bytes.min(fillable(request, model))) {
        if clock.is_cancelled() {
            break;
        }
        if !effort.has_time_for_a_file() {
            clock.leave_out(LeftOut::Reserves);
            break;
        }
        let tried = write(&LoweringOptions {
            order,
            reserve,
            ..options
        })?;
        let square = tried.1.arena_square();
        let is_better = best.as_ref().is_none_or(|(_, best)| square < best.arena_square());
        if tried.0.report.reserved > 0 && square <= enough && is_better {
            best = Some(tried);
        }
    }
    Ok(planned(solution, best.unwrap_or(plain)))
}

fn planned(solution: Solution, (lowered, promise): (Lowered, Promise)) -> Planned {
    Planned {
        solution,
        lowered,
        promise,
    }
}

/// Bytes that are filled in the time that a reserve may take.
fn fillable(request: &DeployRequest<'_>, model: &Model) -> u64 {
    let bandwidth = request.load.device().map_or(0, |device| device.memory_bytes_per_s / 10);
    let nanoseconds = model.baseline().duration / 1_000 * MOST_FILLING_PERMILLE;
    let bytes = u128::from(bandwidth) * u128::from(nanoseconds) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Reserves that make the arena start with a region of another size, as far as they take no more than a run does anyway.
fn reserves(peak: u64) -> impl Iterator<Item = u64> {
    let just_above = (20..40).map(|power| (1u64 << power) + 4096);
    just_above.take_while(move |&bytes| bytes <= peak)
}
