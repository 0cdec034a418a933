//! Solvers side by side: each on the same problem under the same budgets, limits and accounting.
//!
//! Every run starts from nothing: no solver sees what another one found, or what it found itself under another budget. Only
//! portfolios, which call others by their nature, profit from them. Every plan has passed the checker.

mod file;

use web_time::{Duration, Instant};

use remat_plan::{BodyPlan, BudgetSpec, Certificate, Problem, StopReason};
use remat_solve::{Activity, Doing, Domain, SolveControl, Solver, least_peak};
use thiserror::Error;

pub use file::{COMPARISON_FORMAT, ComparisonFile, RunRecord};

use crate::claims::Claims;
use crate::registry::{default_solver, usable_solver};
use crate::{
    BodyPlanner, Error, ErrorKind, Finding, Model, NoPlans, Solution, SolveError, SolveRequest, solve, solvers,
};

/// Why a comparison has no result.
#[derive(Clone, Copy, Debug, Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A budget that cannot be compared over.
    #[error("`{budget}` is not a budget for a comparison: name shares or sizes")]
    Budget {
        /// The budget.
        budget: BudgetSpec,
    },
    /// No budget has a plan.
    #[error(transparent)]
    NoPlans(#[from] NoPlans),
}

/// What is compared.
#[derive(Clone, Debug, Default)]
pub struct CompareRequest {
    /// The budgets, in any order: shares and bytes.
    pub budgets: Vec<BudgetSpec>,
    /// Names of the solvers; none: all that lack nothing.
    pub solvers: Vec<String>,
    /// Longest time for one solver under one budget.
    pub time_per_run: Option<Duration>,
}

/// One solver under one budget.
#[derive(Debug)]
pub struct ComparedRun {
    /// What was found.
    pub finding: Finding,
    /// Whether the solver did not start: it cannot express the problem, or would become too large.
    pub refused: bool,
    /// Time the run took, checking included.
    pub elapsed: Duration,
}

impl ComparedRun {
    const UNTRIED: Self = Self {
        finding: Finding::Untried,
        refused: false,
        elapsed: Duration::ZERO,
    };

    /// The plan, where there is one.
    #[must_use]
    pub fn solution(&self) -> Option<&Solution> {
        self.finding.solution()
    }

    fn duration(&self) -> Option<u64> {
        self.solution().map(|solution| solution.replay.duration)
    }
}

/// All runs of one solver.
#[derive(Debug)]
pub struct ComparedSolver {
    /// Its name.
    pub name: &'static str,
    /// One run for each budget, in the order of [`Comparison::budgets`].
    pub runs: Vec<ComparedRun>,
}

/// What the solvers found.
#[derive(Debug)]
pub struct Comparison {
    /// The budgets with their bytes, loose ones first, each once.
    pub budgets: Vec<(BudgetSpec, u64)>,
    /// For each budget, the plans of subgraphs of the model that all solvers plan under it; none where subgraphs stay as they came.
    pub bodies: Vec<Vec<BodyPlan>>,
    /// The peak that no plan undercuts, in bytes.
    pub floor: u64,
    /// The solvers, in the order in which they were asked for.
    pub solvers: Vec<ComparedSolver>,
    /// Names that were asked for, but are no solvers, or of solvers that lack something.
    pub skipped: Vec<String>,
}

impl Comparison {
    /// Each solver's name with its plans as points: the budget as a share of the model's peak, and the added time, both in per cent.
    pub fn curves(&self, model: &Model) -> impl Iterator<Item = (&'static str, Vec<(f64, f64)>)> {
        let peak = model.baseline_peak().bytes.max(1) as f64;
        self.solvers.iter().map(move |solver| {
            let runs = self.budgets.iter().zip(&solver.runs);
            let point = |(&(_, bytes), run): (&(BudgetSpec, u64), &ComparedRun)| {
                Some((100.0 * bytes as f64 / peak, run.solution()?.overhead.percent()))
            };
            (solver.name, runs.filter_map(point).collect())
        })
    }

    /// Duration of the shortest plan that any solver found under a budget.
    #[must_use]
    pub fn best(&self, budget: usize) -> Option<u64> {
        self.runs(budget).filter_map(|(_, run)| run.duration()).min()
    }

    /// The strongest bound under a budget that speaks about all plans of this problem, its order taken into account.
    #[must_use]
    pub fn bound(&self, model: &Model, budget: usize) -> u64 {
        let order = model.problem().order;
        let bounds = self
            .runs(budget)
            .filter_map(|(_, run)| Some(run.solution()?.bound_on_all_plans(order)));
        bounds.max().unwrap_or(0).max(model.baseline().duration)
    }

    /// Passes if at least one solver has a plan.
    ///
    /// # Errors
    /// [`NoPlans`], as an error of the comparison.
    pub fn require_plan(&self) -> Result<(), Error> {
        let budgets = 0..self.budgets.len();
        if budgets.clone().any(|budget| self.best(budget).is_some()) {
            return Ok(());
        }
        let is_impossible = |budget: &usize| {
            self.runs(*budget)
                .any(|(_, run)| matches!(run.finding, Finding::Impossible { .. }))
        };
        let none = NoPlans {
            budgets: self.budgets.len(),
            impossible: budgets.filter(is_impossible).count(),
        };
        Err(CompareError::from(none).into())
    }

    fn runs(&self, budget: usize) -> impl Iterator<Item = (&'static str, &ComparedRun)> {
        self.solvers
            .iter()
            .map(move |solver| (solver.name, &solver.runs[budget]))
    }
}

/// Runs every solver under every budget, budget by budget.
///
/// Of `control`, the step limit is that of one run, and the deadline that of the whole comparison: what was not started by then,
/// or before it was cancelled, stays [`Finding::Untried`]. A warm start is ignored.
///
/// # Errors
/// [`enum@Error`] of kind `Input` for a budget that has no bytes, and where none of the solvers is there; of kind
/// `Internal` if the checker rejects a plan, or the plan of one solver refutes what another one claims. That a solver finds no plan is no error, but a [`Finding`].
pub fn compare(model: &Model, request: &CompareRequest, control: &SolveControl<'_>) -> Result<Comparison, Error> {
    compared(model, None, request, control)
}

/// The same, where subgraphs are planned too: once for each budget, by the default solver within the limits of one run. All solvers plan the model
/// with these.
///
/// # Errors
/// Those of [`compare`] and of the planner.
pub fn compare_in_bodies(
    model: &Model,
    planner: &dyn BodyPlanner,
    request: &CompareRequest,
    control: &SolveControl<'_>,
) -> Result<Comparison, Error> {
    compared(model, Some(planner), request, control)
}

fn compared(
    whole: &Model,
    planner: Option<&dyn BodyPlanner>,
    request: &CompareRequest,
    control: &SolveControl<'_>,
) -> Result<Comparison, Error> {
    let (chosen, skipped) = choose(whole.problem(), &request.solvers)?;
    let budgets = bytes_of(whole, &request.budgets)?;
    let mut solvers: Vec<_> = chosen
        .iter()
        .map(|solver| ComparedSolver {
            name: solver.name(),
            runs: Vec::new(),
        })
        .collect();
    let least = |model: &Model| least_peak(model.problem(), &SolveControl::new()).bytes;
    let mut floor = least(whole);
    let mut bodies = Vec::with_capacity(budgets.len());
    // Plans of one problem say nothing about another.
    let mut claims_of_whole = Claims::new(whole.problem());
    for &(budget, bytes) in &budgets {
        let planned = match planner {
            Some(planner) => in_bodies(whole, planner, (budget, bytes), request.time_per_run, control)?,
            None => None,
        };
        let mut own = planned.as_ref().map(|planned| Claims::new(planned.problem()));
        let claims = own.as_mut().unwrap_or(&mut claims_of_whole);
        let model = planned.as_ref().unwrap_or(whole);
        if planned.is_some() {
            floor = floor.min(least(model));
        }
        bodies.push(model.bodies().to_vec());
        for solver in &mut solvers {
            let (run, denial) = run(model, (budget, bytes), solver.name, request.time_per_run, control)?;
            let found = run.solution();
            for claim in denial
                .iter()
                .chain(found.and_then(|solution| solution.certificate.as_ref()))
            {
                claims.claim(Some(bytes), claim)?;
            }
            if let Some(solution) = found {
                claims.of_solution(solution)?;
            }
            solver.runs.push(run);
        }
    }
    Ok(Comparison {
        budgets,
        bodies,
        floor,
        solvers,
        skipped,
    })
}

/// The solvers of these names, all for such a problem where there are none, and the names that stand for nothing that can be used.
fn choose(problem: &Problem, names: &[String]) -> Result<(Vec<&'static dyn Solver>, Vec<String>), Error> {
    if names.is_empty() {
        let is_meant = |solver: &&dyn Solver| solver.domain() != Domain::Goals || !problem.is_time_within_budget();
        let usable = solvers().filter(is_meant).filter(|solver| solver.missing().is_none());
        return Ok((usable.collect(), Vec::new()));
    }
    let (mut chosen, mut skipped): (Vec<&'static dyn Solver>, _) = (Vec::new(), Vec::new());
    for name in names {
        match usable_solver(name) {
            Ok(solver) if chosen.iter().any(|known| known.name() == solver.name()) => {
                tracing::debug!(solver = solver.name(), "named twice");
            }
            Ok(solver) => chosen.push(solver),
            Err(_) => skipped.push(name.clone()),
        }
    }
    if chosen.is_empty() {
        // What is wrong with the first name is what is told.
        chosen.push(usable_solver(&names[0])?);
    }
    Ok((chosen, skipped))
}

/// The budgets with their bytes, loose ones first.
fn bytes_of(model: &Model, budgets: &[BudgetSpec]) -> Result<Vec<(BudgetSpec, u64)>, CompareError> {
    let baseline = model.baseline_peak().bytes;
    let bytes = |&budget: &BudgetSpec| match budget.bytes(baseline) {
        Some(bytes) => Ok((budget, bytes)),
        None => Err(CompareError::Budget { budget }),
    };
    let mut known = budgets.iter().map(bytes).collect::<Result<Vec<_>, _>>()?;
    known.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    known.dedup_by_key(|&mut (_, bytes)| bytes);
    Ok(known)
}

/// The control of one run.
fn limited<'c>(control: &SolveControl<'c>, limit: Option<Duration>) -> SolveControl<'c> {
    let mut own = control.at_most(limit);
    own.warm_start = None;
    own
}

/// The model with plans of subgraphs for one budget, where it has some that have to take less.
fn in_bodies(
    model: &Model,
    planner: &dyn BodyPlanner,
    (budget, bytes): (BudgetSpec, u64),
    limit: Option<Duration>,
    control: &SolveControl<'_>,
) -> Result<Option<Model>, Error> {
    if control.is_cancelled() || control.is_late() {
        return Ok(None);
    }
    if let Some(observer) = control.observer {
        observer.begins(&Doing::new(Activity::Plan, &format!("for {budget}, subgraphs")));
    }
    let request = SolveRequest {
        budget: BudgetSpec::Bytes(bytes),
        max_overhead: None,
        solver: default_solver().name().to_owned(),
    };
    planner.plan(model, &request, &limited(control, limit))
}

/// One run, and the proof that there is no plan, be it among all or among fewer.
fn run(
    model: &Model,
    (budget, bytes): (BudgetSpec, u64),
    solver: &'static str,
    limit: Option<Duration>,
    control: &SolveControl<'_>,
) -> Result<(ComparedRun, Option<Certificate>), Error> {
    let started = Instant::now();
    if control.is_cancelled() || control.is_late() {
        return Ok((ComparedRun::UNTRIED, None));
    }
    let own = limited(control, limit);
    let request = SolveRequest {
        budget: BudgetSpec::Bytes(bytes),
        max_overhead: None,
        solver: solver.to_owned(),
    };
    tracing::info!(%budget, solver, "comparing");
    if let Some(observer) = control.observer {
        let detail = format!("for {budget} with `{solver}`");
        observer.begins(&Doing::new(Activity::Plan, &detail));
    }
    let mut refused = false;
    let mut denial = None;
    let finding = match solve(model, &request, &own) {
        Ok(solution) => Finding::Plan(Box::new(solution)),
        Err(error) => {
            refused = matches!(
                error,
                Error::Solve(SolveError::NoPlan {
                    stop: StopReason::Refused,
                    ..
                })
            );
            let reason = error.to_string();
            if let Error::Solve(
                SolveError::ProvedInfeasible { claim, .. } | SolveError::NoPlanOfItsKind { claim, .. },
            ) = &error
            {
                denial = Some(claim.as_ref().clone());
            }
            match error.kind() {
                ErrorKind::Negative => Finding::Impossible { reason },
                ErrorKind::Limit => Finding::NotFound { reason },
                ErrorKind::Input | ErrorKind::Internal => return Err(error),
            }
        }
    };
    let run = ComparedRun {
        finding,
        refused,
        elapsed: started.elapsed(),
    };
    Ok((run, denial))
}
