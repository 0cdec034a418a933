//! A plan's file for the runtime, and what the runtime is predicted to make of it.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use remat::fission::more_loaded;
use remat::{Model, Solution};
use remat_ir::Graph;
use remat_onnxruntime_lower::{Lowered, LoweringOptions, OrderHint, Shapes};
use remat_onnxruntime_predict::{Prediction, Simulated, as_it_is, simulate, simulate_loaded, simulated};
use remat_solve::Activity;

use crate::candidate::{Candidate, Opened};
use crate::check::Outputs;
use crate::clock::{Effort, LeftOut};
use crate::context::Context;
use crate::error::DeployError;
use crate::open::laid_out;
use crate::peaks::{Basis, HigherPeak, Measured, no_higher};
use crate::plain::without_blocks;
use crate::request::outputs;

/// Share of a run, in thousandths, that filling a reserve may take at a tenth of the device's bandwidth, which is that of a cache.
const MOST_FILLING_PERMILLE: u64 = 10;

/// What a reserve must leave of the arena's memory at most, in thousandths, to be worth the time to fill it.
const LEAST_GAIN_PERMILLE: u128 = 900;

/// Share of a peak, as a divisor, that nodes may take which make shapes dynamic.
const NODES_OF_SHAPES_SHARE: u64 = 200;

/// So many reserves are tried even where the time of the round is over, if the file is rejected without.
const NEEDED_RESERVES: usize = 2;

/// A plan and its file.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) solution: Solution,
    pub(crate) lowered: Lowered,
    pub(crate) prediction: Prediction,
}

/// What makes the files of a candidate.
#[derive(Clone, Copy)]
pub(crate) struct Task<'t, 'a> {
    pub(crate) context: &'t Context<'t, 'a>,
    pub(crate) candidate: &'t Candidate,
    /// Whether another file was measured: then one that is not simulated by the end of the time is given up.
    pub(crate) has_other: bool,
}

impl Candidate {
    /// What makes its files; `has_other`: whether another one was measured.
    pub(crate) fn task<'t, 'a>(&'t self, context: &'t Context<'t, 'a>, has_other: bool) -> Task<'t, 'a> {
        Task {
            context,
            candidate: self,
            has_other,
        }
    }
}

/// A form of the file of a plan, and what the runtime takes for it.
type Form = (Lowered, Prediction);

impl Task<'_, '_> {
    pub(crate) fn opened(&self) -> &Opened {
        &self.candidate.opened
    }

    pub(crate) fn model(&self) -> &Model {
        &self.opened().model
    }

    /// The file of a solution, in the form that takes least: what changes it is only in it where that gains.
    ///
    /// # Errors
    /// If it cannot be written or simulated, which would be a bug; [`DeployError::CutOff`] if there is another file, and no time for this one.
    pub(crate) fn file(&self, solution: Solution, effort: &Effort<'_, '_>) -> Result<Planned, DeployError> {
        let request = self.context.request;
        let (opened, may) = (self.opened(), self.candidate.lowering);
        let recipe = opened.strategy.recipe();
        let graph = self.rewritten(&solution)?;
        let mut options = LoweringOptions {
            order: if may.anchors {
                request.order
            } else {
                OrderHint::Priority
            },
            shapes: match recipe.dynamic_shapes {
                true if may.static_shapes => Shapes::StaticInPlace,
                true => Shapes::Dynamic,
                false => Shapes::Static,
            },
            reserve: 0,
            waits_for_pages: false,
        };
        let first = self.write(&graph, recipe.rewrites.then_some(&options), effort, self.has_other)?;
        let mut best = first;
        if best.0.report.transfers > 0 {
            let waits = |options: &mut LoweringOptions| options.waits_for_pages = true;
            let is_lower = |tried: &Form, best: &Form| Ok(tried.1.peak_bytes < best.1.peak_bytes);
            self.try_form(&graph, effort, (&mut options, &mut best), waits, is_lower)?;
        }
        // A shape is dynamic only where that gains, and stated only where a kernel that overwrites its operand gains.
        if options.shapes == Shapes::StaticInPlace {
            let shapes = |shapes| move |options: &mut LoweringOptions| options.shapes = shapes;
            if best.0.report.overwritten > 0 {
                let is_lower = |tried: &Form, best: &Form| Ok(tried.1.peak_bytes <= best.1.peak_bytes);
                self.try_form(
                    &graph,
                    effort,
                    (&mut options, &mut best),
                    shapes(Shapes::Dynamic),
                    is_lower,
                )?;
            }
            if !opened.static_is_worse.get() {
                let gains = |tried: &Form, best: &Form| {
                    let (peak, known) = (tried.1.peak_bytes, best.1.peak_bytes);
                    let is_lower = peak.saturating_add(peak / NODES_OF_SHAPES_SHARE) < known;
                    Ok(is_lower || peak <= known && self.in_the_arena(&tried.1)? < self.in_the_arena(&best.1)?)
                };
                let is_better =
                    self.try_form(&graph, effort, (&mut options, &mut best), shapes(Shapes::Static), gains)?;
                opened.static_is_worse.set(is_better == Some(false));
            }
        }
        // Order anchors cost time, and blocked layouts are undone for them.
        if recipe.rewrites && options.order == OrderHint::Any {
            let is_as_good = |tried: &Form, best: &Form| {
                Ok(tried.1.peak_bytes <= best.1.peak_bytes
                    && self.in_the_arena(&tried.1)? <= self.in_the_arena(&best.1)?)
            };
            let lean = |options: &mut LoweringOptions| options.order = OrderHint::Priority;
            self.try_form(&graph, effort, (&mut options, &mut best), lean, is_as_good)?;
        }
        if request.arena && may.reserve && options.shapes != Shapes::Static {
            best = self.with_reserve(&graph, effort, &options, best)?;
        }
        let (lowered, prediction) = best;
        Ok(Planned {
            solution,
            lowered,
            prediction,
        })
    }

    /// Writes another form, with changed options, where there is time for it, and keeps it if it is better; whether it is, where it was written.
    fn try_form(
        &self,
        graph: &Graph,
        effort: &Effort<'_, '_>,
        (options, best): (&mut LoweringOptions, &mut Form),
        change: impl Fn(&mut LoweringOptions),
        is_better: impl Fn(&Form, &Form) -> Result<bool, DeployError>,
    ) -> Result<Option<bool>, DeployError> {
        if !effort.limit_allows_a_file(1.0) {
            return Ok(None);
        }
        let mut other = *options;
        change(&mut other);
        let Some(tried) = self.other(graph, &other, effort)? else {
            return Ok(None);
        };
        let is_better = is_better(&tried, best)?;
        if is_better {
            (*options, *best) = (other, tried);
        }
        Ok(Some(is_better))
    }

    /// The best form with bytes reserved for the memory arena, or `best` without where that does not pay.
    fn with_reserve(
        &self,
        graph: &Graph,
        effort: &Effort<'_, '_>,
        options: &LoweringOptions,
        mut best: Form,
    ) -> Result<Form, DeployError> {
        let clock = effort.clock;
        let (is_higher, square) = self.in_the_arena(&best.1)?;
        let mut most = (
            is_higher,
            square / 1_000_000 * LEAST_GAIN_PERMILLE * LEAST_GAIN_PERMILLE,
        );
        // A reserve is for the arena; the budget is about the peak without it.
        let highest = self.highest().map(|highest| highest.max(best.1.peak_bytes));
        for (place, reserve) in reserves(best.1.peak_bytes.min(self.fillable())).enumerate() {
            if clock.is_cancelled() {
                break;
            }
            // A file that takes more with the arena is of no use.
            let is_needed = most.0 && place < NEEDED_RESERVES && clock.has(Duration::ZERO);
            let tried = match is_needed || effort.has_time_for_a_file() {
                true => self.other(graph, &LoweringOptions { reserve, ..*options }, effort)?,
                false => None,
            };
            let Some(tried) = tried else {
                clock.leave_out(LeftOut::Reserves);
                break;
            };
            let (is_higher, square) = self.in_the_arena(&tried.1)?;
            let is_kept = highest.is_none_or(|highest| tried.1.peak_bytes <= highest);
            if tried.0.report.reserved > 0 && is_kept && (is_higher, square) <= most {
                // Of those that are as good, the smallest.
                (most, best) = ((is_higher, square.saturating_sub(1)), tried);
            }
        }
        Ok(best)
    }

    /// Another form of a file; `None` at the end of the time.
    fn other(
        &self,
        graph: &Graph,
        options: &LoweringOptions,
        effort: &Effort<'_, '_>,
    ) -> Result<Option<Form>, DeployError> {
        match self.write(graph, Some(options), effort, true) {
            Err(DeployError::CutOff) => Ok(None),
            written => written.map(Some),
        }
    }

    /// The file of a rewritten graph, the model as it is without `options`, and what the runtime takes for it; where there `is_other` one,
    /// [`DeployError::CutOff`] at the end of the time.
    fn write(
        &self,
        rewritten: &Graph,
        options: Option<&LoweringOptions>,
        effort: &Effort<'_, '_>,
        is_other: bool,
    ) -> Result<Form, DeployError> {
        let started = Instant::now();
        let opened = self.opened();
        let onnx = self.context.request.onnx(opened.written())?;
        let layout = match (&opened.laid_out, outputs(&opened.model)) {
            (Some(laid_out), _) => Cow::Borrowed(&laid_out.mapping.layout),
            (None, Outputs::Identical) => Cow::default(),
            (None, Outputs::Close { .. }) => Cow::Owned(without_blocks(rewritten)),
        };
        effort.clock.begins(Activity::Lower, "");
        let mut lowered = match options {
            Some(options) => remat_onnxruntime_lower::lower(onnx, rewritten, options, &layout)?,
            None => as_it_is(onnx),
        };
        effort.clock.begins(Activity::Simulate, "");
        let is_over = || is_other && effort.clock.is_over();
        let prediction = self.simulate(rewritten, &lowered, &is_over)?;
        if prediction.in_branch {
            lowered.put_in_branch();
        }
        effort.file_took(started.elapsed());
        Ok((lowered, prediction))
    }

    /// The graph of the written model with the plan applied.
    fn rewritten(&self, solution: &Solution) -> Result<Graph, DeployError> {
        let rewritten = match &self.opened().laid_out {
            Some(laid_out) => remat::rewrite(&laid_out.model, &laid_out.solution(solution)?)?,
            None => remat::rewrite(self.model(), solution)?,
        };
        rewritten.ok_or_else(|| self.context.request.refused())
    }

    /// What the runtime takes for a file that was made from `rewritten`; [`DeployError::CutOff`] where `is_over` says so on the way. Where the
    /// runtime changes the layout of files when it loads them, it loads this one, and saves what runs.
    fn simulate(
        &self,
        rewritten: &Graph,
        lowered: &Lowered,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prediction, DeployError> {
        let request = self.context.request;
        let may_branch = self.candidate.lowering.branch && request.arena && request.order == OrderHint::Any;
        let doubled_bytes = lowered.doubled_bytes().filter(|_| may_branch);
        // With a plan of its memory a file gains nothing by a branch.
        let is_much = doubled_bytes.is_some_and(|bytes| more_loaded(bytes) > 0);
        let most_outside = match is_much && request.plans_memory {
            true => no_higher(self.without_plan()?.arena_steady_bytes),
            false => 0,
        };
        let run = Simulated {
            doubled_bytes,
            most_outside,
            is_over,
        };
        let Some(bench) = self.context.bench.filter(|_| self.opened().loads_to_simulate) else {
            return Ok(simulate(self.model(), rewritten, lowered, request.order, &run)?);
        };
        let loaded = self.context.scratch.join("loaded.onnx");
        let onnx = request.onnx(self.opened().written())?;
        laid_out(&bench.first_runner(), onnx, &lowered.proto, &loaded)?;
        Ok(simulate_loaded(
            &loaded,
            rewritten,
            lowered,
            &request.load.device()?,
            &run,
        )?)
    }

    /// What the model is predicted to take without a plan.
    ///
    /// # Errors
    /// [`DeployError::Onnx`] if it cannot be read back, which would be a bug.
    pub(crate) fn without_plan(&self) -> Result<&Prediction, DeployError> {
        let opened = self.opened();
        if let Some(known) = opened.without_plan.get() {
            return Ok(known);
        }
        let prediction = if opened.loads_to_simulate {
            let as_it_is = as_it_is(self.context.request.onnx(opened.written())?);
            self.simulate(
                &self.rewritten(&Solution::baseline(&opened.model)?)?,
                &as_it_is,
                &|| false,
            )?
        } else {
            simulated(&opened.model, self.context.request.order)?
        };
        Ok(opened.without_plan.get_or_init(|| prediction))
    }

    /// The most that a file may be predicted to take, where there is a budget: that, less the calibration margin.
    fn highest(&self) -> Option<u64> {
        let budget = self.context.budget()?;
        Some(budget.saturating_sub(self.candidate.margin))
    }

    /// How well a file suits the arena, the less the better: whether it takes more than the model without a plan, where the arena will be
    /// on, then [`Prediction::arena_square`].
    pub(crate) fn in_the_arena(&self, prediction: &Prediction) -> Result<(bool, u128), DeployError> {
        let is_on = self.context.request.arena;
        let is_higher = is_on && self.higher_in_the_arena(prediction, &Measured::default())?.is_some();
        Ok((is_higher, prediction.arena_square()))
    }

    /// Why a file is rejected that is predicted to take more than the model without a plan where the arena is on, as far as that was not
    /// measured.
    pub(crate) fn higher_in_the_arena(
        &self,
        prediction: &Prediction,
        measured: &Measured,
    ) -> Result<Option<HigherPeak>, DeployError> {
        let [before, after] =
            [self.without_plan()?, prediction].map(|prediction| Measured::predicted_with_arena(prediction, measured));
        Ok(after.higher_with_arena(&before, Basis::Predicted))
    }

    /// Bytes that are filled in the time that a reserve may take.
    fn fillable(&self) -> u64 {
        let device = self.context.request.load.device();
        let bandwidth = device.map_or(0, |device| device.memory_bytes_per_s / 10);
        let nanoseconds = self.model().baseline().duration / 1_000 * MOST_FILLING_PERMILLE;
        let bytes = u128::from(bandwidth) * u128::from(nanoseconds) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Reserves that make the arena start with a region of another size, as far as they take no more than a run does anyway.
fn reserves(peak: u64) -> impl Iterator<Item = u64> {
    let just_above = (20..40).map(|power| (1u64 << power) + 4096);
    just_above.take_while(move |&bytes| bytes <= peak)
}
