//! The runtime, and a model loaded in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ort::environment::Environment;
use ort::ep::{CPU, CUDA};
use ort::logging::LogLevel;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{Session, SessionOutputs};
use ort::value::{DynTensor, DynValue, Outlet};
use remat_formula::summands;

use crate::planned::ArenaLibrary;
use crate::{
    InputTensor, OptimizationLevel, Output, Provider, RuntimeError, SessionSettings, inputs, second_memory, version,
};

/// ONNX Runtime, loaded.
#[derive(Debug)]
pub struct Runtime {
    environment: Environment,
    library: PathBuf,
    version: String,
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
        // A relative path means the working directory's, not the executable's; a bare name may also be the loader's to find.
        let found = if library.is_file() {
            std::path::absolute(library).map_err(|error| failed(error.to_string()))?
        } else {
            library.to_owned()
        };
        let builder = ort::init_from(&found).map_err(|error| failed(error.to_string()))?;
        let environment = builder.with_name("remat").with_telemetry(false).build();
        let environment = environment.map_err(|error| failed(error.to_string()))?;
        // Errors come back as values.
        environment.set_log_level(LogLevel::Fatal);
        Ok(Self {
            environment,
            version: version::of(&found).map_err(failed)?,
            library: found,
        })
    }

    /// The library's file, as far as it is known: a bare name was found by the system's loader.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The version that the library states, `1.31.1` for instance.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What a session of a model is built with.
    pub(crate) fn builder(&self, model: &Path, settings: &SessionSettings) -> Result<SessionBuilder, RuntimeError> {
        let lacking = |why: String| RuntimeError::Provider {
            provider: settings.provider.to_string(),
            why,
        };
        let builder = Session::builder(&self.environment).map_err(|error| lacking(error.to_string()))?;
        // Errors of the builder hold the builder, which no error of ours needs.
        let result = |error: ort::Error<SessionBuilder>| lacking(error.to_string());
        let processor = CPU::default().with_arena_allocator(settings.arena).build();
        let providers = match settings.provider {
            Provider::Cpu => vec![processor],
            Provider::Cuda(device) => vec![
                CUDA::default().with_device_id(device).build().error_on_failure(),
                processor,
            ],
        };
        let level = match settings.level {
            OptimizationLevel::Off => GraphOptimizationLevel::Disable,
            OptimizationLevel::Basic => GraphOptimizationLevel::Level1,
            OptimizationLevel::Extended => GraphOptimizationLevel::Level2,
            OptimizationLevel::All => GraphOptimizationLevel::All,
        };
        builder
            .with_execution_providers(providers)
            .map_err(result)?
            .with_optimization_level(level)
            .map_err(result)?
            .with_intra_threads(settings.threads)
            .map_err(result)?
            .with_memory_pattern(settings.memory_pattern)
            .map_err(result)
            .and_then(|builder| match &settings.arena_library {
                Some(arena) => with_arena_library(builder, arena),
                None => second_memory::with_operators(builder, model),
            })
            .and_then(|builder| self.with_shared_arena(builder, settings))
    }

    /// The session with an arena of the environment, if it has one; weights and what kernels make of them stay apart from it.
    fn with_shared_arena(
        &self,
        builder: SessionBuilder,
        settings: &SessionSettings,
    ) -> Result<SessionBuilder, RuntimeError> {
        let Some(arena) = settings.shared_arena else {
            return Ok(builder);
        };
        let refused = |why: String| RuntimeError::Provider {
            provider: settings.provider.to_string(),
            why,
        };
        arena.register(&self.environment).map_err(refused)?;
        let result = |error: ort::Error<SessionBuilder>| refused(error.to_string());
        SHARED_ARENA.iter().try_fold(builder, |builder, (key, value)| {
            builder.with_config_entry(key, value).map_err(result)
        })
    }

    /// Loads a model.
    pub(crate) fn open(&self, model: &Path, settings: &SessionSettings) -> Result<Loaded, RuntimeError> {
        let session = self.builder(model, settings)?.commit_from_file(model);
        let session = session.map_err(|error| RuntimeError::Load {
            model: model.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Loaded::new(session, model, settings))
    }
}

/// What a session says that takes the environment's arena for its runs.
pub const SHARED_ARENA: [(&str, &str); 2] = [
    ("session.use_env_allocators", "1"),
    ("session.use_device_allocator_for_initializers", "1"),
];

/// The session with the arena library: all that a user sets.
fn with_arena_library(builder: SessionBuilder, arena: &ArenaLibrary) -> Result<SessionBuilder, RuntimeError> {
    let ArenaLibrary {
        library,
        plan,
        keeps_pattern,
    } = arena;
    let result = |error: ort::Error<SessionBuilder>| RuntimeError::ArenaLibrary {
        path: library.clone(),
        why: error.to_string(),
    };
    let (key, value) = match plan {
        Some(plan) => ("remat.arena.plan", plan.to_string_lossy()),
        None => ("remat.arena.record", "1".into()),
    };
    // Where runs are recorded with more threads than there are processors, they do not spin for each other.
    let spins = if plan.is_some() { "1" } else { "0" };
    let builder = builder
        .with_config_entry("session.intra_op.allow_spinning", spins)
        .map_err(result)?;
    // Errors come back as values.
    let silent = builder.with_config_entry("remat.arena.log", "4").map_err(result)?;
    let kept = if *keeps_pattern { "1" } else { "0" };
    let patterned = silent.with_config_entry("remat.arena.pattern", kept).map_err(result)?;
    let named = patterned.with_config_entry(key, value).map_err(result)?;
    named.with_operator_library(library).map_err(result)
}

/// The value of each input.
pub(crate) type Feed = Vec<(String, DynTensor)>;

/// A model in a session.
pub(crate) struct Loaded {
    pub(crate) session: Session,
    model: PathBuf,
    dims: BTreeMap<String, u64>,
    outputs: Vec<String>,
}

impl Loaded {
    pub(crate) fn new(session: Session, model: &Path, settings: &SessionSettings) -> Self {
        let outputs = session.outputs().iter().map(|output| output.name().to_owned());
        Self {
            outputs: outputs.collect(),
            session,
            model: model.to_owned(),
            dims: settings.dims.clone(),
        }
    }

    /// The file that was loaded.
    pub(crate) fn file(&self) -> &Path {
        &self.model
    }

    /// Has later inputs that are made up be of these sizes.
    pub(crate) fn set_dims(&mut self, dims: BTreeMap<String, u64>) {
        self.dims = dims;
    }

    /// Names of the dimensions that the inputs leave open: the model's, or `INPUT[AXIS]`; without those that are sums of others.
    pub(crate) fn open_dims(&self) -> BTreeSet<String> {
        let inputs = self.session.inputs().iter();
        let all = inputs.flat_map(|input| inputs::open_dims(input.name(), input.dtype()));
        let all: BTreeSet<String> = all.collect();
        let is_sum = |name: &String| summands(name, |part| all.contains(part)).is_some();
        all.iter().filter(|name| !is_sum(name)).cloned().collect()
    }

    /// Names of the outputs, in the order of the signature.
    pub(crate) fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// Inputs made from a seed; see [`inputs::seeded`].
    pub(crate) fn seeded(&self, seed: u64) -> Result<Feed, RuntimeError> {
        self.feed(&[], seed)
    }

    /// Inputs that are given, the others made from a seed.
    pub(crate) fn feed(&self, given: &[InputTensor], seed: u64) -> Result<Feed, RuntimeError> {
        let is_input = |tensor: &&InputTensor| self.session.inputs().iter().any(|input| input.name() == tensor.name);
        if let Some(stranger) = given.iter().find(|tensor| !is_input(tensor)) {
            return Err(self.unfilled(&stranger.name, "the model has no such input".to_owned()));
        }
        let fill = |input: &Outlet| {
            let name = input.name();
            let value = match given.iter().find(|tensor| tensor.name == name) {
                Some(tensor) => tensor.value(input.dtype()),
                None => inputs::seeded(name, input.dtype(), &self.dims, seed),
            };
            let value = value.map_err(|why| self.unfilled(name, why))?;
            Ok((name.to_owned(), value))
        };
        self.session.inputs().iter().map(fill).collect()
    }

    fn unfilled(&self, input: &str, why: String) -> RuntimeError {
        RuntimeError::Input {
            model: self.model.clone(),
            input: input.to_owned(),
            why,
        }
    }

    /// One run. What it returns lives in the runtime's memory.
    pub(crate) fn run(&mut self, feed: &Feed) -> Result<SessionOutputs<'_>, RuntimeError> {
        let feed: Vec<(&str, &DynTensor)> = feed.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let model = &self.model;
        self.session.run(feed).map_err(|error| RuntimeError::Run {
            model: model.clone(),
            why: error.to_string(),
        })
    }

    /// One run; the outputs, copied, in the order of the signature.
    pub(crate) fn bits(&mut self, feed: &Feed) -> Result<Vec<Output>, RuntimeError> {
        let (model, names) = (self.model.clone(), self.outputs.clone());
        let outputs: Result<_, String> = take(self.run(feed)?, names, Output::of).collect();
        outputs.map_err(|why| RuntimeError::Run { model, why })
    }
}

/// What `of` makes of the outputs of these names, each when it is asked for.
pub(crate) fn take<T>(
    mut outputs: SessionOutputs<'_>,
    names: Vec<String>,
    of: impl Fn(String, DynValue) -> Result<T, String>,
) -> impl Iterator<Item = Result<T, String>> {
    let take = move |name: String| {
        let value = outputs
            .remove(&name)
            .ok_or_else(|| format!("it returned no output `{name}`"))?;
        of(name, value)
    };
    names.into_iter().map(take)
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
    let mut loaded = runtime.open(model, settings)?;
    let feed = loaded.seeded(seed)?;
    loaded.bits(&feed)
}
