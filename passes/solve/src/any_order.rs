//! The strategy in free order: annealing over order and recomputes together.
//!
//! A first sequence comes from greedy repair of the reference order. Where that fails, the peak is lowered step by step until it is
//! within the budget, at any cost; hot annealing with expensive excess does that best. A sequence within the budget is improved in
//! rounds of several kinds, from where it is; where the budget is loose, hot annealing with cheap excess finds other orders, often
//! some that need no recompute.

use remat_plan::NodeId;

use crate::anneal::{Annealing, Schedule};
use crate::best::Best;
use crate::control::Phase;
use crate::descent::Descent;
use crate::large::Cooling;
use crate::repair::{Chain, RepairOptions};
use crate::strategy::{FIRST_ROUND, Worker};

/// Share of the way from a peak to the target of a descent that its next budget goes, as a divisor.
const SINK: i32 = 32;
/// Share of a peak by which the next budget is lower at least, as a divisor.
const SMALLEST_SINK: i32 = 64;
/// The deepest chains of greedy repair.
const DEEPEST_GREEDY: usize = 48;
/// Steps per node of the first round, at least.
const STEPS_PER_NODE: u64 = 200;
/// The first round of improvement takes this share of what is left, as a divisor; the next ones are longer.
const ROUNDS_TO_GO: u64 = 16;
/// Steps of that round at least, and at most per node.
const SHORTEST_ROUND: u64 = 1_000;
const MOST_STEPS_PER_NODE: u64 = 5_000;

impl Schedule {
    /// From a sequence within the budget to better ones: hot enough for another order, with excess as cheap as it may be.
    pub(crate) const JOINT: Self = Self {
        hot: 1.5,
        excess: 10.0,
        adapts: true,
        moves: 0.5,
    };
    /// The way into a tight budget: excess is expensive, and at first so hot that recomputes cost nothing.
    const WIDE: Self = Self {
        hot: 300.0,
        excess: 0.05,
        adapts: false,
        moves: 0.4,
    };
    /// The same, not as hot.
    const MELT: Self = Self {
        hot: 40.0,
        ..Self::WIDE
    };
}

impl Cooling {
    /// From a sequence within the budget to better ones in another order. The cheapest recomputes settle last.
    const FAR: Self = Self {
        hot: 1.5,
        cold: 0.002,
        moves: 0.3,
    };
}

/// A way to lower the peak.
#[derive(Clone, Copy)]
enum Sinking {
    /// Annealing that inserts such chains.
    Anneal(Schedule, Chain),
    /// Recomputes where they are cheapest, with ever longer chains.
    Greedy,
}

/// The ways to lower the peak, in turns: none is the best one for all graphs.
const SINKING: [Sinking; 3] = [
    Sinking::Anneal(Schedule::MELT, Chain::LONG),
    Sinking::Anneal(Schedule::WIDE, Chain::SHORT),
    Sinking::Greedy,
];

/// What a round of improvement does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Round {
    /// Annealing of the dense state.
    Anneal(Schedule),
    /// Annealing of the timeline of large graphs, from this many mean durations: its moves aim at the places above the budget.
    Frame(f64),
    Neighbourhood,
}

/// The kinds of rounds. How hot an annealing should be depends on the problem, and on how good the sequence is already.
const ROUNDS: [Round; 7] = [
    Round::Frame(1.5),
    Round::Neighbourhood,
    Round::Frame(0.4),
    Round::Anneal(Schedule::JOINT),
    Round::Frame(5.0),
    Round::Frame(0.05),
    Round::Anneal(Schedule::MELT),
];

/// How often a kind of round was tried, and how often it helped.
#[derive(Clone, Copy, Default)]
struct Record {
    tried: u32,
    helped: u32,
}

impl Record {
    /// The chance that it helps again, after Laplace.
    fn promise(self) -> f64 {
        f64::from(self.helped + 1) / f64::from(self.tried + 1)
    }
}

impl Worker<'_> {
    /// Finds a sequence within the budget of the state, if it has none.
    pub(crate) fn reach_in_any_order(&mut self, start: Option<&[NodeId]>) {
        if self.best.is_some() {
            return;
        }
        let budget = self.state.budget();
        match start {
            Some(start) => self.state.load(start),
            None => self.state.load_reference(),
        }
        let descent = Descent {
            target: budget,
            max_duration: i64::MAX,
            announce: false,
            share: 1.0,
            last_step: u64::MAX,
        };
        self.sink(descent);
        self.state.set_budget(budget);
    }

    /// As [`Worker::improve`], in any order: rounds of several kinds, each longer than the one before, the more promising kinds more
    /// often.
    pub(crate) fn improve_in_any_order(&mut self) {
        let mut length = self.first_length();
        let mut records = [Record::default(); ROUNDS.len()];
        // Threads differ in what they try first.
        let shift = self.stream as usize;
        while !self.is_over() {
            self.exchange();
            let Some(before) = self.best.as_ref().map(|best| best.duration) else {
                return;
            };
            let in_turn = (0..ROUNDS.len()).map(|turn| (turn + shift) % ROUNDS.len());
            let promise = |&a: &usize, &b: &usize| records[b].promise().total_cmp(&records[a].promise());
            let kind = in_turn.min_by(promise).unwrap_or(0);
            let steps = self.fitting(length);
            match ROUNDS[kind] {
                Round::Neighbourhood => self.search_neighbourhoods(steps),
                Round::Frame(hot) => {
                    let cooling = Cooling { hot, ..Cooling::FAR };
                    self.anneal_as_frame(cooling, steps);
                }
                Round::Anneal(schedule) => {
                    self.load_best();
                    self.anneal_in_any_order(schedule, Chain::SHORT, steps, |worker| {
                        worker.note(Phase::Annealing);
                    });
                }
            }
            let after = self.best.as_ref().map(|best| best.duration);
            tracing::trace!(kind, steps, before, after, "round");
            records[kind].tried += 1;
            records[kind].helped += u32::from(after < Some(before));
            length += length / 3;
        }
    }

    /// Lowers the peak from that of the state in any order, whatever it costs, and returns the sequence of the lowest peak. One that
    /// reaches the target is the best one.
    ///
    /// Whenever an annealing reaches its budget it goes on with a lower one; at the target, it goes on to shorter sequences.
    pub(crate) fn sink(&mut self, descent: Descent) -> Best {
        let mut lowest = Best::of(&self.state);
        let (mut annealed, mut greedy) = (lowest.clone(), lowest.clone());
        // Under a short limit all ways have their turn, too.
        let mut length = self.first_round().min(self.first_length());
        let mut greedy_chain = Chain::SHORT;
        let stage = |peak: i32| ((peak - descent.target) / SINK).max(peak / SMALLEST_SINK).max(1);
        let next = |peak: i32| (peak - stage(peak)).max(descent.target);
        self.last_improvement = self.state.steps;
        self.best = None;
        self.state.set_budget(descent.target);
        self.note(Phase::Feasibility);
        for way in SINKING.into_iter().cycle().skip(self.stream as usize % SINKING.len()) {
            if !descent.announce {
                // Another thread may be there already.
                self.state.set_budget(descent.target);
                self.exchange();
            }
            if self.best.is_some() || self.is_over() || self.meter.used_up(descent.share, self.state.steps) {
                break;
            }
            match way {
                Sinking::Anneal(schedule, chain) => {
                    self.state.set_budget(next(annealed.peak));
                    self.state.load(&annealed.sequence);
                    let steps = self.fitting(length);
                    self.anneal_in_any_order(schedule, chain, steps, |worker| {
                        if worker.state.excess() <= 0 {
                            worker.sunk(&mut annealed, &mut lowest, descent);
                            let budget = next(annealed.peak);
                            if budget < worker.state.budget() {
                                worker.state.set_budget(budget);
                            }
                        }
                    });
                    length += length / 3;
                }
                Sinking::Greedy => {
                    let last_step = self.state.steps + length / 2;
                    while self.best.is_none() && self.state.steps < last_step && greedy_chain.depth <= DEEPEST_GREEDY {
                        self.state.set_budget(next(greedy.peak));
                        self.state.load(&greedy.sequence);
                        let options = RepairOptions {
                            chain: greedy_chain,
                            max_steps: last_step.saturating_sub(self.state.steps),
                            ..RepairOptions::GREEDY
                        };
                        if self.restore(options) {
                            self.sunk(&mut greedy, &mut lowest, descent);
                        } else {
                            greedy_chain = greedy_chain.longer();
                        }
                    }
                }
            }
        }
        self.lowest_peak = self.lowest_peak.min(lowest.peak);
        lowest
    }

    /// Takes note of a state within its budget: the next one of its way, maybe the lowest of all, at the target the best.
    fn sunk(&mut self, own: &mut Best, lowest: &mut Best, descent: Descent) {
        if self.state.budget() <= descent.target && !self.note(Phase::Feasibility) {
            return;
        }
        *own = Best::of(&self.state);
        if self.best.is_none() && own.peak >= lowest.peak {
            return;
        }
        *lowest = own.clone();
        self.last_improvement = self.state.steps;
        if self.best.is_none() && descent.announce {
            self.improved(lowest, Phase::Feasibility);
        }
    }

    /// Steps of the first round of improvement.
    fn first_length(&self) -> u64 {
        let Some(left) = self.meter.steps_left(self.state.steps) else {
            return self.first_round();
        };
        let most = MOST_STEPS_PER_NODE * self.dag.len() as u64;
        (left / ROUNDS_TO_GO).min(most).max(SHORTEST_ROUND)
    }

    fn first_round(&self) -> u64 {
        FIRST_ROUND.max(STEPS_PER_NODE * self.dag.len() as u64)
    }

    /// Annealing from the state; `moved` is called after each change.
    fn anneal_in_any_order(&mut self, schedule: Schedule, chain: Chain, steps: u64, mut moved: impl FnMut(&mut Self)) {
        let mut annealing = Annealing::new(self.dag, schedule, chain);
        let begin = self.state.steps;
        while self.state.steps - begin < steps && !self.is_over() {
            let progress = (self.state.steps - begin) as f64 / steps as f64;
            if annealing.step(&mut self.state, progress, &mut self.rng) {
                moved(self);
            }
        }
    }

    /// A number of steps, less where not so many are left. At the beginning the speed is not well known, so never a lot less.
    fn fitting(&self, steps: u64) -> u64 {
        let left = self.meter.steps_left(self.state.steps).unwrap_or(u64::MAX);
        steps.min(left.max(FIRST_ROUND / 2))
    }
}
