//! The search on very large graphs: segments of the sequence are worked on one after another.
//!
//! On a graph of 100,000 ops the excess over a budget is a matter of many places that have little to do with one another. So the
//! sequence is kept in a [`timeline::Timeline`], where a change costs what it touches; a [`frame::Frame`] of a few thousand runs
//! around an excess is repaired greedily ([`greedy`]), and where that is stuck, annealed ([`anneal`]). Where that is stuck as well, it is
//! annealed from so high a temperature that its order and what it recomputes are found anew. In free order the search starts
//! from the best of some orders that list scheduling finds ([`order`]), and annealing moves first runs, too. The lowest peak is sought
//! over ever lower budgets ([`descent`]).

mod anneal;
mod descent;
mod frame;
mod greedy;
mod order;
mod timeline;

#[cfg(test)]
mod tests;

use remat_plan::{NodeId, StopReason};

pub(crate) use anneal::Cooling;
use anneal::{Aim, Annealing};
use frame::{Frame, Tools};
use greedy::Greedy;
use timeline::Timeline;

use crate::Rng;
use crate::anneal::Schedule;
use crate::best::Best;
use crate::control::Meter;
use crate::dag::Dag;
use crate::repair::Chain;

/// Slots of a frame at first.
const FRAME: usize = 2_048;
/// At most.
const LARGEST_FRAME: usize = 8_192;
/// Steps of the first annealing of a frame.
const FIRST_EFFORT: u64 = 50_000;

/// How a frame is annealed when it is stuck: recomputes are cheap, so that memory alone counts, and at first what is resident may change
/// a lot.
const MELT: Schedule = Schedule {
    hot: 40.0,
    excess: 0.05,
    adapts: false,
    moves: 0.5,
};

/// The first ways to repair frames, one for each time that all were visited.
const FIRST_WAYS: [(Schedule, Chain); 3] = [
    (Schedule::NEAR, Chain::SHORT),
    (Schedule::NEAR, Chain::SHORT),
    (MELT, Chain::SHORT),
];

/// The ways to repair what they leave, drawn at random. Chains that reach further back were no help.
const WAYS: [(Schedule, Chain); 5] = [
    (MELT, Chain::SHORT),
    (Schedule { hot: 5.0, ..MELT }, Chain::SHORT),
    (Schedule { hot: 10.0, ..MELT }, Chain::SHORT),
    (Schedule { hot: 20.0, ..MELT }, Chain::LONG),
    (Schedule { hot: 80.0, ..MELT }, Chain::SHORT),
];

/// Sizes of the frames for those, drawn at random, too.
const SIZES: [usize; 3] = [FRAME, 2 * FRAME, LARGEST_FRAME];

/// Steps of annealing while seeking a first sequence, at most.
const LARGEST_EFFORT: u64 = 1_600_000;

/// A search on one timeline.
pub(crate) struct Large<'a> {
    timeline: Timeline<'a>,
    frame: Frame,
    greedy: Greedy,
    annealing: Annealing,
    rng: Rng,
}

impl<'a> Large<'a> {
    /// A search for short sequences within a budget, from a valid sequence or, in free order, from a better one.
    pub(crate) fn new(dag: &'a Dag, budget: i32, start: &[NodeId], rng: Rng, steps: u64) -> Self {
        let mut timeline = Timeline::of(dag, budget, start);
        if dag.is_free() && start.len() == dag.len() {
            for order in [order::forward(dag), order::backward(dag)] {
                let other = Timeline::of(dag, budget, &order);
                tracing::debug!(excess = other.excess(), "order by list scheduling");
                if other.excess() < timeline.excess() {
                    timeline = other;
                }
            }
        }
        timeline.steps += steps;
        Self {
            timeline,
            frame: Frame::default(),
            greedy: Greedy::default(),
            annealing: Annealing::new(dag, Cooling::NEAR),
            rng,
        }
    }

    /// Repairs frame after frame until there is no excess, at most up to `last_step`. Returns whether that was reached.
    pub(crate) fn reach(&mut self, meter: &mut Meter<'_>, last_step: u64) -> bool {
        let (mut size, mut effort) = (FRAME, FIRST_EFFORT);
        let mut first_ways = FIRST_WAYS.into_iter();
        while self.timeline.excess() > 0 && self.timeline.steps < last_step && !meter.is_over(self.timeline.steps) {
            let (schedule, chain) = first_ways.next().unwrap_or_else(|| {
                size = SIZES[self.rng.below(SIZES.len())];
                WAYS[self.rng.below(WAYS.len())]
            });
            self.annealing.set(schedule, chain);
            let mut from = 0;
            while let Some(slot) = self.timeline.next_excess(from) {
                if self.timeline.steps >= last_step || meter.is_over(self.timeline.steps) {
                    break;
                }
                let start = slot.saturating_sub(size / 2);
                self.frame.set(&mut self.timeline, start..start + size);
                self.restore(effort, chain, meter);
                from = self.timeline.layout.frame.end.max(slot + 1);
            }
            tracing::debug!(
                excess = self.timeline.excess(),
                duration = self.timeline.duration(),
                size,
                effort,
                steps = self.timeline.steps,
                ?schedule,
                ?chain,
                "all frames repaired"
            );
            size = (size + size / 2).min(LARGEST_FRAME);
            effort = effort.saturating_mul(2).min(LARGEST_EFFORT);
        }
        self.annealing.set(Schedule::NEAR, Chain::SHORT);
        self.timeline.excess() == 0
    }

    /// Adds recomputes greedily, and anneals where that is stuck. In free order moves come first, they cost nothing.
    fn restore(&mut self, effort: u64, chain: Chain, meter: &mut Meter<'_>) {
        let mut tools = Tools {
            rng: &mut self.rng,
            meter,
        };
        let steps = effort * self.timeline.layout.frame.len() as u64 / FRAME as u64;
        if self.timeline.dag().is_free() {
            let here = self.timeline.excess_in(self.timeline.layout.frame.clone());
            let aim = Aim::Excess(self.timeline.excess() - here);
            self.annealing
                .run(&mut self.timeline, &mut self.frame, aim, steps, &mut tools);
        }
        self.greedy.run(&mut self.timeline, &mut self.frame, chain, &mut tools);
        let here = self.timeline.excess_in(self.timeline.layout.frame.clone());
        if here > 0 {
            let aim = Aim::Excess(self.timeline.excess() - here);
            self.annealing
                .run(&mut self.timeline, &mut self.frame, aim, steps, &mut tools);
        }
    }

    /// Shortens frame after frame until the sequence takes no longer than `goal`, a limit or `last_step` is reached, or there has been no
    /// improvement for long; `note` is told of every improvement.
    pub(crate) fn improve(
        &mut self,
        goal: i64,
        last_step: u64,
        meter: &mut Meter<'_>,
        mut note: impl FnMut(&mut Self),
    ) {
        let (mut size, mut effort) = (FRAME, FIRST_EFFORT);
        let mut last_improvement = self.timeline.steps;
        while self.timeline.duration() > goal && self.timeline.steps < last_step && !meter.is_over(self.timeline.steps)
        {
            let mut from = 0;
            while from < self.timeline.len()
                && self.timeline.duration() > goal
                && self.timeline.steps < last_step
                && !meter.is_over(self.timeline.steps)
            {
                self.frame.set(&mut self.timeline, from..from + size);
                if !self.frame.recomputes.is_empty() {
                    let before = self.timeline.duration();
                    let steps = effort * self.timeline.layout.frame.len() as u64 / FRAME as u64;
                    let mut tools = Tools {
                        rng: &mut self.rng,
                        meter,
                    };
                    self.annealing.run(
                        &mut self.timeline,
                        &mut self.frame,
                        Aim::Duration(goal),
                        steps,
                        &mut tools,
                    );
                    if self.timeline.duration() < before {
                        last_improvement = self.timeline.steps;
                        note(self);
                    }
                }
                if meter.patience().is_over(self.timeline.steps, last_improvement) {
                    meter.stop(StopReason::Converged);
                }
                let end = self.timeline.layout.frame.end;
                if end == self.timeline.len() {
                    break;
                }
                from = end - self.timeline.layout.frame.len() / 4;
            }
            size = (size + size / 2).min(LARGEST_FRAME);
            effort = effort.saturating_mul(2);
        }
    }

    /// Shortens the sequence as a whole with so many steps, or until it takes no longer than `goal`.
    pub(crate) fn improve_whole(&mut self, cooling: Cooling, effort: u64, goal: i64, meter: &mut Meter<'_>) {
        self.annealing = Annealing::new(self.timeline.dag(), cooling);
        let whole = 0..self.timeline.len();
        self.frame.set(&mut self.timeline, whole);
        let mut tools = Tools {
            rng: &mut self.rng,
            meter,
        };
        let aim = Aim::Duration(goal);
        self.annealing
            .run(&mut self.timeline, &mut self.frame, aim, effort, &mut tools);
    }

    /// The sequence as it is.
    pub(crate) fn best(&mut self) -> Best {
        Best {
            duration: self.timeline.duration(),
            peak: self.timeline.peak(),
            sequence: self.timeline.nodes(),
        }
    }

    /// The largest memory.
    pub(crate) fn peak(&mut self) -> i32 {
        self.timeline.peak()
    }

    /// The source of random numbers, to go on with.
    pub(crate) fn into_rng(self) -> Rng {
        self.rng
    }

    /// Steps taken.
    pub(crate) fn steps(&self) -> u64 {
        self.timeline.steps
    }
}
