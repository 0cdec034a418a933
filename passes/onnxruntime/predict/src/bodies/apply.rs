//! Plans of subgraphs, applied to their model.

use std::collections::HashMap;

use remat::verify::check_body_bytes;
use remat::{BodyCost, LoadOptions, Model, PlanError, Solution};
use remat_ir::{Graph, Op, OpId, TensorId};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_lower::{Layout, LoweringOptions, OrderHint, Shapes};
use remat_plan::{BodyPlan, PlanFile};

use crate::error::PredictError;
use crate::simulate::bytes_by_body;

/// What plans say that nodes take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claims {
    /// Nothing yet.
    Open,
    /// What has to be found.
    Checked,
}

/// How subgraphs are read and written.
#[derive(Clone, Copy)]
pub struct BodyWriter<'t> {
    /// What the model was read with.
    pub load: &'t LoadOptions,
    /// The execution orders that files are made for.
    pub order: OrderHint,
}

impl BodyWriter<'_> {
    /// The model with its subgraphs as a plan file has them; `None` where it says nothing of them.
    ///
    /// # Errors
    /// As [`BodyWriter::apply`].
    pub fn bodies_of(&self, model: &Model, plan: &PlanFile) -> Result<Option<Model>, PredictError> {
        match plan.bodies.is_empty() {
            true => Ok(None),
            false => self.apply(model, plan.bodies.clone(), Claims::Checked).map(Some),
        }
    }

    /// The model with subgraphs as `plans` have them, each of which the checker replays first. What nodes take is simulated on the
    /// subgraphs as they are written, and compared with what the plans say or put into them.
    ///
    /// # Errors
    /// [`PlanError`] for a plan that is wrong, or for no subgraph of the model.
    pub(crate) fn apply(&self, model: &Model, plans: Vec<BodyPlan>, claims: Claims) -> Result<Model, PredictError> {
        let before = onnx_of(model)?;
        let options = model.import_options();
        let mut written: Option<(OnnxModel, HashMap<String, Vec<u64>>)> = None;
        let mut done = Vec::with_capacity(plans.len());
        for plan in plans {
            let current = written.as_ref().map_or(before, |(onnx, _)| onnx);
            let (op, place) = found(current, &plan)?;
            let inner = Model::of_body(current, op, place, self.load)?;
            let nested = plan.plan.bodies.clone();
            let inner = if nested.is_empty() {
                inner
            } else {
                self.apply(&inner, nested, claims).map_err(|error| match error {
                    PredictError::Pipeline(remat::Error::Plan(error)) => refused(&plan, error),
                    other => other,
                })?
            };
            let solution = match remat::check_plan(&inner, &plan.plan) {
                Err(remat::Error::Plan(error)) => return Err(refused(&plan, error)),
                other => other?,
            };
            let least = solution.replay.peak.saturating_sub(result_bytes(current.graph(), op));
            let (onnx, mut bytes) = self.written(current, (op, place), &inner, &solution, &options)?;
            let of_body = bytes.get_mut(&plan.node).and_then(|bytes| bytes.get_mut(place));
            // No less than the checker says, whatever is simulated.
            let found = of_body.map_or(plan.bytes_before, |bytes| {
                *bytes = least.max(*bytes);
                *bytes
            });
            if claims == Claims::Checked {
                check_body_bytes(plan.bytes, found)
                    .map_err(|rejection| refused(&plan, PlanError::Rejected(rejection)))?;
            }
            done.push(BodyPlan { bytes: found, ..plan });
            written = Some((onnx, bytes));
        }
        let (onnx, bytes) = written.ok_or(PredictError::NotOnnx)?;
        let bytes = most(&bytes);
        let cost = |plan: &BodyPlan| BodyCost {
            node: plan.node.clone(),
            bytes: bytes.get(&plan.node).copied().unwrap_or(0),
        };
        let costs: Vec<BodyCost> = done.iter().map(cost).collect();
        Ok(model.with_bodies(onnx, done, &costs, self.load)?)
    }

    /// `onnx` with a subgraph as `solution` has it, in the form with which its node takes least, and what all nodes take then.
    fn written(
        &self,
        onnx: &OnnxModel,
        (op, place): (OpId, usize),
        inner: &Model,
        solution: &Solution,
        options: &ImportOptions,
    ) -> Result<(OnnxModel, HashMap<String, Vec<u64>>), PredictError> {
        let graph = remat::rewrite(inner, solution)?.ok_or(PredictError::NotOnnx)?;
        let name = &onnx.graph().ops[op].name;
        let mut best: Option<(u64, OnnxModel, HashMap<String, Vec<u64>>)> = None;
        for shapes in [Shapes::Static, Shapes::StaticInPlace, Shapes::Dynamic] {
            let lowering = LoweringOptions {
                order: self.order,
                shapes,
                reserve: 0,
                waits_for_pages: false,
            };
            let lowered = remat_onnxruntime_lower::lower(onnx_of(inner)?, &graph, &lowering, &Layout::default())?;
            let tried = onnx.with_body(op, place, lowered.proto.graph.get_or_default(), options)?;
            let bytes = bytes_by_body(&tried, self.order)?;
            let taken = bytes.get(name).and_then(|bytes| bytes.get(place)).copied();
            tracing::debug!(
                node = name,
                ?shapes,
                taken,
                plan = solution.replay.peak,
                "a subgraph was written"
            );
            let taken = taken.unwrap_or(u64::MAX);
            if best.as_ref().is_none_or(|(least, ..)| taken < *least) {
                best = Some((taken, tried, bytes));
            }
        }
        let (_, onnx, bytes) = best.ok_or(PredictError::NotOnnx)?;
        Ok((onnx, bytes))
    }
}

/// The ONNX model of a model that is one.
pub(crate) fn onnx_of(model: &Model) -> Result<&OnnxModel, PredictError> {
    model.onnx().ok_or(PredictError::NotOnnx)
}

fn refused(plan: &BodyPlan, error: PlanError) -> PredictError {
    remat::Error::from(error.in_body(&plan.node, &plan.body)).into()
}

/// Bytes of an op's results, which count beside its workspace: subgraphs hand theirs over.
pub(crate) fn result_bytes(graph: &Graph, op: OpId) -> u64 {
    let bytes = |result: TensorId| graph.storages[graph.tensors[result].storage].bytes.unwrap_or(0);
    graph.ops[op].results().map(bytes).fold(0, u64::saturating_add)
}

/// What each node takes, whichever subgraph runs.
pub(crate) fn most(bytes: &HashMap<String, Vec<u64>>) -> HashMap<String, u64> {
    let most = |of_bodies: &Vec<u64>| of_bodies.iter().copied().max().unwrap_or(0);
    bytes.iter().map(|(node, bytes)| (node.clone(), most(bytes))).collect()
}

/// The subgraph that a plan is for.
fn found(onnx: &OnnxModel, plan: &BodyPlan) -> Result<(OpId, usize), PredictError> {
    let mut ops = onnx
        .graph()
        .ops
        .iter_enumerated()
        .filter(|(_, op)| op.name == plan.node);
    let place = |(id, op): (OpId, &Op)| Some((id, op.bodies.iter().position(|body| body.name == plan.body)?));
    ops.find_map(place).ok_or_else(|| {
        let (node, body) = (plan.node.clone(), plan.body.clone());
        remat::Error::from(PlanError::NoBody { node, body }).into()
    })
}
