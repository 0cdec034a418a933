//! A budget that is refused, with what is known of those that are not.

use web_time::{Duration, Instant};

use remat_plan::{BoundCovers, BudgetSpec, Certificate, Objective, Status, Step, StopReason, Structure};
use remat_solve::{Search, SolveControl, Solver, least_peak};

use crate::registry::solver_named;
use crate::solution::{accept, seek};
use crate::{Error, Goal, LowestPeak, Model, Refusal, Solution, SolveError, SolveRequest, solve_for};

/// Longest time to look for the lowest peak after a budget was refused.
const LONGEST_LOOK: Duration = Duration::from_secs(3);

/// [`solve_for`]; a refused budget comes back with what is known of others ([`SolveError::Refused`]), which may take a few seconds more.
///
/// # Errors
/// As [`solve_for`], with [`SolveError::Refused`] in place of those about the budget.
pub fn solve_or_explain(
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    control: &SolveControl<'_>,
) -> Result<Solution, Error> {
    solve_for(model, request, goal, control).or_else(|error| explained(error, model, request, goal, control, 0))
}

/// Puts to a refused budget what is known of others; every other error is returned as it is. `request` is what was asked of the solver,
/// `besides` what the file takes beyond the plan, which came off the budget.
///
/// The lowest peak is looked for, within what is left of the limits and a few seconds. Where that finds a plan within the budget after
/// all, it is the answer.
///
/// # Errors
/// [`SolveError::Refused`] for a budget that is refused, else `error`.
pub fn explained(
    error: Error,
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    control: &SolveControl<'_>,
    besides: u64,
) -> Result<Solution, Error> {
    let error = match error {
        Error::Solve(error) => error,
        error => return Err(error),
    };
    let (budget, reached) = match &error {
        SolveError::Infeasible(infeasible) => (infeasible.budget, 0),
        SolveError::ProvedInfeasible { budget, .. } | SolveError::NoPlanOfItsKind { budget, .. } => (*budget, 0),
        SolveError::NoPlan { stop, .. } if *stop == StopReason::Refused => return Err(error.into()),
        SolveError::NoPlan { budget, reached, .. } => (*budget, *reached),
        _ => return Err(error.into()),
    };
    let asked = request.on_device(model).unwrap_or_else(|_| request.clone()).budget;
    if !matches!(asked, BudgetSpec::Share(_) | BudgetSpec::Bytes(_)) {
        return Err(error.into());
    }
    let mut control = *control;
    control.observer = None;
    let latest = Instant::now() + LONGEST_LOOK;
    control.deadline = Some(control.deadline.map_or(latest, |deadline| deadline.min(latest)));
    let found = look(model, request, goal, &control);
    if let (Some(found), SolveError::NoPlan { .. }) = (&found, &error)
        && found.replay.peak <= budget
        && solver_named(&request.solver).is_ok_and(Solver::searches)
        && found.problem.objective == Objective::Time
    {
        return rescued(model, found, budget).ok_or_else(|| error.into());
    }
    let problem = model.problem();
    let bottleneck = problem.bottleneck(&Structure::of(problem));
    let need = bottleneck.map_or(0, |most| most.bytes);
    let least = least_peak(problem, &control).bytes;
    let floor = match error {
        SolveError::ProvedInfeasible { .. } => least.max(budget.saturating_add(1)),
        _ => least,
    };
    // Of plans that are as low as one op needs by itself, each is highest at that op.
    let largest = bottleneck.map(|most| problem.ops[most.op].name.clone());
    let at_peak = |found: &Solution| match found.replay.peak == need {
        true => largest.clone(),
        false => op_at_peak(found),
    };
    let lowest = found.map(|found| (found.replay.peak, at_peak(&found)));
    let reached = (reached > 0).then_some((reached, None));
    let lowest = lowest.into_iter().chain(reached).min_by_key(|&(bytes, _)| bytes);
    // Nothing but a device makes a number of it.
    let capacity = model.capacity().filter(|_| request.budget == BudgetSpec::Auto).cloned();
    let refusal = Refusal {
        cause: error,
        asked,
        budget: budget.saturating_add(besides),
        baseline: model.baseline_peak(),
        op: largest.clone(),
        need: need.saturating_add(besides),
        retry: (lowest.is_some() && capacity.is_none()).then_some(BudgetSpec::Min),
        capacity,
        lowest: lowest.map(|(bytes, op)| LowestPeak {
            bytes: bytes.saturating_add(besides),
            op,
            proved: bytes <= floor,
        }),
    };
    Err(SolveError::Refused(Box::new(refusal)).into())
}

/// The solution of a short search for the lowest peak.
fn look(model: &Model, request: &SolveRequest, goal: Goal, control: &SolveControl<'_>) -> Option<Solution> {
    let mut problem = model.problem().clone();
    goal.apply(&mut problem);
    let lowest = SolveRequest {
        budget: BudgetSpec::Min,
        solver: if problem.is_time_within_budget() {
            Search.name().to_owned()
        } else {
            request.solver.clone()
        },
        ..request.clone()
    };
    seek(model, &lowest, goal, control).ok()
}

/// The plan that was found for a lower budget, for this one. What was claimed of the lower budget is not claimed of this one.
fn rescued(model: &Model, found: &Solution, budget: u64) -> Option<Solution> {
    let mut problem = found.problem.clone();
    problem.budget = Some(budget);
    let certificate = Certificate {
        status: Status::Feasible,
        bound: problem.total_duration(),
        bound_covers: BoundCovers::AllPlans,
        evidence: None,
        ..found.certificate.clone()?
    };
    accept(model, problem, found.plan.clone(), certificate).ok()
}

/// The op that runs at the peak.
fn op_at_peak(found: &Solution) -> Option<String> {
    match found.plan.steps.get(found.replay.peak_step) {
        Some(&(Step::Compute(op) | Step::Recompute(op))) => Some(found.problem.ops[op].name.clone()),
        _ => None,
    }
}
