//! Rounds of improvement from a sequence within the budget, and new beginnings where they no longer help.
//!
//! Which kind of round helps depends on the graph, the budget, and how good the sequence is already. So each is tried, and then the one
//! that gained most for its steps the last time. Where none has helped since the last gain, the search begins anew from the reference
//! order with other random numbers, since one way into the budget may end far from the other; the better of the two is kept.

use crate::anneal::{Annealing, Schedule};
use crate::control::Phase;
use crate::large::Cooling;
use crate::repair::Chain;
use crate::strategy::{FIRST_ROUND, Worker};

/// Steps per node of the first round, at least.
const STEPS_PER_NODE: u64 = 200;
/// The first round takes this share of what is left, as a divisor; the next ones are longer.
const ROUNDS_TO_GO: u64 = 16;
/// Steps of that round at least, and at most per node.
const SHORTEST_ROUND: u64 = 1_000;
const MOST_STEPS_PER_NODE: u64 = 5_000;

impl Schedule {
    /// From a sequence within the budget to better ones: hot enough for other recomputes, with excess as cheap as it may be.
    pub(crate) const JOINT: Self = Self {
        hot: 1.5,
        excess: 10.0,
        adapts: true,
        moves: 0.5,
    };
}

impl Cooling {
    /// From a sequence within the budget to better ones farther away. The cheapest recomputes settle last.
    const FAR: Self = Self {
        hot: 1.5,
        cold: 0.002,
        moves: 0.3,
    };
}

/// What a round does.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Round {
    /// Annealing of the dense state.
    Anneal(Schedule),
    /// Annealing of the timeline of large graphs, from this many mean durations: its moves aim at the places above the budget.
    Frame(f64),
    Neighbourhood,
}

/// The kinds of rounds.
const ROUNDS: [Round; 7] = [
    Round::Frame(1.5),
    Round::Neighbourhood,
    Round::Frame(0.4),
    Round::Anneal(Schedule::JOINT),
    Round::Frame(5.0),
    Round::Frame(0.05),
    Round::Anneal(Schedule::MELT),
];

/// What is known of the kinds of rounds.
struct Records {
    /// What a step of its last round gained; without end before the first.
    gains: [f64; ROUNDS.len()],
    /// Whether it was tried since the last gain of any kind.
    tried: [bool; ROUNDS.len()],
    /// The kind that is tried first.
    first: usize,
}

impl Records {
    /// Threads differ in what they try first.
    fn new(stream: u64) -> Self {
        Self {
            gains: [f64::INFINITY; ROUNDS.len()],
            tried: [false; ROUNDS.len()],
            first: (stream % ROUNDS.len() as u64) as usize,
        }
    }

    /// The kind to try next; none where all failed since the last gain.
    fn next(&self) -> Option<usize> {
        let in_turn = (0..ROUNDS.len()).map(|turn| (turn + self.first) % ROUNDS.len());
        let open = in_turn.filter(|&kind| !self.tried[kind]);
        open.min_by(|&a, &b| self.gains[b].total_cmp(&self.gains[a]))
    }

    fn count(&mut self, kind: usize, gain: i64, steps: u64) {
        self.gains[kind] = gain as f64 / steps.max(1) as f64;
        if gain > 0 {
            self.tried = [false; ROUNDS.len()];
        } else {
            self.tried[kind] = true;
        }
    }
}

impl Worker<'_> {
    /// Improves the best sequence until the goal is reached, or a limit or convergence ends the search. Where it gets no further it begins
    /// anew from the reference order, and keeps the better of both. Nothing where there is no sequence.
    pub(crate) fn improve(&mut self) {
        self.improve_while_it_pays();
        while !self.is_over() {
            let Some(before) = self.best.as_ref().map(|best| best.duration) else {
                return;
            };
            let budget = self.state.budget();
            self.kept = self.best.take();
            self.sink_into(budget, None);
            self.improve_while_it_pays();
            let is_own = self.keep_better();
            let after = self.best.as_ref().map_or(before, |best| best.duration);
            if !is_own && after < before {
                // That of another thread, from which this one has not searched yet.
                self.improve_while_it_pays();
            }
        }
    }

    /// Rounds of improvement until none of their kinds helps, each longer than the one before.
    fn improve_while_it_pays(&mut self) {
        let mut length = self.first_length();
        let mut records = Records::new(self.stream);
        while !self.is_over() {
            self.exchange();
            let Some(before) = self.best.as_ref().map(|best| best.duration) else {
                return;
            };
            let Some(kind) = records.next() else {
                return;
            };
            let first_step = self.state.steps;
            let steps = self.fitting(length);
            match ROUNDS[kind] {
                Round::Neighbourhood => self.search_neighbourhoods(steps),
                Round::Frame(hot) => {
                    let cooling = Cooling { hot, ..Cooling::FAR };
                    self.anneal_as_frame(cooling, steps);
                }
                Round::Anneal(schedule) => {
                    self.load_best();
                    self.anneal_with(schedule, Chain::SHORT, steps, |worker| {
                        worker.note(Phase::Annealing);
                        false
                    });
                }
            }
            let after = self.best.as_ref().map_or(before, |best| best.duration);
            tracing::trace!(kind, steps, before, after, "round");
            records.count(kind, before - after, self.state.steps - first_step);
            length += length / 3;
        }
    }

    /// Annealing from the state; `moved` is called after each change and says whether to end.
    pub(crate) fn anneal_with(
        &mut self,
        schedule: Schedule,
        chain: Chain,
        steps: u64,
        mut moved: impl FnMut(&mut Self) -> bool,
    ) {
        let mut annealing = Annealing::new(self.dag, schedule, chain);
        let begin = self.state.steps;
        while self.state.steps - begin < steps && !self.is_over() {
            let progress = (self.state.steps - begin) as f64 / steps as f64;
            if annealing.step(&mut self.state, progress, &mut self.rng) && moved(self) {
                return;
            }
        }
    }

    /// Steps of the first round of improvement.
    pub(crate) fn first_length(&self) -> u64 {
        let Some(left) = self.meter.steps_left(self.state.steps) else {
            return self.first_round();
        };
        let most = MOST_STEPS_PER_NODE * self.dag.len() as u64;
        (left / ROUNDS_TO_GO).min(most).max(SHORTEST_ROUND)
    }

    pub(crate) fn first_round(&self) -> u64 {
        FIRST_ROUND.max(STEPS_PER_NODE * self.dag.len() as u64)
    }

    /// A number of steps, less where not so many are left. At the beginning the speed is not well known, so never a lot less.
    pub(crate) fn fitting(&self, steps: u64) -> u64 {
        let left = self.meter.steps_left(self.state.steps).unwrap_or(u64::MAX);
        steps.min(left.max(FIRST_ROUND / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_tried_then_the_one_that_gained_most_until_none_gains() {
        let mut records = Records::new(0);
        for kind in 0..ROUNDS.len() {
            assert_eq!(records.next(), Some(kind));
            let gain = [0, 5, 0, 9, 0, 0, 0][kind];
            records.count(kind, gain, 1);
        }
        assert_eq!(records.next(), Some(3), "it gained most");
        records.count(3, 1, 1);
        assert_eq!(records.next(), Some(1), "it gained more the last time");
        let mut failed = 0;
        while let Some(kind) = records.next() {
            records.count(kind, 0, 1);
            failed += 1;
        }
        assert_eq!(failed, ROUNDS.len());
    }

    #[test]
    fn threads_begin_with_other_kinds() {
        let first: Vec<_> = (0..8).map(|stream| Records::new(stream).next().unwrap()).collect();
        assert_eq!(first, [0, 1, 2, 3, 4, 5, 6, 0]);
    }
}
