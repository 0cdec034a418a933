//! What the runtime takes for a model as it is, measured or else simulated: what budgets in per cent are shares of.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use remat::{BaselineOf, BaselinePeak, Model, Solution};
use remat_onnx::OnnxModel;
use remat_onnxruntime_lower::{Lowered, OrderHint};
use remat_onnxruntime_run::{ChildLimits, Host, MeasureOptions, OptimizationLevel, SessionSettings, measure};

use crate::DeployError;
use crate::simulate::{Prediction, Simulated, simulate};

/// A model that was read from `path`, with what the runtime takes for it as it is ([`Model::baseline_peak`]): by one run on inputs of seed 0
/// with the memory arena off, if there is a `runtime` that runs it; else as it is simulated. `dims` are the values of its symbolic
/// dimensions. A model whose plans do not count memory as the runtime does is returned as it came ([`Model::is_for_runtime`]).
#[must_use]
pub fn with_baseline(
    model: Model,
    path: &Path,
    dims: &BTreeMap<String, u64>,
    runtime: Option<(&Host, ChildLimits<'_>)>,
) -> Model {
    if !model.is_for_runtime() {
        return model;
    }
    match runtime.and_then(|runtime| measured(runtime, path, dims)) {
        Some(peak) => model.with_baseline_peak(peak),
        None => with_simulated_baseline(model),
    }
}

/// The same by simulation, which runs nothing.
#[must_use]
pub fn with_simulated_baseline(model: Model) -> Model {
    if !model.is_for_runtime() {
        return model;
    }
    match simulated(&model, OrderHint::Any) {
        Ok(prediction) => model.with_baseline_peak(prediction.into()),
        Err(why) => {
            tracing::warn!("the original model cannot be simulated: {why}");
            model
        }
    }
}

/// What the model itself is predicted to take, without a plan.
///
/// # Errors
/// [`DeployError::Onnx`] if it cannot be read back, which would be a bug.
pub(crate) fn simulated(model: &Model, order: OrderHint) -> Result<Prediction, DeployError> {
    let graph = remat::rewrite(model, &Solution::baseline(model)?)?;
    let (graph, onnx) = graph.zip(model.onnx()).ok_or(DeployError::NoRuntime)?;
    simulate(model, &graph, &as_it_is(onnx), order, &Simulated::to_the_end())
}

/// A model without a plan, as a file.
pub(crate) fn as_it_is(onnx: &OnnxModel) -> Lowered {
    Lowered::as_it_is(onnx.proto().clone())
}

impl From<Prediction> for BaselinePeak {
    fn from(prediction: Prediction) -> Self {
        Self {
            bytes: prediction.peak_bytes,
            of: BaselineOf::Simulated,
        }
    }
}

fn measured(
    (host, limits): (&Host, ChildLimits<'_>),
    path: &Path,
    dims: &BTreeMap<String, u64>,
) -> Option<BaselinePeak> {
    let settings = SessionSettings {
        dims: dims.clone(),
        ..SessionSettings::exact(OptimizationLevel::All)
    };
    let once = MeasureOptions {
        runs: 1,
        seeds: vec![0],
        time: Some(Duration::ZERO),
    };
    let found = measure(&host.runner(limits), path, &settings, &once).map_err(|error| error.to_string());
    match found.and_then(|measured| measured.peaks) {
        Ok(peaks) => Some(BaselinePeak {
            bytes: peaks.first,
            of: BaselineOf::Measured,
        }),
        Err(why) => {
            tracing::warn!("what the model takes as it is was not measured: {why}");
            None
        }
    }
}
