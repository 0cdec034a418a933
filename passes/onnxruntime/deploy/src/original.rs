//! What one run of the original model on made-up inputs says of it: sizes that the data decides, and its peak, which budgets in per cent are shares of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use remat::{BaselineOf, BaselinePeak, Error, LoadOptions, Model, ReadError};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
use remat_onnxruntime_observe::{ProfileRequest, measured_profile};
use remat_onnxruntime_predict::with_simulated_baseline;
use remat_onnxruntime_run::{
    ChildLimits, Host, MeasureOptions, OptimizationLevel, ProfileOptions, SessionSettings, measure,
};

use crate::error::DeployError;

/// Opens a model. Sizes of results that follow neither from the file nor from `load`, because the data decides them (`NonZero`, loops), are
/// those of a run on inputs of seed 0, if there is a `runtime` to run it; the model says which ([`Model::measured_sizes`]).
///
/// # Errors
/// Those of [`Model::open`], also where the model does not run.
pub fn open_model(
    path: &Path,
    load: &LoadOptions,
    runtime: Option<(&Host, ChildLimits<'_>)>,
) -> Result<Model, DeployError> {
    let error = match Model::open(path, load) {
        Ok(model) => return Ok(model),
        Err(error) => error,
    };
    let Some(((host, limits), unknown)) = runtime.zip(decided_by_data(&error)) else {
        return Err(error.into());
    };
    tracing::info!(tensors = unknown.len(), "data-dependent sizes are measured");
    let measured = match sizes(host, limits, path, load, &unknown) {
        Ok(found) if !found.is_empty() => found,
        Ok(_) => return Err(error.into()),
        // What is wrong with the model says the error of the import better.
        Err(why) => {
            tracing::warn!("data-dependent sizes were not measured: {why}");
            return Err(error.into());
        }
    };
    let mut settled = load.clone();
    settled.sizes.extend(measured.clone());
    Ok(Model::open(path, &settled)?.with_measured_sizes(measured))
}

/// The results whose size is unknown although every input is known.
fn decided_by_data(error: &Error) -> Option<BTreeSet<String>> {
    match error {
        Error::Read(ReadError::Onnx(OnnxError::UnknownSizes { tensors, dims, .. })) if dims.is_empty() => {
            Some(tensors.iter().cloned().collect())
        }
        _ => None,
    }
}

/// What these results took in a run, in bytes.
fn sizes(
    host: &Host,
    limits: ChildLimits<'_>,
    path: &Path,
    load: &LoadOptions,
    wanted: &BTreeSet<String>,
) -> Result<BTreeMap<String, u64>, DeployError> {
    let looked_at = ImportOptions {
        dims: load.dims.clone(),
        fixed: load.fixed_dims.clone(),
        sizes: load.sizes.clone(),
        open_sizes: true,
    };
    let model = OnnxModel::open(path, &looked_at)?;
    let request = ProfileRequest {
        settings: SessionSettings {
            dims: load.dims.clone(),
            ..SessionSettings::exact(OptimizationLevel::Off)
        },
        options: ProfileOptions {
            runs: 1,
            ..ProfileOptions::default()
        },
        device: String::new(),
        date: None,
    };
    let profile = measured_profile(host, limits, path, &model, &request)?;
    let outputs = profile.ops.into_iter().flat_map(|record| record.outputs);
    let sizes = outputs.filter_map(|output| Some((output.tensor, output.bytes?)));
    Ok(sizes.filter(|(tensor, _)| wanted.contains(tensor)).collect())
}

/// A model that is looked at, not planned.
pub(crate) fn looked_at() -> ImportOptions {
    ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    }
}

/// Share of a peak, as a divisor, up to which results may take whose sizes the data decides.
const DATA_SHARE: u64 = 50;

/// Whether the data decides much of what a model of this peak takes: then what was measured holds of the inputs that it was measured on, and on others a
/// file may take more than the original model.
pub(crate) fn data_decides(model: &Model, peak: u64) -> bool {
    let sizes = model.measured_sizes().values();
    sizes.fold(0, |sum: u64, &bytes| sum.saturating_add(bytes)) > peak / DATA_SHARE
}

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
    match runtime.and_then(|runtime| peak(runtime, path, dims)) {
        Some(peak) => model.with_baseline_peak(peak),
        None => with_simulated_baseline(model),
    }
}

fn peak((host, limits): (&Host, ChildLimits<'_>), path: &Path, dims: &BTreeMap<String, u64>) -> Option<BaselinePeak> {
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
