//! One plan within its share of the time: its file keeps the budget, and suits the arena.

use remat::{Goal, Model, Solution, SolveRequest, explained};
use remat_onnxruntime_run::RuntimeError;
use remat_plan::{BudgetSpec, Plan, Status};
use remat_solve::Activity;

use std::time::Duration;

use crate::DeployError;
use crate::clock::{Effort, LeftOut};
use crate::file::{Planned, Task};

/// How often is searched at most, each time with a lower budget, because the runtime takes more than the plan has.
const SEARCHES: usize = 4;

/// By how much of the peak, in thousandths, a plan may be higher that suits the arena.
const LITTLE_MORE_PERMILLE: u64 = 15;

/// Where the best plan is found at once, how many more of that kind are looked at for one that suits the arena.
const OTHER_PLANS: u64 = 5;

/// Share of the time left for a search that another one may have to follow, because the written file exceeds the budget.
const FIRST_SEARCH: f64 = 0.7;

/// The searches for one plan. What the runtime takes beyond the plan comes off the budget of the search.
pub(crate) struct Round<'c, 'a> {
    effort: Effort<'c, 'a>,
    /// Bytes by which a measured peak was above its prediction.
    margin: u64,
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

impl<'c, 'a> Round<'c, 'a> {
    /// A round that leaves `margin` bytes of the budget free.
    pub(crate) fn begin(task: &Task<'_>, effort: Effort<'c, 'a>, margin: u64) -> Result<Self, DeployError> {
        let Task { solve, model, .. } = *task;
        let mut asked = solve.on_device(model)?;
        let budget = asked.budget.bytes(model.baseline_peak().bytes);
        let mut besides = 0;
        if let Some(budget) = budget {
            besides = margin.saturating_add(beyond_the_plan(task, &effort)?);
            asked.budget = BudgetSpec::Bytes(budget.saturating_sub(besides));
        }
        Ok(Self {
            effort,
            margin,
            asked,
            budget,
            besides,
            searches: 0,
            best: None,
        })
    }

    /// Searches once, from the best plan so far or else from `start`, and simulates the file of what is found. `None` where the file exceeds
    /// the budget and another search is to follow.
    pub(crate) fn search(&mut self, task: &Task<'_>, start: Option<&Plan>) -> Result<Option<Planned>, DeployError> {
        let Task { request, model, .. } = *task;
        let clock = self.effort.clock;
        clock.begins(Activity::Plan, "");
        let known = self.best.as_ref().map(|best| &best.solution.plan).or(start);
        let share = if self.budget.is_some() { FIRST_SEARCH } else { 1.0 };
        let solution = match remat::solve(model, &self.asked, &self.effort.search(share, known)) {
            Ok(solution) => solution,
            Err(error) => match self.best.take() {
                // It is within the budget but for what the runtime adds.
                Some(best) => return Ok(Some(best)),
                None => {
                    if let Some(budget) = self
                        .budget
                        .filter(|_| self.besides > self.margin && !clock.is_cancelled())
                    {
                        // What the runtime takes beside a plan may be less than beside the baseline.
                        self.besides = self.margin;
                        self.asked.budget = BudgetSpec::Bytes(budget.saturating_sub(self.margin));
                        return Ok(None);
                    }
                    if self.margin > 0 {
                        return Err(error.into());
                    }
                    let control = self.effort.search(1.0, None);
                    explained(error, model, task.solve, Goal::default(), &control, self.besides)?
                }
            },
        };
        if clock.is_cancelled() && request.measure {
            // There is no time to measure what would come of it.
            let model = request.input.to_owned();
            return Err(RuntimeError::Cancelled { model }.into());
        }
        let steps = |solution: &Solution| solution.plan.steps.len().max(1) as f64;
        let is_too_large = |best: &mut Planned| {
            let times = steps(&solution) / steps(&best.solution);
            !self.effort.limit_allows_a_file(times)
        };
        if let Some(best) = self.best.take_if(is_too_large) {
            clock.leave_out(LeftOut::AnotherPlan);
            return Ok(Some(best));
        }
        // A budget that the same plan keeps would lead to the same file.
        let searched = solution.problem.budget.map(|budget| budget.min(solution.replay.peak));
        let planned = task.file(solution, &self.effort)?;
        self.searches += 1;
        let takes = planned.prediction.peak_bytes.saturating_add(self.margin);
        let beyond = self.budget.map_or(0, |budget| takes.saturating_sub(budget));
        let may_follow = beyond > 0 && self.searches < SEARCHES && !clock.is_cancelled();
        if let Some(searched) = searched.filter(|_| may_follow) {
            if self.effort.has_time_for_a_search() || !task.strategy.recipe().tiles && self.effort.extend() {
                // The last one leaves nothing of what is to be had for little time.
                let is_last = self.searches + 1 == SEARCHES;
                self.asked.budget = match is_last {
                    true => BudgetSpec::Auto,
                    false => BudgetSpec::Bytes(searched.saturating_sub(beyond)),
                };
                if self
                    .best
                    .as_ref()
                    .is_none_or(|best| planned.prediction.peak_bytes < best.prediction.peak_bytes)
                {
                    self.best = Some(planned);
                }
                return Ok(None);
            }
            clock.leave_out(LeftOut::AnotherPlan);
        }
        if beyond > 0
            && let Some(best) = self
                .best
                .take_if(|best| best.prediction.peak_bytes < planned.prediction.peak_bytes)
        {
            return Ok(Some(best));
        }
        let is_free = planned.solution.replay.duration == model.baseline().duration;
        if request.arena && (is_free || self.is_quickly_optimal(&planned.solution)) {
            return self.suited_to_the_arena(task, planned).map(Some);
        }
        Ok(Some(planned))
    }

    /// What the file of a plan may take that is no worse than `best`: the budget, or a little more where none is to be kept.
    fn highest(&self, best: &Planned) -> u64 {
        let little_more = best.prediction.peak_bytes / 1_000 * (1_000 + LITTLE_MORE_PERMILLE);
        self.budget
            .map_or(little_more, |budget| budget.saturating_sub(self.margin))
    }

    /// A plan that is as good as `best`, or higher by little where no budget is to be kept, and takes less where the arena is left on, among
    /// a few, as far as there is time.
    fn suited_to_the_arena(&self, task: &Task<'_>, mut best: Planned) -> Result<Planned, DeployError> {
        let model = task.model;
        let clock = self.effort.clock;
        let highest = self.highest(&best);
        let mut asked = self.asked.clone();
        if best.solution.problem.budget.is_some() && asked.budget.bytes(0).is_none() {
            // The lowest budget is known now.
            asked.budget = BudgetSpec::Bytes(best.solution.replay.peak / 1_000 * (1_000 + LITTLE_MORE_PERMILLE));
        }
        for seed in 1..=OTHER_PLANS {
            if clock.is_cancelled() {
                break;
            }
            if !self.effort.has_time_for_a_search() {
                clock.leave_out(LeftOut::OtherPlans);
                break;
            }
            clock.begins(Activity::Plan, &format!("for the arena {seed}/{OTHER_PLANS}"));
            let control = self.effort.search(1.0 / (OTHER_PLANS + 1 - seed) as f64, None);
            let Ok(solution) = remat::solve(model, &asked, &control.seed(control.seed + seed)) else {
                continue;
            };
            let other = task.file(solution, &self.effort)?;
            let is_as_good = other.prediction.peak_bytes <= highest
                && other.solution.replay.duration <= best.solution.replay.duration;
            if is_as_good && task.in_the_arena(&other.prediction)? < task.in_the_arena(&best.prediction)? {
                best = other;
            }
        }
        Ok(best)
    }

    /// Whether other plans are to be had that are as good, in a fraction of the time.
    fn is_quickly_optimal(&self, solution: &Solution) -> bool {
        let time = self.effort.clock.limit().unwrap_or(Duration::MAX);
        let proved = solution
            .certificate
            .as_ref()
            .filter(|proof| proof.status == Status::Optimal);
        proved.is_some_and(|proof| Duration::from_millis(proof.elapsed_ms) * 4 < time)
    }
}

/// The plan that needs no search: that of a strategy which rewrites nothing, or one that is given.
pub(crate) fn without_search(task: &Task<'_>) -> Result<Option<Solution>, DeployError> {
    Ok(match task.request.plan {
        _ if !task.strategy.recipe().rewrites => Some(baseline(task.model)?),
        Some(file) => Some(remat::check_plan(task.model, file)?),
        None => None,
    })
}

fn baseline(model: &Model) -> Result<Solution, DeployError> {
    Ok(Solution::baseline(model)?)
}

/// What the runtime takes on top of the plan's peak (tables, small results of nodes that were added), as far as the baseline shows it.
fn beyond_the_plan(task: &Task<'_>, effort: &Effort<'_, '_>) -> Result<u64, DeployError> {
    let planned = task.file(baseline(task.model)?, effort)?;
    let peak = planned.solution.replay.peak;
    Ok(planned.prediction.peak_bytes.saturating_sub(peak))
}
