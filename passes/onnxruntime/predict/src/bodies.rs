//! Subgraphs of If, Loop and Scan, each a problem of its own within what its place leaves.
//!
//! A subgraph is opened as a model, planned by the solver that plans the model around it, checked, rewritten and written like that, and goes back
//! into its node. The result is a model like any other, whose nodes take less: everything after it works as on the original model.
//!
//! First every subgraph is planned for the lowest peak, those inside it before it. The plan around them says what their places leave: what fits as it
//! came stays so, for all others the plan of least time is sought that fits.

mod apply;

use std::collections::HashMap;

use remat::verify::StepTrace;
use remat::{BodyPlanner, Error, LoadOptions, Model, Solution, SolveRequest};
use remat_ir::OpId;
use remat_onnx::OnnxModel;
use remat_onnxruntime_lower::OrderHint;
use remat_plan::{BodyPlan, BudgetSpec, PlanFile, Step};
use remat_solve::SolveControl;

pub use self::apply::BodyWriter;
use self::apply::{Claims, most, onnx_of};
use crate::error::PredictError;
use crate::simulate::{bytes_by_body, simulated};

/// Subgraphs that take less than this share of the model's peak, as a divisor, stay as they are.
const LITTLE: u64 = 50;

/// What a node must take less with plans, in thousandths, for them to be worth it.
const GAIN_PERMILLE: u64 = 980;

/// Share of the budget, as a divisor, that the runtime's own tables may take beside a plan.
const TABLES: u64 = 50;

/// Share of the time for the lowest peaks of all subgraphs, and for the plan around them.
const LOWEST: f64 = 0.5;
const AROUND: f64 = 0.5;

/// How often a plan is sought for what a place leaves: what is written may take a little more than its plan.
const SEARCHES: usize = 3;

/// An ONNX model with plans for those of its subgraphs that have to take less for what is asked, for files that are made for `order`; the model itself
/// where it stays as it is.
///
/// # Errors
/// If what was planned cannot be applied, which would be a bug.
pub fn with_planned_bodies(
    model: Model,
    load: &LoadOptions,
    order: OrderHint,
    solve: &SolveRequest,
    control: &SolveControl<'_>,
) -> Result<Model, PredictError> {
    let writer = BodyWriter { load, order };
    let task = BodyTask { writer, solve };
    Ok(task.plan(&model, control)?.unwrap_or(model))
}

/// Plans subgraphs as [`with_planned_bodies`] does, for files that are made for any order.
#[derive(Clone, Copy, Debug)]
pub struct PlannedBodies<'t> {
    /// What the model was read with.
    pub load: &'t LoadOptions,
}

impl PlannedBodies<'_> {
    fn writer(&self) -> BodyWriter<'_> {
        BodyWriter {
            load: self.load,
            order: OrderHint::Any,
        }
    }
}

impl BodyPlanner for PlannedBodies<'_> {
    fn plan(&self, model: &Model, solve: &SolveRequest, control: &SolveControl<'_>) -> Result<Option<Model>, Error> {
        let writer = self.writer();
        of_pipeline(BodyTask { writer, solve }.plan(model, control))
    }

    fn apply(&self, model: &Model, plan: &PlanFile) -> Result<Option<Model>, Error> {
        of_pipeline(self.writer().bodies_of(model, plan))
    }
}

/// What the pipeline says; where anything else is wrong, subgraphs stay as they are, and that is told.
fn of_pipeline(found: Result<Option<Model>, PredictError>) -> Result<Option<Model>, Error> {
    match found {
        Err(PredictError::Pipeline(error)) => Err(error),
        Err(error) => {
            tracing::warn!("subgraphs stay as they are: {error}");
            Ok(None)
        }
        Ok(found) => Ok(found),
    }
}

/// How subgraphs are read, planned and written.
#[derive(Clone, Copy)]
pub struct BodyTask<'t> {
    /// How they are read and written.
    pub writer: BodyWriter<'t>,
    /// What is asked for.
    pub solve: &'t SolveRequest,
}

/// A subgraph that takes much as it is.
struct Site {
    op: OpId,
    place: usize,
    node: String,
    body: String,
    /// Bytes that the node takes for it.
    bytes: u64,
}

impl Site {
    fn is_of(&self, plan: &BodyPlan) -> bool {
        (&self.node, &self.body) == (&plan.node, &plan.body)
    }

    /// The plan of the subgraph; what the node takes with it is not known yet.
    fn plan(&self, inner: &Model, solution: &Solution) -> BodyPlan {
        BodyPlan {
            node: self.node.clone(),
            body: self.body.clone(),
            bytes_before: self.bytes,
            bytes: self.bytes,
            plan: solution.plan_file(inner),
        }
    }
}

impl BodyTask<'_> {
    /// The model with plans for those of its subgraphs that have to take less for what is asked; `None` where it stays as it is.
    ///
    /// # Errors
    /// If what was planned cannot be applied, which would be a bug.
    pub fn plan(&self, model: &Model, control: &SolveControl<'_>) -> Result<Option<Model>, PredictError> {
        if self.solve.budget == BudgetSpec::None || !model.bodies().is_empty() || !model.is_for_runtime() {
            return Ok(None);
        }
        let mut control = *control;
        // What is told of plans is about the model.
        control.observer = None;
        let onnx = onnx_of(model)?;
        let sites = self.sites(model, onnx)?;
        if sites.is_empty() || self.fits(model)? {
            return Ok(None);
        }
        let asked = SolveRequest {
            budget: match self.solve.budget {
                BudgetSpec::Auto => BudgetSpec::Auto,
                _ => BudgetSpec::Min,
            },
            ..self.solve.clone()
        };
        let mut lowest = Vec::new();
        for (place, site) in sites.iter().enumerate() {
            let control = control.share_of_time(LOWEST / (sites.len() - place) as f64);
            match self.lowest(onnx, site, &asked, &control) {
                Ok(plan) => lowest.extend(plan),
                // It stays as it is.
                Err(why) => tracing::info!(node = site.node, body = site.body, "a subgraph was not planned: {why}"),
            }
        }
        if lowest.is_empty() {
            return Ok(None);
        }
        let lowered = self.writer.apply(model, lowest, Claims::Open)?;
        match self.that_gain(model, lowered)? {
            Some(lowered) => self.fit(model, lowered, &sites, &control),
            None => Ok(None),
        }
    }

    /// Whether the model keeps the budget as it is.
    fn fits(&self, model: &Model) -> Result<bool, PredictError> {
        let budget = self.solve.budget.bytes(model.baseline_peak().bytes);
        Ok(match budget {
            Some(budget) => simulated(model, self.writer.order)?.peak_bytes <= budget,
            None => false,
        })
    }

    /// The subgraphs that take much.
    fn sites(&self, model: &Model, onnx: &OnnxModel) -> Result<Vec<Site>, PredictError> {
        let graph = onnx.graph();
        if graph.ops.iter().all(|op| op.bodies.is_empty()) {
            return Ok(Vec::new());
        }
        let bytes = bytes_by_body(onnx, self.writer.order)?;
        let least = model.baseline_peak().bytes / LITTLE;
        let mut sites = Vec::new();
        for (op, entry) in graph.ops.iter_enumerated() {
            let known = bytes.get(&entry.name).filter(|known| known.len() == entry.bodies.len());
            for (place, (body, &bytes)) in entry.bodies.iter().zip(known.into_iter().flatten()).enumerate() {
                if bytes > least {
                    sites.push(Site {
                        op,
                        place,
                        node: entry.name.clone(),
                        body: body.name.clone(),
                        bytes,
                    });
                }
            }
        }
        Ok(sites)
    }

    /// The plan of a subgraph for `asked`, with plans of its own subgraphs; `None` where it takes no less than without.
    fn lowest(
        &self,
        onnx: &OnnxModel,
        site: &Site,
        asked: &SolveRequest,
        control: &SolveControl<'_>,
    ) -> Result<Option<BodyPlan>, PredictError> {
        let (inner, solution) = self.solved(onnx, site, asked, control)?;
        let is_lower = solution.replay.peak < inner.baseline().peak || !inner.bodies().is_empty();
        Ok(is_lower.then(|| site.plan(&inner, &solution)))
    }

    /// A subgraph as a model, with plans of its own subgraphs, and its plan.
    fn solved(
        &self,
        onnx: &OnnxModel,
        site: &Site,
        asked: &SolveRequest,
        control: &SolveControl<'_>,
    ) -> Result<(Model, Solution), PredictError> {
        let inner = Model::of_body(onnx, site.op, site.place, self.writer.load)?;
        let task = BodyTask { solve: asked, ..*self };
        let inner = task.plan(&inner, &control.share_of_time(LOWEST))?.unwrap_or(inner);
        let solution = remat::solve(&inner, asked, control)?;
        Ok((inner, solution))
    }

    /// `lowered` without plans of nodes that take no less with them than in `model`; `None` where no plan is left.
    fn that_gain(&self, model: &Model, lowered: Model) -> Result<Option<Model>, PredictError> {
        let bytes = |model: &Model| Ok::<_, PredictError>(most(&bytes_by_body(onnx_of(model)?, self.writer.order)?));
        let (before, after) = (bytes(model)?, bytes(&lowered)?);
        let of = |bytes: &HashMap<String, u64>, node: &str| bytes.get(node).copied().unwrap_or(0);
        let gains = |plan: &&BodyPlan| of(&after, &plan.node) < of(&before, &plan.node) / 1_000 * GAIN_PERMILLE;
        let good: Vec<BodyPlan> = lowered.bodies().iter().filter(gains).cloned().collect();
        match good.len() {
            0 => Ok(None),
            all if all == lowered.bodies().len() => Ok(Some(lowered)),
            _ => self.writer.apply(model, good, Claims::Open).map(Some),
        }
    }

    /// The model with plans of least time within what the places leave in a plan around those of `lowered`; `None` where all subgraphs fit as
    /// they came.
    fn fit(
        &self,
        model: &Model,
        lowered: Model,
        sites: &[Site],
        control: &SolveControl<'_>,
    ) -> Result<Option<Model>, PredictError> {
        let budget = self.solve.budget.bytes(model.baseline_peak().bytes);
        let simulated = simulated(model, self.writer.order)?.peak_bytes;
        let beside = simulated.saturating_sub(model.baseline().peak);
        let within = budget.map(|budget| budget.saturating_sub(beside.min(budget / TABLES)));
        let asked = SolveRequest {
            budget: within.map_or(self.solve.budget, BudgetSpec::Bytes),
            ..self.solve.clone()
        };
        let Ok(around) = remat::solve(&lowered, &asked, &control.share_of_time(AROUND)) else {
            // Why not is told where the model is planned.
            return Ok(Some(lowered));
        };
        let budget = within.unwrap_or(around.replay.peak);
        let count = lowered.bodies().len();
        let mut plans = Vec::new();
        for (place, plan) in lowered.bodies().iter().enumerate() {
            let Some(site) = sites.iter().find(|site| site.is_of(plan)) else {
                continue;
            };
            let left = budget.saturating_sub(live_around(&around, &plan.node));
            if site.bytes > left {
                let control = control.share_of_time(1.0 / (count - place) as f64);
                plans.push(self.within(model, site, plan, left, &control)?);
            }
        }
        if plans.is_empty() {
            return Ok(None);
        }
        self.writer.apply(model, plans, Claims::Open).map(Some)
    }

    /// A plan of less time than the `lowest` one with which the node takes no more than `left` bytes; else that one.
    fn within(
        &self,
        model: &Model,
        site: &Site,
        lowest: &BodyPlan,
        left: u64,
        control: &SolveControl<'_>,
    ) -> Result<BodyPlan, PredictError> {
        // What the node takes beside the plan of its subgraph: what is carried, and tables.
        let beside = lowest.bytes.saturating_sub(lowest.plan.peak_bytes);
        let mut budget = left.saturating_sub(beside);
        for search in 0..SEARCHES {
            let asked = SolveRequest {
                budget: BudgetSpec::Bytes(budget),
                max_overhead: None,
                ..self.solve.clone()
            };
            let control = control.share_of_time(1.0 / (SEARCHES - search) as f64);
            let Ok((inner, solution)) = self.solved(onnx_of(model)?, site, &asked, &control) else {
                break;
            };
            if solution.replay.duration >= lowest.plan.duration {
                break;
            }
            let applied = self
                .writer
                .apply(model, vec![site.plan(&inner, &solution)], Claims::Open)?;
            let Some(plan) = applied.bodies().first() else { break };
            if plan.bytes <= left {
                return Ok(plan.clone());
            }
            budget = budget.saturating_sub(plan.bytes - left);
        }
        Ok(lowest.clone())
    }
}

/// Bytes that count beside the workspace of a node while it runs.
fn live_around(around: &Solution, node: &str) -> u64 {
    let problem = &around.problem;
    let of_step = |(step, trace): (&Step, &StepTrace)| match *step {
        Step::Compute(op) | Step::Recompute(op) if problem.ops[op].name == node => {
            Some(trace.during.saturating_sub(problem.ops[op].workspace))
        }
        _ => None,
    };
    let steps = around.plan.steps.iter().zip(&around.replay.trace);
    steps.filter_map(of_step).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod tests;
