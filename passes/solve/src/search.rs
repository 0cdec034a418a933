//! The local search: greedy, then large neighbourhood search and annealing in turns.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use web_time::Instant;

use remat_plan::{NodeId, Plan, Problem, Status, Step, StopReason, Structure, baseline, lower_sequence};

use crate::best::Best;
use crate::claim::Call;
use crate::control::{MAX_THREADS, Meter, Phase};
use crate::dag::Dag;
use crate::measure::{Figures, measure};
use crate::pool::Pool;
use crate::series_parallel;
use crate::strategy::{Found, Worker};
use crate::{Outcome, SolveControl, Solver};

/// Local search over sequences, in fixed order over those in which first runs follow the reference order.
///
/// Finds plans, proves little: [`Status::Infeasible`] where what few ops need exceeds the budget, [`Status::Optimal`] where nothing has
/// to be recomputed, else [`Status::Feasible`] or [`Status::Unknown`]. The bound is the time of running every op once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search;

impl Solver for Search {
    fn name(&self) -> &'static str {
        "search"
    }

    fn describe(&self) -> &'static str {
        "greedy, large neighbourhood search and annealing of recomputes and, in free order, of the order"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let run = Run::new(problem, control, Rank::Duration);
        if problem.check(&run.structure).is_err() {
            return run.infeasible(0);
        }
        if let Some(unchanged) = run.unchanged() {
            return unchanged;
        }
        let start = run.warm_start();
        let found = run.on_all_threads(|worker| worker.minimize_duration(start.as_deref()));
        run.outcome(&found)
    }

    fn searches(&self) -> bool {
        true
    }
}

/// What makes one answer better than another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rank {
    /// The shorter plan.
    Duration,
    /// The lower peak, then the shorter plan.
    Peak,
}

impl Rank {
    fn of(self, best: &Best) -> (i32, i64) {
        (if self == Self::Peak { best.peak } else { 0 }, best.duration)
    }
}

/// One call of a solver: the problem in all its forms, and what the threads share.
pub(crate) struct Run<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) structure: Structure,
    pub(crate) dag: Dag,
    pub(crate) control: &'a SolveControl<'a>,
    started: Instant,
    done: AtomicBool,
    reported: Mutex<(i32, i64)>,
    pool: Mutex<Pool>,
    rank: Rank,
    /// An order of lower peak than the reference order.
    order: Option<Vec<NodeId>>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(problem: &'a Problem, control: &'a SolveControl<'a>, rank: Rank) -> Self {
        let started = Instant::now();
        let structure = Structure::of(problem);
        let dag = Dag::of(problem, &structure);
        tracing::debug!(nodes = dag.len(), values = dag.value_count(), "problem read");
        let order = series_parallel::better_order(problem, &dag, control);
        Self {
            problem,
            structure,
            dag,
            control,
            started,
            done: AtomicBool::new(false),
            reported: Mutex::new((i32::MAX, i64::MAX)),
            pool: Mutex::default(),
            rank,
            order,
        }
    }

    /// The scheduled runs of the caller's plan, if they form a sequence of ours; without one, an order that is better than the reference order.
    pub(crate) fn warm_start(&self) -> Option<Vec<NodeId>> {
        let Some(plan) = self.control.warm_start else {
            return self.order.clone();
        };
        let sequence = self.dag.sequence_of(plan);
        if sequence.is_none() {
            tracing::warn!("the warm start does not follow the order asked for, it is ignored");
        }
        sequence
    }

    /// Runs `task` once per thread, each with a random stream of its own, and returns what they found, in order.
    pub(crate) fn on_all_threads(&self, task: impl Fn(&mut Worker<'_>) -> Found + Sync) -> Vec<Found> {
        let work = |stream: usize| {
            let meter = Meter::new(self.control, &self.done, self.started, self.dag.len());
            let report = |best: &Best, steps: u64, phase: Phase| self.report(best, steps, phase);
            let mut worker = Worker::new(
                (self.problem, &self.structure, &self.dag),
                meter,
                self.control.seed,
                stream as u64,
                &report,
                &self.pool,
            );
            let found = task(&mut worker);
            if found.stop == StopReason::Proved {
                self.done.store(true, Ordering::Relaxed);
            }
            found
        };
        std::thread::scope(|scope| {
            let work = &work;
            // Where the system has no more threads to give, fewer do the work; this one always does its part.
            let start = |stream| {
                std::thread::Builder::new()
                    .spawn_scoped(scope, move || work(stream))
                    .ok()
            };
            let handles: Vec<_> = (1..self.control.threads.min(MAX_THREADS)).map_while(start).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, Found>| match handle.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let first = work(0);
            std::iter::once(first).chain(handles.into_iter().map(join)).collect()
        })
    }

    /// Tells the observer of an improvement, if it is one over all threads.
    fn report(&self, best: &Best, steps: u64, phase: Phase) {
        let elapsed = self.started.elapsed();
        let objective = self.dag.unscaled_duration(best.duration);
        let peak = self.dag.unscaled(best.peak);
        tracing::debug!(objective, peak, ?phase, ?elapsed, steps, "improved");
        if self.control.observer.is_none() {
            return;
        }
        let mut reported = self.reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rank = self.rank.of(best);
        if rank >= *reported {
            return;
        }
        *reported = rank;
        let plan = || self.lower(&best.sequence);
        self.call().tell(objective, peak, steps, phase, &plan);
    }

    /// The answer where a bound on the peak exceeds the budget.
    pub(crate) fn infeasible(&self, steps: u64) -> Outcome {
        Outcome::new(
            None,
            self.call().not_found(Status::Infeasible, StopReason::Proved, steps),
            None,
        )
    }

    /// The answer where every op once keeps the budget. The search itself takes views for a little larger than they are.
    fn unchanged(&self) -> Option<Outcome> {
        let reference = std::iter::once_with(|| baseline(self.problem));
        let plans = reference.chain(self.order.iter().filter_map(|order| self.lower(order)));
        let mut figured = plans.map(|plan| self.figured(plan));
        let is_within = |figures: Figures| self.problem.budget.is_none_or(|budget| figures.peak <= budget);
        let (figures, plan) = figured.find(|(figures, _)| is_within(*figures))?;
        Some(Outcome::new(
            Some(plan),
            self.call().found(figures.duration, StopReason::Proved, 0),
            Some(figures.peak),
        ))
    }

    /// The best of what the threads found; the first of equals.
    pub(crate) fn outcome(&self, found: &[Found]) -> Outcome {
        let steps = found.iter().map(|f| f.steps).sum();
        if found.iter().any(|f| f.impossible) {
            return self.infeasible(steps);
        }
        let reasons = || found.iter().map(|f| f.stop);
        let stop = reasons()
            .find(|&s| s == StopReason::Proved)
            .or_else(|| reasons().next());
        let stop = stop.unwrap_or(StopReason::Converged);
        let bests = || found.iter().filter_map(|f| f.best.as_ref());
        if cfg!(debug_assertions)
            && let Some(best) = bests().find(|best| self.lower(&best.sequence).is_none())
        {
            return self.unlowered(best, stop, steps);
        }
        let plans = bests().filter_map(|best| self.lower(&best.sequence));
        // The search takes views for a little larger than they are.
        let unchanged = (self.rank == Rank::Peak).then(|| baseline(self.problem));
        // Where the search counts a run that lowering drops, what it takes for shorter than its start may be longer.
        let start = self.control.warm_start.filter(|_| self.rank == Rank::Duration);
        let start = start.and_then(|plan| self.lower(&self.dag.sequence_of(plan)?));
        let start = start.map(|plan| self.figured(plan));
        let start = start.filter(|(figures, _)| self.problem.budget.is_none_or(|budget| figures.peak <= budget));
        let plans = plans.chain(unchanged).map(|plan| self.figured(plan)).chain(start);
        let better = |&(figures, _): &(Figures, Plan)| match self.rank {
            Rank::Duration => (figures.duration, figures.peak),
            Rank::Peak => (figures.peak, figures.duration),
        };
        let Some((figures, plan)) = plans.min_by_key(better) else {
            let certificate = self.call().not_found(Status::Unknown, stop, steps);
            let lowest = found.iter().map(|found| &found.lowest).min_by_key(|lowest| lowest.peak);
            return Outcome {
                lowest_plan: lowest.and_then(|lowest| self.lower(&lowest.sequence)),
                ..Outcome::new(None, certificate, lowest.map(|lowest| self.dag.unscaled(lowest.peak)))
            };
        };
        Outcome::new(
            Some(plan),
            self.call().found(figures.duration, stop, steps),
            Some(figures.peak),
        )
    }

    fn figured(&self, plan: Plan) -> (Figures, Plan) {
        (measure(self.problem, &self.structure, &plan), plan)
    }

    /// A sequence that cannot be lowered is a bug of ours. As a plan as it stands the checker rejects it, and the caller hears of it.
    fn unlowered(&self, best: &Best, stop: StopReason, steps: u64) -> Outcome {
        let runs = best.sequence.iter().map(|&node| Step::Compute(self.dag.op(node)));
        let objective = self.dag.unscaled_duration(best.duration);
        Outcome::new(
            Some(Plan { steps: runs.collect() }),
            self.call().found(objective, stop, steps),
            Some(self.dag.unscaled(best.peak)),
        )
    }

    fn lower(&self, sequence: &[NodeId]) -> Option<Plan> {
        let ops = sequence.iter().map(|&node| self.dag.op(node));
        let plan = lower_sequence(self.problem, &self.structure, ops);
        plan.inspect_err(|error| tracing::error!(%error, "a sequence of the search could not be lowered"))
            .ok()
    }

    fn call(&self) -> Call<'_> {
        Call {
            problem: self.problem,
            control: self.control,
            solver: Search.name(),
            threads: self.control.threads.max(1),
            started: self.started,
            bound: self.problem.total_duration(),
        }
    }
}

#[cfg(test)]
mod tests {
    use remat_testing::net::{baseline_peak, in_free_order, paper};
    use remat_verify::replay;

    use super::*;
    use crate::{Rng, minimize_peak};

    /// A chain of three ops, the results of the first two of no bytes.
    fn chain() -> Problem {
        let ops: &[(u64, u64, &[usize])] = &[(1, 0, &[]), (1, 0, &[0]), (1, 5, &[1])];
        in_free_order(paper(ops))
    }

    fn outcome(problem: &Problem, order: impl Fn(Vec<NodeId>) -> Vec<NodeId>) -> Outcome {
        let control = SolveControl::new();
        let run = Run::new(problem, &control, Rank::Duration);
        let sequence = order(run.dag.nodes().collect());
        let best = Best {
            duration: run.dag.total_duration(),
            peak: 0,
            sequence,
        };
        let found = Found {
            lowest: best.clone(),
            best: Some(best),
            impossible: false,
            stop: StopReason::Converged,
            steps: 1,
        };
        run.outcome(&[found])
    }

    #[test]
    fn a_sequence_that_cannot_be_lowered_reaches_the_checker_where_assertions_do() {
        let problem = chain();
        let right = outcome(&problem, |order| order).plan.expect("every op once is a plan");
        assert!(replay(&problem, &right).is_ok());
        let wrong = outcome(&problem, |order| order.into_iter().rev().collect()).plan;
        if cfg!(debug_assertions) {
            let wrong = wrong.expect("it is handed on, not taken for no plan");
            assert!(replay(&problem, &wrong).is_err());
        } else {
            assert!(wrong.is_none());
        }
    }

    #[test]
    fn sequences_over_storages_of_no_bytes_can_be_lowered() {
        let mut rng = Rng::new(0, 0);
        for _ in 0..60 {
            let count = 24 + rng.below(12);
            let op = |id: usize, rng: &mut Rng| {
                let bytes = [0, 0, 3, 50][rng.below(4)];
                let reads: Vec<usize> = (0..3).filter(|_| id > 0).map(|_| rng.below(id)).collect();
                (1 + rng.below(9) as u64, bytes, reads)
            };
            let ops: Vec<_> = (0..count).map(|id| op(id, &mut rng)).collect();
            let problem = in_free_order(paper(&ops));
            let control = SolveControl::new().step_limit(2_000);
            let lowest = minimize_peak(&problem, None, &control)
                .plan
                .expect("there is always a plan");
            let least = replay(&problem, &lowest).expect("the plan is valid").peak;
            let budget = Some(least.midpoint(baseline_peak(&problem)));
            let limited = Problem { budget, ..problem };
            if let Some(plan) = Search.solve(&limited, &control).plan {
                replay(&limited, &plan).expect("the plan is valid");
            }
        }
    }
}
