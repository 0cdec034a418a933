//! One strategy on its way: its model, the rounds of planning and measuring, and the best file so far.

use std::cell::{Cell, OnceCell};
use std::cmp::Reverse;
use std::time::Duration;

use remat::{Model, SolveRequest};
use remat_onnxruntime_lower::{LoweringReport, OrderHint, Shapes};
use remat_plan::StopReason;

use crate::clock::{Clock, Effort, LeftOut};
use crate::file::{Loader, Planned, Task};
use crate::layout::Portable;
use crate::measure::{Baseline, Check};
use crate::peaks::Basis;
use crate::{DeployRequest, Prediction, Strategy};

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

/// Share of a plan's peak, as a divisor, by which a file may exceed it and still runs in the order of the plan.
const LOST_SHARE: u64 = 20;

/// A model with stretches tile by tile that is to be tried.
pub(crate) struct Tiles {
    pub(crate) model: Model,
    /// The nodes that it is written with, where the runtime laid it out.
    pub(crate) portable: Option<Portable>,
    /// Its peak by estimate, in bytes.
    pub(crate) peak: u64,
    /// The overhead to ask for, in millionths.
    pub(crate) max_overhead: Option<u64>,
    /// How many others are still to be tried.
    pub(crate) others: usize,
}

/// So many models with tiles are measured after another one at most.
const MOST_OTHERS: usize = 2;

/// A strategy on its way.
pub(crate) struct Attempt {
    pub(crate) strategy: Strategy,
    pub(crate) model: Model,
    /// What is asked of solvers.
    pub(crate) solve: SolveRequest,
    /// The peak by estimate of its tiles, in bytes; 0 where it has none or they are given.
    pub(crate) estimated_peak: u64,
    /// How many other models with tiles may be measured after it.
    others: usize,
    /// The nodes that it is written with, where the runtime laid it out.
    pub(crate) portable: Option<Portable>,
    /// What making a file and simulating it is expected to take.
    file: Duration,
    /// How many plans were measured.
    pub(crate) round: usize,
    /// Whether the round is short because a longer one is to follow.
    is_short: bool,
    /// The calibration margin: bytes by which a measured peak was above its prediction.
    pub(crate) margin: u64,
    /// The best file that was measured.
    pub(crate) best: Option<(Planned, Check)>,
    /// Whether room may be reserved for the arena.
    pub(crate) may_reserve: bool,
    /// Whether shapes may stay static where nothing is gained by hiding them.
    pub(crate) may_be_static: bool,
    /// Whether order anchors may be added.
    pub(crate) may_anchor: bool,
    /// Whether all nodes may stand in a branch.
    may_branch: bool,
    /// Whether a file was no better with all shapes static: then that is not looked at again.
    static_is_worse: Cell<bool>,
    /// What its model is predicted to take without a plan, once that was asked for.
    without_plan: OnceCell<Prediction>,
}

impl Attempt {
    /// A strategy whose model took so long to open: to be simulated, its file is read back.
    pub(crate) fn new(strategy: Strategy, model: Model, solve: &SolveRequest, opening: Duration) -> Self {
        Self {
            strategy,
            model,
            solve: solve.clone(),
            estimated_peak: 0,
            others: 0,
            portable: None,
            file: opening,
            round: 0,
            is_short: false,
            margin: 0,
            best: None,
            may_reserve: true,
            may_be_static: true,
            may_anchor: true,
            may_branch: true,
            static_is_worse: Cell::new(false),
            without_plan: OnceCell::new(),
        }
    }

    /// The same for a model that is predicted to take this `without` a plan, other than its own nodes say.
    pub(crate) fn beside(self, without: Prediction) -> Self {
        Self {
            without_plan: OnceCell::from(without),
            ..self
        }
    }

    /// A strategy with tiles. What the model is predicted to take without a plan and without tiles is `whole`.
    pub(crate) fn in_tiles(
        strategy: Strategy,
        tiles: Tiles,
        solve: &SolveRequest,
        whole: Prediction,
        opening: Duration,
    ) -> Self {
        let solve = SolveRequest {
            max_overhead: tiles.max_overhead,
            ..solve.clone()
        };
        Self {
            portable: tiles.portable,
            estimated_peak: tiles.peak,
            others: tiles.others.min(MOST_OTHERS),
            without_plan: OnceCell::from(whole),
            ..Self::new(strategy, tiles.model, &solve, opening)
        }
    }

    /// The same strategy with other tiles.
    pub(crate) fn with_other_tiles(&self, tiles: Tiles) -> Option<Self> {
        let whole = self.without_plan.get()?.clone();
        Some(Self::in_tiles(self.strategy, tiles, &self.solve, whole, self.file))
    }

    /// Whether what is asked of solvers takes longer than what a limit of so many millionths allows.
    pub(crate) fn is_slow(&self, most_overhead: Option<u64>) -> bool {
        most_overhead
            .zip(self.solve.most_overhead())
            .is_some_and(|(most, own)| own > most)
    }

    /// Whether a file that takes `peak` bytes is one for a layout, and takes more than its plan: some nodes run in another order, because what
    /// exists in blocks only gets no anchor.
    pub(crate) fn loses_order(&self, planned: &Planned, peak: u64) -> bool {
        let plan = planned.solution.replay.peak;
        self.portable.is_some() && peak > plan.saturating_add(plan / LOST_SHARE)
    }

    /// The model whose nodes are written.
    pub(crate) fn written(&self) -> &Model {
        self.portable.as_ref().map_or(&self.model, |portable| &portable.model)
    }

    /// Whether a file may be made with less in it that changes what the runtime makes of the model, after one of `lowered` had other bits:
    /// first outside of a branch, then without static shapes, then without order anchors.
    pub(crate) fn simplify(&mut self, lowered: &LoweringReport) -> bool {
        let may = if lowered.in_branch {
            &mut self.may_branch
        } else if self.strategy.recipe().dynamic_shapes && lowered.shapes != Shapes::Dynamic {
            &mut self.may_be_static
        } else if lowered.readers > 0 {
            &mut self.may_anchor
        } else {
            return false;
        };
        std::mem::replace(may, false)
    }

    /// The budget in bytes, where there is one.
    fn budget(&self, request: &DeployRequest<'_>) -> Option<u64> {
        let budget = request.solve.budget.bytes(self.model.baseline_peak().bytes);
        budget.filter(|_| request.plan.is_none())
    }

    /// What its files are made of; `loader` where the runtime changes their layout.
    pub(crate) fn task<'t>(&'t self, request: &'t DeployRequest<'t>, loader: Option<Loader<'t>>) -> Task<'t> {
        Task {
            portable: self.portable.as_ref(),
            loader,
            has_other: self.best.is_some(),
            request,
            solve: &self.solve,
            strategy: self.strategy,
            model: &self.model,
            highest: self.budget(request).map(|budget| budget.saturating_sub(self.margin)),
            may_reserve: self.may_reserve,
            may_be_static: self.may_be_static,
            may_anchor: self.may_anchor,
            may_branch: self.may_branch && request.arena && request.order == OrderHint::Any,
            static_is_worse: &self.static_is_worse,
            without_plan: &self.without_plan,
        }
    }

    /// The time for the plan of the next round; all of it where nothing is measured.
    pub(crate) fn effort<'c, 'a>(
        &mut self,
        request: &DeployRequest<'_>,
        clock: &'c Clock<'a>,
        baseline: Option<&Baseline>,
    ) -> Effort<'c, 'a> {
        let (time, is_short) = match baseline {
            Some(baseline) => self.time(request.is_bounded(), clock, baseline),
            None => (clock.left(), false),
        };
        self.is_short = is_short;
        Effort::new(clock, time, self.file)
    }

    /// Time for the plan of the next round, and whether it is short because a longer round is to follow. The rest is for completing the
    /// measurements. `None` where nothing counts time.
    fn time(&self, is_bounded: bool, clock: &Clock<'_>, baseline: &Baseline) -> (Option<Duration>, bool) {
        let Some((limit, left)) = clock.limit().zip(clock.left()) else {
            return (None, false);
        };
        let kept = if clock.is_timed() {
            baseline.completing().min(limit / COMPLETING)
        } else {
            Duration::ZERO
        };
        // Under a budget whole ops may have to follow.
        let is_first = is_bounded && self.strategy.recipe().tiles;
        if (is_first || self.others > 0) && clock.is_timed() {
            let tiles = clock.left_for_tiles().unwrap_or(left);
            let each = tiles / u32::try_from(self.others + 1).unwrap_or(u32::MAX);
            return (Some(each.saturating_sub(kept).max(each / COMPLETING)), false);
        }
        let all = left.saturating_sub(kept);
        let measuring = baseline.took() + self.file * 2;
        let may_try_twice = clock.is_timed() && measuring * LITTLE < all;
        let later = all.saturating_sub(measuring).mul_f64(LATER_ROUND);
        match self.round {
            0 if may_try_twice => (Some(all.mul_f64(FIRST_ROUND)), true),
            0 if is_bounded && clock.is_timed() => (Some(later.max(all / 2)), false),
            0 => (Some(all), false),
            _ if is_bounded => (Some(later), false),
            _ => (Some(all.saturating_sub(measuring)), false),
        }
    }

    /// Whether another round follows one that found no plan: where that was a short one, and there is time left.
    pub(crate) fn may_search_longer(&mut self, clock: &Clock<'_>) -> bool {
        let may = self.is_short && !clock.is_cancelled() && clock.has(self.file * 2);
        self.round += usize::from(may);
        may
    }

    /// The best file, with one that was measured; `None` where another round is to follow: because the peak is above its prediction, or
    /// because there is time for a better plan.
    pub(crate) fn measured(
        &mut self,
        (planned, check): (Planned, Check),
        request: &DeployRequest<'_>,
        clock: &Clock<'_>,
        baseline: &Baseline,
    ) -> Option<(Planned, Check)> {
        let budget = self.budget(request);
        let beyond = check
            .beyond(&planned.prediction, self.margin)
            .or_else(|| check.beyond_budget(&planned.prediction, budget?))
            .filter(|_| request.is_bounded());
        let (recomputes, reserved) = (planned.solution.plan.recomputes(), planned.lowered.report.reserved);
        tracing::debug!(self.round, recomputes, reserved, predicted = planned.prediction.peak_bytes, after = ?check.after, "a file was measured");
        // One round is enough to come back into the budget.
        let rounds = if beyond.is_some() { 1 } else { 2 };
        let is_done = beyond.is_none() && (is_settled(&planned) || !self.is_short);
        let rank = |(planned, check): &(Planned, Check)| rank(budget, planned, check);
        let found = (planned, check);
        let best = match self.best.take() {
            Some(known) if rank(&found) < rank(&known) => known,
            _ => found,
        };
        self.margin = beyond.unwrap_or(self.margin);
        self.round += 1;
        if is_done || clock.is_cancelled() {
            return Some(best);
        }
        if !clock.has((baseline.took() + self.file) * rounds) {
            clock.leave_out(LeftOut::AnotherPlan);
            return Some(best);
        }
        if self.round == ROUNDS {
            return Some(best);
        }
        self.best = Some(best);
        None
    }
}

/// What makes one file better than another, the higher the better: closer to the budget where that is exceeded, then not known to take more
/// than the model as it came with the arena, then faster under a budget, else lower.
fn rank(budget: Option<u64>, planned: &Planned, check: &Check) -> Reverse<(u64, bool, u64, u64)> {
    let peak = check.after.exact.unwrap_or(planned.prediction.peak_bytes);
    let over = budget.map_or(0, |budget| peak.saturating_sub(budget));
    let duration = planned.solution.replay.duration;
    let (first, second) = if budget.is_some() {
        (duration, peak)
    } else {
        (peak, duration)
    };
    let is_higher = check.after.higher_with_arena(&check.before, Basis::Measured);
    Reverse((over, is_higher.is_some(), first, second))
}

/// Whether more time would not lead to a better plan.
fn is_settled(planned: &Planned) -> bool {
    let certificate = planned.solution.certificate.as_ref();
    certificate.is_none_or(|certificate| certificate.stop != StopReason::TimeLimit)
}
