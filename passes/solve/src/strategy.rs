//! What one thread does with its time.

use std::sync::{Mutex, PoisonError};

use remat_plan::{NodeId, Problem, StopReason, Structure};

use crate::anneal::{Annealing, Schedule};
use crate::best::Best;
use crate::cleanup::cleanup;
use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::floor::{LeastPeak, bound};
use crate::large::{Cooling, Large};
use crate::lns::Neighbourhood;
use crate::repair::{Chain, RepairOptions};
use crate::rng::Rng;
use crate::sequence::EventId;
use crate::state::{Edit, State};

/// Steps of each half of the first round of improvement.
pub(crate) const FIRST_ROUND: u64 = 50_000;
/// A first sequence that takes this many times as long as running everything once is better sought stage by stage.
const DIRECT_LIMIT: i64 = 3;
/// As is one that takes this many steps per node on a small graph, and on a larger one; there, at least as many as a first round.
const DIRECT_STEPS: (u64, u64) = (300, 50);
/// Steps per node of the search stretch by stretch for a first sequence where the direct one failed.
const FRAME_STEPS: u64 = 2_000;
/// Share of the limits for improving a sequence that was found directly before the way over looser budgets is tried.
const DIRECT_SHARE: f64 = 0.4;
/// Share of the limits after which that way is given up.
const STAGED_SHARE: f64 = 0.8;
/// Share of annealing in a long round of improvement; the rest is neighbourhood search.
const ANNEALING_SHARE: f64 = 0.7;
/// Number of nodes from which on the search works on stretches of the sequence, one after another.
pub(crate) const LARGE: usize = 2_000;
/// The most by which a step of the neighbourhood search may make a sequence longer, as a share of its overhead.
const SLACK: f64 = 0.02;
/// Share of the limits for a bound on the peak of every plan.
const FLOOR_SHARE: f64 = 0.1;

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
        if self.dag.is_free() {
            self.reach_in_any_order(start);
            self.improve_in_any_order();
            return self.found();
        }
        if self.best.is_none() {
            self.reach_frame_by_frame(budget);
        }
        if self.best.is_none() {
            self.reach(budget, i64::MAX, 1.0, u64::MAX);
        }
        // Of several threads the first one tries the other way, the rest goes on from what it has.
        if self.stream == 0 {
            self.improve(DIRECT_SHARE);
            self.try_stages(budget);
        }
        self.improve(1.0);
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

    /// Seeks a first sequence as for large graphs.
    fn reach_frame_by_frame(&mut self, budget: i32) {
        let mut large = self.large(budget, None);
        let last_step = self.state.steps + FRAME_STEPS * self.dag.len() as u64;
        let reached = large.reach(&mut self.meter, last_step);
        self.state.steps = large.steps();
        self.lowest_peak = self.lowest_peak.min(large.peak());
        if reached {
            self.state.load(&large.best().sequence);
            cleanup(&mut self.state, &mut self.buffer, &mut self.log);
            self.note(Phase::Feasibility);
        }
    }

    /// The way over looser budgets may end in a better sequence than the direct one, if no stage on it may cost more than what is
    /// hoped for in the end. Hopes for ever less, until that fails.
    fn try_stages(&mut self, budget: i32) {
        let total = self.dag.total_duration();
        while let Some(first) = self.best.clone().filter(|best| best.duration > self.goal) {
            let had_converged = self.meter.reason() == Some(StopReason::Converged);
            let last_improvement = self.last_improvement;
            self.meter.go_on();
            if self.meter.used_up(STAGED_SHARE, self.state.steps) || self.meter.reason().is_some() {
                return;
            }
            let hoped = total + (first.duration - total) / 4 * 3;
            // As much again as all that went before.
            let last_step = self.state.steps.saturating_mul(2);
            self.reach(budget, hoped, STAGED_SHARE, last_step);
            match self.best.clone() {
                Some(staged) if staged.duration < first.duration => {
                    self.meter.go_on();
                    self.improved(&staged, Phase::Feasibility);
                }
                _ => {
                    self.best = Some(first);
                    self.last_improvement = last_improvement;
                    if had_converged {
                        self.meter.stop(StopReason::Converged);
                    }
                    return;
                }
            }
        }
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

    /// Improves the best sequence until the goal is reached or a limit or convergence ends the search: rounds of neighbourhood
    /// search and annealing, each twice as long as the one before. Where a limit is known, half of what is left where that is longer:
    /// one slow annealing finds more than several fast ones. Stops when this share of the limits is used up.
    pub(crate) fn improve(&mut self, share: f64) {
        let mut length = FIRST_ROUND;
        let mut is_first = true;
        while self.best.is_some() && !self.is_over() && !(share < 1.0 && self.meter.used_up(share, self.state.steps)) {
            let (mut neighbourhoods, mut annealing) = (length, length);
            if let Some(left) = self.meter.steps_left(self.state.steps) {
                if share >= 1.0 && !is_first {
                    let round = (left / 2).max(2 * length);
                    annealing = (round as f64 * ANNEALING_SHARE) as u64;
                    neighbourhoods = round - annealing;
                }
                if left / 2 < 2 * length {
                    (neighbourhoods, annealing) = ((left / 2).max(1), (left / 2).max(1));
                }
            }
            self.exchange();
            self.search_neighbourhoods(neighbourhoods);
            self.anneal_as_frame(Cooling::NEAR, annealing);
            length = length.saturating_mul(2);
            is_first = false;
        }
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

    /// Annealing from the best sequence. Where there is none, from the state, and only until it is within the budget.
    pub(crate) fn anneal(&mut self, steps: u64, phase: Phase) {
        let first = self.best.is_none();
        self.load_best();
        let schedule = if self.dag.is_free() {
            Schedule::JOINT
        } else {
            Schedule::FIXED
        };
        let mut annealing = Annealing::new(self.dag, schedule, self.chain);
        let begin = self.state.steps;
        while self.state.steps - begin < steps && !self.is_over() {
            let progress = (self.state.steps - begin) as f64 / steps as f64;
            let moved = annealing.step(&mut self.state, progress, &mut self.rng);
            if moved && self.note(phase) && first {
                return;
            }
        }
    }

    /// The same with the moves of the search on large graphs, which aims at the places above the budget.
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

    /// Leaves the best sequence to the other threads, or takes theirs if it is better or there is no own one.
    pub(crate) fn exchange(&mut self) {
        let Some(shared) = self.shared else {
            return;
        };
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.best.as_ref().map_or(i64::MAX, |own| own.duration);
        match &*shared {
            Some(other) if other.duration <= own => {
                // Where the budget is sought, that of the other thread may be larger.
                if other.duration < own && other.peak <= self.state.budget() {
                    self.best = Some(other.clone());
                    self.last_improvement = self.state.steps;
                }
            }
            _ => *shared = self.best.clone().or(shared.take()),
        }
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
        if !self.on_the_way {
            self.improved(&best, phase);
        }
        self.best = Some(best);
        true
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
        let patience = if self.dag.is_free() {
            self.meter.patience().in_any_order(self.dag.len())
        } else {
            self.meter.patience()
        };
        if patience.is_over(self.state.steps, self.last_improvement) {
            self.meter.stop(StopReason::Converged);
        }
        self.meter.is_over(self.state.steps)
    }

    /// What this thread has to say.
    pub(crate) fn found(&mut self) -> Found {
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
