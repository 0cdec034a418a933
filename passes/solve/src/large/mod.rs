//! The search on very large graphs: frames of the sequence are worked on one after another.
//!
//! On a graph of 100,000 ops the excess over a budget is a matter of many places that have little to do with one another. So a frame of a few
//! thousand runs around an excess is repaired greedily, and where that is stuck, annealed. Where that is stuck as well, it is
//! annealed from so high a temperature that its order and what it recomputes are found anew. In free order annealing moves first runs, too. Where the budget is exceeded
//! for longer than any frame, one walk drops what is used last ([`eviction`]), and the frames begin with what that leaves.

mod eviction;

#[cfg(test)]
mod tests;

use remat_plan::{NodeId, StopReason};

use crate::anneal::Schedule;
use crate::control::Phase;
use crate::profile::Round;
use crate::repair::RepairOptions;
use crate::sequence::Sequence;
use crate::strategy::Worker;

/// Places of a frame at first.
const FRAME: usize = 2_048;
/// At most.
const LARGEST_FRAME: usize = 8_192;
/// Steps of the first annealing of a frame.
const FIRST_EFFORT: u64 = 50_000;

/// How a frame is annealed when it is stuck, from so many mean durations. Short durations do not matter there.
const fn melt(hot: f64) -> Schedule {
    Schedule {
        hot,
        cold: hot / 100.0,
        moves: 0.5,
        ..Schedule::MELT
    }
}

/// The first ways to repair frames, one for each time that all were visited.
const FIRST_WAYS: [Schedule; 3] = [Schedule::NEAR, Schedule::NEAR, melt(40.0)];

/// The ways to repair what they leave, drawn at random.
const WAYS: [Schedule; 5] = [melt(40.0), melt(5.0), melt(10.0), melt(20.0), melt(80.0)];

/// Sizes of the frames for those, drawn at random, too.
const SIZES: [usize; 3] = [FRAME, 2 * FRAME, LARGEST_FRAME];

/// Steps of annealing while seeking a first sequence, at most.
const LARGEST_EFFORT: u64 = 1_600_000;

impl Worker<'_> {
    /// Loads the start, by default the reference order, or, where it has no recomputes and exceeds the budget for long, what is better of it
    /// and of what a walk along it leaves.
    pub(crate) fn load_start(&mut self, budget: i32, start: Option<&[NodeId]>) {
        let (dag, steps) = (self.dag, self.state.steps);
        self.state.set_budget(budget);
        self.state.load_start(start);
        if start.is_none_or(|start| start.len() == dag.len()) && self.state.longest_excess() > LARGEST_FRAME {
            let (peak, order) = (self.state.peak(), self.state.nodes());
            for sequence in eviction::within(dag, budget, peak, &order) {
                let other = Sequence::of(dag, budget, &sequence);
                let (excess, duration) = (other.excess(), other.duration());
                tracing::debug!(excess, duration, "what is used last went first");
                if (excess, duration) < (self.state.excess(), self.state.duration()) {
                    self.state = other;
                }
            }
        }
        self.state.steps = steps;
    }

    /// Repairs frame after frame until there is no excess, at most up to `last_step`. Returns whether that was reached.
    pub(crate) fn reach(&mut self, last_step: u64) -> bool {
        let (mut size, mut effort) = (FRAME, FIRST_EFFORT);
        let mut first_ways = FIRST_WAYS.into_iter();
        while self.state.excess() > 0 && self.goes_on(last_step) {
            let schedule = first_ways.next().unwrap_or_else(|| {
                size = SIZES[self.rng.below(SIZES.len())];
                WAYS[self.rng.below(WAYS.len())]
            });
            self.annealing.set(schedule);
            let mut from = 0;
            while let Some(place) = self.state.next_excess(from..self.state.len()) {
                if !self.goes_on(last_step) {
                    break;
                }
                let start = place.saturating_sub(size / 2);
                self.state.set_frame(start..start + size);
                self.restore_or_anneal(effort);
                from = self.state.frame().end.max(place + 1);
            }
            let (excess, duration, steps) = (self.state.excess(), self.state.duration(), self.state.steps);
            tracing::debug!(excess, duration, size, effort, steps, ?schedule, "all frames repaired");
            size = (size + size / 2).min(LARGEST_FRAME);
            effort = effort.saturating_mul(2).min(LARGEST_EFFORT);
        }
        self.state.excess() == 0
    }

    fn goes_on(&mut self, last_step: u64) -> bool {
        self.state.steps < last_step && !self.meter.is_over(self.state.steps)
    }

    /// Adds recomputes greedily, and anneals where that is stuck. In free order moves come first, they cost nothing.
    fn restore_or_anneal(&mut self, effort: u64) {
        let steps = self.share_of(effort);
        if self.dag.is_free() {
            let here = self.state.frame_excess();
            self.anneal_towards(self.state.excess() - here, None, steps);
        }
        self.restore_frame(RepairOptions::GREEDY);
        let here = self.state.frame_excess();
        self.anneal_towards(self.state.excess() - here, None, steps);
    }

    /// The steps of a frame of another size than the first one.
    fn share_of(&self, effort: u64) -> u64 {
        effort * self.state.frame().len() as u64 / FRAME as u64
    }

    /// Shortens the best sequence until the goal is reached, or a limit or convergence ends the search.
    pub(crate) fn improve_frames(&mut self) {
        if self.best.is_none() {
            return;
        }
        self.load_best();
        self.during(Round::Anneal, |worker| {
            worker.shorten_frames(worker.goal, u64::MAX, |worker| {
                worker.note(Phase::Annealing);
            });
        });
    }

    /// Shortens frame after frame until the sequence takes no longer than `goal`, a limit or `last_step` is reached, or there has been no
    /// improvement for long; `note` is called after every improvement.
    pub(crate) fn shorten_frames(&mut self, goal: i64, last_step: u64, mut note: impl FnMut(&mut Self)) {
        let (mut size, mut effort) = (FRAME, FIRST_EFFORT);
        let mut last_improvement = self.state.steps;
        self.annealing.set(Schedule::NEAR);
        while self.state.duration() > goal && self.goes_on(last_step) {
            let mut from = 0;
            while from < self.state.len() && self.state.duration() > goal && self.goes_on(last_step) {
                self.state.set_frame(from..from + size);
                if !self.state.recomputes().is_empty() {
                    let before = self.state.duration();
                    self.anneal_towards(0, Some(goal), self.share_of(effort));
                    if self.state.duration() < before {
                        last_improvement = self.state.steps;
                        note(self);
                    }
                }
                if self.meter.patience().is_over(self.state.steps, last_improvement) {
                    self.meter.stop(StopReason::Converged);
                }
                let frame = self.state.frame();
                if frame.end == self.state.len() {
                    break;
                }
                from = frame.end - frame.len() / 4;
            }
            size = (size + size / 2).min(LARGEST_FRAME);
            effort = effort.saturating_mul(2);
        }
    }
}
