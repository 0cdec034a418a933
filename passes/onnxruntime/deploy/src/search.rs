//! One plan within its share of the time: its file keeps the budget, and suits the arena.

use std::time::Duration;

use remat::{Goal, Solution, SolveRequest, explained};
use remat_onnxruntime_run::RuntimeError;
use remat_plan::{BudgetSpec, Plan, Status};
use remat_solve::Activity;

use crate::candidate::Candidate;
use crate::clock::{Effort, LeftOut, PlanOf, Share, Span};
use crate::context::Context;
use crate::error::DeployError;
use crate::file::{Planned, Task};

/// How often is searched at most, each time with a lower budget, because the runtime takes more than the plan has.
const SEARCHES: usize = 4;

/// By how much of the peak, in thousandths, a plan may be higher that suits the arena.
const LITTLE_MORE_PERMILLE: u64 = 15;

/// Where the best plan is found at once, how many more of that kind are looked at for one that suits the arena.
const OTHER_PLANS: u64 = 5;

/// The time for the plan of a candidate; all of it where nothing is measured.
pub(crate) fn time_for(context: &Context<'_, '_>, candidate: &Candidate) -> (Option<Duration>, Span) {
    let (clock, opened) = (context.clock, &candidate.opened);
    let Some(measures) = context.measures else {
        return (clock.left(), Span::Whole);
    };
    clock.time_for(&PlanOf {
        is_bounded: context.request.is_bounded(),
        is_in_tiles: opened.is_tiled(),
        others: opened.others,
        round: candidate.round,
        ops: (!candidate.is_long).then(|| opened.model.problem().ops.len()),
        file: opened.file,
        run: measures.took(),
        completing: measures.completing(),
    })
}

/// A plan for a candidate within `time`, and its file: the one that is known, else that of `start` made better by searching.
///
/// # Errors
/// Those of [`remat::solve`]; [`DeployError::Runtime`] after a cancellation, where there is no time to measure what would come of the plan.
pub(crate) fn plan(task: &Task<'_, '_>, time: Option<Duration>, start: Option<&Plan>) -> Result<Planned, DeployError> {
    let (request, model) = (task.context.request, task.model());
    let mut effort = Effort::new(task.context.clock, time, task.opened().file);
    let known = match (&task.candidate.plan, request.plan) {
        (Some(solution), _) => Some(solution.clone()),
        _ if !task.opened().strategy.recipe().rewrites => Some(Solution::baseline(model)?),
        (None, Some(file)) => Some(remat::check_plan(model, file)?),
        (None, None) => None,
    };
    if let Some(solution) = known {
        return task.file(solution, &effort);
    }
    let mut search = Search::begin(task, &effort)?;
    loop {
        if let Some(planned) = search.once(&mut effort, start)? {
            return Ok(planned);
        }
    }
}

/// The searches for one plan. What the runtime takes beyond the plan comes off the budget of the search.
struct Search<'t> {
    task: &'t Task<'t, 't>,
    /// What is asked of the solver.
    asked: SolveRequest,
    /// The budget of the file.
    budget: Option<u64>,
    /// What came off it before the first search.
    besides: u64,
    searches: usize,
    /// What was found, if it exceeds the budget still.
    best: Option<Planned>,
}

impl<'t> Search<'t> {
    fn begin(task: &'t Task<'t, 't>, effort: &Effort<'_, '_>) -> Result<Self, DeployError> {
        let model = task.model();
        let mut asked = task.opened().solve.on_device(model)?;
        asked.max_overhead = task.candidate.max_overhead.or(asked.max_overhead);
        let budget = asked.budget.bytes(model.baseline_peak().bytes);
        let mut besides = 0;
        if let Some(budget) = budget {
            // Tables of the runtime, and small results of nodes that are added, as far as the model without a plan shows them.
            let without = task.file(Solution::baseline(model)?, effort)?;
            let beyond = without
                .prediction
                .peak_bytes
                .saturating_sub(without.solution.replay.peak);
            besides = task.candidate.margin.saturating_add(beyond);
            asked.budget = BudgetSpec::Bytes(budget.saturating_sub(besides));
        }
        Ok(Self {
            task,
            asked,
            budget,
            besides,
            searches: 0,
            best: None,
        })
    }

    /// Searches once, from the best plan so far or else from `start`, and simulates the file of what is found. `None` where the file exceeds
    /// the budget and another search is to follow.
    fn once(&mut self, effort: &mut Effort<'_, '_>, start: Option<&Plan>) -> Result<Option<Planned>, DeployError> {
        let (task, clock) = (self.task, effort.clock);
        let (request, model) = (task.context.request, task.model());
        clock.begins(Activity::Plan, "");
        let known = self.best.as_ref().map(|best| &best.solution.plan).or(start);
        let share = self.budget.map_or(Share::Whole, |_| Share::Budgeted);
        let solution = match remat::solve(model, &self.asked, &effort.search(share, known)) {
            Ok(solution) => solution,
            Err(error) => match self.refused(error, effort)? {
                Refused::Best(best) => return Ok(Some(*best)),
                Refused::Again => return Ok(None),
                Refused::Explained(solution) => *solution,
            },
        };
        if clock.is_cancelled() && request.measure {
            let model = request.input.to_owned();
            return Err(RuntimeError::Cancelled { model }.into());
        }
        let steps = |solution: &Solution| solution.plan.steps.len().max(1) as f64;
        let is_too_large = |best: &mut Planned| {
            let times = steps(&solution) / steps(&best.solution);
            !effort.limit_allows_a_file(times)
        };
        if let Some(best) = self.best.take_if(is_too_large) {
            clock.leave_out(LeftOut::AnotherPlan);
            return Ok(Some(best));
        }
        // A budget that the same plan keeps would lead to the same file.
        let searched = solution.problem.budget.map(|budget| budget.min(solution.replay.peak));
        let planned = task.file(solution, effort)?;
        self.searches += 1;
        let takes = planned.prediction.peak_bytes.saturating_add(task.candidate.margin);
        let beyond = self.budget.map_or(0, |budget| takes.saturating_sub(budget));
        if beyond == 0 {
            return self.suited_to_the_arena(planned, effort).map(Some);
        }
        let may_follow = self.searches < SEARCHES && !clock.is_cancelled();
        if let Some(searched) = searched.filter(|_| may_follow) {
            if effort.has_time_for_a_search() || !task.opened().is_tiled() && effort.extend() {
                // The last one leaves nothing of what is to be had for little time.
                let is_last = self.searches + 1 == SEARCHES;
                self.asked.budget = match is_last {
                    true => BudgetSpec::Auto,
                    false => BudgetSpec::Bytes(searched.saturating_sub(beyond)),
                };
                self.best = Some(self.lower_of(planned));
                return Ok(None);
            }
            clock.leave_out(LeftOut::AnotherPlan);
        }
        let is_lower = |best: &mut Planned| best.prediction.peak_bytes < planned.prediction.peak_bytes;
        match self.best.take_if(is_lower) {
            Some(best) => Ok(Some(best)),
            None => self.suited_to_the_arena(planned, effort).map(Some),
        }
    }

    /// The lower one of the best file so far and a new one.
    fn lower_of(&mut self, planned: Planned) -> Planned {
        let is_lower = |best: &Planned| best.prediction.peak_bytes <= planned.prediction.peak_bytes;
        match self.best.take() {
            Some(best) if is_lower(&best) => best,
            _ => planned,
        }
    }

    /// What follows a search without a plan.
    fn refused(&mut self, error: remat::Error, effort: &Effort<'_, '_>) -> Result<Refused, DeployError> {
        let margin = self.task.candidate.margin;
        if let Some(best) = self.best.take() {
            // It is within the budget but for what the runtime adds.
            return Ok(Refused::Best(Box::new(best)));
        }
        let may_ask_for_more = self.besides > margin && !effort.clock.is_cancelled();
        if let Some(budget) = self.budget.filter(|_| may_ask_for_more) {
            // What the runtime takes beside a plan may be less than beside the baseline.
            self.besides = margin;
            self.asked.budget = BudgetSpec::Bytes(budget.saturating_sub(margin));
            return Ok(Refused::Again);
        }
        if margin > 0 {
            return Err(error.into());
        }
        let (model, control) = (self.task.model(), effort.search(Share::Whole, None));
        let asked = &self.task.opened().solve;
        let solution = explained(error, model, asked, Goal::default(), &control, self.besides)?;
        Ok(Refused::Explained(Box::new(solution)))
    }

    /// A plan that is as good as `best`, or higher by little where no budget is to be kept, and takes less where the arena is left on, among
    /// a few, as far as there is time; looked for where plans of that kind are found quickly.
    fn suited_to_the_arena(&self, mut best: Planned, effort: &Effort<'_, '_>) -> Result<Planned, DeployError> {
        let (task, clock) = (self.task, effort.clock);
        let model = task.model();
        let is_free = best.solution.replay.duration == model.baseline().duration;
        if !task.context.request.arena || !is_free && !is_quickly_optimal(&best.solution, effort) {
            return Ok(best);
        }
        let little_more = best.prediction.peak_bytes / 1_000 * (1_000 + LITTLE_MORE_PERMILLE);
        let within = |budget: u64| budget.saturating_sub(task.candidate.margin);
        let highest = self.budget.map_or(little_more, within);
        let mut asked = self.asked.clone();
        if best.solution.problem.budget.is_some() && asked.budget.bytes(0).is_none() {
            // The lowest budget is known now.
            asked.budget = BudgetSpec::Bytes(best.solution.replay.peak / 1_000 * (1_000 + LITTLE_MORE_PERMILLE));
        }
        for seed in 1..=OTHER_PLANS {
            if clock.is_cancelled() {
                break;
            }
            if !effort.has_time_for_a_search() {
                clock.leave_out(LeftOut::OtherPlans);
                break;
            }
            clock.begins(Activity::Plan, &format!("for the arena {seed}/{OTHER_PLANS}"));
            let control = effort.search(Share::OneOf(OTHER_PLANS + 1 - seed), None);
            let Ok(solution) = remat::solve(model, &asked, &control.seed(control.seed + seed)) else {
                continue;
            };
            let other = task.file(solution, effort)?;
            let is_as_good = other.prediction.peak_bytes <= highest
                && other.solution.replay.duration <= best.solution.replay.duration;
            if is_as_good && task.in_the_arena(&other.prediction)? < task.in_the_arena(&best.prediction)? {
                best = other;
            }
        }
        Ok(best)
    }
}

/// What follows a search without a plan.
enum Refused {
    /// The best file so far.
    Best(Box<Planned>),
    /// A search that asks for less.
    Again,
    /// A plan that was found when the refusal was to be explained.
    Explained(Box<Solution>),
}

/// Whether other plans are to be had that are as good, in a fraction of the time.
fn is_quickly_optimal(solution: &Solution, effort: &Effort<'_, '_>) -> bool {
    let time = effort.clock.limit().unwrap_or(Duration::MAX);
    let proof = solution
        .certificate
        .as_ref()
        .filter(|proof| proof.status == Status::Optimal);
    proof.is_some_and(|proof| Duration::from_millis(proof.elapsed_ms) * 4 < time)
}
