//! The search on very large graphs: segments of the sequence are worked on one after another.
//!
//! On a graph of 100,000 ops the excess over a budget is a matter of many places that have little to do with one another. So a
//! segment of a few thousand runs around an excess is repaired greedily, and where that is stuck, annealed. Where that is stuck as well,
//! it is annealed from so high a temperature that its order and what it recomputes are found anew. In free order the search starts
//! from the best of some orders that list scheduling finds, and annealing moves first runs, too.

use remat_plan::StopReason;

use crate::anneal::{Aim, Schedule, Span};
use crate::chain::Chain;
use crate::control::Phase;
use crate::frame::Tools;
use crate::list;
use crate::repair::RepairOptions;
use crate::sequence::Edit;
use crate::strategy::Worker;

/// Places of a segment at first.
const SEGMENT: usize = 2_048;
/// At most.
const LARGEST_SEGMENT: usize = 8_192;
/// Steps of the first annealing of a segment.
const FIRST_EFFORT: u64 = 50_000;
/// Steps of annealing while seeking a first sequence, at most.
const LARGEST_EFFORT: u64 = 1_600_000;

/// The first ways to repair segments, one for each time that all were visited.
const FIRST_WAYS: [(Schedule, Chain); 3] = [
    (Schedule::NEAR, Chain::SHORT),
    (Schedule::NEAR, Chain::SHORT),
    (Schedule::MELT, Chain::SHORT),
];

/// The ways to repair what they leave, drawn at random. Chains that reach further back were no help.
const WAYS: [(Schedule, Chain); 5] = [
    (Schedule::MELT, Chain::SHORT),
    (Schedule::MELT.from(5.0), Chain::SHORT),
    (Schedule::MELT.from(10.0), Chain::SHORT),
    (Schedule::MELT.from(20.0), Chain::LONG),
    (Schedule::MELT.from(80.0), Chain::SHORT),
];

/// Sizes of the segments for those, drawn at random, too.
const SIZES: [usize; 3] = [SEGMENT, 2 * SEGMENT, LARGEST_SEGMENT];

impl Worker<'_> {
    /// In free order takes the order of list scheduling that exceeds the budget least, if it does so less than the sequence; only where
    /// that has no recomputes yet.
    pub(crate) fn load_list_orders(&mut self) {
        if !self.dag.is_free() || !self.sequence.recomputes().is_empty() {
            return;
        }
        let mut best = (self.sequence.excess(), self.sequence.nodes());
        for order in [list::forward(self.dag), list::backward(self.dag)] {
            self.sequence.load(&order);
            tracing::debug!(excess = self.sequence.excess(), "order by list scheduling");
            if self.sequence.excess() < best.0 {
                best = (self.sequence.excess(), order);
            }
        }
        self.sequence.load(&best.1);
    }

    /// Repairs segment after segment until there is no excess, at most up to `last_step`. Returns whether that was reached.
    pub(crate) fn reach_by_segments(&mut self, last_step: u64) -> bool {
        let (mut size, mut effort) = (SEGMENT, FIRST_EFFORT);
        let mut first_ways = FIRST_WAYS.into_iter();
        while self.sequence.excess() > 0 && !self.is_past(last_step) {
            let (schedule, chain) = first_ways.next().unwrap_or_else(|| {
                size = SIZES[self.rng.below(SIZES.len())];
                WAYS[self.rng.below(WAYS.len())]
            });
            let mut from = 0;
            while let Some(place) = self.sequence.next_excess(from) {
                if self.is_past(last_step) {
                    break;
                }
                let start = place.saturating_sub(size / 2);
                self.frame.set(&mut self.sequence, start..start + size);
                self.repair_segment(effort, schedule, chain);
                from = self.sequence.frame.end.max(place + 1);
            }
            tracing::debug!(
                excess = self.sequence.excess(),
                duration = self.sequence.duration(),
                size,
                effort,
                steps = self.sequence.steps,
                ?schedule,
                ?chain,
                "all segments repaired"
            );
            size = (size + size / 2).min(LARGEST_SEGMENT);
            effort = effort.saturating_mul(2).min(LARGEST_EFFORT);
        }
        self.lowest_peak = self.lowest_peak.min(self.sequence.peak());
        self.sequence.frame = 0..self.sequence.len();
        self.sequence.excess() == 0
    }

    /// Adds recomputes greedily, and anneals where that is stuck. In free order moves come first, they cost nothing.
    fn repair_segment(&mut self, effort: u64, schedule: Schedule, chain: Chain) {
        if self.dag.is_free() {
            self.relieve(effort, schedule, chain);
        }
        let options = RepairOptions {
            chain,
            tries: 0,
            actions: 48,
            ..RepairOptions::GREEDY
        };
        let mut tools = Tools {
            rng: &mut self.rng,
            meter: &mut self.meter,
        };
        self.log.clear();
        let (repair, entering) = (&mut self.neighbourhood.repair, &self.frame.entering);
        repair.run(&mut self.sequence, entering, options, &mut tools, &mut self.log);
        self.frame.recomputes.extend(self.log.iter().filter_map(Edit::inserted));
        self.relieve(effort, schedule, chain);
    }

    /// Anneals the segment until it is within the budget.
    fn relieve(&mut self, effort: u64, schedule: Schedule, chain: Chain) {
        let here = self.sequence.excess_in_frame();
        if here > 0 {
            let span = self.span(effort);
            self.annealing.set(schedule, chain);
            self.anneal_frame(Aim::Excess(self.sequence.excess() - here), span);
        }
    }

    /// The steps of annealing that suit the size of the segment.
    fn span(&self, effort: u64) -> Span {
        Span {
            begin: self.sequence.steps,
            steps: effort * self.sequence.frame.len() as u64 / SEGMENT as u64,
        }
    }

    /// Shortens segment after segment until the sequence takes no longer than `goal`, a limit or `last_step` is reached, or there has been
    /// no improvement for long; takes note of every improvement.
    pub(crate) fn improve_by_segments(&mut self, goal: i64, last_step: u64) {
        let (mut size, mut effort) = (SEGMENT, FIRST_EFFORT);
        let mut last_improvement = self.sequence.steps;
        self.annealing.set(Schedule::NEAR, Chain::SHORT);
        let is_over = |worker: &mut Self| worker.sequence.duration() <= goal || worker.is_past(last_step);
        while !is_over(self) {
            let mut from = 0;
            while from < self.sequence.len() && !is_over(self) {
                self.frame.set(&mut self.sequence, from..from + size);
                if !self.frame.recomputes.is_empty() {
                    let before = self.sequence.duration();
                    let span = self.span(effort);
                    self.anneal_frame(Aim::Duration(goal), span);
                    if self.sequence.duration() < before {
                        last_improvement = self.sequence.steps;
                        self.note(Phase::Annealing);
                    }
                }
                if self.meter.patience().is_over(self.sequence.steps, last_improvement) {
                    self.meter.stop(StopReason::Converged);
                }
                let frame = self.sequence.frame.clone();
                if frame.end == self.sequence.len() {
                    break;
                }
                from = frame.end - frame.len() / 4;
            }
            size = (size + size / 2).min(LARGEST_SEGMENT);
            effort = effort.saturating_mul(2);
        }
    }

    fn is_past(&mut self, last_step: u64) -> bool {
        self.sequence.steps >= last_step || self.meter.is_over(self.sequence.steps)
    }
}

#[cfg(test)]
mod tests;
