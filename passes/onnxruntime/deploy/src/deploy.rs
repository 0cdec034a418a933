//! The loop of a deployment: a candidate is planned, its file is measured and kept by its rank, until nothing better is to be expected.

use std::path::PathBuf;
use std::rc::Rc;

use remat::{ErrorKind, Format, SolveError};
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_predict::simulated;
use remat_onnxruntime_run::{Host, RuntimeError};
use remat_plan::StopReason;
use remat_solve::{Activity, SolveControl};

use crate::candidate::{Candidate, Opened};
use crate::check::{calibrate, replace};
use crate::clock::{Clock, LeftOut, Span, Work};
use crate::context::Context;
use crate::deployment::Deployment;
use crate::error::{DeployError, Rejected, Rejection, least_refusal};
use crate::kept::{Kept, KnownFile};
use crate::measure::{Bench, Further, MEASUREMENTS, Measures, Original};
use crate::models::Models;
use crate::open::{open_input, scratch_folder};
use crate::relax::RELAXATIONS;
use crate::request::DeployRequest;
use crate::search::{plan, time_for};
use crate::strategy::Strategy;

/// Plans, writes, simulates and measures, until a strategy gives a file with the bits of the input.
///
/// The time until the deadline of `control` is for everything but one process each that measures the original model and the first file
/// that is made of it. Where dimensions stay free, both also run at other sizes of them before a file is written: that counts, and is never left out. When it is over, the best file that was measured is written; what
/// there was no time for is told ([`Deployment::left_out`]). After a cancellation the same holds, at once.
///
/// # Errors
/// Those of [`Model::open`](remat::Model::open), [`solve`](remat::solve) and [`save`](remat::save); [`DeployError::Runtime`] if the input
/// itself does not run here, [`DeployError::Interrupted`] if the call is cancelled before a file is measured, [`DeployError::AllRejected`] if
/// no strategy gives its bits, and [`DeployError::NoTime`] if the time was over before the last strategy was tried.
pub fn deploy(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    run(request, host, control).map_err(|error| match error {
        DeployError::Runtime(RuntimeError::Cancelled { .. }) => DeployError::Interrupted,
        error => error,
    })
}

fn run(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    if Format::of(request.input)? != Format::Onnx {
        return Err(request.refused());
    }
    let (clock, scratch) = (Clock::start(control), scratch_folder()?);
    let bench = host.map(|host| Bench {
        host,
        clock: &clock,
        request,
    });
    let original = bench
        .as_ref()
        .filter(|_| request.measure)
        .map(Original::measured)
        .transpose()?;
    let measured = original.as_ref().and_then(Original::peak);
    let given = request
        .baseline
        .or(measured.filter(|_| request.order == OrderHint::Any));
    let (peak, opened) = match given {
        Some(peak) => (peak, None),
        None => {
            let model = open_input(request, bench.as_ref(), &clock)?;
            (simulated(&model, request.order)?.into(), Some(model))
        }
    };
    let context = Context {
        request,
        clock: &clock,
        bench: bench.as_ref(),
        measures: original.as_ref().map(|original| original as &dyn Measures),
        scratch: scratch.path(),
        peak,
        relaxations: RELAXATIONS,
    };
    Deploying::new(&context, Models::new(&context, opened)).run()
}

/// A deployment on its way.
pub(crate) struct Deploying<'c, 'a> {
    context: &'c Context<'c, 'a>,
    models: Models<'c, 'a>,
    /// The files that nothing is known against.
    kept: Kept,
    /// What was tried in vain.
    rejected: Vec<Rejected>,
    /// What is tried next, the last one first.
    queue: Vec<Candidate>,
    /// The model of the last candidate.
    current: Option<Rc<Opened>>,
    /// Whether a file was measured: the time of the first one does not count.
    ran: bool,
    /// Whether another strategy was tried beside a good file that runs in another order than its plan.
    had_rival: bool,
}

impl<'c, 'a> Deploying<'c, 'a> {
    pub(crate) fn new(context: &'c Context<'c, 'a>, models: Models<'c, 'a>) -> Self {
        Self {
            context,
            models,
            kept: Kept::default(),
            rejected: Vec::new(),
            queue: Vec::new(),
            current: None,
            ran: false,
            had_rival: false,
        }
    }

    /// Goes on until nothing better is to be expected, and writes the best file.
    pub(crate) fn run(mut self) -> Result<Deployment, DeployError> {
        while self.step()? {}
        self.finish()
    }

    /// Tries the next candidate, else completes the measurements of the best file where that is good, else begins with the next model. `false`
    /// where nothing is left to be done.
    fn step(&mut self) -> Result<bool, DeployError> {
        let context = self.context;
        context.clock.has_result(self.kept.has_measured());
        if context.is_interrupted() {
            return Ok(false);
        }
        if let Some(candidate) = self.queue.pop() {
            return self.attempt(candidate).map(|()| true);
        }
        match self.kept.good(context) {
            Some(best) if self.wants_rival(best) => {
                self.had_rival = true;
                self.begin_next().map(|_| true)
            }
            Some(_) => Ok(self.complete_best()? || self.begin_other_tiles()),
            None => Ok(self.begin_next()? || context.request.force && self.complete_best()?),
        }
    }

    /// Whether another strategy may give a lower file than a good one, because that runs in another order than its plan.
    fn wants_rival(&self, best: &KnownFile) -> bool {
        let context = self.context;
        let has_time = || context.clock.allows(Work::Rival, context.took());
        !self.had_rival && !context.request.is_bounded() && best.loses_order() && has_time()
    }

    /// Begins with the model of the next strategy, or with other tiles of the same; whether there is one.
    fn begin_next(&mut self) -> Result<bool, DeployError> {
        let mut next = None;
        if let Some(current) = self.current.take() {
            let best = self.kept.best_of(&current, self.context);
            let missed = best.and_then(|best| best.missed(self.context));
            if let Some(missed) = missed {
                let (budget, peak) = (missed.budget, missed.reached);
                self.note(current.strategy, Rejection::OverBudget { budget, peak });
                next = self.models.other_tiles(&current, None, false);
            }
        }
        if next.is_none() {
            let is_above = !self.kept.is_empty();
            next = match self.models.next(&mut self.rejected, is_above) {
                Err(error) if is_above => {
                    tracing::warn!(%error, "no further strategy is tried");
                    None
                }
                next => next?,
            };
        }
        let is_some = next.is_some();
        self.queue.extend(next.map(Candidate::first));
        Ok(is_some)
    }

    /// Begins with other tiles that may be better than those of a good file; whether there are some and there is time.
    fn begin_other_tiles(&mut self) -> bool {
        let context = self.context;
        let best = self.kept.good(context).filter(|_| !context.request.is_bounded());
        let next = best.and_then(|best| {
            let peak = (!best.is_slow(context)).then_some(best.takes_in_all());
            let other = self.models.other_tiles(best.opened(), peak, true);
            other.or_else(|| self.models.in_other_kernels(Some(best.takes_in_all())))
        });
        let is_some = next.is_some();
        self.queue.extend(next.map(Candidate::first));
        is_some
    }

    /// Plans a candidate, writes its file, and measures that with the memory arena off.
    fn attempt(&mut self, candidate: Candidate) -> Result<(), DeployError> {
        let context = self.context;
        self.current = Some(Rc::clone(&candidate.opened));
        let (time, span) = time_for(context, &candidate);
        let own = self.kept.best_of(&candidate.opened, context);
        let start = own.map(|best| &best.planned.solution.plan);
        let has_other = own.is_some() || self.kept.good(context).is_some();
        let planned = match plan(&candidate.task(context, has_other), time, start) {
            Ok(planned) => planned,
            Err(error) => return self.give_up(candidate, span, error),
        };
        let mut file = KnownFile {
            candidate,
            planned,
            check: None,
            differs: None,
            span,
            done: 0,
        };
        if let Some(measures) = context.measures {
            let outputs = context.request.outputs(&file.opened().model);
            let detail = format!("2/{MEASUREMENTS}, what was written");
            let work = || -> Result<_, DeployError> { Ok(measures.first(&self.write(&file)?, outputs)) };
            let measured = match self.ran {
                false => context.clock.untimed(Activity::Measure, &detail, work),
                true => context.clock.during(Activity::Measure, &detail, work),
            };
            self.ran = true;
            match measured {
                Ok(Ok((check, differs))) => (file.check, file.differs) = (Some(check), differs),
                Ok(Err(error @ RuntimeError::Cancelled { .. })) => {
                    return self.give_up(file.candidate, span, error.into());
                }
                Ok(Err(error)) => {
                    self.refuse(file, Rejection::DoesNotRun(error));
                    return Ok(());
                }
                Err(error) => return self.give_up(file.candidate, span, error),
            }
        }
        if let Some(reason) = file.broken(context)? {
            self.refuse(file, reason);
            return Ok(());
        }
        let (recomputes, reserved) = (
            file.planned.solution.plan.recomputes(),
            file.planned.lowered.report.reserved,
        );
        tracing::debug!(recomputes, reserved, predicted = file.planned.prediction.peak_bytes, takes = ?file.takes(), "a file was made");
        self.queue.extend(file.improved(context));
        self.kept.keep(file);
        Ok(())
    }

    /// Does the next measurement of the best file; `false` where it has all that there are.
    fn complete_best(&mut self) -> Result<bool, DeployError> {
        let context = self.context;
        let Some(measures) = context.measures else {
            return Ok(false);
        };
        let Some(mut file) = self.kept.take_best(context) else {
            return Ok(false);
        };
        let next = Further::ALL.get(file.done).copied();
        let Some(what) = next else {
            self.kept.keep(file);
            return Ok(false);
        };
        if file.needs(what, context.request)
            && let Some(check) = &file.check
        {
            let mut check = check.clone();
            match measures.further(what, &self.write(&file)?, &mut check) {
                Ok(differs) => (file.check, file.differs) = (Some(check), differs),
                Err(RuntimeError::Cancelled { .. }) => {}
                Err(error) => {
                    self.refuse(file, Rejection::DoesNotRun(error));
                    return Ok(true);
                }
            }
        }
        file.done += 1;
        let quicker = match what {
            Further::Times => file.quicker(context)?,
            _ => None,
        };
        if let Some(reason) = file.broken(context)? {
            match quicker.filter(|_| matches!(reason, Rejection::TooSlow)) {
                Some(quicker) => self.queue.push(quicker),
                None => self.refuse(file, reason),
            }
            return Ok(true);
        }
        self.queue.extend(quicker);
        if what == Further::Arena
            && let Some(higher) = file.higher_with_arena(context)?
        {
            // Under a budget that is no reason to reject it.
            self.queue.extend(file.relaxed(&higher.into(), context));
        }
        self.kept.keep(file);
        Ok(true)
    }

    /// What follows a candidate of which no file was made: the files of its model that are there stay. Where a budget is refused, the next strategy
    /// may keep it; every other error is that of the deployment, unless there is a good file.
    fn give_up(&mut self, mut candidate: Candidate, span: Span, error: DeployError) -> Result<(), DeployError> {
        let clock = self.context.clock;
        let has_time = !clock.is_cancelled() && clock.has(candidate.opened.file * 2);
        if span != Span::Whole && is_out_of_time(&error) && has_time {
            // A short search found nothing within the budget: the one that follows has more time.
            (candidate.round, candidate.is_long) = (candidate.round + 1, true);
            self.queue.push(candidate);
            return Ok(());
        }
        if self.kept.best_of(&candidate.opened, self.context).is_some() {
            return Ok(());
        }
        let is_good = self.kept.good(self.context).is_some();
        let is_pipeline = matches!(error, DeployError::Pipeline(_));
        let is_refused = is_pipeline
            && matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit)
            && self.context.request.plan.is_none();
        let is_untraced = candidate.opened.laid_out.is_some() && !is_pipeline;
        if is_good {
            self.models.end();
            self.had_rival = true;
        } else if clock.is_cancelled() || !is_refused && !is_untraced {
            return Err(error);
        }
        let reason = match is_untraced {
            true => Rejection::NotFused(Box::new(error)),
            false => Rejection::Refused(Box::new(error)),
        };
        self.reject(candidate.opened, reason);
        Ok(())
    }

    /// What follows a file that something is wrong with: the same plan with less in the file, where that may help; else nothing, where another file
    /// of its model is kept, else its model is rejected.
    fn refuse(&mut self, file: KnownFile, reason: Rejection) {
        let context = self.context;
        let has_other = self.kept.best_of(file.opened(), context).is_some();
        // Tiles with other bits are tried again as such where they may have them.
        let may_differ = file.opened().is_tiled() && context.request.permits_other_bits() && reason.is_about_bits();
        let may_follow = !may_differ && (file.done > 0 || !has_other || matches!(reason, Rejection::HigherPeak(_)));
        let relaxed = file.relaxed(&reason, context).filter(|_| may_follow);
        let opened = file.candidate.opened;
        match relaxed {
            Some(relaxed) => self.queue.push(relaxed),
            None if has_other => {}
            None => self.reject(opened, reason),
        }
    }

    /// A model that leads to no good file: other tiles of it may.
    fn reject(&mut self, opened: Rc<Opened>, reason: Rejection) {
        self.current = None;
        let good = self.kept.good(self.context);
        let (peak, has_file) = (good.map(KnownFile::takes_in_all), good.is_some());
        self.models.forbid(&opened, &reason, has_file);
        if let Some(next) = self.models.other_tiles(&opened, peak, has_file) {
            self.queue.push(Candidate::first(next));
            return;
        }
        if !(opened.is_tiled() && has_file) {
            let strategy = opened.strategy;
            self.models.take_back(opened, &reason);
            self.note(strategy, reason);
        }
    }

    fn note(&mut self, strategy: Strategy, reason: Rejection) {
        tracing::info!(%strategy, %reason, "a lowering strategy is rejected");
        self.rejected.push(Rejected { strategy, reason });
    }

    /// Puts a file where it is measured.
    fn write(&self, file: &KnownFile) -> Result<PathBuf, DeployError> {
        let path = self.context.scratch.join("remat-written.onnx");
        let onnx = self.context.request.onnx(file.opened().written())?;
        onnx.save_proto(&file.planned.lowered.written(), &path)?;
        Ok(path)
    }

    /// Writes the best file, where it gains something.
    fn finish(mut self) -> Result<Deployment, DeployError> {
        let context = self.context;
        let (request, clock) = (context.request, context.clock);
        let Some(mut file) = self.kept.take_best(context) else {
            return Err(self.nothing());
        };
        let missed = file.missed(context);
        if missed.is_some() {
            self.rejected.retain(|one| one.strategy != file.opened().strategy);
        }
        let (is_good, is_for_a_plan) = match file.first_broken(context)? {
            None if request.writes_anyway() || file.gains(context)? => (true, false),
            None => (false, request.plans_memory && file.is_less_in_one_block(context)?),
            Some(Rejection::OverBudget { .. }) => (request.force, false),
            Some(_) => (false, false),
        };
        let is_written = is_good || is_for_a_plan;
        let KnownFile {
            candidate,
            planned,
            check,
            ..
        } = file;
        drop((self.kept, self.queue, self.current));
        let (mut solution, lowered, mut prediction) = (planned.solution, planned.lowered, planned.prediction);
        if clock.is_cancelled() {
            solution.interrupt();
        }
        if let Some(output) = request.output.filter(|_| is_written) {
            let onnx = request.onnx(candidate.opened.written())?;
            clock.during(Activity::Write, "", || onnx.save_proto(&lowered.written(), output))?;
        }
        // What is still above its prediction was measured on this very file. What the runtime fuses in it at load is not simulated.
        if let Some(check) = check.as_ref().filter(|_| missed.is_none() || request.force) {
            match candidate.opened.strategy.recipe().fuses {
                true => calibrate(&mut prediction, &check.after),
                false => replace(&mut prediction, &check.after),
            }
        }
        let opened = Rc::into_inner(candidate.opened).ok_or(DeployError::Interrupted)?;
        let has_blocks = matches!(opened.strategy, Strategy::LaidOut | Strategy::Untouched);
        let is_whole = opened.model.tiling().is_some_and(|tiling| !tiling.has_tiles());
        Ok(Deployment {
            budget: context.budget(),
            most_overhead: request.solve.most_overhead().filter(|_| request.plan.is_none()),
            model: opened.model,
            solution,
            strategy: if is_whole { Strategy::Fused } else { opened.strategy },
            missed,
            is_written,
            is_for_a_plan,
            rejected: self.rejected,
            lowering: lowered.report,
            prediction,
            check,
            lower_level_result: None,
            padding: self.models.padding.filter(|_| has_blocks),
            left_out: clock.left_out(),
        })
    }

    /// Why there is no file.
    fn nothing(&mut self) -> DeployError {
        let mut rejected = std::mem::take(&mut self.rejected);
        if self.context.is_interrupted() {
            return DeployError::Interrupted;
        }
        if let Some(refusal) = least_refusal(&mut rejected) {
            return refusal;
        }
        match self.context.clock.left_out().contains(&LeftOut::Strategies) {
            true => DeployError::NoTime { rejected },
            false => DeployError::AllRejected { rejected },
        }
    }
}

/// Whether a search ended because its time was over.
fn is_out_of_time(error: &DeployError) -> bool {
    let DeployError::Pipeline(remat::Error::Solve(error)) = error else {
        return false;
    };
    let cause = match error {
        SolveError::Refused(refusal) => &refusal.cause,
        other => other,
    };
    matches!(
        cause,
        SolveError::NoPlan {
            stop: StopReason::TimeLimit,
            ..
        }
    )
}

#[cfg(test)]
#[path = "deploy_tests.rs"]
mod tests;
