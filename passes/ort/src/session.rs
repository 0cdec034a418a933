//! The runtime, and one run of a model in it.

use std::collections::BTreeMap;
use std::path::Path;

use ort::environment::Environment;
use ort::ep::CPU;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;

use crate::{Output, RuntimeError};

/// How much the runtime rewrites a model when it loads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptimizationLevel {
    /// Nothing: nodes run as they stand in the file.
    Off,
    /// Constant folding, common subexpressions, redundant nodes.
    Basic,
    /// Basic, and fusion into the runtime's own operators.
    Extended,
    /// Extended, and layouts: the runtime's default.
    All,
}

/// How a session is made. The arena and the memory pattern are off, one thread runs: settings in which a model takes what
/// its tensors and kernels need and gives the same bits in every run.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Graph optimization level.
    pub level: OptimizationLevel,
    /// Values of symbolic dimensions; 1 where none is given.
    pub dims: BTreeMap<String, u64>,
}

/// ONNX Runtime, loaded.
#[derive(Debug)]
pub struct Runtime {
    environment: Environment,
}

impl Runtime {
    /// Loads the shared library, once per process; later calls give the same library whatever the path.
    ///
    /// # Errors
    /// [`RuntimeError::Library`] if it is missing, is not ONNX Runtime, or is older than this crate's interface.
    pub fn load(library: &Path) -> Result<Self, RuntimeError> {
        let failed = |why: String| RuntimeError::Library {
            path: library.to_owned(),
            why,
        };
        let builder = ort::init_from(library).map_err(|error| failed(error.to_string()))?;
        let environment = builder.with_name("remat").with_telemetry(false).build();
        Ok(Self {
            environment: environment.map_err(|error| failed(error.to_string()))?,
        })
    }
}

/// Runs a model once on seeded inputs and returns its outputs in the order of its signature.
///
/// # Errors
/// [`RuntimeError`] if the runtime refuses the model, an input cannot be filled (strings, containers), or a kernel fails.
pub fn run_seeded(
    runtime: &Runtime,
    model: &Path,
    settings: &SessionSettings,
    seed: u64,
) -> Result<Vec<Output>, RuntimeError> {
    let load = |why: String| RuntimeError::Load {
        model: model.to_owned(),
        why,
    };
    let mut session = open(runtime, model, settings).map_err(load)?;
    let mut feed = Vec::with_capacity(session.inputs().len());
    for input in session.inputs() {
        let value = crate::inputs::seeded(input.name(), input.dtype(), &settings.dims, seed);
        let input = input.name().to_owned();
        match value {
            Ok(value) => feed.push((input, value)),
            Err(why) => {
                return Err(RuntimeError::Input {
                    model: model.to_owned(),
                    input,
                    why,
                });
            }
        }
    }
    let names: Vec<String> = session
        .outputs()
        .iter()
        .map(|output| output.name().to_owned())
        .collect();
    let failed = |why: String| RuntimeError::Run {
        model: model.to_owned(),
        why,
    };
    let mut outputs = session.run(feed).map_err(|error| failed(error.to_string()))?;
    let take = |name: String| {
        let value = outputs
            .remove(&name)
            .ok_or_else(|| format!("it returned no output `{name}`"))?;
        Output::of(name, value)
    };
    names.into_iter().map(take).collect::<Result<_, _>>().map_err(failed)
}

fn open(runtime: &Runtime, model: &Path, settings: &SessionSettings) -> Result<Session, String> {
    let level = match settings.level {
        OptimizationLevel::Off => GraphOptimizationLevel::Disable,
        OptimizationLevel::Basic => GraphOptimizationLevel::Level1,
        OptimizationLevel::Extended => GraphOptimizationLevel::Level2,
        OptimizationLevel::All => GraphOptimizationLevel::All,
    };
    let text = |error: ort::Error| error.to_string();
    let step = |error: ort::Error<ort::session::builder::SessionBuilder>| error.to_string();
    let provider = CPU::default().with_arena_allocator(false).build();
    Session::builder(&runtime.environment)
        .map_err(text)?
        .with_execution_providers([provider])
        .map_err(step)?
        .with_optimization_level(level)
        .map_err(step)?
        .with_intra_threads(1)
        .map_err(step)?
        .with_memory_pattern(false)
        .map_err(step)?
        .commit_from_file(model)
        .map_err(text)
}
