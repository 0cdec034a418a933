//! From a budget to a plan that the checker has replayed.

mod error;

use std::sync::atomic::Ordering;
use std::time::Instant;

use remat_cost::Device;
use remat_plan::{
    BoundCovers, BudgetSpec, Certificate, Objective, OrderMode, Plan, PlanFile, Problem, Status, Step, StopReason,
    Structure, lower_sequence, prune_sequence,
};
use remat_solve::{Observer, Outcome, SolveControl, Solver, minimize_peak};
use remat_verify::{Code, Replay, check_certificate, replay};

pub use error::{BugReport, SolveError};

use crate::claims::{agree, refuted};
use crate::goal::Goal;
use crate::registry::solver_named;
use crate::watch::{Checked, Guard};
use crate::{Error, Model};

/// Share of the time for finding a budget, where a solver is to find a better plan for it afterwards.
const BUDGET_SHARE: f64 = 0.6;

/// The overhead that [`BudgetSpec::Auto`] allows where none is stated, in millionths of the baseline duration.
const DEFAULT_OVERHEAD: u64 = 50_000;

/// What is asked of a solver.
#[derive(Clone, Debug)]
pub struct SolveRequest {
    /// The budget.
    pub budget: BudgetSpec,
    /// Largest overhead, in millionths of the baseline duration; absent: [`DEFAULT_OVERHEAD`] for [`BudgetSpec::Auto`], no limit for all
    /// other budgets. With [`BudgetSpec::Min`] the same as [`BudgetSpec::Auto`].
    pub max_overhead: Option<u64>,
    /// Name of the solver.
    pub solver: String,
}

/// Time a plan takes beyond computing every op once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overhead {
    /// Duration of the plan.
    pub duration: u64,
    /// Duration of the baseline.
    pub baseline: u64,
}

impl Overhead {
    /// `duration / baseline - 1`, in per cent; 0 where both are 0.
    #[must_use]
    pub fn percent(self) -> f64 {
        if self.baseline == 0 {
            0.0
        } else {
            100.0 * (self.duration as f64 / self.baseline as f64 - 1.0)
        }
    }
}

/// A plan that passed the checker.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The problem with the budget that was solved for.
    pub problem: Problem,
    /// The plan.
    pub plan: Plan,
    /// What the checker found.
    pub replay: Replay,
    /// What the solver claims; absent for plans that people wrote.
    pub certificate: Option<Certificate>,
    /// Time before and after.
    pub overhead: Overhead,
}

impl Solution {
    /// The plan with its figures, ready to be written.
    #[must_use]
    pub fn plan_file(&self, model: &Model) -> PlanFile {
        PlanFile {
            format: remat_plan::PLAN_FORMAT.to_owned(),
            model: self.problem.name.clone(),
            accounting: self.problem.accounting,
            order: self.problem.order,
            budget_bytes: self.problem.budget,
            peak_bytes: self.replay.peak,
            duration: self.replay.duration,
            energy_pj: (self.replay.energy > 0).then_some(self.replay.energy),
            objective: self.problem.objective,
            deadline: self.problem.deadline,
            baseline_peak_bytes: model.baseline().peak,
            baseline_duration: model.baseline().duration,
            setup: model.setup().cloned(),
            certificate: self.certificate.clone(),
            steps: PlanFile::records(&self.problem, &self.plan),
        }
    }

    /// The plan without recomputes: every op once, in reference order. It is the shortest one.
    ///
    /// # Errors
    /// [`SolveError::Rejected`] if the checker does not accept it.
    pub fn baseline(model: &Model) -> Result<Self, Error> {
        let duration = model.baseline().duration;
        let certificate = Certificate {
            status: Status::Optimal,
            objective: Some(duration),
            bound: duration,
            bound_covers: BoundCovers::AllPlans,
            evidence: None,
            gap: Some(0.0),
            stop: StopReason::Proved,
            solver: "baseline".to_owned(),
            seed: 0,
            threads: 1,
            steps: 0,
            elapsed_ms: 0,
            problem: model.problem().digest(),
        };
        accept(
            model,
            model.problem().clone(),
            model.baseline_plan().clone(),
            certificate,
        )
    }

    /// Takes back what is claimed about the plan but its figures: whoever was interrupted proves nothing.
    pub fn interrupt(&mut self) {
        if let Some(certificate) = &mut self.certificate {
            certificate.interrupt();
        }
    }

    /// The certificate's bound, where it speaks about all plans that keep to `order`; else 0.
    #[must_use]
    pub fn bound_on_all_plans(&self, order: OrderMode) -> u64 {
        let certificate = self.certificate.as_ref();
        let certificate = certificate.filter(|certificate| certificate.bound_covers.is_every_plan(order));
        certificate.map_or(0, |certificate| certificate.bound)
    }
}

/// Finds a plan within the budget and has the checker replay it.
///
/// # Errors
/// [`SolveError::Infeasible`] if the budget is below what one op needs, [`SolveError::ProvedInfeasible`] if the solver proved that there is no
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
    if let Some(room) = model.room().filter(|_| request.budget != BudgetSpec::None) {
        crate::room::check(room, "the lowest peak found", solution.replay.peak)?;
    }
    Ok(solution)
}

/// [`solve_for`], whatever memory the device has.
pub(crate) fn seek(
    model: &Model,
    request: &SolveRequest,
    goal: Goal,
    control: &SolveControl<'_>,
) -> Result<Solution, Error> {
    let solver = solver_named(&request.solver)?;
    let mut problem = model.problem().clone();
    problem.budget = request.budget.bytes(model.baseline().peak);
    goal.apply(&mut problem);
    let allowed = request
        .max_overhead
        .map(|share| longest(model.baseline().duration, share));
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
        BudgetSpec::Auto => Some(allowed.unwrap_or_else(|| longest(model.baseline().duration, DEFAULT_OVERHEAD))),
    };
    let work = |control: &SolveControl<'_>| match longest {
        None => (problem.clone(), solver.solve(&problem, control)),
        Some(longest) if !problem.is_time_within_budget() => lowest_budget(&problem, longest, solver, control),
        Some(longest) => find_budget(&problem, longest, solver, control),
    };
    let (problem, mut outcome) = watched(&problem, control, work);
    let is_supported = solver.supports(&problem);
    if !is_supported {
        claim_nothing(&mut outcome);
    }
    agree(&problem, &outcome, control.warm_start)?;
    if control.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
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
    solve_for(model, request, goal, control)
        .or_else(|error| crate::refusal::explained(error, model, request, goal, control, 0))
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
    control: &SolveControl<'_>,
    work: impl FnOnce(&SolveControl<'_>) -> (Problem, Outcome),
) -> (Problem, Outcome) {
    let mut own = *control;
    let checked = control.observer.map(|observer| Checked::new(problem, observer));
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
    let mut first = *control;
    if refine && let Some(deadline) = control.deadline {
        let now = Instant::now();
        first.deadline = Some(now + deadline.saturating_duration_since(now).mul_f64(BUDGET_SHARE));
    }
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
/// the time. Returns the problem with the budget.
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
    for trial in 0..TRIALS {
        let mut own = *control;
        if let Some(deadline) = control.deadline {
            let now = Instant::now();
            own.deadline = Some(now + deadline.saturating_duration_since(now) / (TRIALS - trial));
        }
        problem.budget = high.map(|high: u64| low + (high - low) / 2);
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

/// Where the order is free, runs that only the reference order asked for are dropped.
pub(crate) fn prune(problem: Problem, plan: Plan) -> (Problem, Plan) {
    let pages = |step: &Step| matches!(step, Step::PageOut(_) | Step::PageIn(_));
    if problem.order == OrderMode::Fixed || plan.steps.iter().any(pages) {
        return (problem, plan);
    }
    let structure = Structure::of(&problem);
    let sequence: Vec<_> = plan.runs().filter(|&op| !structure.is_lazy(op)).collect();
    let useful = prune_sequence(&problem, &structure, &sequence);
    if useful.len() == sequence.len() {
        return (problem, plan);
    }
    match lower_sequence(&problem, &structure, useful) {
        Ok(pruned) => (problem, pruned),
        Err(error) => {
            tracing::warn!("a plan could not be pruned: {error}");
            (problem, plan)
        }
    }
}

/// The only way from a solver to a [`Solution`]: past the checker, and its certificate too.
pub(crate) fn accept(
    model: &Model,
    problem: Problem,
    plan: Plan,
    mut certificate: Certificate,
) -> Result<Solution, Error> {
    match replay(&problem, &plan) {
        Ok(replay) => {
            certificate.restate(replay.objective(problem.objective), problem.digest());
            if let Err(rejection) = check_certificate(&problem, Some((&plan, &replay)), &certificate) {
                return Err(refuted(problem, Some(plan), vec![certificate], rejection).into());
            }
            Ok(solution(model, problem, plan, replay, Some(certificate)))
        }
        Err(rejection) => Err(SolveError::Rejected(Box::new(BugReport {
            problem,
            plan: Some(plan),
            solver: certificate.solver.clone(),
            certificates: vec![certificate],
            rejection,
        }))
        .into()),
    }
}

pub(crate) fn solution(
    model: &Model,
    problem: Problem,
    plan: Plan,
    replay: Replay,
    certificate: Option<Certificate>,
) -> Solution {
    let overhead = Overhead {
        duration: replay.duration,
        baseline: model.baseline().duration,
    };
    Solution {
        problem,
        plan,
        replay,
        certificate,
        overhead,
    }
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

/// The baseline duration plus `max_overhead` millionths of it.
pub(crate) fn longest(baseline: u64, max_overhead: u64) -> u64 {
    let extra = u128::from(baseline) * u128::from(max_overhead) / 1_000_000;
    baseline.saturating_add(u64::try_from(extra).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
