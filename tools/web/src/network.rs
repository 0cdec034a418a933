//! A model that was opened, and its plans.

use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use remat::ir::OpId;
use remat::onnx::proto::Message;
use remat::onnx::{Piece, outline, restore};
use remat::plan::{Bound, BudgetSpec, Step};
use remat::solver::{SolveControl, least_peak};
use remat::{
    FissionRequest, Goal, LoadOptions, Model, Overhead, Solution, SolveRequest, default_solver, solve_in_block, tile,
};
use remat_onnxruntime_lower::{Layout, LoweringOptions, lower};

use crate::answer::{Found, Question, Summary};
use crate::failure::Failure;
use crate::planned::{Planned, block};
use crate::report;

/// Share of the time for finding chains to run tile by tile.
const TILES: f64 = 0.5;
/// Time for the bound that no plan undercuts, and for the block of the model as it is.
const BOUND: Duration = Duration::from_secs(1);
/// Most seconds for one plan.
const LONGEST: f64 = 600.0;

/// A model that was opened.
pub struct Network {
    name: String,
    file_bytes: u64,
    options: LoadOptions,
    model: Model,
    as_it_is: Solution,
    /// Plans of whole ops that were found.
    known: Vec<Solution>,
    planned: Option<Planned>,
}

impl Network {
    /// Reads the graph of a model.
    ///
    /// # Errors
    /// [`Failure`], naming the node, the tensor or the byte.
    pub fn open(mut file: impl Read + Seek, question: Question) -> Result<Self, Failure> {
        let options = LoadOptions {
            dims: question.dims,
            ..LoadOptions::default()
        };
        let bytes = outline(&mut file)?;
        let file_bytes = file.seek(SeekFrom::End(0))?;
        let model = Model::from_onnx_bytes(&bytes, &options)?;
        let replay = model.baseline().clone();
        let mut as_it_is = Solution::of(
            &model,
            model.problem().clone(),
            model.baseline_plan().clone(),
            replay,
            None,
        );
        as_it_is.place(&model, &SolveControl::new().time_limit(BOUND))?;
        Ok(Self {
            name: question.name,
            file_bytes,
            options,
            model,
            as_it_is,
            known: Vec::new(),
            planned: None,
        })
    }

    /// What is known of the model before it is planned.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (problem, baseline) = (self.model.problem(), self.model.baseline());
        let least = least_peak(problem, &SolveControl::new().time_limit(BOUND));
        let name = |op: OpId| problem.ops[op].name.clone();
        let at_peak = match self.model.baseline_plan().steps.get(baseline.peak_step) {
            Some(&(Step::Compute(op) | Step::Recompute(op))) => name(op),
            _ => String::new(),
        };
        Summary {
            name: self.name.clone(),
            ops: problem.ops.len(),
            weights_bytes: self.model.external_bytes().map_or(0, |bytes| bytes.constants),
            block_bytes: block(&self.as_it_is),
            peak_bytes: baseline.peak,
            least_bytes: least.bytes,
            least_op: least.op.map_or_else(String::new, name),
            peak_op: at_peak,
        }
    }

    /// What a plan of whole ops costs for a share of the peak in per cent, or for the lowest peak where there is none, within about that many
    /// seconds. The plan that was made last stays.
    ///
    /// # Errors
    /// [`Failure`], where no plan keeps the budget.
    pub fn price(&mut self, percent: Option<u32>, seconds: f64) -> Result<Found, Failure> {
        let budget = budget(percent);
        let solution = self.whole(budget, &limit(seconds))?;
        let priced = Planned { tiled: None, solution };
        Ok(self.found(percent, &priced))
    }

    /// A plan for a share of the peak in per cent, or for the lowest peak where there is none, within about that many seconds, which stays for what
    /// is asked next. With `tiles` chains may run tile by tile, where that is better than whole ops.
    ///
    /// # Errors
    /// [`Failure`], where no plan keeps the budget.
    pub fn plan(&mut self, percent: Option<u32>, seconds: f64, tiles: bool) -> Result<Found, Failure> {
        let (budget, control) = (budget(percent), limit(seconds));
        let in_tiles = if tiles { self.in_tiles(budget, &control)? } else { None };
        let best = match (self.whole(budget, &control), in_tiles) {
            (Ok(solution), other) => Planned { tiled: None, solution }.or_better(other, budget),
            (Err(_), Some(best)) => best,
            (Err(failure), None) => return Err(failure),
        };
        let found = self.found(percent, &best);
        self.planned = Some(best);
        Ok(found)
    }

    /// A plan of whole ops, from the best one that was found before.
    fn whole(&mut self, budget: BudgetSpec, control: &SolveControl<'_>) -> Result<Solution, Failure> {
        let most = budget.bytes(self.model.baseline_peak().bytes).unwrap_or(u64::MAX);
        let known = self.known.iter().filter(|known| known.replay.peak <= most);
        let start = known.min_by_key(|known| match budget {
            BudgetSpec::Min => (known.replay.peak, known.replay.duration),
            _ => (known.replay.duration, known.replay.peak),
        });
        let mut control = *control;
        control.warm_start = start.map(|known| &known.plan);
        let solution = solve_in_block(&self.model, &request(budget), Goal::default(), Bound::Load, &control)?;
        self.known.push(solution.clone());
        Ok(solution)
    }

    /// A plan with chains tile by tile, where there is a good one.
    fn in_tiles(&self, budget: BudgetSpec, control: &SolveControl<'_>) -> Result<Option<Planned>, Failure> {
        let searching = control.share_of_time(TILES);
        let found = tile(
            &self.model,
            &self.options,
            &request(budget),
            &FissionRequest::EXACT,
            &searching,
        )?;
        let Some(tiled) = found.into_iter().next() else {
            return Ok(None);
        };
        // A share is one of the model as it is.
        let bytes = budget.bytes(self.model.baseline_peak().bytes);
        let request = request(bytes.map_or(budget, BudgetSpec::Bytes));
        let solution = solve_in_block(
            &tiled,
            &request,
            Goal::default(),
            Bound::Load,
            &control.share_of_time(TILES),
        );
        Ok(solution.ok().map(|solution| Planned {
            tiled: Some(tiled),
            solution,
        }))
    }

    fn found(&self, percent: Option<u32>, planned: &Planned) -> Found {
        let chains = planned.tiled.as_ref().and_then(Model::tiling);
        let overhead = Overhead {
            duration: planned.duration(),
            baseline: self.model.baseline_duration(),
        };
        Found {
            percent,
            peak_bytes: planned.solution.replay.peak,
            block_bytes: block(&planned.solution),
            overhead_percent: overhead.percent(),
            recomputes: planned.solution.plan.recomputes(),
            tiled: chains.map_or(0, |tiling| tiling.fused_chains.len()),
        }
    }

    /// The page of the plan that was made last, or of the model as it is where none was.
    ///
    /// # Errors
    /// [`Failure::Page`].
    pub fn page(&self) -> Result<String, Failure> {
        report::page(&self.name, &self.model, &self.as_it_is, self.planned.as_ref())
    }

    /// The plan that was made last, as a plan file.
    ///
    /// # Errors
    /// [`Failure::NoPlan`].
    pub fn plan_file(&self) -> Result<String, Failure> {
        let (model, solution) = self.last()?;
        Ok(solution.plan_file(model).to_json())
    }

    /// The rewritten model as pieces of a file: ONNX Runtime runs it in the order of the plan.
    ///
    /// # Errors
    /// [`Failure::NoPlan`], and what forbids to write it.
    pub fn rewritten(&self) -> Result<Vec<Piece>, Failure> {
        let (model, solution) = self.last()?;
        let (Some(onnx), Some(graph)) = (model.onnx(), remat::rewrite(model, solution)?) else {
            return Err(Failure::NoPlan);
        };
        let lowered = lower(onnx, &graph, &LoweringOptions::default(), &Layout::default())?;
        let bytes = lowered
            .proto
            .write_to_bytes()
            .map_err(|cause| Failure::Page(cause.to_string()))?;
        Ok(restore(&bytes, self.file_bytes)?)
    }

    fn last(&self) -> Result<(&Model, &Solution), Failure> {
        let planned = self.planned.as_ref().ok_or(Failure::NoPlan)?;
        Ok((planned.tiled.as_ref().unwrap_or(&self.model), &planned.solution))
    }
}

fn budget(percent: Option<u32>) -> BudgetSpec {
    percent.map_or(BudgetSpec::Min, |percent| {
        BudgetSpec::Share(u64::from(percent) * 10_000)
    })
}

fn request(budget: BudgetSpec) -> SolveRequest {
    SolveRequest {
        budget,
        max_overhead: None,
        solver: default_solver().name().to_owned(),
    }
}

fn limit(seconds: f64) -> SolveControl<'static> {
    SolveControl::new().time_limit(Duration::from_secs_f64(seconds.clamp(0.1, LONGEST)))
}
