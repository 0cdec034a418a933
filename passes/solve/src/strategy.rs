//! What one thread does with its time.

use std::sync::Mutex;

use remat_plan::{NodeId, Problem, StopReason, Structure};

use crate::Rng;
use crate::anneal::Annealing;
use crate::best::Best;
use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::floor::{LeastPeak, bound};
use crate::lns::Neighbourhood;
use crate::pool::Pool;
use crate::profile::{Clock, Round};
use crate::repair::RepairOptions;
use crate::sequence::Sequence;

/// Steps of each half of the first round of improvement.
pub(crate) const FIRST_ROUND: u64 = 50_000;
/// A first sequence that takes this many times as long as running everything once is better sought by lowering the peak step by step.
const DIRECT_LIMIT: i64 = 3;
/// As is one that takes this many steps per node on a small graph, and on a larger one; there, at least as many as a first round.
const DIRECT_STEPS: (u64, u64) = (300, 50);
/// Number of nodes from which on the search works on stretches of the sequence, one after another.
const LARGE: usize = 2_000;
/// The most by which a step of the neighbourhood search may make a sequence longer, as a share of its overhead.
const SLACK: f64 = 0.02;
/// Share of the limits for a bound on the peak of every plan.
const FLOOR_SHARE: f64 = 0.1;
/// Share of the limits after which a sequence of the least peak is taken for a start, where one is known.
const SINK_SHARE: f64 = 0.2;
/// A plan that takes this share longer than running every op once leaves much to gain.
const MUCH_TO_GAIN: f64 = 0.05;
/// How many times as long the search goes on without a plan, and in free order with one that leaves much to gain.
const MOST_HOPE: u64 = 4;

/// What one thread hands back.
pub(crate) struct Found {
    /// The best sequence within the budget.
    pub(crate) best: Option<Best>,
    /// Whether it proved that there is no plan.
    pub(crate) impossible: bool,
    /// The sequence of the lowest peak.
    pub(crate) lowest: Best,
    pub(crate) stop: StopReason,
    pub(crate) steps: u64,
}

/// Takes note of an improvement after so many steps.
pub(crate) type Report<'a> = &'a dyn Fn(&Best, u64, Phase);

/// One thread of the search.
pub(crate) struct Worker<'a> {
    pub(crate) problem: &'a Problem,
    pub(crate) structure: &'a Structure,
    pub(crate) dag: &'a Dag,
    /// Whether there are too many nodes to work on all of them at once.
    pub(crate) is_large: bool,
    pub(crate) state: Sequence<'a>,
    pub(crate) meter: Meter<'a>,
    pub(crate) clock: Clock<'a>,
    pub(crate) rng: Rng,
    /// Number of the thread; the first does what need not be done twice.
    pub(crate) stream: u64,
    /// Whether it was proved that there is no plan.
    impossible: bool,
    neighbourhood: Neighbourhood,
    pub(crate) annealing: Annealing,
    /// The shortest sequence within the budget.
    pub(crate) best: Option<Best>,
    /// The best sequence of all, where the search is after another one.
    pub(crate) kept: Option<Best>,
    /// The sequence of the lowest peak.
    lowest: Best,
    /// A duration that is short enough for what the search is after.
    pub(crate) goal: i64,
    /// Whether the budget is a stage on the way to another: then a better sequence is no improvement of the answer.
    pub(crate) on_the_way: bool,
    pub(crate) last_improvement: u64,
    pub(crate) report: Report<'a>,
    /// What all threads share.
    pub(crate) pool: &'a Mutex<Pool>,
    /// How many sequences this thread has made by annealing; threads begin with other ways.
    pub(crate) variations: usize,
}

impl<'a> Worker<'a> {
    /// A thread that searches for plans of a problem, which `dag` was made of.
    pub(crate) fn new(
        (problem, structure, dag): (&'a Problem, &'a Structure, &'a Dag),
        meter: Meter<'a>,
        seed: u64,
        stream: u64,
        report: Report<'a>,
        pool: &'a Mutex<Pool>,
    ) -> Self {
        let state = Sequence::new(dag, i32::MAX);
        Self {
            problem,
            structure,
            dag,
            is_large: dag.len() > LARGE,
            lowest: Best::of(&state),
            state,
            clock: Clock::new(meter.control().profile),
            meter,
            rng: Rng::new(seed, stream),
            stream,
            impossible: false,
            neighbourhood: Neighbourhood::default(),
            annealing: Annealing::new(dag),
            best: None,
            kept: None,
            goal: dag.total_duration(),
            on_the_way: false,
            last_improvement: 0,
            report,
            pool,
            variations: stream as usize,
        }
    }

    /// Searches for the shortest sequence within a budget.
    pub(crate) fn minimize_duration(&mut self, start: Option<&[NodeId]>) -> Found {
        let budget = self.dag.scaled_budget(self.problem.budget);
        let replicate = |worker: &mut Self| worker.during(Round::Replicate, |worker| worker.replicate(budget));
        if self.is_large {
            replicate(self);
            self.begin_large(budget, start);
        } else {
            self.begin(budget, start);
            // Other threads go the other way in the meantime; what is better is shared.
            if self.stream.is_multiple_of(2) {
                replicate(self);
            }
        }
        self.go_on(budget, start)
    }

    /// The same where there are few nodes, and no look at what repeats.
    pub(crate) fn shorten(&mut self, budget: i32, start: Option<&[NodeId]>) -> Found {
        self.begin(budget, start);
        self.go_on(budget, start)
    }

    /// The direct way to a first sequence.
    fn begin(&mut self, budget: i32, start: Option<&[NodeId]>) {
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
    }

    /// The same where there are too many nodes to work on all of them at once; not for long where there is a sequence.
    fn begin_large(&mut self, budget: i32, start: Option<&[NodeId]>) {
        self.kept = self.best.take();
        let last_step = match &self.kept {
            Some(_) => self.state.steps.saturating_add(FIRST_ROUND),
            None => u64::MAX,
        };
        self.load_start(budget, start);
        self.during(Round::Repair, |worker| {
            if worker.reach(last_step) {
                worker.note(Phase::Greedy);
            }
        });
        self.reached(&Best::of(&self.state));
        self.keep_better();
    }

    /// Improves the sequence at hand; where there is none, finds one first.
    fn go_on(&mut self, budget: i32, start: Option<&[NodeId]>) -> Found {
        if self.best.is_none() && !self.is_large {
            self.begin_tight(budget, start);
        }
        self.improve();
        self.found()
    }

    /// Finds a first sequence where the direct way fails, or that there is none. Where lowering the peak takes long, a sequence of the least peak
    /// will do, if one is known.
    fn begin_tight(&mut self, budget: i32, start: Option<&[NodeId]>) {
        let mut least = None;
        if self.stream == 0
            && let Some(bytes) = self.problem.budget
        {
            let (bound, sequence) = self.least_peak(bytes);
            if bound.bytes > bytes {
                self.impossible = true;
                self.meter.stop(StopReason::Proved);
            }
            least = sequence;
        }
        let share = if least.is_some() { SINK_SHARE } else { 1.0 };
        self.sink_into(budget, start, share);
        if self.best.is_none()
            && let Some(sequence) = least
        {
            self.best = self.at_peak(budget, &sequence);
        }
    }

    /// A peak that no plan undercuts, and a sequence that has it, where one is known; nothing more is asked of it once it is above `enough` bytes. Takes a small share of the limits.
    pub(crate) fn least_peak(&mut self, enough: u64) -> (LeastPeak, Option<Vec<NodeId>>) {
        self.during(Round::Floor, |worker| {
            bound(worker.problem, worker.structure, worker.dag, enough, || {
                worker.state.steps += 1;
                !worker.meter.used_up(FLOOR_SHARE, worker.state.steps) && !worker.meter.is_over(worker.state.steps)
            })
        })
    }

    /// Repairs the state, drops what became superfluous and takes note. Returns whether it is within the budget.
    pub(crate) fn repair(&mut self, options: RepairOptions, phase: Phase) -> bool {
        self.during(Round::Repair, |worker| {
            let restored = worker.restore(options);
            if restored {
                worker.note(phase);
            }
            restored
        })
    }

    /// Repairs the state and drops what became superfluous. Returns whether it is within the budget.
    pub(crate) fn restore(&mut self, options: RepairOptions) -> bool {
        let repaired = if self.is_large {
            let reached = self.reach(self.state.steps.saturating_add(options.max_steps));
            self.state.set_whole_frame();
            reached
        } else {
            self.restore_frame(options)
        };
        if repaired {
            let around = self.clock.enter(Round::Cleanup, self.state.steps);
            self.neighbourhood.cleanup(&mut self.state);
            self.clock.go_on_with(around, self.state.steps);
        }
        repaired
    }

    /// Repairs the frame. Returns whether it is within the budget.
    pub(crate) fn restore_frame(&mut self, options: RepairOptions) -> bool {
        let neighbourhood = &mut self.neighbourhood;
        neighbourhood.restore(&mut self.state, options, &mut self.rng, &mut self.meter)
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

    /// The best sequence is the better of the one at hand and the one kept from before.
    pub(crate) fn keep_better(&mut self) {
        if let Some(kept) = self.kept.take()
            && self.best.as_ref().is_none_or(|best| best.duration >= kept.duration)
        {
            self.best = Some(kept);
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
        if !self.on_the_way && self.is_best_of_all(&best) {
            self.improved(&best, phase);
        }
        self.best = Some(best);
        true
    }

    /// Whether a sequence is better than the one kept.
    fn is_best_of_all(&self, best: &Best) -> bool {
        self.kept.as_ref().is_none_or(|kept| best.duration < kept.duration)
    }

    /// Something was reached that is no answer yet.
    pub(crate) fn progressed(&mut self) {
        if self.kept.is_none() {
            self.last_improvement = self.state.steps;
        }
    }

    /// Takes note of a sequence that may have the lowest peak of all.
    pub(crate) fn reached(&mut self, sequence: &Best) {
        if sequence.peak < self.lowest.peak {
            self.lowest = sequence.clone();
        }
    }

    /// The answer is better now.
    pub(crate) fn improved(&mut self, best: &Best, phase: Phase) {
        self.last_improvement = self.state.steps;
        let before = self.best.as_ref().filter(|best| self.is_best_of_all(best));
        let before = before.or(self.kept.as_ref());
        self.clock.improved(gain(self.dag, before, best));
        (self.report)(best, self.state.steps, phase);
    }

    /// Does something that is a round of its own.
    pub(crate) fn during<T>(&mut self, round: Round, work: impl FnOnce(&mut Self) -> T) -> T {
        let around = self.clock.enter(round, self.state.steps);
        let done = work(self);
        self.clock.go_on_with(around, self.state.steps);
        done
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
        let has_plan = self.best.is_some() || self.kept.is_some();
        if self.is_large && (has_plan || self.on_the_way) {
            return 1;
        }
        let hundreds = (self.dag.len() as u64 / 100).max(1);
        let best = self.best.iter().chain(&self.kept).map(|best| best.duration).min();
        let total = self.dag.total_duration();
        match best.map(|best| (best - total) as f64 / total.max(1) as f64) {
            Some(overhead) if overhead <= MUCH_TO_GAIN && !self.dag.is_free() => 1,
            Some(overhead) if overhead <= MUCH_TO_GAIN || !self.dag.is_free() => hundreds,
            _ => hundreds * MOST_HOPE,
        }
    }

    /// What this thread has to say.
    pub(crate) fn found(&mut self) -> Found {
        self.keep_better();
        self.clock.end(self.state.steps);
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
            lowest: self.lowest.clone(),
            stop,
            steps: self.state.steps,
        }
    }
}

/// By how much a sequence is shorter than the one before, in the unit of the problem.
fn gain(dag: &Dag, before: Option<&Best>, best: &Best) -> u64 {
    let before = before.map_or(best.duration, |before| before.duration);
    dag.unscaled_duration(before.max(best.duration)) - dag.unscaled_duration(best.duration)
}
