//! Judging: the file of a plan is measured, and kept or rejected.

use std::path::{Path, PathBuf};

use remat::Solution;
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::RuntimeError;
use remat_solve::Activity;

use super::{Machine, State, settled};
use crate::attempt::Attempt;
use crate::error::{Rejected, Rejection};
use crate::file::Planned;
use crate::measure::{Baseline, Bench, Check, MEASUREMENTS, Outputs};
use crate::peaks::{Basis, HigherPeak, Measured};
use crate::{DeployError, Strategy};

/// Another strategy is tried for a better file if there is time to measure the model so often.
const LEFT_FOR_ANOTHER: u32 = 8;

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    /// Measures a plan's file. The time of the first one does not count.
    pub(super) fn verify(&mut self, mut attempt: Attempt, planned: Planned) -> Result<State<'c, 'a>, DeployError> {
        let Some((bench, baseline)) = self.bench.as_ref().zip(self.baseline.as_ref()) else {
            let higher = self
                .task(&attempt)
                .higher_in_the_arena(&planned.prediction, &Measured::default())?;
            let may_be_rejected = self.request.arena && !self.request.is_bounded() && !self.request.force;
            let is_rejected = may_be_rejected && attempt.strategy.recipe().rewrites;
            return Ok(match higher.filter(|_| is_rejected) {
                Some(higher) => State::Reject(attempt, higher.into()),
                None => self.within_budget(attempt, planned, None),
            });
        };
        // What takes more than the model as it came is above a lower budget, too: of such files the closest is told.
        let budget = self.request.solve.budget.bytes(self.peak.bytes);
        let is_held_against_less = self.request.plan.is_none() && budget.is_some_and(|budget| budget < self.peak.bytes);
        let must_be_lower = self.request.order == OrderHint::Any && !self.request.force && !is_held_against_less;
        let (lowered, solution) = (planned.lowered.report, planned.solution.clone());
        let work = || -> Result<_, DeployError> {
            let written = self.write(&attempt, &planned)?;
            Ok(baseline.verify(bench, &written, must_be_lower, self.request.outputs(attempt.strategy)))
        };
        let detail = format!("2/{MEASUREMENTS}, what was written");
        let found = match self.ran {
            false => self.clock.apart(Activity::Measure, &detail, work),
            true => self.clock.during(Activity::Measure, &detail, work),
        };
        self.ran = true;
        match found {
            Ok(Ok(mut check)) => {
                let budget = self.request.solve.budget.bytes(self.peak.bytes);
                if lowered.in_branch && check.costs_in_branch(&planned.prediction, budget) && attempt.simplify(&lowered)
                {
                    return self.again(attempt, solution);
                }
                self.forget_peaks(&mut check);
                let best = attempt.measured((planned, check), self.request, self.clock, baseline);
                Ok(match best {
                    Some((planned, check)) => self.within_budget(attempt, planned, Some(check)),
                    None => State::Plan(attempt),
                })
            }
            Ok(Err(Rejection::DoesNotRun(error @ RuntimeError::Cancelled { .. }))) => {
                self.settle(attempt, error.into())
            }
            Ok(Err(rejection)) => {
                if let Some((planned, check)) = attempt.best.take() {
                    return Ok(self.best_so_far(attempt, planned, check));
                }
                let may_be_simpler = matches!(rejection, Rejection::OutputDiffers { .. }) || lowered.in_branch;
                if may_be_simpler && attempt.simplify(&lowered) {
                    return self.again(attempt, solution);
                }
                Ok(State::Reject(attempt, rejection))
            }
            Err(error) => self.settle(attempt, error),
        }
    }

    /// Another file of the same plan is to be measured, after something was ruled out for it.
    fn again(&mut self, mut attempt: Attempt, solution: Solution) -> Result<State<'c, 'a>, DeployError> {
        let effort = attempt.effort(self.request, self.clock, self.baseline.as_ref());
        match self.task(&attempt).file(solution, &effort) {
            Ok(other) => Ok(State::Verify(attempt, other)),
            Err(error) => self.settle(attempt, error),
        }
    }

    /// The best file of a strategy is the result where it keeps the budget; else another strategy may keep it, and the closest file is
    /// remembered.
    fn within_budget(&mut self, attempt: Attempt, planned: Planned, check: Option<Check>) -> State<'c, 'a> {
        let budget = self.request.solve.budget.bytes(self.peak.bytes);
        let (peak, _) = planned.takes(check.as_ref());
        let is_over = self.request.plan.is_none() && budget.is_some_and(|budget| peak > budget);
        let Some(budget) = budget.filter(|_| is_over && !self.clock.is_cancelled()) else {
            let took = self.baseline.as_ref().map(Baseline::took).unwrap_or_default();
            let may_lose = !self.request.is_bounded() && !attempt.strategy.recipe().tiles;
            let loses = may_lose && attempt.loses_order(&planned, peak);
            if loses && !self.clock.is_cancelled() && self.clock.has(took * LEFT_FOR_ANOTHER) {
                self.laid_out = Some((peak, attempt, planned, check));
                return State::Open;
            }
            let is_better = |laid_out: &mut (u64, _, _, _)| laid_out.0 <= peak;
            return match self.laid_out.take_if(is_better) {
                Some((_, attempt, planned, check)) => settled(attempt, planned, check),
                None => settled(attempt, planned, check),
            };
        };
        let (strategy, over) = (attempt.strategy, peak - budget);
        let reason = Rejection::OverBudget { budget, peak };
        tracing::info!(%strategy, %reason, "another lowering strategy may keep the budget");
        self.rejected.push(Rejected { strategy, reason });
        let others = self.other_tiles_for_budget(&attempt);
        if self.closest.as_ref().is_none_or(|&(least, ..)| over < least) {
            self.closest = Some((over, attempt, planned, check));
        }
        others.map_or(State::Open, State::Plan)
    }

    /// What follows where the best file that was measured stays: under a budget it has to keep that.
    pub(super) fn best_so_far(&mut self, attempt: Attempt, planned: Planned, check: Check) -> State<'c, 'a> {
        if self.request.is_bounded() {
            return self.within_budget(attempt, planned, Some(check));
        }
        State::Complete(attempt, planned, check)
    }

    /// Measures what there is time for, and corrects the prediction.
    pub(super) fn complete(
        &mut self,
        mut attempt: Attempt,
        mut planned: Planned,
        mut check: Check,
    ) -> Result<State<'c, 'a>, DeployError> {
        type Measuring<'m, 'c, 'a> = fn(&Baseline, &Bench<'c, 'a>, &Path, &mut Check) -> Result<(), Rejection>;
        let measuring = self.bench.as_ref().zip(self.baseline.as_ref());
        // What was measured before is enough where the call is cancelled.
        let measured = |attempt: &Attempt, planned: &Planned, check: &mut Check, what: Measuring<'_, 'c, 'a>| {
            let Some((bench, baseline)) = measuring.filter(|_| !self.clock.is_cancelled()) else {
                return Ok(None);
            };
            let written = self.write(attempt, planned)?;
            let mut completed = check.clone();
            match what(baseline, bench, &written, &mut completed) {
                Ok(()) => *check = completed,
                Err(Rejection::DoesNotRun(RuntimeError::Cancelled { .. })) => {}
                Err(rejection) => return Ok(Some(rejection)),
            }
            self.forget_peaks(check);
            Ok::<_, DeployError>(None)
        };
        if let Some(rejection) = measured(&attempt, &planned, &mut check, Baseline::with_arena)? {
            return self.in_branch_no_more(attempt, planned, rejection);
        }
        if let Some(higher) = self.higher_in_the_arena(&attempt, &planned, &check)? {
            let took = self.baseline.as_ref().map(Baseline::took).unwrap_or_default();
            let lowered = planned.lowered.report;
            if attempt.may_reserve && lowered.reserved > 0 && self.clock.has(took * 4) {
                // The reserve may be kept beside the regions that the arena makes anyway.
                attempt.may_reserve = false;
                let solution = planned.solution.clone();
                attempt.best = Some((planned, check));
                return self.again(attempt, solution);
            }
            if lowered.in_branch || !self.request.is_bounded() {
                return self.in_branch_no_more(attempt, planned, higher.into());
            }
        }
        if attempt.strategy.recipe().tiles && check.outputs == Outputs::Identical {
            // Kernels divide sums among threads.
            let rejection = measured(&attempt, &planned, &mut check, Baseline::with_threads)?;
            if let Some(rejection) = rejection {
                return self.in_branch_no_more(attempt, planned, rejection);
            }
        }
        if attempt.strategy.recipe().rewrites && self.request.has_free_dims() {
            let rejection = measured(&attempt, &planned, &mut check, Baseline::with_sizes)?;
            if let Some(rejection) = rejection {
                return self.in_branch_no_more(attempt, planned, rejection);
            }
        }
        if let Some(rejection) = measured(&attempt, &planned, &mut check, Baseline::with_times)? {
            return self.in_branch_no_more(attempt, planned, rejection);
        }
        // What is still above its prediction was measured on this very file. What the runtime fuses in it at load is not simulated.
        if attempt.strategy.recipe().fuses {
            planned.prediction.calibrate(&check.after);
        } else {
            planned.prediction.replace(&check.after);
        }
        Ok(self.weigh(attempt, planned, check))
    }

    /// What follows a file that is rejected: the same plan outside of a branch where it stands in one, else another strategy.
    fn in_branch_no_more(
        &mut self,
        mut attempt: Attempt,
        planned: Planned,
        rejection: Rejection,
    ) -> Result<State<'c, 'a>, DeployError> {
        let lowered = planned.lowered.report;
        if lowered.in_branch && attempt.simplify(&lowered) {
            return self.again(attempt, planned.solution);
        }
        Ok(State::Reject(attempt, rejection))
    }

    /// Why a file does not suit the arena: by its measured peaks, and by its predicted ones as far as they were not measured.
    fn higher_in_the_arena(
        &self,
        attempt: &Attempt,
        planned: &Planned,
        check: &Check,
    ) -> Result<Option<HigherPeak>, DeployError> {
        let is_asked_for = self.request.arena && self.request.order == OrderHint::Any && !self.request.force;
        if !is_asked_for || !attempt.strategy.recipe().rewrites || self.clock.is_cancelled() {
            return Ok(None);
        }
        match check.after.higher_with_arena(&check.before, Basis::Measured) {
            None if self.request.is_bounded() => Ok(None),
            None => self
                .task(attempt)
                .higher_in_the_arena(&planned.prediction, &check.after),
            measured => Ok(measured),
        }
    }

    pub(super) fn reject(&mut self, attempt: Attempt, reason: Rejection) -> State<'c, 'a> {
        let strategy = attempt.strategy;
        if strategy.recipe().tiles
            && let Some(next) = self.with_other_tiles(&attempt, &reason)
        {
            return State::Plan(next);
        }
        if let Some((attempt, planned, check)) = self.in_tiles.take() {
            return State::Done(attempt, planned, Some(check));
        }
        tracing::info!(%strategy, %reason, "a lowering strategy is rejected");
        self.bodies.reject(&attempt.model, &reason, self.request);
        self.rejected.push(Rejected { strategy, reason });
        if let Some((_, attempt, planned, check)) = self.laid_out.take() {
            return settled(attempt, planned, check);
        }
        if !strategy.recipe().tiles {
            self.opened = Some(attempt.portable.map_or(attempt.model, |portable| portable.model));
        }
        State::Open
    }

    /// Puts a file where it is measured.
    fn write(&self, attempt: &Attempt, planned: &Planned) -> Result<PathBuf, DeployError> {
        let path = self.scratch.path().join("remat-written.onnx");
        let onnx = self.request.onnx(attempt.written())?;
        onnx.save_proto(&planned.lowered.written(), &path)?;
        Ok(path)
    }

    /// Takes out peaks that were not measured as the file is meant to run.
    fn forget_peaks(&self, check: &mut Check) {
        if self.request.order == OrderHint::Priority {
            check.forget_peaks("the priority-based order can only be set from Python");
        }
    }
}
