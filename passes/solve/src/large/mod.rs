//! The search on very large graphs: stretches of the sequence are worked on one after another.
//!
//! On a graph of 100,000 ops the excess over a budget is a matter of many places that have little to do with one another. So the
//! sequence is kept in a [`timeline::Timeline`], where a change costs what it touches; a [`frame::Frame`] of a few thousand runs
//! around an excess is mended greedily ([`greedy`]), and where that is stuck, annealed ([`anneal`]). In free order the search starts
//! from the best of some orders that list scheduling finds ([`order`]), and annealing moves first runs, too.

mod anneal;
mod frame;
mod greedy;
mod order;
mod timeline;

use anneal::{Aim, Annealing};
use frame::{Frame, Tools};
use greedy::Greedy;
use timeline::Timeline;

use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::rng::Rng;
use crate::strategy::Best;

/// Slots of a frame at first.
const FRAME: usize = 2_048;
/// At most.
const LARGEST_FRAME: usize = 32_768;
/// Moves of the first annealing of a frame.
const FIRST_MOVES: u64 = 20_000;

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
    pub(crate) fn new(dag: &'a Dag, budget: i32, start: &[u32], rng: Rng) -> Self {
        let mut timeline = Timeline::new(dag, budget, start);
        if dag.is_free() {
            for order in [order::forward(dag), order::backward(dag)] {
                let other = Timeline::new(dag, budget, &order);
                tracing::debug!(excess = other.excess(), "order by list scheduling");
                if other.excess() < timeline.excess() {
                    timeline = other;
                }
            }
        }
        Self {
            timeline,
            frame: Frame::default(),
            greedy: Greedy::default(),
            annealing: Annealing::new(dag),
            rng,
        }
    }

    /// Mends frame after frame until there is no excess. Returns whether that was reached.
    pub(crate) fn reach(&mut self, meter: &mut Meter<'_>) -> bool {
        let (mut size, mut moves) = (FRAME, FIRST_MOVES);
        while self.timeline.excess() > 0 && !meter.is_over(self.timeline.steps) {
            let mut from = 0;
            while let Some(slot) = self.timeline.next_excess(from) {
                if meter.is_over(self.timeline.steps) {
                    break;
                }
                let start = slot.saturating_sub(size / 4);
                self.frame.set(&mut self.timeline, start..start + size);
                self.mend(moves, meter);
                from = self.timeline.frame.end.max(slot + 1);
            }
            tracing::debug!(excess = self.timeline.excess(), duration = self.timeline.duration(), size, moves, steps = self.timeline.steps, "all frames mended");
            size = (size + size / 2).min(LARGEST_FRAME);
            moves = moves.saturating_mul(2);
        }
        self.timeline.excess() == 0
    }

    fn mend(&mut self, moves: u64, meter: &mut Meter<'_>) {
        let mut tools = Tools {
            rng: &mut self.rng,
            meter,
        };
        self.greedy.run(&mut self.timeline, &mut self.frame, &mut tools);
        let here = self.timeline.excess_in(self.timeline.frame.clone());
        if here > 0 {
            let aim = Aim::Excess(self.timeline.excess() - here);
            let moves = moves * self.timeline.frame.len() as u64 / FRAME as u64;
            self.annealing.run(&mut self.timeline, &mut self.frame, aim, moves, &mut tools);
        }
    }

    /// Shortens frame after frame until a limit is reached; `note` is told of every improvement.
    pub(crate) fn improve(&mut self, meter: &mut Meter<'_>, mut note: impl FnMut(&mut Self, Phase)) {
        let (mut size, mut moves) = (FRAME, FIRST_MOVES);
        while !meter.is_over(self.timeline.steps) {
            let mut from = 0;
            while from < self.timeline.len() && !meter.is_over(self.timeline.steps) {
                self.frame.set(&mut self.timeline, from..from + size);
                if !self.frame.recomputes.is_empty() {
                    let before = self.timeline.duration();
                    let mut tools = Tools {
                        rng: &mut self.rng,
                        meter,
                    };
                    let moves = moves * self.timeline.frame.len() as u64 / FRAME as u64;
                    self.annealing.run(&mut self.timeline, &mut self.frame, Aim::Duration, moves, &mut tools);
                    if self.timeline.duration() < before {
                        note(self, Phase::Annealing);
                    }
                }
                let end = self.timeline.frame.end;
                if end == self.timeline.len() {
                    break;
                }
                from = end - self.timeline.frame.len() / 4;
            }
            size = (size + size / 2).min(LARGEST_FRAME);
            moves = moves.saturating_mul(2);
        }
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

    /// Steps taken.
    pub(crate) fn steps(&self) -> u64 {
        self.timeline.steps
    }
}
