//! Training steps and larger models at their lowest peak; the comparison itself.

use std::path::Path;
use std::time::Duration;

use remat::plan::BudgetSpec;
use remat::solver::SolveControl;
use remat::{LoadOptions, Model, SolveRequest};
use remat_onnxruntime_run::{OptimizationLevel, Runtime, RuntimeError, SessionSettings, run_seeded};

use remat_testing::workspace;

use crate::common::{assert_same, bits, models, original, runtime};

/// Rewrites a model to a budget; returns how often the plan recomputes.
fn rewrite(model: &Path, budget: BudgetSpec, out: &Path) -> usize {
    let model = Model::open(model, &LoadOptions::default()).expect("the model opens");
    let request = SolveRequest {
        budget,
        max_overhead: None,
        solver: "search".to_owned(),
    };
    let control = SolveControl::new().time_limit(Duration::from_secs(2));
    let solution = remat::solve(&model, &request, &control).expect("a plan is found");
    remat::save(&model, &solution, &remat::Target::Onnx, out).expect("it can be written");
    solution.plan.recomputes()
}

fn assert_same_bits(folder: &str, budget: BudgetSpec) {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let options = LoadOptions::default();
    let mut recomputes = 0;
    for model in models(folder) {
        let out = temporary.path().join("out.onnx");
        recomputes += rewrite(&model, budget, &out);
        let before = original(runtime(), &model, &options);
        assert_same(runtime(), &before, &out, &options, &model.display().to_string());
    }
    assert!(recomputes > 0, "nothing was recomputed: the test shows nothing");
}

pub(crate) fn own_models_at_their_lowest_peak_compute_the_same_bits() {
    assert_same_bits("test/models", BudgetSpec::Min);
}

pub(crate) fn larger_models_at_their_lowest_peak_compute_the_same_bits() {
    assert_same_bits("../shared/models", BudgetSpec::Min);
}

/// The comparison itself can fail: another seed gives other bits.
pub(crate) fn different_inputs_give_different_bits() {
    let runtime = runtime();
    let model = workspace().join("test/models/unet_tiny_train.onnx");
    let settings = SessionSettings::exact(OptimizationLevel::Off);
    let run = |seed| run_seeded(runtime, &model, &settings, seed).expect("the model runs");
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

pub(crate) fn a_missing_library_is_an_error() {
    let error = Runtime::load(Path::new("/nonexistent/libonnxruntime.so")).err();
    assert!(matches!(error, None | Some(RuntimeError::Library { .. })), "{error:?}");
}

pub(crate) fn a_missing_model_is_an_error() {
    let missing = Path::new("/nonexistent/model.onnx");
    let error = bits(runtime(), missing, OptimizationLevel::Off, &LoadOptions::default()).unwrap_err();
    assert!(matches!(error, RuntimeError::Load { .. }), "{error}");
}
