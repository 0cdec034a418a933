//! One way of writing a model: planned, measured, and planned again with what measuring showed.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::RuntimeError;
use remat_plan::{Plan, StopReason};
use remat_solve::Activity;

use crate::DeployError;
use crate::check::{Baseline, Bench, Check, Fault, MEASUREMENTS};
use crate::clock::{Clock, LeftOut};
use crate::plan::{Effort, Planned, plan};
use crate::run::{DeployRequest, onnx};
use crate::variant::Variant;
use remat::Model;

/// How often a plan is made at most: because measuring showed what the simulation leaves out, or because there is time for a better one.
const ROUNDS: usize = 4;
/// Share of the time for a first plan, where measuring it takes little: then a file is there early, and what it shows is known.
const FIRST_ROUND: f64 = 0.2;
/// Share of the time for each plan that another one may have to follow.
const LATER_ROUND: f64 = 0.6;
/// Share of the time, as a divisor, that is kept for completing the measurements at most.
const COMPLETING: u32 = 4;
/// A process that measures takes little where it takes less than this share of the time left, as a divisor.
const LITTLE: u32 = 8;

/// A variant on its way.
pub(crate) struct Attempt<'t, 'a> {
    pub(crate) request: &'t DeployRequest<'t>,
    pub(crate) variant: Variant,
    pub(crate) model: &'t Model,
    pub(crate) clock: &'t Clock<'a>,
    /// The runtime, and the model as it came, measured there.
    pub(crate) measuring: Option<(&'t Bench<'t, 'a>, &'t Baseline)>,
    /// Where to put the file that is measured.
    pub(crate) written: &'t Path,
    /// What making a file and simulating it is expected to take.
    pub(crate) file: Duration,
}

impl Attempt<'_, '_> {
    /// Plans and measures; where measuring shows what the simulation leaves out, again with that left free.
    pub(crate) fn make(&self) -> Result<Result<(Planned, Option<Check>), Fault>, DeployError> {
        let Some((bench, baseline)) = self.measuring else {
            let planned = self.plan(self.clock.left(), 0, None)?;
            return Ok(Ok((planned, None)));
        };
        let mut learned = 0;
        let mut best: Option<(Planned, Check)> = None;
        for round in 0..ROUNDS {
            let (time, is_short) = self.time(round, bench, baseline);
            let start = best.as_ref().map(|(planned, _)| &planned.solution.plan);
            let planned = match self.plan(time, learned, start) {
                Ok(planned) => planned,
                // The budget leaves no room for what was learned, or the time is over: what is there stays.
                Err(_) if best.is_some() => break,
                Err(error) => return Err(error),
            };
            let check = match self.verify(&planned, bench, baseline, round == 0) {
                Ok(Ok(check)) => check,
                Ok(Err(_)) | Err(_) if best.is_some() => break,
                Ok(Err(fault)) => return Ok(Err(fault)),
                Err(error) => return Err(error),
            };
            let lesson = check
                .lesson(&planned.promise, learned)
                .filter(|_| self.request.is_bounded());
            let is_settled = is_settled(&planned);
            if best
                .as_ref()
                .is_none_or(|known| self.is_better((&planned, &check), known))
            {
                best = Some((planned, check));
            }
            if lesson.is_none() && (is_settled || !is_short) {
                break;
            }
            learned = lesson.unwrap_or(learned);
            if self.clock.is_cancelled() {
                break;
            }
            if !self.clock.has((baseline.took() + self.file) * 2) {
                self.clock.leave_out(LeftOut::AnotherPlan);
                break;
            }
        }
        let Some((planned, check)) = best else {
            return Err(DeployError::NoVariant { abandoned: Vec::new() });
        };
        self.complete(planned, check, bench, baseline)
    }

    /// Time for all plans together; the rest is for completing the measurements. `None` where nothing counts time.
    fn all(&self, bench: &Bench<'_, '_>, baseline: &Baseline) -> Option<Duration> {
        let most = bench.clock.limit()? / COMPLETING;
        let kept = if self.clock.is_timed() {
            baseline.completing().min(most)
        } else {
            Duration::ZERO
        };
        Some(self.clock.left()?.saturating_sub(kept))
    }

    /// Time for the plan of a round, and whether it is short because a longer round is to follow.
    fn time(&self, round: usize, bench: &Bench<'_, '_>, baseline: &Baseline) -> (Option<Duration>, bool) {
        let Some(all) = self.all(bench, baseline) else {
            return (None, false);
        };
        let measuring = baseline.took() + self.file * 2;
        let may_try_twice = self.clock.is_timed() && measuring * LITTLE < all;
        match round {
            0 if may_try_twice => (Some(all.mul_f64(FIRST_ROUND)), true),
            0 => (Some(all), false),
            _ if self.request.is_bounded() => (Some(all.saturating_sub(measuring).mul_f64(LATER_ROUND)), false),
            _ => (Some(all.saturating_sub(measuring)), false),
        }
    }

    fn plan(&self, time: Option<Duration>, learned: u64, start: Option<&Plan>) -> Result<Planned, DeployError> {
        let effort = Effort::new(self.clock, time, self.file);
        plan(self.request, self.variant, self.model, &effort, learned, start)
    }

    /// Measures a plan's file with the memory arena off. The first of a variant does not count.
    fn verify(
        &self,
        planned: &Planned,
        bench: &Bench<'_, '_>,
        baseline: &Baseline,
        is_first: bool,
    ) -> Result<Result<Check, Fault>, DeployError> {
        let work = || {
            self.write(planned)?;
            let mut check = baseline.verify(bench, self.written, self.request.order == OrderHint::Any);
            self.forget(&mut check);
            cancelled(check)
        };
        let detail = format!("2/{MEASUREMENTS}, what was written");
        if is_first {
            return self.clock.apart(Activity::Measure, &detail, work);
        }
        self.clock.begins(Activity::Measure, &detail);
        work()
    }

    /// Measures what there is time for, and settles what is promised.
    fn complete(
        &self,
        mut planned: Planned,
        mut check: Check,
        bench: &Bench<'_, '_>,
        baseline: &Baseline,
    ) -> Result<Result<(Planned, Option<Check>), Fault>, DeployError> {
        if !self.clock.is_cancelled() {
            self.write(&planned)?;
            let completed = baseline.complete(bench, self.written, &mut check);
            let mut completed = completed.map(|()| check.clone());
            self.forget(&mut completed);
            match cancelled(completed) {
                Ok(Ok(completed)) => check = completed,
                Ok(Err(fault)) => return Ok(Err(fault)),
                // What was measured before is enough.
                Err(_) => {}
            }
        }
        // What is still above its promise was measured on this very file. What the runtime fuses in it at load is not simulated.
        if self.variant.is_fused() {
            planned.promise.settle(&check.after);
        } else {
            planned.promise.be(&check.after);
        }
        Ok(Ok((planned, Some(check))))
    }

    fn write(&self, planned: &Planned) -> Result<(), DeployError> {
        Ok(onnx(self.model, self.request)?.save_proto(&planned.lowered.proto, self.written)?)
    }

    /// Takes out peaks that were not measured as the file is meant to run.
    fn forget(&self, check: &mut Result<Check, Fault>) {
        if let (Ok(check), OrderHint::Priority) = (check, self.request.order) {
            check.forget_peaks("the priority-based order can only be set from Python");
        }
    }

    /// Whether a file is better than the best so far: closer to the budget where that is exceeded, then faster under a budget, else lower.
    fn is_better(&self, (planned, check): (&Planned, &Check), (known, known_check): &(Planned, Check)) -> bool {
        let budget = self.request.solve.budget.bytes(self.model.baseline().peak);
        let rank = |planned: &Planned, check: &Check| {
            let peak = check.after.exact.unwrap_or(planned.promise.peak_bytes);
            let over = budget.map_or(0, |budget| peak.saturating_sub(budget));
            let duration = planned.solution.replay.duration;
            let (first, second) = if budget.is_some() {
                (duration, peak)
            } else {
                (peak, duration)
            };
            Reverse((over, first, second))
        };
        rank(planned, check) >= rank(known, known_check)
    }
}

/// Whether more time would not lead to a better plan.
fn is_settled(planned: &Planned) -> bool {
    let certificate = planned.solution.certificate.as_ref();
    certificate.is_none_or(|certificate| certificate.stop != StopReason::TimeLimit)
}

/// A cancellation is no fault of the file.
fn cancelled<T>(found: Result<T, Fault>) -> Result<Result<T, Fault>, DeployError> {
    match found {
        Err(Fault::Runtime(error @ RuntimeError::Cancelled { .. })) => Err(DeployError::Runtime(error)),
        found => Ok(found),
    }
}
