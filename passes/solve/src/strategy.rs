//! What one thread does with its time.

use std::sync::{Mutex, PoisonError};

use remat_plan::{NodeId, Problem, StopReason, Structure};

use crate::Rng;
use crate::best::Best;
use crate::cleanup::cleanup;
use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::floor::{LeastPeak, bound};
use crate::large::{Cooling, Large};
use crate::lns::Neighbourhood;
use crate::repair::{Chain, RepairOptions};
use crate::sequence::EventId;
use crate::state::{Edit, State};

/// Steps of each half of the first round of improvement.
pub(crate) const FIRST_ROUND: u64 = 50_000;
/// A first sequence that takes this many times as long as running everything once is better sought by lowering the peak step by step.
const DIRECT_LIMIT: i64 = 3;
/// As is one that takes this many steps per node on a small graph, and on a larger one; there, at least as many as a first round.
const DIRECT_STEPS: (u64, u64) = (300, 50);
/// Number of nodes from which on the search works on stretches of the sequence, one after another.
pub(crate) const LARGE: usize = 2_000;
/// The most by which a step of the neighbourhood search may make a sequence longer, as a share of its overhead.
const SLACK: f64 = 0.02;
/// Share of the limits for a bound on the peak of every plan.
const FLOOR_SHARE: f64 = 0.1;
/// A plan that takes this share longer than running every op once leaves much to gain.
const MUCH_TO_GAIN: f64 = 0.05;
/// How many times as long the search goes on without a plan.
const WITHOUT_PLAN: u64 = 4;

/// What one thread hands back.
pub(crate) struct Found {
    /// The best sequence within the budget.
    pub(crate) best: Option<Best>,
    /// Whether it proved that there is no plan.
    pub(crate) impossible: bool,
    /// The lowest peak of any sequence, in units.
    pub(crate) lowest_peak: i32,
    pub(crate) stop: StopReason,
    pub(crate) steps: u64,
}

/// Takes note of an improvement after so many steps.
pub(crate) type Report<'a> = &'a dyn Fn(&Best, u64, Phase);

/// One thread of the search.
pub(crate) struct Worker<'a> {
    problem: &'a Problem,
    structure: &'a Structure,
    pub(crate) dag: &'a Dag,
    pub(crate) state: State<'a>,
    pub(crate) meter: Meter<'a>,
    pub(crate) rng: Rng,
    /// Number of the thread; the first does what need not be done twice.
    pub(crate) stream: u64,
    /// Whether it was proved that there is no plan.
    impossible: bool,
    neighbourhood: Neighbourhood,
    log: Vec<Edit>,
    buffer: Vec<EventId>,
    /// The shortest sequence within the budget.
    pub(crate) best: Option<Best>,
    /// The best sequence of all, where the search has begun anew.
    pub(crate) kept: Option<Best>,
    /// The lowest peak of any sequence.
    pub(crate) lowest_peak: i32,
    /// A duration that is short enough for what the search is after.
    pub(crate) goal: i64,
    /// Whether the budget is a stage on the way to another: then a better sequence is no improvement of the answer.
    pub(crate) on_the_way: bool,
    /// The longest chains that annealing inserts.
    pub(crate) chain: Chain,
    pub(crate) last_improvement: u64,
    pub(crate) report: Report<'a>,
    /// The best sequence of all threads, where there are several.
    pub(crate) shared: Option<&'a Mutex<Option<Best>>>,
}

impl<'a> Worker<'a> {
    /// A thread that searches for plans of a problem, which `dag` was made of.
    pub(crate) fn new(
        (problem, structure, dag): (&'a Problem, &'a Structure, &'a Dag),
        meter: Meter<'a>,
        seed: u64,
        stream: u64,
        report: Report<'a>,
    ) -> Self {
        let state = State::new(dag, i32::MAX);
        Self {
            problem,
            structure,
            dag,
            lowest_peak: state.peak(),
            state,
            meter,
            rng: Rng::new(seed, stream),
            stream,
            impossible: false,
            neighbourhood: Neighbourhood::default(),
            log: Vec::new(),
            buffer: Vec::new(),
            best: None,
            kept: None,
            goal: dag.total_duration(),
            on_the_way: false,
            chain: Chain::SHORT,
            last_improvement: 0,
            report,
            shared: None,
        }
    }

    /// Searches for the shortest sequence within a budget.
    pub(crate) fn minimize_duration(&mut self, start: Option<&[NodeId]>) -> Found {
        let budget = self.dag.scaled_budget(self.problem.budget);
        if self.dag.len() > LARGE {
            return self.minimize_duration_of_large(budget, start);
        }
        self.state.set_budget(budget);
        if let Some(start) = start {
            self.state.load(start);
        }
        let nodes = self.dag.len() as u64;
        let direct_steps = (DIRECT_STEPS.0 * nodes).min(FIRST_ROUND.max(DIRECT_STEPS.1 * nodes));
        let options = RepairOptions {
            max_steps: direct_steps,
            duration_limit: self.dag.total_duration().saturating_mul(DIRECT_LIMIT),
            ..RepairOptions::GREEDY
        };
        self.repair(options, Phase::Greedy);
        if self.best.is_none()
            && self.stream == 0
            && let Some(bytes) = self.problem.budget
            && self.least_peak(bytes).0.bytes > bytes
        {
            self.impossible = true;
            self.meter.stop(StopReason::Proved);
        }
        if self.best.is_none() {
            self.sink_into(budget, start);
        }
        self.improve();
        self.found()
    }

    /// The same where there are too many nodes to work on all of them at once.
    fn minimize_duration_of_large(&mut self, budget: i32, start: Option<&[NodeId]>) -> Found {
        let mut large = self.large(budget, start);
        let reached = large.reach(&mut self.meter, u64::MAX);
        self.lowest_peak = self.lowest_peak.min(large.peak());
        if reached {
            let best = large.best();
            self.state.steps = large.steps();
            self.improved(&best, Phase::Greedy);
            self.best = Some(best);
            self.improve_large(&mut large);
        }
        self.state.steps = large.steps();
        self.found()
    }

    /// A search on stretches from a sequence, by default from the reference order.
    pub(crate) fn large(&self, budget: i32, start: Option<&[NodeId]>) -> Large<'a> {
        let reference: Vec<NodeId>;
        let start = if let Some(start) = start {
            start
        } else {
            reference = self.dag.nodes().collect();
            &reference
        };
        Large::new(self.dag, budget, start, self.rng.clone(), self.state.steps)
    }

    /// Shortens a sequence within its budget stretch by stretch.
    pub(crate) fn improve_large(&mut self, large: &mut Large<'a>) {
        large.improve(self.goal, u64::MAX, &mut self.meter, |large| {
            let best = large.best();
            self.last_improvement = large.steps();
            (self.report)(&best, large.steps(), Phase::Annealing);
            self.best = Some(best);
        });
    }

    /// A peak that no plan undercuts, and a sequence that has it, where one is known; nothing more is asked of it once it is above `enough` bytes. Takes a small share of the limits.
    pub(crate) fn least_peak(&mut self, enough: u64) -> (LeastPeak, Option<Vec<NodeId>>) {
        bound(self.problem, self.structure, self.dag, enough, || {
            self.state.steps += 1;
            !self.meter.used_up(FLOOR_SHARE, self.state.steps) && !self.meter.is_over(self.state.steps)
        })
    }

    /// Repairs the state, drops what became superfluous and takes note. Returns whether it is within the budget.
    pub(crate) fn repair(&mut self, options: RepairOptions, phase: Phase) -> bool {
        let restored = self.restore(options);
        if restored {
            self.note(phase);
        }
        restored
    }

    /// Repairs the state and drops what became superfluous. Returns whether it is within the budget.
    pub(crate) fn restore(&mut self, options: RepairOptions) -> bool {
        self.log.clear();
        let repaired = if self.dag.len() > LARGE {
            self.restore_large(options)
        } else {
            let repair = &mut self.neighbourhood.repair;
            repair.run(&mut self.state, options, &mut self.rng, &mut self.meter, &mut self.log)
        };
        if repaired {
            cleanup(&mut self.state, &mut self.buffer, &mut self.log);
        }
        repaired
    }

    /// Repairs a large state frame by frame.
    fn restore_large(&mut self, options: RepairOptions) -> bool {
        let (budget, steps) = (self.state.budget(), self.state.steps);
        let mut large = Large::new(self.dag, budget, &self.state.nodes(), self.rng.clone(), steps);
        let reached = large.reach(&mut self.meter, steps.saturating_add(options.max_steps));
        if reached {
            self.state.load(&large.best().sequence);
        }
        self.state.steps = self.state.steps.max(large.steps());
        self.rng = large.into_rng();
        reached
    }

    /// Neighbourhood search from the best sequence. Steps that make it a little longer are accepted, ever more rarely.
    pub(crate) fn search_neighbourhoods(&mut self, steps: u64) {
        self.load_best();
        let begin = self.state.steps;
        let total = self.dag.total_duration();
        while self.state.steps - begin < steps && !self.is_over() {
            let Some(best) = self.best.as_ref().map(|best| best.duration) else {
                return;
            };
            let progress = (self.state.steps - begin) as f64 / steps as f64;
            let over = (self.state.duration() - total) as f64 * SLACK;
            let slack = (over * (1.0 - progress) * self.rng.unit() * self.rng.unit()) as i64;
            let strayed = self.state.duration() + slack > best + (2.0 * over) as i64;
            let slack = if strayed { 0 } else { slack };
            self.state.steps += 1;
            let moved = self
                .neighbourhood
                .step(&mut self.state, slack, &mut self.rng, &mut self.meter);
            if moved {
                self.note(Phase::Neighbourhood);
            }
        }
    }

    /// Annealing from the best sequence, with the moves of the search on large graphs, which aim at the places above the budget.
    pub(crate) fn anneal_as_frame(&mut self, cooling: Cooling, steps: u64) {
        let Some(best) = self.best.clone() else {
            return;
        };
        let budget = self.state.budget();
        let mut large = Large::new(self.dag, budget, &best.sequence, self.rng.clone(), self.state.steps);
        large.improve_whole(cooling, steps, self.goal, &mut self.meter);
        self.state.load(&large.best().sequence);
        self.state.steps = self.state.steps.max(large.steps());
        self.rng = large.into_rng();
        self.note(Phase::Annealing);
    }

    /// Leaves the best sequence to the other threads, or takes theirs if it is better or there is no own one. A search that has begun anew goes
    /// on with its own, and only [keeps](Worker::keep_better) theirs.
    pub(crate) fn exchange(&mut self) {
        let Some(shared) = self.shared else {
            return;
        };
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let own = [&self.best, &self.kept]
            .into_iter()
            .flatten()
            .min_by_key(|own| own.duration);
        let is_own_better = own.is_some_and(|own| shared.as_ref().is_none_or(|other| own.duration < other.duration));
        if is_own_better {
            *shared = own.cloned();
        } else if let Some(other) = &*shared
            // Where the budget is sought, that of the other thread may be larger.
            && own.is_none_or(|own| other.duration < own.duration)
            && other.peak <= self.state.budget()
        {
            if self.kept.is_some() {
                self.kept = Some(other.clone());
            } else {
                self.best = Some(other.clone());
                self.last_improvement = self.state.steps;
            }
        }
    }

    /// Ends a search that began anew: the best sequence is the better of its own and the one kept from before. Returns whether it is its own.
    pub(crate) fn keep_better(&mut self) -> bool {
        let Some(kept) = self.kept.take() else {
            return true;
        };
        let is_own = self.best.as_ref().is_some_and(|best| best.duration < kept.duration);
        if !is_own {
            self.best = Some(kept);
        }
        is_own
    }

    pub(crate) fn load_best(&mut self) {
        if let Some(best) = &self.best {
            self.state.load(&best.sequence);
        }
    }

    /// Keeps the state if it is within the budget and better than all before.
    pub(crate) fn note(&mut self, phase: Phase) -> bool {
        let better = self
            .best
            .as_ref()
            .is_none_or(|best| self.state.duration() < best.duration);
        if self.state.excess() > 0 || !better {
            return false;
        }
        let best = Best::of(&self.state);
        if !self.on_the_way && self.is_best_of_all(&best) {
            self.improved(&best, phase);
        }
        self.best = Some(best);
        true
    }

    /// Whether a sequence is better than the one kept before the search began anew.
    fn is_best_of_all(&self, best: &Best) -> bool {
        self.kept.as_ref().is_none_or(|kept| best.duration < kept.duration)
    }

    /// Something was reached that is no answer yet.
    pub(crate) fn progressed(&mut self) {
        if self.kept.is_none() {
            self.last_improvement = self.state.steps;
        }
    }

    /// The answer is better now.
    pub(crate) fn improved(&mut self, best: &Best, phase: Phase) {
        self.last_improvement = self.state.steps;
        (self.report)(best, self.state.steps, phase);
    }

    /// Whether to stop: the goal is reached, or a limit, or the search has converged.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.best.as_ref().is_some_and(|best| best.duration <= self.goal) {
            return true;
        }
        let patience = self.meter.patience().times(self.hope());
        if patience.is_over(self.state.steps, self.last_improvement) {
            self.meter.stop(StopReason::Converged);
        }
        self.meter.is_over(self.state.steps)
    }

    /// How much longer than usual an improvement is worth waiting for: the larger the graph, the more sequences there are, and the rarer are
    /// improvements, unless there is little left to gain. Without a sequence there is everything to gain.
    fn hope(&self) -> u64 {
        let hundreds = (self.dag.len() as u64 / 100).max(1);
        let best = [&self.best, &self.kept]
            .into_iter()
            .flatten()
            .map(|best| best.duration)
            .min();
        let Some(best) = best else {
            return hundreds * WITHOUT_PLAN;
        };
        let total = self.dag.total_duration();
        let overhead = (best - total) as f64 / total.max(1) as f64;
        if self.dag.is_free() || overhead > MUCH_TO_GAIN {
            hundreds
        } else {
            1
        }
    }

    /// What this thread has to say.
    pub(crate) fn found(&mut self) -> Found {
        self.keep_better();
        let best = self.best.take();
        let proved = best
            .as_ref()
            .is_some_and(|best| best.duration <= self.dag.total_duration());
        let stop = if proved {
            StopReason::Proved
        } else {
            self.meter.reason().unwrap_or(StopReason::Converged)
        };
        Found {
            best,
            impossible: self.impossible,
            lowest_peak: self.lowest_peak,
            stop,
            steps: self.state.steps,
        }
    }
}
