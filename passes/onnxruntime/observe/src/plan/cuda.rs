//! Plans of memory for the CUDA provider: of requests that were recorded on a device, else of those that the simulated runtime makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use remat_formula::{OpenDim, Ranges};
use remat_onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_arena::{ArenaPlanFile, CudaPlan, MOST_FILE_BYTES, Plans, THREADS};
use remat_onnxruntime_run::{OptimizationLevel, RecordedBuffer, RecordedRun, Recording};
use remat_onnxruntime_sim::{Program, Settings, ValueClass, allocate, default_order, requests};
use remat_solve::SolveControl;
use schemars::JsonSchema;
use serde::Serialize;

use super::fit::{Recordings, plans};
use super::orders::order_buffers;
use super::requests::RecordedRequests;
use super::{hash, unwritten};
use crate::InferredSizes;
use crate::error::ArenaPlanError;

/// The version of the runtime that is simulated.
const SIMULATED: &str = "1.31.1";

/// What memory is planned for.
#[derive(Clone, Debug)]
pub struct CudaPlanRequest<'a> {
    /// The file that sessions load.
    pub model: &'a Path,
    /// Requests that were recorded on a device; without them they are predicted.
    pub recorded: Option<&'a Path>,
    /// How the model is read: the sizes of open dimensions, for a prediction.
    pub import: &'a ImportOptions,
    /// The level of the sessions, for a prediction.
    pub level: OptimizationLevel,
    /// The sizes that open dimensions have in runs; of others, those that were recorded.
    pub ranges: &'a Ranges,
    /// Where the plan goes.
    pub output: &'a Path,
}

/// A plan for the CUDA provider. Nothing of it was measured but what is recorded.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CudaPlanned {
    /// The plan.
    pub file: PathBuf,
    /// Whether its requests were recorded on a device; else they are predicted.
    pub is_recorded: bool,
    /// Version of the runtime.
    pub runtime: String,
    /// Its graph optimization level.
    pub level: String,
    /// Smallest and largest sizes of the dimensions that it is made for.
    pub dims: BTreeMap<String, (u64, u64)>,
    /// Bytes of the block of runs, in the largest shape.
    pub run_block_bytes: u64,
    /// Most bytes that their buffers need at one time: no block is smaller.
    pub run_load_bytes: u64,
    /// Buffers of a run.
    pub buffers: usize,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Whether they lie in the block, before runs; else each has memory of its own.
    pub weights_in_block: bool,
    /// What is not known without a device, or was not measured.
    pub not_measured: Vec<String>,
}

/// Plans memory for the CUDA provider, and writes the plan. Of `control` count the seed, the flag to cancel and the deadline.
///
/// # Errors
/// [`ArenaPlanError::Pipeline`] if the model cannot be read or buffers cannot be placed, [`ArenaPlanError::File`] if a file cannot be used: also
/// where requests were recorded of another model.
pub fn plan_cuda(request: &CudaPlanRequest<'_>, control: &SolveControl<'_>) -> Result<CudaPlanned, ArenaPlanError> {
    let model = hash(request.model)?;
    let found = match request.recorded {
        Some(path) => recorded(path, &model)?,
        None => predicted(request)?,
    };
    let open = open_dims(&found.shapes, request.ranges);
    let recordings = [Recordings {
        threads: 1,
        shapes: found.shapes,
    }];
    let empty = ArenaPlanFile {
        model,
        runtime: found.runtime.clone(),
        level: found.level.clone(),
        cuda: Some(CudaPlan {
            is_recorded: found.is_recorded,
            load: None,
        }),
        ..ArenaPlanFile::default()
    };
    let one_thread = OpenDim {
        name: THREADS.to_owned(),
        least: 1,
        most: 1,
    };
    let shapes = to_place(&open, &recordings);
    let mut file = plans(
        empty.clone(),
        open,
        one_thread.clone(),
        &recordings,
        &InferredSizes::default(),
    );
    if file.plans.is_empty() {
        return Err(unusable(request.model, "its runs request nothing of a device"));
    }
    file = order_buffers(file, &shapes, &[], control)?;
    if let (Some(load), Some(cuda)) = (&found.load, &mut file.cuda) {
        let once = [Recordings {
            threads: 1,
            shapes: vec![Recording {
                dims: BTreeMap::new(),
                inputs: Vec::new(),
                runs: vec![load.clone()],
                weights: Vec::new(),
            }],
        }];
        let load = plans(empty, Vec::new(), one_thread, &once, &InferredSizes::default());
        cuda.load = match load.plans.is_empty() {
            true => None,
            false => order_buffers(load, &[Vec::new()], &[], control)?.plans.pop(),
        };
    }
    write(request.output, &file)?;
    let plans = Plans::new(&file);
    let largest: Vec<u64> = file.dims.iter().map(|dim| dim.most).collect();
    let of_shapes = (0..file.plans.len()).filter_map(|plan| plans.shape(plan, &largest));
    let ranges = file.dims.iter().map(|dim| (dim.name.clone(), (dim.least, dim.most)));
    Ok(CudaPlanned {
        file: request.output.to_owned(),
        is_recorded: found.is_recorded,
        runtime: found.runtime,
        level: found.level,
        dims: ranges.collect(),
        run_block_bytes: plans.block_bytes(),
        run_load_bytes: of_shapes.map(|shape| shape.load_bytes(&plans)).max().unwrap_or(0),
        buffers: file.plans.iter().map(|plan| plan.buffers.len()).max().unwrap_or(0),
        weight_bytes: found.weight_bytes,
        weights_in_block: file.cuda.as_ref().is_some_and(|cuda| cuda.load.is_some()),
        not_measured: found.not_measured,
    })
}

/// Requests, and what is known of them.
struct Found {
    is_recorded: bool,
    runtime: String,
    level: String,
    load: Option<RecordedRun>,
    shapes: Vec<Recording>,
    weight_bytes: u64,
    not_measured: Vec<String>,
}

/// What the provider's libraries take is in no plan.
const LIBRARIES: &str = "what the context, cuDNN and cuBLAS allocate themselves";

fn recorded(path: &Path, model: &str) -> Result<Found, ArenaPlanError> {
    let text = remat::read_text(path)?;
    let read = RecordedRequests::parse(&text).map_err(|why| unusable(path, &why))?;
    if read.model != model {
        let why = format!(
            "its requests are those of the model {}, and this one is {model}",
            read.model
        );
        return Err(unusable(path, &why));
    }
    let kept = read.load.buffers.iter().filter(|buffer| buffer.last.is_none());
    Ok(Found {
        is_recorded: true,
        runtime: read.runtime,
        level: read.level,
        weight_bytes: kept.map(|buffer| buffer.bytes).sum(),
        load: Some(read.load),
        shapes: read.shapes,
        not_measured: vec![LIBRARIES.to_owned()],
    })
}

/// The requests of the nodes of the file, as they stand there.
fn predicted(request: &CudaPlanRequest<'_>) -> Result<Found, ArenaPlanError> {
    let model = OnnxModel::open(request.model, request.import).map_err(remat::Error::from)?;
    let graph = model.graph();
    let program = Program::from_graph(graph, &|_, _| 0);
    let order = default_order(&program);
    let allocation = allocate(&program, &order, &Settings::default());
    let of_class = |class: ValueClass| program.values.iter().filter(move |value| value.class == class);
    // What the caller has in the processor's memory is copied before the first node runs.
    let inputs: Vec<u64> = of_class(ValueClass::Input).filter_map(|value| value.bytes).collect();
    let found = requests(&program, &order, &allocation, &inputs);
    let run = RecordedRun {
        buffers: found
            .buffers
            .iter()
            .map(|buffer| RecordedBuffer {
                bytes: buffer.bytes,
                first: buffer.first,
                last: buffer.last,
            })
            .collect(),
        end: found.end,
        threads: 1,
    };
    let nodes = order.len();
    let convolutions = found.convolutions;
    let mut not_measured = vec![
        format!(
            "what the kernels of {nodes} nodes work in: counted as nothing. {convolutions} are convolutions, which take what \
             `cudnn_conv_algo_search` and `cudnn_conv_use_max_workspace` let cuDNN have"
        ),
        "which nodes the provider fuses, leaves to the processor or runs in another order: none, as predicted"
            .to_owned(),
        "in which order weights are requested: each has memory of its own".to_owned(),
    ];
    let named = |what: &str, names: Vec<&str>| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("{what} {}: left out", names.join(", ")))
    };
    let values = found
        .unsized_values
        .iter()
        .map(|&value| program.values[value].name.as_str());
    not_measured.extend(named("the sizes of", values.collect()));
    let open = found.open_nodes.iter().map(|&node| program.nodes[node].name.as_str());
    not_measured.extend(named("the subgraphs of", open.collect()));
    not_measured.push(LIBRARIES.to_owned());
    Ok(Found {
        is_recorded: false,
        runtime: SIMULATED.to_owned(),
        level: request.level.to_string(),
        load: None,
        shapes: vec![Recording {
            dims: BTreeMap::new(),
            inputs: Vec::new(),
            runs: vec![run],
            weights: Vec::new(),
        }],
        weight_bytes: of_class(ValueClass::Initializer).filter_map(|value| value.bytes).sum(),
        not_measured,
    })
}

/// The dimensions with more than one size, in the ranges that are stated, else from the smallest to the largest one that was recorded.
fn open_dims(shapes: &[Recording], ranges: &Ranges) -> Vec<OpenDim> {
    let Some(first) = shapes.first() else { return Vec::new() };
    let names = first.dims.keys();
    let dims = names.map(|name| {
        let sizes = || shapes.iter().filter_map(|shape| shape.dims.get(name).copied());
        let (least, most) = (sizes().min().unwrap_or(1), sizes().max().unwrap_or(1));
        let stated = ranges.ends(name).filter(|_| ranges.has(name));
        let (least, most) = stated.map_or((least, most), |(low, high)| (low.min(least), high.max(most)));
        OpenDim {
            name: name.clone(),
            least,
            most,
        }
    });
    dims.filter(|dim| dim.least < dim.most).collect()
}

/// The shapes for which buffers are placed: the largest, and those that were recorded.
fn to_place(open: &[OpenDim], recordings: &[Recordings]) -> Vec<Vec<u64>> {
    let largest: Vec<u64> = open.iter().map(|dim| dim.most).collect();
    let all = recordings.iter().flat_map(|recordings| &recordings.shapes);
    let of = |shape: &Recording| {
        open.iter()
            .map(|dim| shape.dims.get(&dim.name).copied().unwrap_or(1))
            .collect()
    };
    std::iter::once(largest).chain(all.map(of)).collect()
}

fn write(path: &Path, file: &ArenaPlanFile) -> Result<(), ArenaPlanError> {
    let text = file.to_string();
    let (bytes, most) = (text.len() as u64, MOST_FILE_BYTES);
    if bytes > most {
        return Err(ArenaPlanError::TooLarge { bytes, most });
    }
    remat_files::write(path, &text).map_err(|error| unwritten(path, &error))
}

fn unusable(path: &Path, why: &str) -> ArenaPlanError {
    ArenaPlanError::File {
        path: path.to_owned(),
        why: why.to_owned(),
    }
}
