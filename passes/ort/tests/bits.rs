//! Rewritten models compute the same bits in ONNX Runtime, whatever the runtime does to them when it loads them.
//!
//! Needs the runtime's library (`third_party/fetch.sh` brings it; `REMAT_ORT_LIBRARY` names another); without it the tests say
//! so and pass, because the default build must work on a machine that has nothing but cargo.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{LoadOptions, Model, SolveRequest};
use remat_ort::{OptimizationLevel, Output, Runtime, RuntimeError, SessionSettings, run_seeded};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The runtime, loaded once; `None`, with the reason printed, where it is not here.
fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let load = || {
        let fetched = workspace().join("third_party/onnxruntime/lib/libonnxruntime.so");
        let library = std::env::var_os("REMAT_ORT_LIBRARY").map_or(fetched, PathBuf::from);
        if !library.exists() {
            eprintln!("skipped: ONNX Runtime is not at {} (run third_party/fetch.sh)", library.display());
            return None;
        }
        Some(Runtime::load(&library).expect("the library that is here can be loaded"))
    };
    RUNTIME.get_or_init(load).as_ref()
}

fn models(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        eprintln!("skipped: there are no models at {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    paths.sort();
    paths
}

fn bits(runtime: &Runtime, model: &Path, level: OptimizationLevel) -> Result<Vec<Output>, RuntimeError> {
    let settings = SessionSettings { level, dims: LoadOptions::default().dims };
    run_seeded(runtime, model, &settings, 7)
}

/// Rewrites a model to a budget; returns how often the plan recomputes.
fn rewrite(model: &Path, budget: BudgetSpec, out: &Path) -> usize {
    let model = Model::open(model, &LoadOptions::default()).expect("the model opens");
    let request = SolveRequest { budget, max_overhead: 0, solver: "search".to_owned() };
    let control = SolveControl::new().time_limit(Duration::from_secs(2));
    let solution = remat::solve(&model, &request, &control).expect("a plan is found");
    remat::save(&model, &solution, out).expect("it can be written");
    solution.plan.recomputes()
}

fn assert_same_bits(folder: &Path, budget: BudgetSpec) {
    let Some(runtime) = runtime() else { return };
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let mut recomputes = 0;
    for model in models(folder) {
        let out = temporary.path().join("out.onnx");
        recomputes += rewrite(&model, budget, &out);
        for level in [OptimizationLevel::Off, OptimizationLevel::All] {
            let before = bits(runtime, &model, level).expect("the original runs");
            let after = bits(runtime, &out, level).expect("the rewritten model runs");
            let differing: Vec<&str> =
                before.iter().zip(&after).filter(|(a, b)| a != b).map(|(a, _)| a.name.as_str()).collect();
            assert_eq!(before.len(), after.len());
            assert!(differing.is_empty(), "{} at {level:?}: outputs {differing:?} differ", model.display());
        }
    }
    if !models(folder).is_empty() {
        assert!(recomputes > 0, "nothing was recomputed: the test shows nothing");
    }
}

#[test]
fn own_models_at_their_lowest_peak_compute_the_same_bits() {
    assert_same_bits(&workspace().join("test/models"), BudgetSpec::Min);
}

#[test]
fn larger_models_at_their_lowest_peak_compute_the_same_bits() {
    assert_same_bits(&workspace().join("../shared/models"), BudgetSpec::Min);
}

/// The comparison itself can fail: another seed gives other bits.
#[test]
fn different_inputs_give_different_bits() {
    let Some(runtime) = runtime() else { return };
    let model = workspace().join("test/models/unet_tiny_train.onnx");
    let settings = SessionSettings { level: OptimizationLevel::Off, dims: LoadOptions::default().dims };
    let run = |seed| run_seeded(runtime, &model, &settings, seed).expect("the model runs");
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_missing_library_and_a_missing_model_are_errors() {
    let error = Runtime::load(Path::new("/nonexistent/libonnxruntime.so")).err();
    assert!(matches!(error, None | Some(RuntimeError::Library { .. })), "{error:?}");
    let Some(runtime) = runtime() else { return };
    let error = bits(runtime, Path::new("/nonexistent/model.onnx"), OptimizationLevel::Off).unwrap_err();
    assert!(matches!(error, RuntimeError::Load { .. }), "{error}");
}
