//! The way to the lowest peak within a duration: from looser budgets to tighter ones, each search starting from what the one before found.

use crate::best::Best;
use crate::control::Phase;
use crate::repair::{Chain, RepairOptions};
use crate::strategy::Worker;

/// Steps per node spent on a budget before a looser one is tried; grows when all are stuck.
const FIRST_EFFORT: u64 = 100;
/// Shares of the way to the lowest conceivable peak that the first stage goes, and the smallest one, as divisors.
const STAGES: (i32, i32) = (4, 512);
/// The same of graphs on which the search goes frame by frame.
const LARGE_STAGES: (i32, i32) = (16, 2_048);
/// Longest way back of a recompute before stages become smaller.
const DEEP_ENOUGH: usize = 12;

/// Where a descent leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent {
    /// Ends at this peak.
    pub(crate) target: i32,
    /// Sequences that take longer do not count; shorter ones are not improved before the next stage.
    pub(crate) max_duration: i64,
    /// Whether a lower peak is a better answer, or only on the way to one.
    pub(crate) announce: bool,
    /// Share of the limits after which the descent ends.
    pub(crate) share: f64,
}

impl Worker<'_> {
    /// Lowers the peak from that of the state, stage by stage. Returns the sequence of the lowest peak.
    ///
    /// A stage asks for a budget somewhat below the peak reached so far. If it fails, recomputes may reach further back; if they
    /// reach far, the next stage asks for half as much; if the smallest fails, stages grow again and every one may take twice
    /// the steps.
    pub(crate) fn descend(&mut self, descent: Descent, phase: Phase) -> Best {
        let mut lowest = Best::of(&self.state);
        self.reached(&lowest);
        let (first, smallest) = if self.is_large { LARGE_STAGES } else { STAGES };
        let first_stage = |peak: i32| ((peak - descent.target) / first).max(1);
        let smallest_stage = |peak: i32| ((peak - descent.target) / smallest).max(1);
        let mut chain = Chain::SHORT;
        let mut stage = first_stage(lowest.peak);
        let mut effort = FIRST_EFFORT * self.dag.len() as u64;
        self.last_improvement = self.state.steps;
        self.on_the_way = true;
        while lowest.peak > descent.target && !self.is_over() && !self.meter.used_up(descent.share, self.state.steps) {
            let budget = (lowest.peak - stage).max(descent.target);
            if self.attempt(&lowest, budget, descent, (chain, effort)) {
                if let Some(best) = self.best.take() {
                    lowest = best;
                }
                self.reached(&lowest);
                self.last_improvement = self.state.steps;
                self.improved(&lowest, phase);
                stage = (stage + stage / 2).min(first_stage(lowest.peak)).max(1);
            } else if !self.is_large && chain.depth < DEEP_ENOUGH {
                chain = chain.longer();
            } else if stage > smallest_stage(lowest.peak) {
                stage /= 2;
            } else {
                stage = first_stage(lowest.peak);
                effort = effort.saturating_mul(2);
                chain = chain.longer();
            }
        }
        self.best = None;
        self.on_the_way = false;
        lowest
    }

    /// Searches from a sequence for one within a tighter budget that is short enough; on success it is the best one.
    fn attempt(&mut self, from: &Best, budget: i32, descent: Descent, (chain, effort): (Chain, u64)) -> bool {
        self.best = None;
        self.state.set_budget(budget);
        self.state.load(&from.sequence);
        let options = RepairOptions {
            chain,
            max_steps: effort,
            ..RepairOptions::GREEDY
        };
        if !self.repair(options, Phase::Feasibility) {
            if self.is_large {
                return false;
            }
            self.state.load(&from.sequence);
            if !self.reach(self.state.steps.saturating_add(effort)) {
                return false;
            }
            self.note(Phase::Feasibility);
        }
        let goal = std::mem::replace(&mut self.goal, descent.max_duration);
        if !self.is_large {
            self.search_neighbourhoods(effort / 2);
            self.load_best();
        }
        self.shorten_frames(self.goal, self.state.steps.saturating_add(effort), |_| {});
        self.note(Phase::Feasibility);
        self.goal = goal;
        let best = self.best.as_ref();
        best.is_some_and(|best| best.duration <= descent.max_duration)
    }
}
