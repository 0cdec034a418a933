//! Networks of many blocks alike: a network of few of them is planned, and what it does in each is done in all.
//!
//! Which budget of the small network fits that of the whole one is found by trial: a sequence of the small one is filled in, repaired where it
//! exceeds the budget, and relieved of what is superfluous. The shortest one is a start like any other.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use remat_plan::NodeId;
use web_time::Instant;

use crate::SolveControl;
use crate::best::Best;
use crate::contract::{Contraction, Filling};
use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::pool::Pool;
use crate::repair::RepairOptions;
use crate::repeat::Repeats;
use crate::sequence::Sequence;
use crate::strategy::Worker;

/// Nodes of the small network, about.
const NODES: usize = 160;
/// Layers that stay of each family, at least.
const LAYERS: i64 = 4;
/// Steps per node of the small network for each of its budgets.
const EFFORT: u64 = 300;
/// Share of the limits for all of it.
const SHARE: f64 = 0.3;
/// Room of the small network, as a multiple of its share of the room of the whole one.
const ROOMS: [f64; 7] = [1.0, 0.9, 1.05, 0.8, 1.1, 0.95, 0.7];
/// How layers are filled in.
const FILLINGS: [Filling; 7] = [
    Filling::new(0.0, 1),
    Filling::new(0.0, 2),
    Filling::new(1.0, 1),
    Filling::new(0.75, 1),
    Filling::new(0.5, 1),
    Filling::new(0.25, 1),
    Filling::new(0.5, 2),
];
/// A sequence is repaired where it exceeds the budget by no more than this share, as a divisor.
const REPAIRED: i32 = 20;
/// Steps of a repair.
const REPAIR: u64 = 20_000;

impl Worker<'_> {
    /// The shortest sequence within a budget found by doing in all blocks alike what is done in a few; it becomes the best one, where it is
    /// shorter. Nothing where no blocks repeat.
    pub(crate) fn replicate(&mut self, budget: i32) {
        let repeats = Repeats::of(self.dag);
        let whole = Room::of(self.dag);
        let share = self.dag.unscaled(budget).saturating_sub(whole.least) as f64 / whole.size().max(1) as f64;
        let ratio = self.dag.len() as f64 / NODES as f64;
        let Some(contraction) = Contraction::of(self.dag, &repeats, ratio, LAYERS) else {
            return;
        };
        let small = Room::of(&contraction.small);
        tracing::debug!(nodes = contraction.small.len(), "blocks repeat");
        let mut tried = Vec::new();
        for room in ROOMS {
            if self.meter.used_up(SHARE, self.state.steps) || self.meter.is_over(self.state.steps) {
                break;
            }
            let bytes = small.least + (small.size() as f64 * (share * room).min(1.0)) as u64;
            let Some(planned) = self.plan_small(&contraction.small, bytes) else {
                continue;
            };
            for filling in FILLINGS {
                if self.best.is_some() && self.meter.used_up(SHARE, self.state.steps) {
                    return;
                }
                let sequence = contraction.expand(&planned.sequence, filling);
                self.try_start(budget, &sequence, &mut tried);
            }
        }
    }

    /// Repairs a sequence, unless one like it was tried, and keeps it where it is the best one.
    fn try_start(&mut self, budget: i32, sequence: &[NodeId], tried: &mut Vec<(i64, i64)>) {
        self.state.set_budget(budget);
        self.state.load(sequence);
        self.state.steps += 1 + sequence.len() as u64 / 256;
        let figures = (self.state.duration(), self.state.excess());
        if tried.contains(&figures) || self.state.peak() > budget.saturating_add(budget / REPAIRED) {
            return;
        }
        tried.push(figures);
        let options = RepairOptions {
            max_steps: REPAIR,
            ..RepairOptions::GREEDY
        };
        self.repair(options, Phase::Greedy);
    }

    /// A sequence of the small network within so many bytes.
    fn plan_small(&mut self, small: &Dag, bytes: u64) -> Option<Best> {
        let effort = EFFORT * small.len() as u64;
        // A step there is a part of one here.
        let part = |limit: u64| {
            (limit as f64 * SHARE / ROOMS.len() as f64 * self.dag.len() as f64 / small.len() as f64) as u64
        };
        let control = SolveControl {
            step_limit: Some(
                self.meter
                    .control()
                    .step_limit
                    .map_or(effort, |limit| effort.min(part(limit))),
            ),
            profile: None,
            ..*self.meter.control()
        };
        let (done, pool) = (AtomicBool::new(false), Mutex::<Pool>::default());
        let meter = Meter::new(&control, &done, Instant::now(), small.len());
        let seed = self.rng.below(usize::MAX) as u64;
        // Only the first thread asks for a floor, which is one of the whole problem.
        let problem = (self.problem, self.structure, small);
        let mut worker = Worker::new(problem, meter, seed, 1, &|_, _, _| {}, &pool);
        let found = worker.shorten(small.scaled_budget(Some(bytes)), None);
        self.state.steps += found.steps * small.len() as u64 / self.dag.len() as u64;
        found.best
    }
}

/// How far budgets matter, in bytes.
struct Room {
    /// What some node needs.
    least: u64,
    /// The peak of the reference order.
    most: u64,
}

impl Room {
    fn of(dag: &Dag) -> Self {
        let need = |node| dag.local(node) + dag.needs(node).iter().map(|&value| dag.bytes(value)).sum::<i32>();
        Self {
            least: dag.unscaled(dag.nodes().map(need).max().unwrap_or(0)),
            most: dag.unscaled(Sequence::new(dag, i32::MAX).peak()),
        }
    }

    fn size(&self) -> u64 {
        self.most.saturating_sub(self.least)
    }
}

#[cfg(test)]
mod tests {
    use remat_plan::Problem;
    use remat_testing::net::{in_free_order, with_budget};
    use remat_testing::networks::Blocks;

    use super::*;
    use crate::search::{Rank, Run};
    use crate::strategy::Found;

    fn duration(problem: &Problem, steps: u64, search: impl Fn(&mut Worker<'_>, i32) -> Found + Sync) -> i64 {
        let control = SolveControl::new().step_limit(steps);
        let run = Run::new(problem, &control, Rank::Duration);
        let budget = run.dag.scaled_budget(problem.budget);
        let found = run.on_all_threads(|worker| search(worker, budget));
        found[0].best.as_ref().map_or(i64::MAX, |best| best.duration)
    }

    #[test]
    fn with_the_same_steps_no_plan_is_longer_than_without_a_look_at_blocks() {
        let networks = [Blocks::transformer(16), Blocks::residual(12)];
        for problem in networks.iter().flat_map(|network| {
            let problem = network.training();
            [problem.clone(), in_free_order(problem)]
        }) {
            for budget in [80, 50] {
                let problem = with_budget(problem.clone(), budget);
                let without = duration(&problem, 200_000, |worker, budget| worker.shorten(budget, None));
                let with = duration(&problem, 200_000, |worker, _| worker.minimize_duration(None));
                assert!(with <= without, "{with} instead of {without} at {budget} %");
            }
        }
    }

    #[test]
    fn blocks_give_a_plan_by_themselves() {
        let problem = with_budget(Blocks::transformer(16).training(), 50);
        let replicated = duration(&problem, 400_000, |worker, budget| {
            worker.replicate(budget);
            worker.found()
        });
        let direct = duration(&problem, 400_000, |worker, budget| worker.shorten(budget, None));
        assert!(replicated <= direct, "{replicated} instead of {direct}");
    }
}
