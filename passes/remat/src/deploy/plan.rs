//! A plan for the runtime: the budget is kept by the file that comes of it, and the file suits the arena.

use std::time::{Duration, Instant};

use remat_plan::{BudgetSpec, Status};
use remat_solve::SolveControl;
use remat_target::{Lowered, LoweringOptions, LoweringReport, OrderHint};

use super::promise::{Promise, promise};
use super::run::{DeployRequest, onnx};
use super::variant::Variant;
use crate::{Error, Model, Solution, SolveRequest};

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

/// How long and how hard each search may try.
pub(crate) struct Effort<'a> {
    control: SolveControl<'a>,
    time: Option<Duration>,
}

impl<'a> Effort<'a> {
    pub(crate) fn of(control: &SolveControl<'a>) -> Self {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        Self {
            control: *control,
            time: control.deadline.map(left),
        }
    }

    /// For a search that begins now.
    fn starting_now(&self) -> SolveControl<'a> {
        self.time.map_or(self.control, |time| self.control.time_limit(time))
    }
}

/// A plan and its file.
pub(crate) struct Planned {
    pub(crate) solution: Solution,
    pub(crate) lowered: Lowered,
    pub(crate) promise: Promise,
}

/// A plan whose file, simulated, keeps the budget: what the runtime takes beyond the plan comes off the budget of the search, and so do
/// bytes that the simulation is known to leave out.
pub(crate) fn plan(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_>,
    left_out: u64,
) -> Result<Planned, Error> {
    if variant == Variant::Untouched {
        return as_it_came(request, model, effort);
    }
    if let Some(file) = request.plan {
        return lower(request, variant, model, crate::check_plan(model, file)?);
    }
    let budget = request.solve.budget.bytes(model.baseline().peak);
    let mut asked = request.solve.clone();
    if let Some(budget) = budget {
        let beyond = left_out.saturating_add(beyond_the_plan(request, variant, model, effort)?);
        asked.budget = BudgetSpec::Bytes(budget.saturating_sub(beyond));
    }
    let mut best: Option<Planned> = None;
    for _ in 0..TIGHTENINGS {
        let solution = match crate::solve(model, &asked, &effort.starting_now()) {
            Ok(solution) => solution,
            // What is found already is within the budget but for what the runtime adds.
            Err(error) => return best.ok_or(error),
        };
        let searched = solution.problem.budget;
        let planned = lower(request, variant, model, solution)?;
        let takes = planned.promise.peak_bytes.saturating_add(left_out);
        best = Some(planned);
        let beyond = budget.map_or(0, |budget| takes.saturating_sub(budget));
        let Some(searched) = searched.filter(|_| beyond > 0) else {
            break;
        };
        asked.budget = BudgetSpec::Bytes(searched.saturating_sub(beyond));
    }
    let best = best.ok_or_else(|| Error::NoVariant { abandoned: Vec::new() })?;
    let is_free = best.solution.replay.duration == model.baseline().duration;
    if request.arena && (is_free || is_quickly_optimal(&best.solution, effort)) {
        return suit_the_arena(request, variant, model, effort, &asked, best);
    }
    Ok(best)
}

/// The model as it came.
fn as_it_came(request: &DeployRequest<'_>, model: &Model, effort: &Effort<'_>) -> Result<Planned, Error> {
    let solution = crate::solve(model, &without_budget(), &effort.starting_now())?;
    let lowered = Lowered {
        proto: onnx(model, request)?.proto().clone(),
        report: LoweringReport::default(),
        reserve: None,
    };
    let graph = crate::rewrite(model, &solution)?.unwrap_or_default();
    let promise = promise(model, &graph, &lowered, request.order)?;
    Ok(Planned {
        solution,
        lowered,
        promise,
    })
}

/// A plan that is as good as `best`, or higher by little where no budget is to be kept, and takes less where the arena is left on, among
/// a few.
fn suit_the_arena(
    request: &DeployRequest<'_>,
    variant: Variant,
    model: &Model,
    effort: &Effort<'_>,
    asked: &SolveRequest,
    mut best: Planned,
) -> Result<Planned, Error> {
    let little_more = best.promise.peak_bytes / 1_000 * (1_000 + LITTLE_MORE_PERMILLE);
    let highest = request.solve.budget.bytes(model.baseline().peak).unwrap_or(little_more);
    let mut asked = asked.clone();
    if best.solution.problem.budget.is_some() && asked.budget.bytes(0).is_none() {
        // The lowest budget is known now.
        asked.budget = BudgetSpec::Bytes(best.solution.replay.peak / 1_000 * (1_000 + LITTLE_MORE_PERMILLE));
    }
    for seed in 1..=OTHER_PLANS {
        let control = effort.starting_now();
        let Ok(solution) = crate::solve(model, &asked, &control.seed(control.seed + seed)) else {
            continue;
        };
        let other = lower(request, variant, model, solution)?;
        let is_as_good =
            other.promise.peak_bytes <= highest && other.solution.replay.duration <= best.solution.replay.duration;
        if is_as_good && other.promise.arena_square() < best.promise.arena_square() {
            best = other;
        }
    }
    Ok(best)
}

/// Whether other plans are to be had that are as good, in a fraction of the time.
fn is_quickly_optimal(solution: &Solution, effort: &Effort<'_>) -> bool {
    let time = effort.time.unwrap_or(Duration::MAX);
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
    effort: &Effort<'_>,
) -> Result<u64, Error> {
    let solution = crate::solve(model, &without_budget(), &effort.starting_now())?;
    let planned = lower(request, variant, model, solution)?;
    let peak = planned.solution.replay.peak;
    Ok(planned.promise.peak_bytes.saturating_sub(peak))
}

/// What asks for nothing: the search has nothing to look for.
fn without_budget() -> SolveRequest {
    SolveRequest {
        budget: BudgetSpec::None,
        max_overhead: 0,
        solver: "search".to_owned(),
    }
}

/// The file, and what the simulated runtime makes of it.
fn lower(request: &DeployRequest<'_>, variant: Variant, model: &Model, solution: Solution) -> Result<Planned, Error> {
    let refused = || Error::NotForRuntime {
        path: request.input.to_owned(),
    };
    let graph = crate::rewrite(model, &solution)?.ok_or_else(refused)?;
    let options = variant.options(request.order);
    let write_as = |options: &LoweringOptions| {
        let lowered = remat_target::lower(onnx(model, request)?, &graph, options)?;
        let promise = promise(model, &graph, &lowered, request.order)?;
        Ok::<_, Error>((lowered, promise))
    };
    // Where the runtime's order is as good without readers, they are left out: they cost time, and blocked layouts are undone for them.
    let mut order = request.order;
    if order == OrderHint::Any {
        let lean = LoweringOptions {
            order: OrderHint::Priority,
            ..options
        };
        let (with, without) = (write_as(&options)?.1, write_as(&lean)?.1);
        if without.peak_bytes <= with.peak_bytes && without.arena_square() <= with.arena_square() {
            order = OrderHint::Priority;
        }
    }
    let write = |reserve: u64| {
        write_as(&LoweringOptions {
            order,
            reserve,
            ..options
        })
    };
    let plain = write(0)?;
    if !(request.arena && options.hide_shapes) {
        return Ok(planned(solution, plain));
    }
    let mut best = plain.clone();
    for reserve in reserves(plain.1.peak_bytes.min(fillable(request, model))) {
        let tried = write(reserve)?;
        if tried.0.report.reserved > 0 && tried.1.arena_square() < best.1.arena_square() {
            best = tried;
        }
    }
    let enough = plain.1.arena_square() / 1_000_000 * LEAST_GAIN_PERMILLE * LEAST_GAIN_PERMILLE;
    let written = if best.1.arena_square() <= enough { best } else { plain };
    Ok(planned(solution, written))
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
