//! A plan's file for the runtime, and what the runtime is predicted to make of it.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::path::Path;
use std::time::{Duration, Instant};

use remat::{Model, Solution, SolveRequest};
use remat_cost::Device;
use remat_ir::Graph;
use remat_onnx::OnnxModel;
use remat_onnxruntime_lower::{Lowered, LoweringOptions, OrderHint, Shapes};
use remat_solve::Activity;

use crate::baseline::{as_it_is, simulated};
use crate::clock::{Effort, LeftOut};
use crate::layout::Portable;
use crate::measure::{Bench, Check};
use crate::open::laid_out;
use crate::peaks::{Basis, HigherPeak, Measured};
use crate::simulate::{Prediction, Simulated, simulate, simulate_loaded};
use crate::{DeployError, DeployRequest, Strategy};

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

impl Planned {
    /// The peak that budgets are about, with the memory arena off, and whether it was measured: else it is predicted.
    pub(crate) fn takes(&self, check: Option<&Check>) -> (u64, bool) {
        let measured = check.and_then(|check| check.after.exact);
        (measured.unwrap_or(self.prediction.peak_bytes), measured.is_some())
    }
}

/// What files are made of: the model of a strategy, and what is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Task<'t> {
    pub(crate) request: &'t DeployRequest<'t>,
    /// What is asked of solvers.
    pub(crate) solve: &'t SolveRequest,
    pub(crate) strategy: Strategy,
    pub(crate) model: &'t Model,
    /// The most that a file may be predicted to take, where there is a budget: that, less the calibration margin.
    pub(crate) highest: Option<u64>,
    /// Whether room may be reserved for the arena.
    pub(crate) may_reserve: bool,
    /// Whether shapes may stay static where nothing is gained by hiding them.
    pub(crate) may_be_static: bool,
    /// Whether order anchors may be added.
    pub(crate) may_anchor: bool,
    /// Whether all nodes may stand in a branch.
    pub(crate) may_branch: bool,
    /// Whether a file was no better with all shapes static: then that is not looked at again.
    pub(crate) static_is_worse: &'t Cell<bool>,
    /// What the model is predicted to take without a plan, once that was asked for.
    pub(crate) without_plan: &'t OnceCell<Prediction>,
    /// The nodes that it is written with, where the runtime laid it out.
    pub(crate) portable: Option<&'t Portable>,
    /// What loads files, where the runtime changes their layout when it does.
    pub(crate) loader: Option<Loader<'t>>,
    /// Whether another file was measured: then one that is not simulated by the end of the time is given up.
    pub(crate) has_other: bool,
}

/// Has the runtime load files and save what it makes of them, which is what runs.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'t> {
    pub(crate) bench: &'t Bench<'t, 't>,
    /// Where files on the way go.
    pub(crate) scratch: &'t Path,
}

impl Loader<'_> {
    /// What the runtime takes for a file that was made of `model`, from `rewritten`.
    fn simulate(
        &self,
        model: &OnnxModel,
        rewritten: &Graph,
        lowered: &Lowered,
        device: &Device,
        run: &Simulated<'_>,
    ) -> Result<Prediction, DeployError> {
        let loaded = self.scratch.join("loaded.onnx");
        laid_out(&self.bench.first_runner(), model, &lowered.proto, &loaded)?;
        simulate_loaded(&loaded, rewritten, lowered, device, run)
    }
}

impl Task<'_> {
    /// The file of a solution: without order anchors where the runtime's order is as good, and with bytes reserved for the memory arena
    /// where that pays.
    pub(crate) fn file(&self, solution: Solution, effort: &Effort<'_, '_>) -> Result<Planned, DeployError> {
        let request = self.request;
        let clock = effort.clock;
        let graph = self.rewritten(&solution)?;
        let other = |options: &LoweringOptions| match self.write(&graph, Some(options), effort, true) {
            Err(DeployError::CutOff) => Ok(None),
            written => written.map(Some),
        };
        let mut options = self.strategy.options(request.order);
        let is_open = self.strategy.recipe().dynamic_shapes;
        if is_open && !self.may_be_static {
            options.shapes = Shapes::Dynamic;
        }
        if !self.may_anchor {
            options.order = OrderHint::Priority;
        }
        let rewrites = self.strategy.recipe().rewrites;
        let mut best = self.write(&graph, rewrites.then_some(&options), effort, self.has_other)?;
        // A shape is dynamic only where that gains, and stated only where a kernel that overwrites its operand gains.
        let may_try = || effort.limit_allows_a_file(1.0);
        if is_open && self.may_be_static && best.0.report.overwritten > 0 && may_try() {
            let dynamic = LoweringOptions {
                shapes: Shapes::Dynamic,
                ..options
            };
            if let Some(tried) = other(&dynamic)?
                && tried.1.peak_bytes <= best.1.peak_bytes
            {
                (options, best) = (dynamic, tried);
            }
        }
        let may_be_static = is_open && self.may_be_static && !self.static_is_worse.get();
        let all_static = LoweringOptions {
            shapes: Shapes::Static,
            ..options
        };
        if may_be_static
            && may_try()
            && let Some(tried) = other(&all_static)?
        {
            let (peak, known) = (tried.1.peak_bytes, best.1.peak_bytes);
            let is_lower = peak.saturating_add(peak / NODES_OF_SHAPES_SHARE) < known;
            if is_lower || peak <= known && self.in_the_arena(&tried.1)? < self.in_the_arena(&best.1)? {
                (options, best) = (all_static, tried);
            } else {
                self.static_is_worse.set(true);
            }
        }
        // Order anchors cost time, and blocked layouts are undone for them.
        let lean = LoweringOptions {
            order: OrderHint::Priority,
            ..options
        };
        if rewrites
            && options.order == OrderHint::Any
            && may_try()
            && let Some(tried) = other(&lean)?
            && tried.1.peak_bytes <= best.1.peak_bytes
            && self.in_the_arena(&tried.1)? <= self.in_the_arena(&best.1)?
        {
            (options, best) = (lean, tried);
        }
        if request.arena && self.may_reserve && options.shapes != Shapes::Static {
            let (is_higher, square) = self.in_the_arena(&best.1)?;
            let mut most = (
                is_higher,
                square / 1_000_000 * LEAST_GAIN_PERMILLE * LEAST_GAIN_PERMILLE,
            );
            // A reserve is for the arena; the budget is about the peak without it.
            let highest = self.highest.map(|highest| highest.max(best.1.peak_bytes));
            for (place, reserve) in reserves(best.1.peak_bytes.min(self.fillable())).enumerate() {
                if clock.is_cancelled() {
                    break;
                }
                // A file that takes more with the arena is of no use.
                let is_needed = most.0 && place < NEEDED_RESERVES && clock.has(Duration::ZERO);
                if !is_needed && !effort.has_time_for_a_file() {
                    clock.leave_out(LeftOut::Reserves);
                    break;
                }
                let Some(tried) = other(&LoweringOptions { reserve, ..options })? else {
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
        }
        let (lowered, prediction) = best;
        Ok(Planned {
            solution,
            lowered,
            prediction,
        })
    }

    /// The file of a rewritten graph, the model as it is without `options`, and what the runtime takes for it; where there `is_other` one,
    /// [`DeployError::CutOff`] at the end of the time.
    fn write(
        &self,
        rewritten: &Graph,
        options: Option<&LoweringOptions>,
        effort: &Effort<'_, '_>,
        is_other: bool,
    ) -> Result<(Lowered, Prediction), DeployError> {
        let started = Instant::now();
        let onnx = self.request.onnx(self.written())?;
        let layout = self
            .portable
            .map_or_else(Cow::default, |portable| Cow::Borrowed(&portable.layout));
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

    /// The model whose nodes are written.
    pub(crate) fn written(&self) -> &Model {
        self.portable.map_or(self.model, |portable| &portable.model)
    }

    /// Its graph with the plan applied.
    fn rewritten(&self, solution: &Solution) -> Result<Graph, DeployError> {
        let rewritten = match self.portable {
            Some(portable) => remat::rewrite(&portable.model, &portable.solution(solution)?)?,
            None => remat::rewrite(self.model, solution)?,
        };
        rewritten.ok_or_else(|| self.request.refused())
    }

    /// What the runtime takes for a file that was made from `rewritten`; [`DeployError::CutOff`] where `is_over` says so on the way.
    fn simulate(
        &self,
        rewritten: &Graph,
        lowered: &Lowered,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prediction, DeployError> {
        let run = Simulated {
            may_be_in_branch: self.may_branch && lowered.fits_in_branch(),
            is_over,
        };
        match &self.loader {
            Some(loader) => {
                let (model, device) = (self.request.onnx(self.written())?, self.request.load.device()?);
                loader.simulate(model, rewritten, lowered, &device, &run)
            }
            None => simulate(self.model, rewritten, lowered, self.request.order, &run),
        }
    }

    /// What the model is predicted to take without a plan.
    ///
    /// # Errors
    /// [`DeployError::Onnx`] if it cannot be read back, which would be a bug.
    pub(crate) fn without_plan(&self) -> Result<&Prediction, DeployError> {
        if let Some(known) = self.without_plan.get() {
            return Ok(known);
        }
        let prediction = match self.loader {
            Some(_) => {
                let as_it_is = as_it_is(self.request.onnx(self.written())?);
                self.simulate(&self.rewritten(&Solution::baseline(self.model)?)?, &as_it_is, &|| false)?
            }
            None => simulated(self.model, self.request.order)?,
        };
        Ok(self.without_plan.get_or_init(|| prediction))
    }

    /// How well a file suits the arena, the less the better: whether it takes more than the model without a plan, where the arena will be
    /// on, then [`Prediction::arena_square`].
    pub(crate) fn in_the_arena(&self, prediction: &Prediction) -> Result<(bool, u128), DeployError> {
        let is_higher = self.request.arena && self.higher_in_the_arena(prediction, &Measured::default())?.is_some();
        Ok((is_higher, prediction.arena_square()))
    }

    /// Why a file is rejected that is predicted to take more than the model without a plan where the arena is on, as far as that was not
    /// measured.
    pub(crate) fn higher_in_the_arena(
        &self,
        prediction: &Prediction,
        measured: &Measured,
    ) -> Result<Option<HigherPeak>, DeployError> {
        let [before, after] = [self.without_plan()?, prediction].map(|prediction| prediction.arena_peaks(measured));
        Ok(after.higher_with_arena(&before, Basis::Predicted))
    }

    /// Bytes that are filled in the time that a reserve may take.
    fn fillable(&self) -> u64 {
        let device = self.request.load.device();
        let bandwidth = device.map_or(0, |device| device.memory_bytes_per_s / 10);
        let nanoseconds = self.model.baseline().duration / 1_000 * MOST_FILLING_PERMILLE;
        let bytes = u128::from(bandwidth) * u128::from(nanoseconds) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Reserves that make the arena start with a region of another size, as far as they take no more than a run does anyway.
fn reserves(peak: u64) -> impl Iterator<Item = u64> {
    let just_above = (20..40).map(|power| (1u64 << power) + 4096);
    just_above.take_while(move |&bytes| bytes <= peak)
}
