//! The models that files are made of, one after the other: that of the next strategy, or other tiles of the same.

use std::cell::{Cell, OnceCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use remat::{Model, SolveRequest, TiledModel};
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_predict::{BodyTask, BodyWriter, Prediction, simulated};
use remat_solve::Activity;

use crate::candidate::Opened;
use crate::clock::{LeftOut, Share, Work};
use crate::context::Context;
use crate::error::DeployError;
use crate::error::{Rejected, Rejection};
use crate::layout::LaidOut;
use crate::layout::Padding;
use crate::open::{lay_out, open};
use crate::request::DeployRequest;
use crate::strategy::{Strategy, is_for_two_passes, runtime_of};
use crate::tiles::Tilings;

/// So many models with tiles are measured after another one at most.
const MOST_OTHERS: usize = 2;

/// The models that are still to be tried.
pub(crate) struct Models<'c, 'a> {
    context: &'c Context<'c, 'a>,
    strategies: VecDeque<Strategy>,
    /// The model that the next strategy may start from, where it starts from the same; that whose fused chains run tile by tile.
    opened: Option<Model>,
    /// What may run tile by tile, and was not tried yet.
    tilings: Tilings,
    /// Whether there were tiles to try.
    had_tiles: bool,
    /// Whether tiles are tried after all else.
    tiles_are_last: bool,
    /// Whether the runtime changes the layout of the model when it loads it.
    lays_out: bool,
    /// Whether kernels that round otherwise were tried.
    had_other_kernels: bool,
    /// What of the original model fills the memory in blocks of channels.
    pub(crate) padding: Option<Padding>,
    /// Plans of subgraphs.
    bodies: Bodies,
}

impl<'c, 'a> Models<'c, 'a> {
    /// Those of all strategies that can give what is asked for; `opened`: the model of the input, if it was read already.
    pub(crate) fn new(context: &'c Context<'c, 'a>, opened: Option<Model>) -> Self {
        let allowed = |&strategy: &Strategy| context.request.allows(strategy, context.peak, context.bench.is_some());
        Self {
            context,
            strategies: Strategy::all().filter(allowed).collect(),
            opened,
            tilings: Tilings::default(),
            had_tiles: false,
            tiles_are_last: false,
            lays_out: false,
            had_other_kernels: false,
            padding: None,
            bodies: Bodies::default(),
        }
    }

    /// Ends with what was tried.
    pub(crate) fn end(&mut self) {
        self.strategies.clear();
        self.tilings = Tilings::default();
        self.tiles_are_last = true;
    }

    /// The model of the next strategy that has one. What cannot be fused goes to those that are `rejected`; `is_above`: the files so far exceed the
    /// budget.
    ///
    /// # Errors
    /// [`DeployError::Runtime`] and those of [`Model::open`].
    pub(crate) fn next(&mut self, rejected: &mut Vec<Rejected>, is_above: bool) -> Result<Option<Opened>, DeployError> {
        let clock = self.context.clock;
        loop {
            if self
                .strategies
                .front()
                .is_some_and(|next| !next.recipe().dynamic_shapes)
                && let Some(opened) = self.in_other_kernels(None)
            {
                return Ok(Some(opened));
            }
            let next = self.strategies.pop_front();
            let Some(strategy) = next.or_else(|| self.tiles_after_whole(is_above)) else {
                return Ok(None);
            };
            let recipe = strategy.recipe();
            if !rejected.is_empty() && recipe.rewrites && !clock.has(Duration::ZERO) {
                clock.leave_out(LeftOut::Strategies);
                continue;
            }
            match self.open(strategy) {
                Ok(None) => {}
                Err(error) if recipe.fuses && !clock.is_cancelled() => rejected.push(Rejected {
                    strategy,
                    reason: Rejection::NotFused(Box::new(error)),
                }),
                opened => return opened,
            }
        }
    }

    /// The model of a strategy; `None` where that changes nothing, because the runtime lays nothing out, or no tiles gain.
    fn open(&mut self, strategy: Strategy) -> Result<Option<Opened>, DeployError> {
        let started = Instant::now();
        let (context, recipe) = (self.context, strategy.recipe());
        // Plans of whole ops keep every bit.
        let close = recipe.tiles && context.request.permits_two_passes();
        let is_same = |opened: &Model| {
            opened.is_fused() == recipe.fuses
                && runtime_of(opened).is_some_and(is_for_two_passes) == close
                && self.bodies.may_be_in(opened)
        };
        let model = match self.opened.take().filter(is_same) {
            Some(model) => model,
            None => open(context, recipe.fuses, close)?,
        };
        if recipe.lays_out {
            return match lay_out(context, model, None)? {
                Ok((model, laid_out)) => {
                    let graphs = model.graph().zip(laid_out.model.graph());
                    self.padding = graphs.and_then(|(graph, nodes)| Padding::of(graph, nodes, context.peak.bytes));
                    let made = (self.noted(model), Some(laid_out));
                    Ok(Some(self.opened(
                        strategy,
                        made,
                        context.request.solve,
                        started.elapsed(),
                    )))
                }
                Err(model) => {
                    self.opened = Some(*model);
                    Ok(None)
                }
            };
        }
        let mut model = self.noted(model);
        if recipe.rewrites {
            model = self.bodies.plan(context, model)?;
        }
        if !recipe.tiles {
            let whole = match model.bodies().is_empty() {
                true => None,
                false => Some(self.bodies.without(&model, context.request.order)?),
            };
            let mut opened = self.opened(strategy, (model, None), context.request.solve, started.elapsed());
            opened.without_plan = whole.map_or_else(OnceCell::new, OnceCell::from);
            return Ok(Some(opened));
        }
        self.tilings = Tilings::of(context, &model, self.tiles_are_last)?;
        let next = self.tilings.pop(None);
        let found = match next {
            Some(next) => {
                self.had_tiles = true;
                let whole = self.bodies.without(&model, context.request.order)?;
                Some(self.tiled(strategy, next, whole, started.elapsed())?)
            }
            None => None,
        };
        self.opened = Some(model);
        Ok(found)
    }

    /// A model with what is known of the file that it is planned for.
    fn noted(&self, model: Model) -> Model {
        let context = self.context;
        model
            .ordered_for(context.request.order.name())
            .with_baseline_peak(context.peak)
    }

    /// A model that is ready to be planned on.
    fn opened(
        &mut self,
        strategy: Strategy,
        (model, laid_out): (Model, Option<LaidOut>),
        solve: &SolveRequest,
        file: Duration,
    ) -> Opened {
        self.lays_out |= laid_out.is_some();
        Opened {
            strategy,
            model,
            laid_out,
            solve: solve.clone(),
            estimated_peak: 0,
            op_bytes: 0,
            others: 0,
            file,
            loads_to_simulate: self.lays_out,
            static_is_worse: Cell::new(false),
            without_plan: OnceCell::new(),
        }
    }

    /// The same with tiles, as the runtime lays them out, where that matters; `whole`: what the model is predicted to take without a plan and
    /// without tiles.
    fn tiled(
        &mut self,
        strategy: Strategy,
        (tiles, others): (TiledModel, usize),
        whole: Prediction,
        file: Duration,
    ) -> Result<Opened, DeployError> {
        let TiledModel {
            model,
            peak,
            op_bytes,
            max_overhead,
        } = tiles;
        let request = self.context.request;
        // Copies from and to blocks may not take what the tiles gain.
        let may_round = request.permits_other_bits();
        let most = may_round.then(|| peak.max(self.context.budget().unwrap_or(0)));
        let made = match request.lays_out_tiles(&model) && self.context.bench.is_some() {
            true => match lay_out(self.context, model, most)? {
                Ok((model, laid_out)) => (model, Some(laid_out)),
                Err(model) => (*model, None),
            },
            false => (model, None),
        };
        let solve = SolveRequest {
            max_overhead,
            ..request.solve.clone()
        };
        Ok(Opened {
            estimated_peak: peak,
            op_bytes,
            others: others.min(MOST_OTHERS),
            without_plan: OnceCell::from(whole),
            ..self.opened(strategy, made, &solve, file)
        })
    }

    /// Other tiles of the same model, if there are some and there is time: for one with tiles that was `tried`, where those are better by estimate
    /// that take less than `peak`; `has_file`: whether there is a file already.
    pub(crate) fn other_tiles(&mut self, tried: &Opened, peak: Option<u64>, has_file: bool) -> Option<Opened> {
        if !tried.is_tiled() || !self.has_time_for_other_tiles(has_file) {
            return None;
        }
        let next = self.tilings.pop(peak)?;
        let whole = tried.without_plan.get()?.clone();
        tracing::info!(peak, "other tiles may be better");
        let tiles = self.tiled(tried.strategy, next, whole, tried.file);
        tiles
            .inspect_err(|error| tracing::warn!(%error, "tiles are not laid out"))
            .ok()
    }

    fn has_time_for_other_tiles(&self, has_file: bool) -> bool {
        let work = if has_file { Work::OtherTiles } else { Work::FirstTiles };
        self.context.clock.allows_tiles(work, self.context.took())
    }

    /// The model in kernels that round otherwise than those of blocks of channels, where that is permitted, there is time, and it is estimated to take
    /// less than `peak`.
    pub(crate) fn in_other_kernels(&mut self, peak: Option<u64>) -> Option<Opened> {
        let request = self.context.request;
        let is_permitted = request.permits_other_bits() && request.lays_out() && self.context.bench.is_some();
        let may_gain = self.lays_out && !self.had_other_kernels && self.has_time_for_other_tiles(peak.is_some());
        if !(is_permitted && may_gain) {
            return None;
        }
        self.had_other_kernels = true;
        self.opened_in_other_kernels(peak)
            .inspect_err(|error| tracing::warn!(%error, "other kernels are not tried"))
            .ok()?
    }

    fn opened_in_other_kernels(&mut self, peak: Option<u64>) -> Result<Option<Opened>, DeployError> {
        let started = Instant::now();
        let model = self.noted(open(self.context, true, self.context.request.permits_two_passes())?);
        self.tilings = Tilings::other_kernels(self.context, &model)?;
        let found = match self.tilings.pop(peak) {
            Some(next) => {
                let whole = self.bodies.without(&model, self.context.request.order)?;
                Some(self.tiled(Strategy::Tiled, next, whole, started.elapsed())?)
            }
            None => None,
        };
        self.opened = Some(model);
        Ok(found)
    }

    /// Tiles, where plans of whole ops seemed to keep the budget for so little time that none were looked for, and their files do not keep it.
    fn tiles_after_whole(&mut self, is_above: bool) -> Option<Strategy> {
        let context = self.context;
        let may_follow = is_above
            && !self.had_tiles
            && !self.tiles_are_last
            && context
                .request
                .allows(Strategy::Tiled, context.peak, context.bench.is_some())
            && self.has_time_for_other_tiles(false);
        self.tiles_are_last |= may_follow;
        may_follow.then_some(Strategy::Tiled)
    }

    /// Forbids tiles that had other bits, if that is the reason why a model is rejected.
    pub(crate) fn forbid(&mut self, rejected: &Opened, reason: &Rejection, has_file: bool) {
        let Some(whole) = self.opened.as_ref().filter(|_| rejected.is_tiled()) else {
            return;
        };
        if !self.has_time_for_other_tiles(has_file) {
            return;
        }
        let path = self.context.scratch.join("remat-fused-chain.onnx");
        let has_bits = |model: &Model| {
            let Some(measures) = self.context.measures else {
                return true;
            };
            let written = model.onnx().map(|onnx| onnx.save_proto(onnx.proto(), &path));
            written.is_some_and(|written| written.is_ok()) && measures.has_bits(&path)
        };
        self.tilings.rejects(rejected, whole, self.context, reason, has_bits);
    }

    /// Takes back a model that is rejected, where no file of it is kept: the next strategy may start from it.
    pub(crate) fn take_back(&mut self, rejected: Rc<Opened>, reason: &Rejection) {
        self.bodies.reject(&rejected.model, reason, self.context.request);
        if let Some(rejected) = Rc::into_inner(rejected).filter(|rejected| !rejected.is_tiled()) {
            let model = rejected.laid_out.map_or(rejected.model, |laid_out| laid_out.model);
            self.opened = Some(model);
        }
    }
}

/// The plans of subgraphs in one deployment.
#[derive(Default)]
pub(crate) struct Bodies {
    /// What the model is predicted to take without any, where it has some: as it came, and as the runtime fused it.
    without: [Option<Prediction>; 2],
    /// Whether subgraphs stay as they are, because a file had other bits.
    stay: bool,
}

impl Bodies {
    /// Whether a model may have such plans as it has.
    pub(crate) fn may_be_in(&self, model: &Model) -> bool {
        !self.stay || model.bodies().is_empty()
    }

    /// The model with plans for its subgraphs: those of the plan that is given, or where it has to take less for what is asked.
    pub(crate) fn plan(&mut self, context: &Context<'_, '_>, model: Model) -> Result<Model, DeployError> {
        let (request, clock) = (context.request, context.clock);
        if self.stay || !model.bodies().is_empty() {
            return Ok(model);
        }
        let DeployRequest { load, order, solve, .. } = *request;
        let writer = BodyWriter { load, order };
        let planned = match request.plan {
            Some(plan) => writer.bodies_of(&model, plan)?,
            None => {
                clock.begins(Activity::Plan, "subgraphs");
                BodyTask { writer, solve }.plan(&model, &clock.search(clock.left(), Share::Bodies))?
            }
        };
        let Some(planned) = planned else { return Ok(model) };
        self.without[usize::from(model.is_fused())] = Some(simulated(&model, order)?);
        Ok(planned)
    }

    /// What a model is predicted to take without a plan, those of its subgraphs among them.
    pub(crate) fn without(&self, model: &Model, order: OrderHint) -> Result<Prediction, DeployError> {
        let known = self.without[usize::from(model.is_fused())].as_ref();
        match known.filter(|_| !model.bodies().is_empty()) {
            Some(known) => Ok(known.clone()),
            None => Ok(simulated(model, order)?),
        }
    }

    /// Leaves subgraphs as they are where a file of `model` had other bits, unless its plan is given.
    pub(crate) fn reject(&mut self, model: &Model, reason: &Rejection, request: &DeployRequest<'_>) {
        self.stay |= reason.is_about_bits() && !model.bodies().is_empty() && request.plan.is_none();
    }
}
