//! The states of a deployment, and what leads from one to the next.

use std::path::Path;
use std::time::{Duration, Instant};

use remat::{BaselinePeak, ErrorKind, Format, Solution};
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::{Host, RuntimeError};
use remat_solve::{Activity, SolveControl};
use tempfile::TempDir;

use crate::attempt::{Attempt, Tiles};
use crate::baseline::simulated;
use crate::bodies::Bodies;
use crate::clock::{Clock, LeftOut};
use crate::error::{Rejected, Rejection, least_refusal};
use crate::file::{Loader, Planned, Task};
use crate::fission::Tilings;
use crate::measure::{Baseline, Bench, Check, MEASUREMENTS, Outputs, tolerated};
use crate::open::{lay_out, open, scratch_folder};
use crate::peaks::{Basis, HigherPeak, Measured};
use crate::round::{Round, without_search};
use crate::{DeployError, DeployRequest, Deployment, Strategy};

/// Another strategy is tried for a better file if there is time to measure the model so often.
const LEFT_FOR_ANOTHER: u32 = 8;

/// The same for other tiles, which are measured beside what is known of the model as it came.
const LEFT_FOR_OTHER_TILES: u32 = 5;

/// Where a deployment stands.
enum State<'c, 'a> {
    /// The model of the next strategy is to be opened.
    Open,
    /// A round begins: a plan is to be made.
    Plan(Attempt),
    /// A plan is to be searched for, whose file keeps the budget.
    Search(Attempt, Round<'c, 'a>),
    /// The file of a plan is to be measured with the memory arena off.
    Verify(Attempt, Planned),
    /// The best file is to be measured further.
    Complete(Attempt, Planned, Check),
    /// The strategy does not lead to a good file.
    Reject(Attempt, Rejection),
    /// This is the file.
    Done(Attempt, Planned, Option<Check>),
}

/// What all states share.
struct Machine<'c, 'a, S> {
    request: &'c DeployRequest<'c>,
    clock: &'c Clock<'a>,
    /// The runtime, if one is here.
    bench: Option<Bench<'c, 'a>>,
    /// The model as it came, measured in it; absent where nothing is to be measured.
    baseline: Option<Baseline>,
    scratch: TempDir,
    /// The strategies that are still to be tried.
    strategies: S,
    rejected: Vec<Rejected>,
    /// What a budget in per cent is a share of.
    peak: BaselinePeak,
    /// The file that is closest to the budget, of those that exceed it, with the bytes by which it does.
    closest: Option<(u64, Attempt, Planned, Option<Check>)>,
    /// The file for a layout, with its peak, if it does not run in the order of its plan: the next strategy may give a better one.
    laid_out: Option<(u64, Attempt, Planned, Option<Check>)>,
    /// What may run tile by tile, and was not tried yet.
    tilings: Tilings,
    /// The best file in tiles of those that were measured.
    in_tiles: Option<(Attempt, Planned, Check)>,
    /// The model of a strategy that was rejected, where the next one starts from the same; that whose stretches run tile by tile.
    opened: Option<remat::Model>,
    /// Whether the runtime changes the layout of the model when it loads it.
    lays_out: bool,
    /// Plans of subgraphs.
    bodies: Bodies,
}

/// Plans, writes, simulates and measures, until a strategy gives a file with the bits of the input.
///
/// The time until the deadline of `control` is for everything but having the runtime fuse nodes, writing the output, and one process each
/// that measures the model as it came and the first file of a strategy. When it is over, the best file that was measured is written; what
/// there was no time for is told ([`Deployment::left_out`]). After a cancellation the same holds, at once.
///
/// # Errors
/// Those of [`Model::open`](remat::Model::open), [`solve`](remat::solve) and [`save`](remat::save); [`DeployError::Runtime`] if the input
/// itself does not run here or the call is cancelled before a file is measured, [`DeployError::AllRejected`] if no strategy gives its bits,
/// and [`DeployError::NoTime`] if the time was over before the last strategy was tried.
pub fn deploy(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    if Format::of(request.input)? != Format::Onnx {
        return Err(request.refused());
    }
    let clock = &Clock::start(control);
    let scratch = scratch_folder()?;
    let bench = host.map(|host| Bench {
        host,
        clock,
        input: request.input,
        dims: &request.load.dims,
        level: request.level,
        expected: request.expected,
    });
    let measuring = bench.as_ref().filter(|_| request.measure);
    let baseline = measuring.map(Bench::baseline).transpose()?;
    let measured = baseline.as_ref().and_then(Baseline::peak);
    let (peak, opened) = match request
        .baseline
        .or(measured.filter(|_| request.order == OrderHint::Any))
    {
        Some(peak) => (peak, None),
        None => {
            let model = open(request, bench.as_ref(), false, clock, scratch.path())?;
            (simulated(&model, request.order)?.into(), Some(model))
        }
    };
    let strategies: Vec<Strategy> = if request.is_bounded() {
        Strategy::all_for_budget().collect()
    } else {
        Strategy::all().collect()
    };
    let mut machine = Machine {
        request,
        clock,
        bench,
        baseline,
        scratch,
        strategies: strategies
            .into_iter()
            .filter(|&strategy| request.allows(strategy, peak, host.is_some())),
        rejected: Vec::new(),
        peak,
        closest: None,
        laid_out: None,
        tilings: Tilings::default(),
        in_tiles: None,
        opened,
        lays_out: false,
        bodies: Bodies::default(),
    };
    let mut state = State::Open;
    loop {
        state = match state {
            State::Open => machine.open()?,
            State::Plan(attempt) => machine.plan(attempt)?,
            State::Search(attempt, round) => machine.search(attempt, round)?,
            State::Verify(attempt, planned) => machine.verify(attempt, planned)?,
            State::Complete(attempt, planned, check) => machine.complete(attempt, planned, check)?,
            State::Reject(attempt, rejection) => machine.reject(attempt, rejection),
            State::Done(attempt, planned, check) => return machine.finish(attempt, planned, check),
        };
    }
}

/// What follows a file that was found good.
fn settled<'c, 'a>(attempt: Attempt, planned: Planned, check: Option<Check>) -> State<'c, 'a> {
    match check {
        Some(check) => State::Complete(attempt, planned, check),
        None => State::Done(attempt, planned, None),
    }
}

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    fn open(&mut self) -> Result<State<'c, 'a>, DeployError> {
        let Some(strategy) = self.strategies.next() else {
            return self.exhausted();
        };
        let recipe = strategy.recipe();
        if !self.rejected.is_empty() && recipe.rewrites && !self.clock.has(Duration::ZERO) {
            self.clock.leave_out(LeftOut::Strategies);
            return Ok(State::Open);
        }
        let started = Instant::now();
        let bench = self.bench.as_ref();
        let mut tiles = None;
        let is_same = |opened: &remat::Model| opened.is_fused() == recipe.fuses && self.bodies.may_be_in(opened);
        let opened = match self.opened.take().filter(is_same) {
            Some(model) => Ok(model),
            None => open(self.request, bench, recipe.fuses, self.clock, self.scratch.path()),
        };
        let opened = match (opened, bench.filter(|_| recipe.lays_out)) {
            (Ok(model), Some(bench)) => match lay_out(self.request, bench, model, self.clock, self.scratch.path()) {
                Ok(Ok((model, portable))) => Ok((model, Some(portable))),
                Ok(Err(model)) => {
                    self.opened = Some(*model);
                    return Ok(State::Open);
                }
                Err(error) => Err(error),
            },
            (opened, _) => opened.map(|model| (model, None)),
        };
        let opened = opened.map(|(model, portable)| {
            let model = model.ordered_for(self.request.order.name());
            (model.with_baseline_peak(self.peak), portable)
        });
        let opened = match opened {
            Ok((model, None)) if recipe.rewrites => {
                let planned = self.bodies.plan(self.request, model, self.clock);
                planned.map(|model| (model, None))
            }
            opened => opened,
        };
        let opened = match opened {
            Ok((model, None)) if recipe.tiles => {
                match Tilings::of(self.request, &model, self.baseline.is_some(), self.clock) {
                    Ok(tilings) => {
                        self.tilings = tilings;
                        let Some(next) = self.tilings.pop(None) else {
                            self.opened = Some(model);
                            return Ok(State::Open);
                        };
                        self.in_blocks(next).map(|next| {
                            tiles = Some(next);
                            (model, None)
                        })
                    }
                    Err(error) => Err(error),
                }
            }
            opened => opened,
        };
        match opened {
            Ok((model, portable)) => {
                let (solve, opening) = (self.request.solve, started.elapsed());
                let mut attempt = match tiles {
                    Some(tiles) => {
                        let whole = self.bodies.without(&model, self.request.order)?;
                        self.lays_out |= tiles.portable.is_some();
                        self.opened = Some(model);
                        Attempt::in_tiles(strategy, tiles, solve, whole, opening)
                    }
                    None if model.bodies().is_empty() => Attempt::new(strategy, model, solve, opening),
                    None => {
                        let whole = self.bodies.without(&model, self.request.order)?;
                        Attempt::new(strategy, model, solve, opening).beside(whole)
                    }
                };
                if portable.is_some() {
                    self.lays_out = true;
                    attempt.portable = portable;
                }
                Ok(State::Plan(attempt))
            }
            Err(error) if recipe.fuses && !self.clock.is_cancelled() => {
                let reason = Rejection::NotFused(Box::new(error));
                self.rejected.push(Rejected { strategy, reason });
                Ok(State::Open)
            }
            Err(error) => Err(error),
        }
    }

    /// What it means that no strategy is left: the file that is closest to the budget is the result, else why there is none.
    fn exhausted(&mut self) -> Result<State<'c, 'a>, DeployError> {
        if let Some((_, attempt, planned, check)) = self.closest.take() {
            self.rejected.retain(|one| one.strategy != attempt.strategy);
            return Ok(settled(attempt, planned, check));
        }
        let mut rejected = std::mem::take(&mut self.rejected);
        if let Some(refusal) = least_refusal(&mut rejected) {
            return Err(refusal);
        }
        Err(if self.clock.left_out().contains(&LeftOut::Strategies) {
            DeployError::NoTime { rejected }
        } else {
            DeployError::AllRejected { rejected }
        })
    }

    /// The next state of an attempt that cannot go on: the best file that was measured stays. Where a budget is refused, the next strategy may
    /// keep it; every other error is that of the deployment.
    fn settle(&mut self, mut attempt: Attempt, error: DeployError) -> Result<State<'c, 'a>, DeployError> {
        if attempt.best.is_none()
            && let Some((attempt, planned, check)) = self.in_tiles.take()
        {
            return Ok(State::Done(attempt, planned, Some(check)));
        }
        let is_refused = matches!(error.kind(), ErrorKind::Negative | ErrorKind::Limit)
            && matches!(error, DeployError::Pipeline(_))
            && self.request.plan.is_none();
        let is_untraced = attempt.portable.is_some() && !matches!(error, DeployError::Pipeline(_));
        match attempt.best.take() {
            Some((planned, check)) => Ok(State::Complete(attempt, planned, check)),
            None if self.laid_out.is_some() => Ok(State::Reject(attempt, Rejection::Refused(Box::new(error)))),
            None if is_refused && !self.clock.is_cancelled() => {
                Ok(State::Reject(attempt, Rejection::Refused(Box::new(error))))
            }
            None if is_untraced && !self.clock.is_cancelled() => {
                Ok(State::Reject(attempt, Rejection::NotFused(Box::new(error))))
            }
            None => Err(error),
        }
    }

    fn plan(&mut self, mut attempt: Attempt) -> Result<State<'c, 'a>, DeployError> {
        let effort = attempt.effort(self.request, self.clock, self.baseline.as_ref());
        let task = self.task(&attempt);
        let begun = match without_search(&task) {
            Ok(Some(solution)) => task.file(solution, &effort).map(Err),
            Ok(None) => Round::begin(&task, effort, attempt.margin).map(Ok),
            Err(error) => Err(error),
        };
        match begun {
            Ok(Ok(round)) => Ok(State::Search(attempt, round)),
            Ok(Err(planned)) => Ok(State::Verify(attempt, planned)),
            Err(error) => self.settle(attempt, error),
        }
    }

    fn search(&mut self, attempt: Attempt, mut round: Round<'c, 'a>) -> Result<State<'c, 'a>, DeployError> {
        let start = attempt.best.as_ref().map(|(planned, _)| &planned.solution.plan);
        match round.search(&self.task(&attempt), start) {
            Ok(None) => Ok(State::Search(attempt, round)),
            Ok(Some(planned)) => Ok(State::Verify(attempt, planned)),
            // The budget leaves no room for the calibration margin, or the time is over.
            Err(error) => self.settle(attempt, error),
        }
    }

    /// Measures a plan's file. The first of a strategy does not count.
    fn verify(&mut self, mut attempt: Attempt, planned: Planned) -> Result<State<'c, 'a>, DeployError> {
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
        let must_be_lower = self.request.order == OrderHint::Any && !self.request.force;
        let (lowered, solution) = (planned.lowered.report, planned.solution.clone());
        let work = || -> Result<_, DeployError> {
            let written = self.write(&attempt, &planned)?;
            Ok(baseline.verify(bench, &written, must_be_lower, self.request.outputs(attempt.strategy)))
        };
        let detail = format!("2/{MEASUREMENTS}, what was written");
        let found = if attempt.round == 0 {
            self.clock.apart(Activity::Measure, &detail, work)
        } else {
            self.clock.begins(Activity::Measure, &detail);
            work()
        };
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
                    return Ok(State::Complete(attempt, planned, check));
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
    fn again(&self, mut attempt: Attempt, solution: Solution) -> Result<State<'c, 'a>, DeployError> {
        let effort = attempt.effort(self.request, self.clock, self.baseline.as_ref());
        let other = self.task(&attempt).file(solution, &effort)?;
        Ok(State::Verify(attempt, other))
    }

    /// The best file of a strategy is the result where it keeps the budget; else another strategy may keep it, and the closest file is
    /// remembered.
    fn within_budget(&mut self, attempt: Attempt, planned: Planned, check: Option<Check>) -> State<'c, 'a> {
        let budget = self.request.solve.budget.bytes(self.peak.bytes);
        let measured = check.as_ref().and_then(|check| check.after.exact);
        let peak = measured.unwrap_or(planned.prediction.peak_bytes);
        let highest = budget.map(|budget| if measured.is_some() { tolerated(budget) } else { budget });
        let is_over = self.request.plan.is_none() && highest.is_some_and(|highest| peak > highest);
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
        if self.closest.as_ref().is_none_or(|&(least, ..)| over < least) {
            self.closest = Some((over, attempt, planned, check));
        }
        State::Open
    }

    /// Measures what there is time for, and corrects the prediction.
    fn complete(
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

    /// A file that was measured is the result, unless others in tiles may be better and there is time to measure them: then the best of all is.
    fn weigh(&mut self, attempt: Attempt, planned: Planned, check: Check) -> State<'c, 'a> {
        if !attempt.strategy.recipe().tiles || self.request.is_bounded() {
            return State::Done(attempt, planned, Some(check));
        }
        let most = self.request.solve.most_overhead();
        if attempt.is_slow(most) && !most.is_some_and(|most| check.is_within(most)) {
            return self.reject(attempt, Rejection::TooSlow);
        }
        let rank = |(_, planned, check): &(Attempt, Planned, Check)| {
            let peak = check.after.exact.unwrap_or(planned.prediction.peak_bytes);
            let is_slow = most.is_some_and(|most| check.time_ratio.is_some() && !check.is_within(most));
            (is_slow, peak)
        };
        let found = (attempt, planned, check);
        let best = match self.in_tiles.take() {
            Some(known) if rank(&known) <= rank(&found) => known,
            _ => found,
        };
        let (is_slow, peak) = rank(&best);
        let next = self.has_time_for_other_tiles().then(|| {
            let next = self.tilings.pop((!is_slow).then_some(peak))?;
            self.attempt_in_tiles(&best.0, next)
        });
        if let Some(next) = next.flatten() {
            tracing::info!(peak, is_slow, "other tiles may be better");
            self.in_tiles = Some(best);
            return State::Plan(next);
        }
        let (attempt, planned, check) = best;
        State::Done(attempt, planned, Some(check))
    }

    /// The attempt with other tiles; `None` if the runtime does not lay them out.
    fn attempt_in_tiles(&mut self, attempt: &Attempt, tiles: Tiles) -> Option<Attempt> {
        let tiles = self.in_blocks(tiles);
        let tiles = tiles
            .inspect_err(|error| tracing::warn!(%error, "tiles are not laid out"))
            .ok()?;
        self.lays_out |= tiles.portable.is_some();
        attempt.with_other_tiles(tiles)
    }

    /// Tiles as the runtime lays them out, where that matters.
    fn in_blocks(&self, tiles: Tiles) -> Result<Tiles, DeployError> {
        let is_here = self
            .bench
            .as_ref()
            .filter(|_| self.request.lays_out_tiles(&tiles.model));
        let Some(bench) = is_here else {
            return Ok(tiles);
        };
        let (model, portable) = match lay_out(self.request, bench, tiles.model, self.clock, self.scratch.path())? {
            Ok((model, portable)) => (model, Some(portable)),
            Err(model) => (*model, None),
        };
        Ok(Tiles {
            model,
            portable,
            ..tiles
        })
    }

    fn has_time_for_other_tiles(&self) -> bool {
        let took = self.baseline.as_ref().map(Baseline::took).unwrap_or_default();
        !self.clock.is_cancelled() && self.clock.has(took * LEFT_FOR_OTHER_TILES)
    }

    /// What follows a file that is rejected: the same plan outside of a branch where it stands in one, else another strategy.
    fn in_branch_no_more(
        &self,
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

    /// The attempt with other tiles that follows one that was rejected, if there are some and there is time.
    fn with_other_tiles(&mut self, attempt: &Attempt, reason: &Rejection) -> Option<Attempt> {
        if !self.has_time_for_other_tiles() {
            return None;
        }
        let whole = self.opened.as_ref()?;
        let measuring = self.bench.as_ref().zip(self.baseline.as_ref());
        let path = self.scratch.path().join("remat-stretch.onnx");
        let has_bits = |model: &remat::Model| {
            let Some((bench, baseline)) = measuring else {
                return true;
            };
            let written = model.onnx().map(|onnx| onnx.save_proto(onnx.proto(), &path));
            written.is_some_and(|written| written.is_ok()) && baseline.has_bits(bench, &path)
        };
        self.tilings.rejects(attempt, whole, self.request, reason, has_bits);
        let best = self.in_tiles.as_ref();
        let next = self.tilings.pop(best.and_then(|(_, _, check)| check.after.exact))?;
        tracing::info!(%reason, "other tiles may do");
        self.attempt_in_tiles(attempt, next)
    }

    fn reject(&mut self, attempt: Attempt, reason: Rejection) -> State<'c, 'a> {
        let strategy = attempt.strategy;
        if strategy.recipe().tiles
            && let Some(next) = self.with_other_tiles(&attempt, &reason)
        {
            return State::Plan(next);
        }
        if let Some((attempt, planned, check)) = self.in_tiles.take() {
            return State::Done(attempt, planned, Some(check));
        }
        tracing::warn!(%strategy, %reason, "a lowering strategy is rejected");
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

    /// Writes what was found.
    fn finish(self, attempt: Attempt, planned: Planned, check: Option<Check>) -> Result<Deployment, DeployError> {
        let is_written = self.request.writes_anyway() || self.gains(&attempt, &planned, check.as_ref())?;
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
            clock.apart(Activity::Write, "", || onnx.save_proto(&lowered.written(), output))?;
        }
        let Attempt { model, strategy, .. } = attempt;
        let budget = request.solve.budget.bytes(model.baseline_peak().bytes);
        Ok(Deployment {
            budget: budget.filter(|_| request.plan.is_none()),
            most_overhead: request.solve.most_overhead().filter(|_| request.plan.is_none()),
            model,
            solution,
            strategy,
            is_written,
            rejected: self.rejected,
            lowering: lowered.report,
            prediction,
            check,
            offer: None,
            left_out: clock.left_out(),
        })
    }

    /// Whether a file takes less than the model as it came, by what is measured, else by what is predicted of both.
    fn gains(&self, attempt: &Attempt, planned: &Planned, check: Option<&Check>) -> Result<bool, DeployError> {
        if !attempt.strategy.recipe().rewrites {
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

    /// What the files of an attempt are made of.
    fn task<'t>(&'t self, attempt: &'t Attempt) -> Task<'t> {
        let bench = self.bench.as_ref().filter(|_| self.lays_out);
        let loader = bench.map(|bench| Loader {
            bench,
            scratch: self.scratch.path(),
        });
        attempt.task(self.request, loader)
    }

    /// Puts a file where it is measured.
    fn write(&self, attempt: &Attempt, planned: &Planned) -> Result<std::path::PathBuf, DeployError> {
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
