//! Finishing: the output is written, where it gains something.

use remat_solve::Activity;

use super::Machine;
use crate::attempt::Attempt;
use crate::file::Planned;
use crate::measure::Check;
use crate::sizes::data_decides;
use crate::{DeployError, Deployment, Missed, Strategy};

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    /// Writes what was found.
    pub(super) fn finish(
        self,
        attempt: Attempt,
        planned: Planned,
        check: Option<Check>,
    ) -> Result<Deployment, DeployError> {
        let missed = self.missed(&planned, check.as_ref());
        let is_written = match missed {
            Some(_) => self.request.force,
            None => self.request.writes_anyway() || self.gains(&attempt, &planned, check.as_ref())?,
        };
        let Self { request, clock, .. } = self;
        let Planned {
            mut solution,
            lowered,
            prediction,
        } = planned;
        if clock.is_cancelled() {
            solution.interrupt();
        }
        if let Some(output) = request.output.filter(|_| is_written) {
            let onnx = request.onnx(attempt.written())?;
            clock.during(Activity::Write, "", || onnx.save_proto(&lowered.written(), output))?;
        }
        let Attempt { model, strategy, .. } = attempt;
        let budget = request.solve.budget.bytes(model.baseline_peak().bytes);
        Ok(Deployment {
            budget: budget.filter(|_| request.plan.is_none()),
            most_overhead: request.solve.most_overhead().filter(|_| request.plan.is_none()),
            model,
            solution,
            strategy,
            missed,
            is_written,
            rejected: self.rejected,
            lowering: lowered.report,
            prediction,
            check,
            offer: None,
            padding: self
                .padding
                .filter(|_| matches!(strategy, Strategy::LaidOut | Strategy::Untouched)),
            left_out: clock.left_out(),
        })
    }

    /// By how much a file is above the budget, to the byte: as it was measured, else as it is predicted.
    fn missed(&self, planned: &Planned, check: Option<&Check>) -> Option<Missed> {
        let budget = self.request.solve.budget.bytes(self.peak.bytes);
        let budget = budget.filter(|_| self.request.plan.is_none())?;
        let (reached, is_measured) = planned.takes(check);
        (reached > budget).then_some(Missed {
            budget,
            reached,
            is_measured,
        })
    }

    /// Whether a file takes less than the model as it came, by what is measured, else by what is predicted of both.
    fn gains(&self, attempt: &Attempt, planned: &Planned, check: Option<&Check>) -> Result<bool, DeployError> {
        if !attempt.strategy.recipe().rewrites || data_decides(&attempt.model, planned.prediction.peak_bytes) {
            return Ok(false);
        }
        let is_lower = match check {
            Some(check) => check.after.is_lower(&check.before),
            None => {
                let before = self.task(attempt).without_plan()?.peaks();
                planned.prediction.peaks().is_lower(&before)
            }
        };
        // What cannot be measured may be lower.
        Ok(is_lower.unwrap_or(true))
    }
}
