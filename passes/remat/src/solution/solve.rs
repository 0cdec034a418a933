//! From a budget to a plan that the checker has replayed.

use web_time::Instant;

use remat_cost::Device;
use remat_plan::{BoundCovers, BudgetSpec, Objective, Plan, Problem, Status, StopReason, Structure};
use remat_solve::{Observer, Outcome, SolveControl, Solver, minimize_peak};
use remat_verify::{Code, check_certificate, replay};

use super::accept::accept;
use super::{DEFAULT_OVERHEAD, Solution, SolveError, SolveRequest, longest, prune};
use crate::claims::{agree, refuted};
use crate::registry::usable_solver;
use crate::watch::{Checked, Guard};
use crate::{DeviceCapacity, Error, Goal, Model};

/// Share of the time for finding a budget, where a solver is to find a better plan for it afterwards.
const BUDGET_SHARE: f64 = 0.6;

/// The part of the time in which the lowest peak in one memory is sought, where there is a second one.
const ONE_MEMORY_SHARE: f64 = 0.3;

/// Finds a plan within the budget and has the checker replay it.
///
/// # Errors
/// [`SolveError::Unavailable`] if the solver lacks something, [`SolveError::Infeasible`] if the budget is below what one op needs, [`SolveError::ProvedInfeasible`] if the solver proved that there is no
/// plan, [`SolveError::NoPlanOfItsKind`] if it proved that of fewer plans than all, [`SolveError::NoPlan`] if a limit was reached first;
/// [`SolveError::Rejected`] if the checker does not accept the solver's plan, [`SolveError::FalseClaim`] if a plan that is known refutes what is
/// claimed.
pub fn solve(model: &Model, request: &SolveRequest, control: &SolveControl<'_>) -> Result<Solution, Error> {
    solve_for(model, request, Goal::default(), control)
}

/// [`solve`] for another goal than least time.
///
/// # Errors
/// As [`solve`]; [`SolveError::NoEnergy`] if energy is the objective and no op takes any, [`SolveError::TooLong`] if a plan within the budget takes
/// longer than allowed, [`SolveError::BeyondDevice`] for budgets and plans above the device's memory.
pub fn solve_for(
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    control: &SolveControl<'_>,
) -> Result<Solution, Error> {
    let request = request.on_device(model)?;
    let solution = seek(model, &request, goal, control)?;
    if let Some(capacity) = model.capacity().filter(|_| request.budget != BudgetSpec::None) {
        check(capacity, "the lowest peak found", solution.replay.peak)?;
    }
    Ok(solution)
}

impl SolveRequest {
    /// The request on the device that the model was read for: where the model does not fit as it is, what the device leaves becomes the
    /// budget of `auto`. With `none` nothing is held against the device.
    ///
    /// # Errors
    /// [`SolveError::BeyondDevice`] for a budget above what the device leaves.
    pub fn on_device(&self, model: &Model) -> Result<Self, Error> {
        let mut request = self.clone();
        let baseline = model.baseline().peak;
        let Some(capacity) = model.capacity().filter(|capacity| baseline > capacity.bytes()) else {
            return Ok(request);
        };
        match self.budget {
            BudgetSpec::Auto => request.budget = BudgetSpec::Bytes(capacity.bytes()),
            BudgetSpec::Share(_) | BudgetSpec::Bytes(_) => {
                let budget = self.budget.bytes(model.baseline_peak().bytes).unwrap_or(baseline);
                check(capacity, "the budget", budget)?;
            }
            BudgetSpec::Min | BudgetSpec::None => {}
        }
        Ok(request)
    }
}

/// Refuses what is above the capacity of the device.
fn check(capacity: &DeviceCapacity, what: &'static str, bytes: u64) -> Result<(), SolveError> {
    if bytes <= capacity.bytes() {
        return Ok(());
    }
    Err(SolveError::BeyondDevice {
        what,
        bytes,
        capacity: capacity.clone(),
    })
}

/// [`solve_for`], whatever memory the device has.
pub(crate) fn seek(
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    control: &SolveControl<'_>,
) -> Result<Solution, Error> {
    let solver = usable_solver(&request.solver)?;
    let mut problem = model.problem().clone();
    problem.budget = request.budget.bytes(model.baseline_peak().bytes);
    goal.apply(&mut problem);
    let allowed = request
        .max_overhead
        .map(|share| longest(model.baseline_duration(), share));
    if let Some(allowed) = allowed.filter(|_| problem.objective != Objective::Time) {
        // Nothing else holds a plan to it that is to be good at something else.
        problem.deadline = Some(problem.deadline.map_or(allowed, |deadline| deadline.min(allowed)));
    }
    if problem.objective == Objective::Energy && problem.total_energy() == 0 {
        let with_energy = Device::presets().iter().filter(|device| device.energy.is_some());
        let known: Vec<_> = with_energy.map(|device| device.name.clone()).collect();
        return Err(SolveError::NoEnergy {
            known: known.join("`, `"),
        }
        .into());
    }
    let longest = match request.budget {
        BudgetSpec::Share(_) | BudgetSpec::Bytes(_) | BudgetSpec::None => {
            problem.check(&Structure::of(&problem))?;
            None
        }
        BudgetSpec::Min => Some(allowed.unwrap_or(u64::MAX)),
        BudgetSpec::Auto => Some(allowed.unwrap_or_else(|| longest(model.baseline_duration(), DEFAULT_OVERHEAD))),
    };
    let work = |control: &SolveControl<'_>| match longest {
        None => (problem.clone(), solver.solve(&problem, control)),
        Some(longest) if !problem.is_time_within_budget() => lowest_budget(&problem, longest, solver, control),
        Some(longest) => find_budget(&problem, longest, solver, control),
    };
    let (problem, mut outcome) = watched(&problem, model.baseline_duration(), control, work);
    let is_supported = solver.supports(&problem);
    if !is_supported {
        claim_nothing(&mut outcome);
    }
    agree(&problem, &outcome, control.warm_start)?;
    if control.is_cancelled() {
        outcome.certificate.interrupt();
    }
    let Some(plan) = outcome.plan.take() else {
        return Err(no_plan(&problem, &outcome).into());
    };
    let (problem, plan) = prune(problem, plan);
    if !is_supported && is_only_late(&problem, &plan) {
        return Err(no_plan(&problem, &outcome).into());
    }
    match accept(model, problem, plan, outcome.certificate.clone()) {
        // Durations fit 63 bits, but not the time of a plan that runs ops again: such a plan is none.
        Err(Error::Solve(SolveError::Rejected(rejected))) if rejected.rejection.codes() == [Code::V016] => {
            Err(no_plan(&rejected.problem, &outcome).into())
        }
        result => within(result?, allowed),
    }
}

/// Passes a plan that takes no longer than allowed.
fn within(solution: Solution, allowed: Option<u64>) -> Result<Solution, Error> {
    match allowed.filter(|&allowed| solution.replay.duration > allowed) {
        None => Ok(solution),
        Some(allowed) => Err(SolveError::TooLong {
            found: solution.replay.duration,
            baseline: solution.overhead.baseline,
            allowed,
            bound: solution.bound_on_all_plans(solution.problem.order),
        }
        .into()),
    }
}

/// Takes back what a solver claims that knows time alone: of transfers, energy and deadlines it proves nothing.
fn claim_nothing(outcome: &mut Outcome) {
    let certificate = &mut outcome.certificate;
    (certificate.bound, certificate.bound_covers) = (0, BoundCovers::AllPlans);
    (certificate.evidence, certificate.status) = (None, Status::Unknown);
    certificate.settle();
}

/// Whether a plan misses the deadline and is right otherwise: what comes of a solver that knows no deadlines.
fn is_only_late(problem: &Problem, plan: &Plan) -> bool {
    replay(problem, plan).is_err_and(|rejection| rejection.codes() == [Code::V019])
}

/// Does `work` with a control that shows checked improvements only and watches the memory.
fn watched(
    problem: &Problem,
    baseline: u64,
    control: &SolveControl<'_>,
    work: impl FnOnce(&SolveControl<'_>) -> (Problem, Outcome),
) -> (Problem, Outcome) {
    let mut own = *control;
    let checked = control
        .observer
        .map(|observer| Checked::new(problem, baseline, observer));
    own.observer = checked.as_ref().map(|checked| checked as &dyn Observer);
    let Some(limit) = control.memory_limit else {
        return work(&own);
    };
    let guard = Guard::new(limit, control.cancel);
    own.cancel = Some(&guard.stop);
    let (problem, mut outcome) = guard.run(|| work(&own));
    outcome.certificate.stop = guard.reason(outcome.certificate.stop);
    (problem, outcome)
}

/// The lowest peak within a duration becomes the budget; then the solver seeks the shortest plan within it, from the plan that has
/// that peak. Returns the problem with the budget.
fn find_budget(problem: &Problem, longest: u64, solver: &dyn Solver, control: &SolveControl<'_>) -> (Problem, Outcome) {
    // What the search finds here is all that it would find.
    let refine = !solver.searches() || solver.calls_others();
    let first = if refine {
        control.share_of_time(BUDGET_SHARE)
    } else {
        *control
    };
    let lowest = minimize_peak(problem, (longest < u64::MAX).then_some(longest), &first);
    let mut problem = problem.clone();
    // The plan's own peak is the promise.
    problem.budget = lowest.lowest_peak;
    let over = matches!(lowest.certificate.stop, StopReason::Cancelled);
    if !refine || over || lowest.plan.is_none() || lowest.certificate.status == Status::Optimal {
        return (problem, lowest);
    }
    let mut second = *control;
    second.warm_start = lowest.plan.as_ref();
    let refined = solver.solve(&problem, &second);
    let objective = |outcome: &Outcome| outcome.certificate.objective.unwrap_or(u64::MAX);
    let (mut best, other) = if objective(&refined) <= objective(&lowest) {
        (refined, lowest)
    } else {
        (lowest, refined)
    };
    best.parts.push(other);
    (problem, best)
}

/// The lowest budget at which a solver for problems with a second memory finds a plan no longer than that, by halving, each with a share of
/// the time; from the lowest peak in one memory down, where least time is asked for. Returns the problem with the budget.
fn lowest_budget(
    problem: &Problem,
    longest: u64,
    solver: &dyn Solver,
    control: &SolveControl<'_>,
) -> (Problem, Outcome) {
    const TRIALS: u32 = 8;
    let asked = problem.deadline;
    let mut problem = problem.clone();
    problem.deadline = Some(asked.unwrap_or(u64::MAX).min(longest));
    let mut low = problem
        .bottleneck(&Structure::of(&problem))
        .map_or(0, |most| most.bytes);
    let mut high = None;
    let mut best: Option<(Problem, Outcome)> = None;
    // A solver that does without recomputes, for one, is not given plans with them.
    let mut start = match solver.searches() {
        true => in_one_memory(&problem, longest, &control.share_of_time(ONE_MEMORY_SHARE)),
        false => None,
    };
    for trial in 0..TRIALS {
        let mut own = *control;
        let plan = start.take();
        own.warm_start = plan.as_ref().map(|(plan, _)| plan).or(control.warm_start);
        if let Some(deadline) = control.deadline {
            let now = Instant::now();
            own.deadline = Some(now + deadline.saturating_duration_since(now) / (TRIALS - trial));
        }
        let next = high.map(|high: u64| low + (high - low) / 2);
        problem.budget = plan.as_ref().map_or(next, |&(_, peak)| Some(peak));
        let outcome = solver.solve(&problem, &own);
        let stopped = outcome.certificate.stop == StopReason::Cancelled;
        match outcome.lowest_peak.filter(|_| outcome.plan.is_some()) {
            Some(peak) => {
                high = Some(problem.budget.unwrap_or(peak).min(peak));
                let budgeted = Problem {
                    budget: high,
                    deadline: asked,
                    ..problem.clone()
                };
                best = Some((budgeted, outcome));
            }
            // Not every solver takes the plan that it is given.
            None if plan.is_some() => {}
            None if best.is_none() => return (problem, outcome),
            None => low = problem.budget.map_or(low, |budget| budget + 1),
        }
        if stopped || high.is_some_and(|high| low >= high) {
            break;
        }
    }
    best.unwrap_or_else(|| {
        let outcome = solver.solve(&problem, control);
        (
            Problem {
                deadline: asked,
                ..problem
            },
            outcome,
        )
    })
}

/// The plan of the lowest peak that moves nothing, with its peak, where least time is asked for and it keeps all other limits.
fn in_one_memory(problem: &Problem, longest: u64, control: &SolveControl<'_>) -> Option<(Plan, u64)> {
    let alone = Problem {
        paging: None,
        deadline: None,
        ..problem.clone()
    };
    if !alone.is_time_within_budget() {
        return None;
    }
    let plan = minimize_peak(&alone, (longest < u64::MAX).then_some(longest), control).plan?;
    let peak = replay(problem, &plan).ok()?.peak;
    Some((plan, peak))
}

fn no_plan(problem: &Problem, outcome: &Outcome) -> SolveError {
    let (budget, certificate) = (problem.budget.unwrap_or(0), &outcome.certificate);
    if certificate.status == Status::Infeasible {
        if let Err(rejection) = check_certificate(problem, None, certificate) {
            return refuted(problem.clone(), None, vec![certificate.clone()], rejection);
        }
        let claim = Box::new(certificate.clone());
        return if certificate.is_final(problem.order) {
            SolveError::ProvedInfeasible { budget, claim }
        } else {
            SolveError::NoPlanOfItsKind { budget, claim }
        };
    }
    SolveError::NoPlan {
        budget,
        reached: outcome.lowest_peak.unwrap_or(0),
        stop: certificate.stop,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
