//! The integer program of the POET paper (Patil et al., "POET: Training Neural Networks on Tiny Devices with Integrated
//! Rematerialization and Paging", ICML 2022).
//!
//! The program is that of [`remat_checkmate`] with [`pages`](remat_checkmate::pages). This module prices it, solves it, and turns its
//! solutions into plans: in each stage first what comes back, then what runs, in reference order. A plan frees what nobody needs
//! any more and moves out as late as possible, so it takes no more than the solution.

mod prices;
mod start;

use remat_checkmate::{Freeing, Layout, Setting, model};
use remat_ortools::clock::Ended;
use remat_ortools::program::task::Task;
use remat_ortools::run::{self, Bound, Early, Run};
use remat_ortools::{OrTools, Refusal, loaded};
use remat_plan::{
    BoundCovers, Event, Evidence, NodeId, Objective, PagingMode, Plan, Problem, StorageId, StorageRole, lower_events,
};
use remat_solve::{Domain, External, Outcome, Proves, SolveControl, Solver};

use self::prices::Prices;
use crate::paging::{PagedFigures, PagingSearch, simulate};

/// What each of the searches that the program starts from may take of the time that is left, and its steps.
const START_SHARE: f64 = 0.1;
const START_STEPS: u64 = 20_000;

/// The integer program of the POET paper.
///
/// First computes keep the reference order. Minimizes time or energy, as the problem says, for which transfers follow one another and
/// overlap no runs; prices are rounded down to about a hundred-millionth of the sum of all. The capacity of the second memory is
/// not part of the program, and plans that exceed it are not taken. The program starts from what a short search finds
/// ([`PagingSearch`]), as far as that is in stage form, and where it finds no plan in time, that of the search is the answer. Without a second memory it only recomputes. The bound covers the
/// plans that the program can express ([`BoundCovers::CandidateSet`]): in stage form, with transfers back between stages.
///
/// The deadline holds for runs and transfers one after another, which is what the checker asks for without DMA, and more than it asks for
/// with it; that of the paper's program holds for runs only, and plans may miss it by the time of their transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Poet;

impl Poet {
    fn attempt(run: &Run<'_>) -> Result<Outcome, Early> {
        let (setting, prices) = priced(run)?;
        let mut work = Work {
            run,
            setting: &setting,
            prices,
            best: None,
            fallback: None,
        };
        if run.problem.check(&run.structure).is_err() || work.prices.is_late {
            let mut outcome = work.outcome(Ended::Infeasible, nothing(), 0);
            outcome.certificate.bound_covers = run.every_plan();
            return Ok(outcome);
        }
        let plain = remat_plan::baseline(run.problem);
        work.consider(plain, 0);
        if work.is_settled() {
            return Ok(work.outcome(Ended::Optimal, nothing(), 0));
        }
        loaded().map_err(|error| Refusal::from(error.clone()))?;
        if let Some(warm) = run.clock.control.warm_start {
            work.consider(warm.clone(), 0);
        }
        let starts = work.starts();
        if let Err(refusal) = setting.allow(run, Freeing::Hazards) {
            if work.best.is_none() && work.fallback.is_none() {
                return Err(refusal.into());
            }
            tracing::info!(%refusal, "the program is too large: the plan is that of the search");
            return Ok(work.outcome(Ended::Failed, nothing(), 0));
        }
        let budget = setting.instance.scaled_budget(run.problem.budget);
        let Some((program, layout)) = model::build(&setting, budget, Freeing::Hazards) else {
            return Ok(work.outcome(Ended::Infeasible, nothing(), 0));
        };
        let hint = starts
            .iter()
            .filter_map(|plan| {
                let values = start::solution(run.problem, &setting, &program, &layout, plan)?;
                let price: i64 = program.cost.iter().zip(&values).map(|(cost, value)| cost * value).sum();
                Some((price, values))
            })
            .min_by_key(|(price, _)| *price);
        let hint = hint.map(|(_, values)| values);
        let mut improved = |solution: &[i64], _: i64, bound: i64| {
            let Some(plan) = work.decode(&layout, solution) else {
                tracing::error!("a solution of the stages is no schedule");
                return false;
            };
            work.consider(plan, bound)
        };
        let task = Task {
            program: &program,
            hint: hint.as_deref(),
            known: None,
            lower: 0,
        };
        let answer = task.on_highs(&run.clock, &mut improved);
        Ok(work.outcome(answer.ended, (answer.bound, answer.evidence), answer.conflicts))
    }
}

impl Solver for Poet {
    fn name(&self) -> &'static str {
        "poet"
    }

    fn describe(&self) -> &'static str {
        "the POET paper's integer program of recomputes and transfers on HiGHS; a reference"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        run::call(self.name(), problem, control, Self::attempt)
    }

    fn domain(&self) -> Domain {
        Domain::Goals
    }

    fn proves(&self) -> Proves {
        Proves::OwnForm
    }

    fn external(&self) -> Option<&'static dyn External> {
        Some(&OrTools)
    }
}

/// The problem as the program sees it, and its prices.
fn priced(run: &Run<'_>) -> Result<(Setting, Prices), Refusal> {
    let mut setting = Setting::of(run)?;
    let (pages, prices) = Prices::of(run.problem, &run.structure, &setting.instance);
    setting.pages = Some(pages);
    Ok((setting, prices))
}

/// One call of the solver.
struct Work<'a> {
    run: &'a Run<'a>,
    setting: &'a Setting,
    prices: Prices,
    best: Option<(PagedFigures, Plan)>,
    /// The answer where the program finds none.
    fallback: Option<(PagedFigures, Plan)>,
}

impl Work<'_> {
    /// Plans to start the program from: what a search finds with transfers, which is kept as the fallback, and its halves.
    fn starts(&mut self) -> Vec<Plan> {
        let found = |solver: PagingSearch| {
            let clock = self.run.clock.share(START_SHARE);
            let mut control = *clock.control;
            control.deadline = clock.deadline();
            control.step_limit = Some(control.step_limit.unwrap_or(u64::MAX).min(START_STEPS));
            (control.threads, control.observer) = (1, None);
            solver.solve(self.run.problem, &control).plan
        };
        let searches = [PagingSearch::NEW, PagingSearch::RECOMPUTES, PagingSearch::TRANSFERS];
        let plans: Vec<Plan> = searches.into_iter().filter_map(found).collect();
        let figures = |plan: &Plan| simulate(self.run.problem, &self.run.structure, plan);
        self.fallback = plans.first().map(|plan| (figures(plan), plan.clone()));
        plans
    }

    /// The plan of a solution.
    fn decode(&self, layout: &Layout, solution: &[i64]) -> Option<Plan> {
        let instance = &self.setting.instance;
        let is_on =
            |variable: Option<u32>| variable.is_some_and(|variable| solution.get(variable as usize) == Some(&1));
        let mut events = Vec::new();
        for stage in 0..instance.len() {
            for node in 0..stage {
                let here = is_on(layout.held(stage, node));
                let before = is_on(layout.held(stage - 1, node)) || is_on(layout.computed(stage - 1, node));
                if here && !before {
                    let problem = self.run.problem;
                    let owned = self.run.structure.owns(instance.op(NodeId::new(node))).iter().copied();
                    let moves = |&storage: &StorageId| {
                        let storage = &problem.storages[storage];
                        storage.role == StorageRole::Transient && storage.bytes > 0
                    };
                    events.extend(owned.filter(moves).map(Event::Fetch));
                }
            }
            let runs = (0..=stage).filter(|&node| is_on(layout.computed(stage, node)));
            events.extend(runs.map(|node| Event::Run(instance.op(NodeId::new(node)))));
        }
        lower_events(self.run.problem, &self.run.structure, events).ok()
    }

    /// Keeps a plan within all limits that is better than the best one so far; whether it is within all limits.
    fn consider(&mut self, plan: Plan, bound: i64) -> bool {
        let problem = self.run.problem;
        let figures = simulate(problem, &self.run.structure, &plan);
        let late = problem.deadline.is_some_and(|deadline| figures.time > deadline);
        let capacity = problem.paging.and_then(|paging| paging.capacity);
        let full = capacity.is_some_and(|capacity| figures.second_peak > capacity);
        if late || full || problem.budget.is_some_and(|budget| figures.peak > budget) {
            return false;
        }
        let objective = objective(problem, &figures);
        if self
            .best
            .as_ref()
            .is_some_and(|(best, _)| self::objective(problem, best) <= objective)
        {
            return true;
        }
        let bound = self.prices.bound(bound);
        self.run.tell(objective, bound, figures.peak, 0, &|| Some(plan.clone()));
        self.best = Some((figures, plan));
        true
    }

    /// Whether nothing better can be found.
    fn is_settled(&self) -> bool {
        let found = self
            .best
            .as_ref()
            .map(|(figures, _)| objective(self.run.problem, figures));
        found.is_some_and(|found| found <= self.prices.base)
    }

    /// `bound` is that of the program, in units of its prices, without first runs.
    fn outcome(mut self, ended: Ended, (bound, evidence): (i64, Evidence), steps: u64) -> Outcome {
        let problem = self.run.problem;
        self.best = self.best.or(self.fallback.take());
        let objective = self.best.as_ref().map(|(figures, _)| objective(problem, figures));
        let is_infeasible = objective.is_none() && ended == Ended::Infeasible;
        let mut bound = Bound {
            // A rounded price may be exceeded by nothing but what was rounded.
            value: self.prices.bound(bound).min(objective.unwrap_or(u64::MAX)),
            covers: BoundCovers::CandidateSet,
            evidence: Some(evidence),
        };
        if bound.value <= self.prices.base && !is_infeasible {
            bound = Bound::trivial(bound.value);
        }
        let by_dma = problem
            .budget
            .filter(|_| problem.paging.is_some_and(|paging| paging.mode == PagingMode::Dma));
        let lowest_peak = self
            .best
            .as_ref()
            .map(|(figures, _)| figures.peak.max(by_dma.unwrap_or(0)));
        let found = self.best.map(|(_, plan)| plan).zip(objective);
        self.run.answer(found, lowest_peak, bound, (ended, steps))
    }
}

/// What is known without the program.
fn nothing() -> (i64, Evidence) {
    (0, Evidence::Combinatorial)
}

/// What the objective measures; the peak is not its to minimize, so it minimizes time.
fn objective(problem: &Problem, figures: &PagedFigures) -> u64 {
    match problem.objective {
        Objective::Time => figures.time,
        Objective::Energy => figures.energy,
        Objective::Peak => figures.peak,
    }
}
