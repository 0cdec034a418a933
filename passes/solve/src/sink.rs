//! The way into a tight budget, or to the lowest peak, at any cost.
//!
//! The peak is lowered step by step by hot annealing with expensive excess and by greedy repair with ever longer chains, in turns. In
//! free order annealing moves runs, too.

use remat_plan::NodeId;

use crate::anneal::Schedule;
use crate::best::Best;
use crate::control::Phase;
use crate::descent::Descent;
use crate::profile::Round;
use crate::repair::{Chain, RepairOptions};
use crate::strategy::Worker;

/// Share of the way from a peak to the target of a descent that its next budget goes, as a divisor.
const SINK: i32 = 32;
/// Share of a peak by which the next budget is lower at least, as a divisor.
const SMALLEST_SINK: i32 = 64;
/// The deepest chains of greedy repair.
const DEEPEST_GREEDY: usize = 48;

/// So hot at first that recomputes cost nothing.
const WIDE: Schedule = Schedule {
    hot: 300.0,
    ..Schedule::MELT
};

impl Worker<'_> {
    /// Finds a sequence within a budget with a share of the limits, from `start` or the reference order; it becomes the best one.
    pub(crate) fn sink_into(&mut self, budget: i32, start: Option<&[NodeId]>, share: f64) {
        self.state.load_start(start);
        let descent = Descent {
            target: budget,
            max_duration: i64::MAX,
            announce: false,
            share,
        };
        self.sink(descent);
        self.state.set_budget(budget);
    }

    /// Lowers the peak from that of the state, whatever it costs, and returns the sequence of the lowest peak. One that reaches the target
    /// is the best one.
    ///
    /// Whenever an annealing reaches its budget it goes on with a lower one; at the target, it goes on to shorter sequences.
    pub(crate) fn sink(&mut self, descent: Descent) -> Best {
        self.during(Round::Sink, |worker| worker.sink_in_turns(descent))
    }

    fn sink_in_turns(&mut self, descent: Descent) -> Best {
        let mut lowest = Best::of(&self.state);
        let (mut annealed, mut greedy) = (lowest.clone(), lowest.clone());
        // Under a short limit all ways have their turn, too.
        let mut length = self.first_round().min(self.first_length());
        let mut greedy_chain = Chain::SHORT;
        let stage = |peak: i32| ((peak - descent.target) / SINK).max(peak / SMALLEST_SINK).max(1);
        let next = |peak: i32| (peak - stage(peak)).max(descent.target);
        self.progressed();
        self.best = None;
        self.state.set_budget(descent.target);
        self.note(Phase::Feasibility);
        // In turns: neither is the better one for all graphs, and threads begin with one or the other.
        for turn in self.stream.. {
            if !descent.announce && self.kept.is_none() {
                // Another thread may be there already.
                self.state.set_budget(descent.target);
                self.adopt();
            }
            if self.best.is_some() || self.is_over() || self.meter.used_up(descent.share, self.state.steps) {
                break;
            }
            if turn.is_multiple_of(2) {
                self.state.set_budget(next(annealed.peak));
                self.state.load(&annealed.sequence);
                let steps = self.fitting(length);
                self.anneal_with(WIDE, steps, |worker| {
                    if worker.state.excess() <= 0 {
                        worker.sunk(&mut annealed, &mut lowest, descent);
                        let budget = next(annealed.peak);
                        if budget < worker.state.budget() {
                            worker.state.set_budget(budget);
                        }
                    }
                    false
                });
                length += length / 3;
                continue;
            }
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
        self.reached(&lowest);
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
        self.progressed();
        if self.best.is_none() && descent.announce {
            self.improved(lowest, Phase::Feasibility);
        }
    }
}
