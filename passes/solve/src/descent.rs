//! The way to the lowest peak within a duration: from looser budgets to tighter ones, each search starting from what the one before found.

use crate::anneal::Schedule;
use crate::best::Best;
use crate::control::Phase;
use crate::repair::{Chain, RepairOptions};
use crate::strategy::Worker;

/// Steps per node spent on a budget before a looser one is tried; grows when all are stuck.
const FIRST_EFFORT: u64 = 100;
/// Share of the way to the lowest conceivable peak that the first stage goes, as a divisor.
const STAGES: i32 = 4;
/// The same for the smallest stage.
const SMALLEST_STAGES: i32 = 512;
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
    /// Number of steps, from the beginning of the search, after which it ends.
    pub(crate) last_step: u64,
}

impl Worker<'_> {
    /// Lowers the peak from that of the state, stage by stage. Returns the sequence of the lowest peak.
    ///
    /// A stage asks for a budget somewhat below the peak reached so far. If it fails, recomputes may reach further back; if they
    /// reach far, the next stage asks for half as much; if the smallest fails, stages grow again and every one may take twice
    /// the steps.
    pub(crate) fn descend(&mut self, descent: Descent, phase: Phase) -> Best {
        let mut lowest = Best::of(&self.state);
        self.lowest_peak = self.lowest_peak.min(lowest.peak);
        let first_stage = |peak: i32| ((peak - descent.target) / STAGES).max(1);
        let smallest_stage = |peak: i32| ((peak - descent.target) / SMALLEST_STAGES).max(1);
        let mut stage = first_stage(lowest.peak);
        let mut effort = FIRST_EFFORT * self.dag.len() as u64;
        self.last_improvement = self.state.steps;
        self.on_the_way = true;
        while lowest.peak > descent.target
            && !self.meter_is_over()
            && !self.meter.used_up(descent.share, self.state.steps)
            && self.state.steps < descent.last_step
        {
            let budget = (lowest.peak - stage).max(descent.target);
            if self.attempt(&lowest, budget, descent, effort) {
                if let Some(best) = self.best.take() {
                    lowest = best;
                }
                self.lowest_peak = self.lowest_peak.min(lowest.peak);
                self.last_improvement = self.state.steps;
                if descent.announce {
                    self.improved(&lowest, phase);
                }
                stage = (stage + stage / 2).min(first_stage(lowest.peak)).max(1);
            } else if self.chain.depth < DEEP_ENOUGH {
                self.chain = self.chain.longer();
            } else if stage > smallest_stage(lowest.peak) {
                stage /= 2;
            } else {
                stage = first_stage(lowest.peak);
                effort = effort.saturating_mul(2);
                self.chain = self.chain.longer();
            }
        }
        self.best = None;
        self.chain = Chain::SHORT;
        self.on_the_way = false;
        lowest
    }

    /// Searches from a sequence for one within a tighter budget that is short enough; on success it is the best one.
    fn attempt(&mut self, from: &Best, budget: i32, descent: Descent, effort: u64) -> bool {
        self.best = None;
        self.state.set_budget(budget);
        self.state.load(&from.sequence);
        let goal = std::mem::replace(&mut self.goal, descent.max_duration);
        let options = RepairOptions {
            chain: self.chain,
            max_steps: 5 * effort,
            ..RepairOptions::GREEDY
        };
        if !self.repair(options, Phase::Feasibility) {
            self.state.load(&from.sequence);
            self.anneal(effort);
        }
        if self.best.is_some() {
            self.search_neighbourhoods(effort / 2);
            self.anneal(effort / 2);
        }
        self.goal = goal;
        self.best
            .as_ref()
            .is_some_and(|best| best.duration <= descent.max_duration)
    }

    /// Annealing from the best sequence. Where there is none, from the state, and only until it is within the budget.
    fn anneal(&mut self, steps: u64) {
        let is_first = self.best.is_none();
        self.load_best();
        let schedule = if self.dag.is_free() {
            Schedule::JOINT
        } else {
            Schedule::NEAR
        };
        self.anneal_with(schedule, self.chain, steps, |worker| {
            worker.note(Phase::Feasibility) && is_first
        });
    }

    fn meter_is_over(&mut self) -> bool {
        self.best = None;
        self.is_over()
    }
}
