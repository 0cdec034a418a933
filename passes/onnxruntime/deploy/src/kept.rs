//! The files that were made: what must hold of each that is written, and which is the best.

use std::rc::Rc;

use remat_onnxruntime_lower::OrderHint;
use remat_plan::StopReason;

use crate::candidate::{Candidate, Opened};
use crate::check::{Check, Outputs};
use crate::clock::{LeftOut, Span};
use crate::context::Context;
use crate::error::{DeployError, Rejection};
use crate::file::Planned;
use crate::measure::Further;
use crate::original::data_decides;
use crate::peaks::{Basis, HigherPeak, Measured, Missed, Peak, no_higher};
use crate::relax::{Trouble, relaxed};
use crate::request::DeployRequest;

/// How often a plan is made at most: because measuring showed what the simulation leaves out, or because there is time for a better one.
const ROUNDS: usize = 4;

/// Share of a plan's peak, as a divisor, by which a file may exceed it and still runs in the order of the plan.
const LOST_SHARE: u64 = 20;

/// A file that was made, and what is known of it.
#[derive(Debug)]
pub(crate) struct KnownFile {
    pub(crate) candidate: Candidate,
    pub(crate) planned: Planned,
    /// What was measured; absent where nothing is.
    pub(crate) check: Option<Check>,
    /// The output that differs from that of the original model, on some inputs or at some size, where one does.
    pub(crate) differs: Option<Rejection>,
    /// How much of the time was given to its plan.
    pub(crate) span: Span,
    /// How many of [`Further::ALL`] were done, or left out.
    pub(crate) done: usize,
}

/// What makes one file better than another; the least is the best. The fields count in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Rank {
    /// Bytes above the budget.
    over: u64,
    /// Whether it was measured to take more than the original model where the arena is on.
    is_higher_with_arena: bool,
    /// Time that it was measured to take beyond what is allowed, in begun per cent of the original model's.
    late: u64,
    /// What is asked for: under a budget little time, in nanoseconds of the plan, else a low peak, in bytes.
    first: u64,
    /// The other one.
    second: u64,
}

/// Share of the buffers, as a divisor, and bytes by which a process may grow beyond their block.
const BLOCK_SHARE: u64 = 10;
const BLOCK_BYTES: u64 = 1 << 20;

impl KnownFile {
    /// Its peak with the memory arena off, which budgets are about, and whether that was measured: else it is predicted.
    pub(crate) fn takes(&self) -> (u64, bool) {
        let measured = self.check.as_ref().and_then(|check| check.after.arena_off);
        (
            measured.unwrap_or(self.planned.prediction.peak_bytes),
            measured.is_some(),
        )
    }

    /// The same with what its loaded session takes more than that of the original model.
    pub(crate) fn takes_in_all(&self) -> u64 {
        let more = self
            .check
            .as_ref()
            .map_or(0, |check| check.after.more_loaded(&check.before));
        self.takes().0.saturating_add(more)
    }

    pub(crate) fn opened(&self) -> &Rc<Opened> {
        &self.candidate.opened
    }

    pub(crate) fn rank(&self, context: &Context<'_, '_>) -> Rank {
        let (budget, (peak, _)) = (context.budget(), self.takes());
        let duration = self.planned.solution.replay.duration;
        let (first, second) = match budget {
            Some(_) => (duration, peak),
            None => (self.takes_in_all(), duration),
        };
        let check = self.check.as_ref();
        let higher = check.and_then(|check| check.after.higher_with_arena(&check.before, Basis::Measured));
        Rank {
            over: budget.map_or(0, |budget| peak.saturating_sub(budget)),
            is_higher_with_arena: higher.is_some(),
            late: self.late(context),
            first,
            second,
        }
    }

    /// Whether it has tiles, or ops that run again, and its time was measured and is above the limit.
    pub(crate) fn is_slow(&self, context: &Context<'_, '_>) -> bool {
        self.late(context) > 0
    }

    /// By how much, in begun per cent of the time of the original model.
    fn late(&self, context: &Context<'_, '_>) -> u64 {
        let may_be = self.opened().is_tiled() || self.planned.solution.plan.recomputes() > 0;
        let check = self.check.as_ref().filter(|_| may_be);
        let beyond = check
            .zip(context.request.solve.most_overhead())
            .and_then(|(check, most)| check.beyond_time(most));
        beyond.map_or(0, |beyond| (beyond * 100.0).ceil() as u64)
    }

    /// By how much it is above the budget, to the byte.
    pub(crate) fn missed(&self, context: &Context<'_, '_>) -> Option<Missed> {
        let (reached, is_measured) = self.takes();
        let budget = context.budget().filter(|&budget| reached > budget)?;
        Some(Missed {
            budget,
            reached,
            is_measured,
        })
    }

    /// Whether it is one for a layout, and takes more than its plan: some nodes run in another order, because what exists in blocks only gets no
    /// anchor.
    pub(crate) fn loses_order(&self) -> bool {
        let plan = self.planned.solution.replay.peak;
        let has_blocks = self.opened().laid_out.is_some() && !self.opened().is_tiled();
        has_blocks && self.takes().0 > plan.saturating_add(plan / LOST_SHARE)
    }

    /// What must hold of every file that is written: **its outputs are those of the original model, bit by bit; it takes no more memory than that in
    /// any setting; and it keeps the budget**. The first of it that does not hold, else `None`. Nothing is written that this was not asked of.
    ///
    /// # Errors
    /// As [`Self::broken`].
    pub(crate) fn first_broken(&mut self, context: &Context<'_, '_>) -> Result<Option<Rejection>, DeployError> {
        let over = |Missed { budget, reached, .. }: Missed| Rejection::OverBudget { budget, peak: reached };
        Ok(self.broken(context)?.or_else(|| self.missed(context).map(over)))
    }

    /// The same without the budget: what a file must hold to be kept, because of those above the budget the closest is told.
    ///
    /// With the arena on, memory counts only for those who leave it on, and under a budget in bytes for nobody: there it is part of the [`Rank`]. What
    /// was not measured has to hold of what is predicted.
    ///
    /// # Errors
    /// If the original model cannot be simulated, which would be a bug.
    pub(crate) fn broken(&mut self, context: &Context<'_, '_>) -> Result<Option<Rejection>, DeployError> {
        if let Some(differs) = self.differs.take() {
            return Ok(Some(differs));
        }
        if let Some(higher) = self.higher_without_arena(context) {
            return Ok(Some(higher.into()));
        }
        let is_bounded = context.request.is_bounded();
        if let Some(higher) = self.higher_with_arena(context)?.filter(|_| !is_bounded) {
            return Ok(Some(higher.into()));
        }
        let is_timed = self.done == Further::ALL.len() && self.check.is_some() && !is_bounded;
        Ok((is_timed && self.takes_longer(context)).then_some(Rejection::TooSlow))
    }

    /// Whether its tiles were estimated to take longer than allowed, and it was not measured to take less.
    fn takes_longer(&self, context: &Context<'_, '_>) -> bool {
        let most = context.request.solve.most_overhead();
        let asked = self.opened().solve.most_overhead();
        let may_be = most.zip(asked).is_some_and(|(most, asked)| asked > most);
        let is_within = |check: &Check| most.and_then(|most| check.beyond_time(most)) == Some(0.0);
        may_be && !self.check.as_ref().is_some_and(is_within)
    }

    /// Why it does not do with the arena off: it takes more than the original model, or in a branch more than outside of it.
    fn higher_without_arena(&self, context: &Context<'_, '_>) -> Option<HigherPeak> {
        let check = self.check.as_ref()?;
        let alone = check.after.arena_off?;
        let higher = |after: u64, before: u64, highest: u64, basis| {
            (after > highest).then_some(HigherPeak {
                which: Peak::ArenaOff,
                basis,
                before,
                after,
            })
        };
        let original = check.before.arena_off.filter(|_| context.must_be_lower());
        let in_all = self.takes_in_all();
        let than_original = original.and_then(|before| higher(in_all, before, no_higher(before), Basis::Measured));
        let outside = Some(self.planned.prediction.peak_bytes).filter(|_| self.planned.lowered.report.in_branch);
        than_original.or_else(|| {
            let outside = outside?;
            higher(
                alone,
                outside,
                Check::most_in_branch(outside, context.budget()),
                Basis::Predicted,
            )
        })
    }

    /// Why it does not suit the arena: by its measured peaks, and by its predicted ones as far as they were not measured.
    pub(crate) fn higher_with_arena(&self, context: &Context<'_, '_>) -> Result<Option<HigherPeak>, DeployError> {
        let request = context.request;
        let rewrites = self.opened().strategy.recipe().rewrites;
        let is_asked_for = request.arena && !request.force && rewrites && !context.is_interrupted();
        if !is_asked_for || request.order != OrderHint::Any && context.measures.is_some() {
            return Ok(None);
        }
        let (known, is_done) = match &self.check {
            Some(check) => {
                let higher = check.after.higher_with_arena(&check.before, Basis::Measured);
                (higher, higher.is_some() || self.done == 0 || request.is_bounded())
            }
            None => (None, request.is_bounded()),
        };
        if is_done {
            return Ok(known);
        }
        let measured = self.check.as_ref().map_or_else(Measured::default, |check| check.after);
        self.candidate
            .task(context, false)
            .higher_in_the_arena(&self.planned.prediction, &measured)
    }

    /// Whether it takes less than the original model, by what is measured, else by what is predicted of both.
    ///
    /// # Errors
    /// As [`Self::broken`].
    pub(crate) fn gains(&self, context: &Context<'_, '_>) -> Result<bool, DeployError> {
        let (opened, prediction) = (self.opened(), &self.planned.prediction);
        if !opened.strategy.recipe().rewrites || data_decides(&opened.model, prediction.peak_bytes) {
            return Ok(false);
        }
        let is_lower = match &self.check {
            Some(check) => check.after.is_lower(&check.before),
            None => {
                let task = self.candidate.task(context, false);
                let before = Measured::predicted(task.without_plan()?);
                Measured::predicted(prediction).is_lower(&before)
            }
        };
        // What cannot be measured may be lower.
        Ok(is_lower.unwrap_or(true))
    }

    /// Whether its buffers in one block take clearly less than the original model makes the process grow in a default session, whatever the
    /// inputs.
    ///
    /// # Errors
    /// As [`Self::broken`].
    pub(crate) fn is_less_in_one_block(&self, context: &Context<'_, '_>) -> Result<bool, DeployError> {
        let prediction = &self.planned.prediction;
        if data_decides(&self.opened().model, prediction.peak_bytes) {
            return Ok(false);
        }
        let check = self.check.as_ref();
        let growth = check.map(|check| check.before.growth()[1]);
        let original = match growth.and_then(|growth| growth.first.max(growth.later)) {
            Some(measured) => measured,
            None => {
                let task = self.candidate.task(context, false);
                let before = task.without_plan()?;
                before.arena_bytes.max(before.arena_steady_bytes)
            }
        };
        let buffers = self.takes_in_all();
        Ok(buffers + buffers / BLOCK_SHARE + BLOCK_BYTES <= original)
    }

    /// Whether a further measurement says something of it.
    pub(crate) fn needs(&self, what: Further, request: &DeployRequest<'_>) -> bool {
        let recipe = self.opened().strategy.recipe();
        let is_exact = self
            .check
            .as_ref()
            .is_some_and(|check| check.outputs == Outputs::Identical);
        match what {
            Further::Arena | Further::Times => true,
            Further::Threads => recipe.tiles && is_exact,
            Further::Sizes => recipe.rewrites && request.has_free_dims(),
        }
    }

    /// The candidate that follows where it is rejected: the same plan with less in the file; `None` where nothing of the table helps.
    pub(crate) fn relaxed(&self, reason: &Rejection, context: &Context<'_, '_>) -> Option<Candidate> {
        context.measures?;
        let trouble = Trouble {
            reason,
            lowered: self.planned.lowered.report,
            ran: self.done > 0,
            dynamic_shapes: self.opened().strategy.recipe().dynamic_shapes,
            has_time: &|work| context.clock.allows(work, context.took()),
        };
        let lowering = relaxed(context.relaxations, self.candidate.lowering, &trouble)?;
        Some(Candidate {
            plan: Some(self.planned.solution.clone()),
            round: self.candidate.round + usize::from(trouble.ran),
            lowering,
            ..self.candidate.clone()
        })
    }

    /// The candidate that follows where its time was measured to be above the limit and ops run again: another plan of its model, of so much less estimated
    /// time as this one's was too little, or with every op once. `None` where memory is limited and not time.
    ///
    /// # Errors
    /// Those of [`Solution::once`].
    pub(crate) fn quicker(&self, context: &Context<'_, '_>) -> Result<Option<Candidate>, DeployError> {
        let (request, clock, candidate) = (context.request, context.clock, &self.candidate);
        let (solution, model) = (&self.planned.solution, &self.opened().model);
        let measured = self.check.as_ref().and_then(|check| check.time_ratio);
        let is_other = self.is_slow(context) && solution.plan.recomputes() > 0 && request.plan.is_none();
        let (Some(most), Some(measured)) = (request.solve.most_overhead(), measured.filter(|_| is_other)) else {
            return Ok(None);
        };
        if request.is_bounded() || candidate.round + 1 >= ROUNDS {
            return Ok(None);
        }
        if !clock.has((context.took() + self.opened().file) * 2) {
            clock.leave_out(LeftOut::AnotherPlan);
            return Ok(None);
        }
        let once = model.baseline().duration as f64 / model.baseline_duration().max(1) as f64 - 1.0;
        let fewer = most as f64 / 1e6 * solution.overhead.percent() / 100.0 / (measured - 1.0);
        let may_run_again = fewer > once.max(0.0);
        Ok(Some(Candidate {
            plan: (!may_run_again).then(|| solution.once(model)).transpose()?,
            round: candidate.round + 1,
            max_overhead: Some((fewer.max(0.0) * 1e6) as u64),
            ..candidate.clone()
        }))
    }

    /// The candidate that follows its first run: because the peak is above its prediction, or because there is time for a better plan.
    pub(crate) fn improved(&self, context: &Context<'_, '_>) -> Option<Candidate> {
        let (clock, candidate) = (context.clock, &self.candidate);
        let (check, predicted) = (self.check.as_ref()?, &self.planned.prediction);
        let beyond = check
            .beyond(predicted, candidate.margin)
            .or_else(|| check.beyond_budget(predicted, context.budget()?))
            .filter(|_| context.request.is_bounded());
        // One round is enough to come back into the budget.
        let rounds = if beyond.is_some() { 1 } else { 2 };
        let certificate = self.planned.solution.certificate.as_ref();
        let is_settled = certificate.is_none_or(|certificate| certificate.stop != StopReason::TimeLimit);
        if beyond.is_none() && (is_settled || self.span != Span::Short) || clock.is_cancelled() {
            return None;
        }
        if !clock.has((context.took() + self.opened().file) * rounds) {
            clock.leave_out(LeftOut::AnotherPlan);
            return None;
        }
        (candidate.round + 1 < ROUNDS).then(|| Candidate {
            plan: None,
            round: candidate.round + 1,
            margin: beyond.unwrap_or(candidate.margin),
            ..candidate.clone()
        })
    }
}

/// All files that nothing is known against, in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    files: Vec<KnownFile>,
}

impl Kept {
    pub(crate) fn keep(&mut self, file: KnownFile) {
        self.files.push(file);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether one was measured.
    pub(crate) fn has_measured(&self) -> bool {
        self.files.iter().any(|file| file.check.is_some())
    }

    /// Takes out the best one; of equal ones the first.
    pub(crate) fn take_best(&mut self, context: &Context<'_, '_>) -> Option<KnownFile> {
        let ranks = self.files.iter().map(|file| file.rank(context)).enumerate();
        let (place, _) = ranks.min_by_key(|&(place, rank)| (rank, place))?;
        Some(self.files.remove(place))
    }

    /// The best one.
    pub(crate) fn best(&self, context: &Context<'_, '_>) -> Option<&KnownFile> {
        self.files.iter().min_by_key(|file| file.rank(context))
    }

    /// The best one of those that keep the budget.
    pub(crate) fn good(&self, context: &Context<'_, '_>) -> Option<&KnownFile> {
        self.best(context).filter(|best| best.missed(context).is_none())
    }

    /// The best one of a model.
    pub(crate) fn best_of(&self, opened: &Rc<Opened>, context: &Context<'_, '_>) -> Option<&KnownFile> {
        let files = self.files.iter().filter(|file| Rc::ptr_eq(file.opened(), opened));
        files.min_by_key(|file| file.rank(context))
    }
}
