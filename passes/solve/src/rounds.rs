//! Improvement of sequences within the budget: annealing and large neighbourhood search make others, which all threads
//! share; then stretches of one are put into another.
//!
//! Where an annealing ends is a matter of luck. Large neighbourhood search finds the best sequences nearby, and no others. What two of
//! them make is often better than both.

use std::sync::PoisonError;

use crate::anneal::Schedule;
use crate::best::Best;
use crate::control::Phase;
use crate::pool::{Draw, Pool, relink};
use crate::profile::Round;
use crate::repair::RepairOptions;
use crate::sequence::Sequence;
use crate::strategy::{FIRST_ROUND, Worker};

/// Steps per node of the first round on the way into a budget, at least.
const STEPS_PER_NODE: u64 = 200;
/// That round takes this share of what is left, as a divisor; the next ones are longer.
const ROUNDS_TO_GO: u64 = 16;
/// Steps of that round at least, and at most per node.
const SHORTEST_ROUND: u64 = 1_000;
const MOST_STEPS_PER_NODE: u64 = 5_000;
/// A variation takes this share of what is left at the beginning, as a divisor, and so many steps per node at most.
const VARIATIONS: u64 = 48;
const VARIATION_PER_NODE: u64 = 1_000;
/// In free order annealing takes so many times as many steps.
const FREE_STEPS: u64 = 4;
/// Annealing that ends with an excess of more than this share of the budget in free order, as a divisor, is stuck above it.
const STUCK: i64 = 400;
/// What is made of two sequences is improved with this share of the steps of a variation, as a divisor.
const RELINKED: u64 = 5;
/// Annealing begins at so many mean durations, and where the order is free, with what is made of two sequences, at so many.
const HOT: f64 = 1.5;
const MILD: f64 = 0.1;
/// It may have this share more overhead than the longer of both before that, as a divisor.
const DETOUR: i64 = 4;

impl Schedule {
    /// From a sequence within the budget to better ones farther away, from so many mean durations. The cheapest recomputes settle last.
    const fn far(hot: f64) -> Self {
        Self {
            hot,
            cold: 0.002,
            moves: 0.3,
            ..Self::NEAR
        }
    }
}

/// The ways to a sequence that differs from the best one in fixed order, in turns: annealing of the best one, or of the one at the end of a new
/// way into the budget, from the reference order.
const FIXED: [Option<Schedule>; 3] = [Some(Schedule::far(HOT)), None, Some(Schedule::MELT)];

/// The ways in free order, in turns.
const FREE: [Option<Schedule>; 4] = [
    Some(Schedule::far(0.4)),
    Some(Schedule::far(HOT)),
    None,
    Some(Schedule::far(0.05)),
];

impl Worker<'_> {
    /// Improves the best sequence until the goal is reached, or a limit or convergence ends the search. Nothing where there is no sequence.
    pub(crate) fn improve(&mut self) {
        if self.is_large {
            self.improve_frames();
            return;
        }
        let left = self.meter.steps_left(self.state.steps).unwrap_or(u64::MAX);
        let most = VARIATION_PER_NODE * self.dag.len() as u64;
        let first = (left / VARIATIONS).min(most).max(SHORTEST_ROUND);
        if self.dag.is_free() && self.best.is_some() {
            let length = self.first_length();
            self.during(Round::Anneal, |worker| worker.anneal_best(Schedule::far(HOT), length));
        }
        self.during(Round::Neighbourhood, |worker| worker.search_neighbourhoods(first));
        self.contribute(None);
        while !self.is_over() {
            self.adopt();
            let Some(best) = self.best.take() else {
                return;
            };
            let (draw, generation) = self.with_pool(|pool, rng| (pool.draw(rng), pool.generation));
            let steps = self.fitting(first.saturating_add(first / 2 * u64::from(generation)));
            self.kept = Some(best);
            match draw {
                Draw::Vary => self.vary(steps),
                Draw::Relink(shorter, longer) => self.during(Round::Relink, |worker| {
                    worker.relink(&shorter, &longer, steps / RELINKED);
                }),
            }
            self.keep_better();
        }
    }

    /// One more sequence for the pool, by annealing: in fixed order another one, if it takes longer than the best. In free order, where annealing
    /// ends stuck above the budget, once more, [close](Schedule::CLOSE) to it.
    fn vary(&mut self, steps: u64) {
        let ways: &[Option<Schedule>] = if self.dag.is_free() { &FREE } else { &FIXED };
        let way = ways[self.variations % ways.len()];
        self.variations += 1;
        if let Some(kept) = &self.kept {
            self.state.load(&kept.sequence);
        }
        if way.is_none() {
            self.sink_into(self.state.budget(), None, 1.0);
        }
        let schedule = way.unwrap_or(Schedule::far(HOT));
        let mut steps_of_annealing = steps;
        if self.dag.is_free() {
            steps_of_annealing *= FREE_STEPS;
            self.best = self.best.take().or_else(|| self.kept.clone());
        }
        self.during(Round::Anneal, |worker| {
            worker.anneal(schedule, steps_of_annealing);
            if worker.dag.is_free() && worker.state.excess() > i64::from(worker.state.budget()) / STUCK {
                worker.anneal_best(Schedule::CLOSE, steps_of_annealing);
            }
        });
        self.during(Round::Neighbourhood, |worker| worker.search_neighbourhoods(steps));
        self.contribute(None);
    }

    /// Puts a stretch of the longer sequence into the shorter one, and improves what comes out.
    fn relink(&mut self, shorter: &Best, longer: &Best, steps: u64) {
        let child = relink(self.dag, &shorter.sequence, &longer.sequence, &mut self.rng);
        self.state.load(&child);
        let options = RepairOptions {
            duration_limit: longer.duration + (longer.duration - self.dag.total_duration()) / DETOUR + 1,
            ..RepairOptions::GREEDY
        };
        if self.repair(options, Phase::Neighbourhood) {
            if self.dag.is_free() {
                self.anneal_best(Schedule::far(MILD), steps);
            }
            self.search_neighbourhoods(steps);
        }
        self.contribute(Some(longer.duration));
    }

    /// Gives the sequence at hand to the pool, in place of the one of this duration.
    fn contribute(&mut self, replaced: Option<i64>) {
        let (new, budget) = (self.best.take(), self.state.budget());
        self.with_pool(|pool, _| match &new {
            Some(new) => pool.add(new, budget, replaced),
            None => pool.fail(),
        });
        self.best = new;
    }

    /// Takes the best sequence of all threads, if it is better or there is no own one.
    pub(crate) fn adopt(&mut self) {
        let budget = self.state.budget();
        let own = self.best.as_ref().map_or(i64::MAX, |best| best.duration);
        let better = self.with_pool(|pool, _| pool.best(budget).filter(|other| other.duration < own).cloned());
        if better.is_some() {
            self.best = better;
            self.last_improvement = self.state.steps;
        }
    }

    fn with_pool<T>(&mut self, task: impl FnOnce(&mut Pool, &mut crate::Rng) -> T) -> T {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        task(&mut pool, &mut self.rng)
    }

    /// Annealing from the best sequence to shorter ones.
    fn anneal_best(&mut self, schedule: Schedule, steps: u64) {
        self.load_best();
        self.anneal(schedule, steps);
    }

    /// Annealing from the state; takes note of each better sequence.
    fn anneal(&mut self, schedule: Schedule, steps: u64) {
        self.anneal_with(schedule, steps, |worker| {
            worker.note(Phase::Annealing);
            false
        });
    }

    /// Anneals the frame for so many steps, or until there is no more excess than is allowed, and the duration is that of the goal; without a
    /// goal all that counts is the excess. The state is not worse after than before.
    pub(crate) fn anneal_towards(&mut self, allowed: i64, goal: Option<i64>, steps: u64) {
        let rank = |state: &Sequence<'_>| (state.excess().max(allowed), state.duration());
        let is_reached =
            |state: &Sequence<'_>| state.excess() <= allowed && goal.is_none_or(|goal| state.duration() <= goal);
        if is_reached(&self.state) {
            return;
        }
        if goal.is_none() {
            self.annealing.restart();
        }
        let mut best = rank(&self.state);
        self.annealing.log.clear();
        self.walk(allowed, steps, |worker| {
            if rank(&worker.state) < best {
                best = rank(&worker.state);
                worker.annealing.log.clear();
            }
            is_reached(&worker.state)
        });
        self.state.undo_to(&mut self.annealing.log, 0);
    }

    /// Annealing from the state; `moved` is called after each change and says whether to end.
    pub(crate) fn anneal_with(&mut self, schedule: Schedule, steps: u64, mut moved: impl FnMut(&mut Self) -> bool) {
        self.annealing.set(schedule);
        self.walk(0, steps, |worker| {
            worker.annealing.log.clear();
            moved(worker)
        });
    }

    fn walk(&mut self, allowed: i64, steps: u64, mut moved: impl FnMut(&mut Self) -> bool) {
        let begin = self.state.steps;
        while self.state.steps - begin < steps && !self.is_over() {
            let progress = (self.state.steps - begin) as f64 / steps as f64;
            let changed = self.annealing.step(&mut self.state, allowed, progress, &mut self.rng);
            if changed && moved(self) {
                return;
            }
        }
    }

    /// Steps of the first round on the way into a budget.
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
