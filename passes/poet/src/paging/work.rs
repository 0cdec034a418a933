//! One call of a solver: the parts of the search, one after another, and the best that they find.

use std::sync::atomic::AtomicBool;
use web_time::Instant;

use remat_plan::{Objective, OrderMode, Plan, Problem, Status, StopReason, Structure};

use super::anneal::Round;
use super::candidates::Allowed;
use super::capuchin::capuchin;
use super::evaluate::{Evaluator, Figures};
use super::model::Model;
use super::planner::place;
use super::pofo::pofo;
use super::repair::{Budgeted, cleanup, repair};
use super::sequence::{Item, every_node_once, lower, raise};
use super::simulate::simulate;
use remat_solve::{Call, Meter, Outcome, Phase, Rng, Search, SolveControl, Solver};

/// Steps of the first round of annealing; each further one takes half as many again, up to the longest.
const FIRST_ROUND: u64 = 10_000;
const LONGEST_ROUND: u64 = 200_000;
/// Share of the remaining time that each part of the search takes at most before the whole one starts.
const PART_SHARE: f64 = 0.2;
/// Share of the time for recomputes alone that the search of problems without second memory gets.
const SEARCH_SHARE: f64 = 0.4;
/// Share of the time that is left for the planner of transfers.
const PLANNER_SHARE: f64 = 0.03;
/// The same for transfers alone where time with DMA has to be told at every step.
const SLOW_SHARE: f64 = 0.5;
/// Share of the remaining time that transfers alone get once more where no part has found a plan.
const LATE_SHARE: f64 = 0.8;
/// How often greedy additions are tried with random choices, before annealing.
const NOISY_STARTS: usize = 4;

/// How a schedule is sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Both,
    Pages,
    Runs,
    Capuchin,
    Pofo,
}

/// What the whole search does before it begins.
const PARTS: [Method; 4] = [Method::Capuchin, Method::Pofo, Method::Pages, Method::Runs];

const BOTH: Allowed = Allowed {
    pages: true,
    runs: true,
};
const PAGES: Allowed = Allowed {
    pages: true,
    runs: false,
};
const RUNS: Allowed = Allowed {
    pages: false,
    runs: true,
};

/// A sequence that keeps all limits.
struct Best {
    items: Vec<Item>,
    plan: Plan,
    /// What the objective measures of the plan.
    objective: u64,
    /// Most memory at a position, in bytes.
    peak: u64,
}

/// One call of a solver.
struct Work<'a, 'm> {
    name: &'static str,
    method: Method,
    control: &'a SolveControl<'a>,
    started: Instant,
    done: &'a AtomicBool,
    model: &'m Model<'m>,
    search: Budgeted<'a, 'm>,
    rng: Rng,
    best: Option<Best>,
    /// The lowest peak of any sequence, in units of the graph.
    lowest: i32,
    /// Steps at the last improvement.
    improved_at: u64,
}

/// Finds a schedule by one method, under the name of its solver.
pub(super) fn solve(name: &'static str, method: Method, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
    let structure = Structure::of(problem);
    let model = Model::of(problem, &structure);
    let (started, done) = (Instant::now(), AtomicBool::new(false));
    let mut work = Work {
        name,
        method,
        control,
        started,
        done: &done,
        model: &model,
        search: Budgeted {
            evaluator: Evaluator::new(&model),
            model: &model,
            meter: Meter::new(control, &done, started, model.dag.len()),
            steps: 0,
            until: u64::MAX,
            end: None,
            next_look: 0,
        },
        rng: Rng::new(control.seed, 0),
        best: None,
        lowest: i32::MAX,
        improved_at: 0,
    };
    work.solve()
}

fn is_past(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

/// When a share of the time until then is over.
fn within(end: Option<Instant>, share: f64) -> Option<Instant> {
    let now = Instant::now();
    end.map(|end| now + end.saturating_duration_since(now).mul_f64(share))
}

impl Work<'_, '_> {
    fn solve(&mut self) -> Outcome {
        let problem = self.model.problem;
        let too_late = problem
            .deadline
            .is_some_and(|deadline| problem.total_duration() > deadline);
        if too_late || problem.check(self.model.structure).is_err() {
            return self.outcome(None, Status::Infeasible, StopReason::Proved);
        }
        let plain = every_node_once(self.model);
        self.consider(&plain);
        if self.best.is_none() {
            if let Some(warm) = self.control.warm_start.and_then(|plan| raise(self.model, plan)) {
                self.consider(&warm);
            }
            self.search.end = within(self.control.deadline, 1.0 - PLANNER_SHARE);
            match self.method {
                Method::Both => self.both(),
                part => self.beside(part, None),
            }
            if is_past(self.search.end) {
                self.search.meter.stop(StopReason::TimeLimit);
            }
        }
        let stop = self.search.meter.reason().unwrap_or(StopReason::Converged);
        self.place(self.control.deadline);
        let best = self.best.take();
        self.outcome(best, Status::Unknown, stop)
    }

    fn both(&mut self) {
        let whole = self.search.end;
        for part in PARTS {
            let is_slow = part == Method::Pages && self.model.needs_clock();
            self.beside(part, Some(if is_slow { SLOW_SHARE } else { PART_SHARE }));
        }
        self.begin();
        if self.model.has_second_memory() {
            self.search.end = within(whole, PART_SHARE);
            self.construct(BOTH);
        }
        self.search.end = whole;
        if self.best.is_none() && self.model.has_second_memory() && whole.is_some() {
            // Transfers alone are fewer things to try: they get into the limits sooner.
            self.search.end = within(whole, LATE_SHARE);
            self.part(Method::Pages);
            self.search.end = whole;
            self.begin();
        }
        self.rounds(BOTH);
    }

    /// What a part finds from nothing in at most a share of the remaining time, with steps and random choices of its own, unless what is
    /// known already is better.
    fn beside(&mut self, part: Method, share: Option<f64>) {
        let known = self.best.take();
        let rng = std::mem::replace(&mut self.rng, Rng::new(self.control.seed, 0));
        if let Some(share) = share {
            self.search.end = within(self.control.deadline, share);
        }
        self.part(part);
        if self.model.problem.objective != Objective::Energy {
            self.place(self.search.end);
        }
        self.rng = rng;
        self.best = match (known, self.best.take()) {
            (Some(known), Some(found)) if found.objective < known.objective => Some(found),
            (known, found) => known.or(found),
        };
    }

    fn part(&mut self, method: Method) {
        self.begin();
        match method {
            Method::Both => {}
            Method::Capuchin => self.capuchin(),
            Method::Pofo => self.pofo(),
            Method::Pages if !self.model.has_second_memory() => {}
            Method::Pages => {
                self.construct(PAGES);
                self.rounds(PAGES);
            }
            Method::Runs => {
                self.search_runs();
                self.construct(RUNS);
                self.rounds(RUNS);
            }
        }
    }

    /// What the search of problems without second memory finds: it knows prices of runs only, and no deadlines.
    fn search_runs(&mut self) {
        let end = self.search.end.or(self.control.deadline);
        let mut problem = self.model.problem.clone();
        if problem.objective == Objective::Energy {
            for op in &mut problem.ops {
                op.duration = op.energy_pj;
            }
        }
        (problem.objective, problem.order) = (Objective::Time, OrderMode::Fixed);
        (problem.paging, problem.deadline) = (None, None);
        let mut control = *self.control;
        control.deadline = within(end, SEARCH_SHARE);
        (control.threads, control.observer, control.warm_start) = (1, None, None);
        let found = Search.solve(&problem, &control).plan;
        if let Some(items) = found.and_then(|plan| raise(self.model, &plan)) {
            self.consider(&items);
        }
    }

    /// Counts steps anew.
    fn begin(&mut self) {
        self.search.meter = Meter::new(self.control, self.done, self.started, self.model.dag.len());
        (self.search.steps, self.search.next_look) = (0, 0);
        self.improved_at = 0;
    }

    fn capuchin(&mut self) {
        if let Some(items) = capuchin(&mut self.search, BOTH) {
            self.consider(&items);
        }
    }

    /// Every table of the dynamic program; nothing where the forward pass is no chain.
    fn pofo(&mut self) {
        for mut items in pofo(self.model, BOTH) {
            cleanup(&mut self.search, &mut items);
            self.consider(&items);
        }
    }

    /// Greedy additions to every node once, first without and then with randomness.
    fn construct(&mut self, allowed: Allowed) {
        for start in 0..=NOISY_STARTS {
            let mut items = every_node_once(self.model);
            let noise = if start == 0 { 0.0 } else { 2.0 };
            if repair(&mut self.search, &mut items, allowed, noise, &mut self.rng) {
                cleanup(&mut self.search, &mut items);
            }
            self.consider(&items);
            if self.search.is_over() {
                return;
            }
        }
    }

    /// Annealing until a limit is reached, or nothing is gained any more.
    fn rounds(&mut self, allowed: Allowed) {
        let mut length = FIRST_ROUND;
        loop {
            let from = match &self.best {
                Some(best) => best.items.clone(),
                None => every_node_once(self.model),
            };
            if self.search.is_over() {
                return;
            }
            let mut round = Round {
                allowed,
                steps: length,
                rng: &mut self.rng,
            };
            if let Some((figures, mut items)) = round.anneal(&mut self.search, &from) {
                cleanup(&mut self.search, &mut items);
                let figures = self.search.evaluate(&items).unwrap_or(figures);
                if figures.keeps_limits(self.model) {
                    self.keep(&figures, items);
                }
            }
            let patience = self.search.meter.patience();
            if patience.is_over(self.search.steps, self.improved_at) {
                self.search.meter.stop(StopReason::Converged);
                return;
            }
            length = (length + length / 2).min(LONGEST_ROUND);
        }
    }

    /// Places the transfers of the best sequence, until time is up: time is saved for nothing.
    fn place(&mut self, until: Option<Instant>) {
        let Some(best) = self.best.as_mut().filter(|_| self.model.is_dma()) else {
            return;
        };
        let mut items = best.items.clone();
        place(self.model, &mut items, until);
        let Ok(plan) = lower(self.model, &items) else { return };
        let (problem, structure) = (self.model.problem, self.model.structure);
        let [before, after] = [&best.plan, &plan].map(|plan| simulate(problem, structure, plan));
        if after.energy > before.energy || after.time >= before.time {
            return;
        }
        if problem.objective == Objective::Time {
            best.objective = after.time;
        }
        (best.items, best.plan, best.peak) = (items, plan, best.peak.max(after.peak));
    }

    /// Keeps a sequence if it is the best one so far.
    fn consider(&mut self, items: &[Item]) {
        let Some(figures) = self.search.evaluate(items) else {
            return;
        };
        self.lowest = self.lowest.min(figures.peak);
        if figures.keeps_limits(self.model) {
            self.keep(&figures, items.to_vec());
        }
    }

    /// Keeps a sequence whose plan is better than the best one so far. Where views run again, figures of sequences are upper bounds, so
    /// plans are compared.
    fn keep(&mut self, figures: &Figures, items: Vec<Item>) {
        let plan = match lower(self.model, &items) {
            Ok(plan) => plan,
            Err(error) => {
                tracing::error!(%error, "a sequence of the search could not be lowered");
                return;
            }
        };
        let problem = self.model.problem;
        let exact = simulate(problem, self.model.structure, &plan);
        let peak = self.model.dag.unscaled(figures.peak);
        let objective = match problem.objective {
            Objective::Time => exact.time,
            Objective::Energy => exact.energy,
            Objective::Peak => peak,
        };
        let is_late = problem.deadline.is_some_and(|deadline| exact.time > deadline);
        if is_late || self.best.as_ref().is_some_and(|best| best.objective <= objective) {
            return;
        }
        self.improved_at = self.search.steps;
        self.call()
            .tell(objective, peak, self.search.steps, Phase::Annealing, &|| {
                Some(plan.clone())
            });
        self.best = Some(Best {
            items,
            plan,
            objective,
            peak,
        });
    }

    /// No plan takes less.
    fn bound(&self) -> u64 {
        let problem = self.model.problem;
        match problem.objective {
            Objective::Time => problem.total_duration(),
            Objective::Energy => problem.total_energy(),
            Objective::Peak => problem
                .bottleneck(self.model.structure)
                .map_or(0, |bottleneck| bottleneck.bytes),
        }
    }

    fn call(&self) -> Call<'_> {
        Call {
            problem: self.model.problem,
            control: self.control,
            solver: self.name,
            threads: 1,
            bound: self.bound(),
            started: self.started,
        }
    }

    fn outcome(&self, best: Option<Best>, status: Status, stop: StopReason) -> Outcome {
        let problem = self.model.problem;
        let certificate = match &best {
            Some(best) => self.call().found(best.objective, stop, self.search.steps),
            None => self.call().not_found(status, stop, self.search.steps),
        };
        // What leaves by DMA may take its bytes up to the budget.
        let by_dma = problem.budget.filter(|_| self.model.is_dma()).unwrap_or(0);
        let lowest_peak = match &best {
            Some(best) => Some(best.peak.max(by_dma)),
            None => (self.lowest < i32::MAX).then(|| self.model.dag.unscaled(self.lowest)),
        };
        Outcome::new(best.map(|best| best.plan), certificate, lowest_peak)
    }
}
