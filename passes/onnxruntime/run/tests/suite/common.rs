//! The runtime, the models, and the comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use remat::onnx::proto::{Message, ModelProto};
use remat::{LoadOptions, Model, Solution, Target};
use remat_onnxruntime_lower::{Layout, LoweringOptions, lower};
use remat_onnxruntime_run::{OptimizationLevel, Output, Runtime, RuntimeError, SessionSettings, run_seeded};
use remat_testing::{runtime_library, workspace};

/// The levels at which bits are compared: what stands in the file, and what users get.
pub(crate) const LEVELS: [OptimizationLevel; 2] = [OptimizationLevel::Off, OptimizationLevel::All];

/// What a model is written for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WrittenFor {
    AnyRuntime,
    OnnxRuntime,
}

impl WrittenFor {
    /// Writes the plan's model.
    pub(crate) fn save(self, model: &Model, solution: &Solution, path: &Path) -> Result<(), remat::Error> {
        let onnx = model.onnx().expect("an ONNX model");
        match self {
            Self::AnyRuntime => remat::save(model, solution, &Target::Onnx, path),
            Self::OnnxRuntime => {
                let graph = remat::rewrite(model, solution)?.expect("a model has a graph");
                let lowered = lower(onnx, &graph, &LoweringOptions::default(), &Layout::default())?;
                Ok(onnx.save_proto(&lowered.written(), path)?)
            }
        }
    }
}

/// The runtime, loaded once.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Runtime::load(&runtime_library()).expect("the library that is here can be loaded"));
    &RUNTIME
}

/// The models of a folder of the repository, or beside it, sorted by name.
pub(crate) fn models(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(workspace().join(folder)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    paths.sort();
    paths
}

/// What a model of `test/models/features` says of itself.
#[derive(Default, Debug)]
pub(crate) struct Facts {
    /// Nodes that a tight plan recomputes.
    pub(crate) recomputed: Vec<String>,
    /// Nodes that no plan recomputes.
    pub(crate) never: Vec<String>,
    /// How the model is to be opened.
    pub(crate) options: LoadOptions,
}

impl Facts {
    /// Those of a model; none for a model that states none.
    pub(crate) fn of(model: &Path) -> Self {
        let bytes = std::fs::read(model).expect("the model can be read");
        let proto = ModelProto::parse_from_bytes(&bytes).expect("the model is one");
        let mut facts = Self::default();
        for entry in &proto.metadata_props {
            let words = || entry.value.split(' ').map(str::to_owned).collect();
            match entry.key.as_str() {
                "test.recomputed" => facts.recomputed = words(),
                "test.never" => facts.never = words(),
                "test.dims" => facts.options.dims = numbers(&entry.value),
                "test.sizes" => facts.options.sizes = numbers(&entry.value),
                _ => {}
            }
        }
        facts
    }
}

/// `a=1 b=2`.
fn numbers(text: &str) -> BTreeMap<String, u64> {
    let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, number)| (name.to_owned(), number.parse().expect("a number")))
        .collect()
}

/// The outputs of one run on inputs of a fixed seed.
pub(crate) fn bits(
    runtime: &Runtime,
    model: &Path,
    level: OptimizationLevel,
    options: &LoadOptions,
) -> Result<Vec<Output>, RuntimeError> {
    let settings = SessionSettings {
        dims: options.dims.clone(),
        ..SessionSettings::exact(level)
    };
    run_seeded(runtime, model, &settings, 7)
}

/// The outputs of a model at each of [`LEVELS`].
pub(crate) fn original(runtime: &Runtime, model: &Path, options: &LoadOptions) -> Vec<Vec<Output>> {
    let run =
        |&level| bits(runtime, model, level, options).unwrap_or_else(|error| panic!("the original runs: {error}"));
    LEVELS.iter().map(run).collect()
}

/// Asserts that `rewritten` gives at each of [`LEVELS`] what [`original`] gave; `what` says what is compared.
pub(crate) fn assert_same(
    runtime: &Runtime,
    before: &[Vec<Output>],
    rewritten: &Path,
    options: &LoadOptions,
    what: &str,
) {
    for (level, before) in LEVELS.iter().zip(before) {
        let after = bits(runtime, rewritten, *level, options);
        let after = after.unwrap_or_else(|error| panic!("{what} runs at {level:?}: {error}"));
        let differing: Vec<&str> = before
            .iter()
            .zip(&after)
            .filter(|(a, b)| a != b)
            .map(|(a, _)| a.name.as_str())
            .collect();
        assert_eq!(before.len(), after.len(), "{what} at {level:?}");
        assert!(
            differing.is_empty(),
            "{what} at {level:?}: outputs {differing:?} differ"
        );
    }
}
