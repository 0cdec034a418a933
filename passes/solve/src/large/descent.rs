//! The way of a large graph to a low peak: budgets are lowered stage by stage, each search starting from what the one before found.

use remat_plan::StopReason;

use super::Large;
use crate::control::Meter;
use crate::descent::Descent;

/// Share of the way to the lowest conceivable peak that the first stage goes, as a divisor.
const STAGES: i32 = 16;
/// The same for the smallest stage.
const SMALLEST_STAGES: i32 = 2_048;
/// Steps per node spent on a budget before a looser one is tried; grows when the smallest stage is stuck.
const FIRST_EFFORT: u64 = 100;

impl Large<'_> {
    /// Lowers the peak until the target or a limit is reached, or there has been no improvement for long; no sequence that counts takes
    /// longer than allowed. `note` is told of every lower peak. Ends with the sequence of the lowest peak, which is its budget.
    pub(crate) fn descend(&mut self, descent: Descent, meter: &mut Meter<'_>, mut note: impl FnMut(&mut Self)) {
        let mut lowest = self.best();
        let stage_of = |peak: i32, stages: i32| ((peak - descent.target) / stages).max(1);
        let mut stage = stage_of(lowest.peak, STAGES);
        let mut effort = FIRST_EFFORT * self.timeline.dag().len() as u64;
        let mut last_improvement = self.timeline.steps;
        while lowest.peak > descent.target
            && self.timeline.steps < descent.last_step
            && !meter.used_up(descent.share, self.timeline.steps)
            && !meter.is_over(self.timeline.steps)
        {
            self.timeline.set_budget((lowest.peak - stage).max(descent.target));
            if self.attempt(descent, effort, meter) {
                lowest = self.best();
                last_improvement = self.timeline.steps;
                stage = (stage + stage / 2).min(stage_of(lowest.peak, STAGES)).max(1);
                note(self);
                continue;
            }
            self.timeline.load(&lowest.sequence);
            if stage > stage_of(lowest.peak, SMALLEST_STAGES) {
                stage /= 2;
            } else {
                stage = stage_of(lowest.peak, SMALLEST_STAGES / 8);
                effort = effort.saturating_mul(2);
            }
            if meter.patience().is_over(self.timeline.steps, last_improvement) {
                meter.stop(StopReason::Converged);
            }
        }
        self.timeline.set_budget(lowest.peak);
    }

    /// Searches for a sequence within the budget that is short enough.
    fn attempt(&mut self, descent: Descent, effort: u64, meter: &mut Meter<'_>) -> bool {
        let last_step = self.timeline.steps.saturating_add(effort).min(descent.last_step);
        if !self.reach(meter, last_step) {
            return false;
        }
        if self.timeline.duration() > descent.max_duration {
            let last_step = self.timeline.steps.saturating_add(effort).min(descent.last_step);
            self.improve(descent.max_duration, last_step, meter, |_| {});
        }
        self.timeline.duration() <= descent.max_duration
    }
}
