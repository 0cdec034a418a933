//! The whole way to a file for the runtime: what is predicted of it is what is measured.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use remat::onnx::proto::tensor_shape_proto::Dimension;
use remat::onnx::proto::{GraphProto, Message, ModelProto, NodeProto, ValueInfoProto};
use remat::solver::SolveControl;
use remat::{BaselineOf, Error, LoadOptions, SolveError, SolveRequest};
use remat_onnxruntime_deploy::{DeployError, DeployRequest, Deployment, LeftOut, Outputs, Strategy, deploy};
use remat_onnxruntime_run::{Host, OptimizationLevel, RuntimeError, SessionSettings, run_seeded};

use remat_testing::workspace;

use crate::common::runtime;
use crate::measure::child_program;

pub(crate) fn host() -> Host {
    let runtime = runtime();
    Host {
        library: runtime.library().to_owned(),
        version: runtime.version().to_owned(),
        child: child_program(),
    }
}

fn unet() -> PathBuf {
    workspace().join("test/models/unet_tiny_train.onnx")
}

fn deployed(input: &Path, output: &Path, budget: &str, host: Option<&Host>) -> Result<Deployment, DeployError> {
    let control = SolveControl::new()
        .step_limit(50_000)
        .time_limit(Duration::from_secs(600));
    deployed_within(input, output, budget, host, &control)
}

pub(crate) fn deployed_within(
    input: &Path,
    output: &Path,
    budget: &str,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    deployed_by((input, output), (budget, false), host, control)
}

/// A file is written whatever is gained.
pub(crate) fn forced(input: &Path, output: &Path, budget: &str, control: &SolveControl<'_>) -> Deployment {
    deployed_by((input, output), (budget, true), Some(&host()), control).unwrap_or_else(|error| panic!("{error}"))
}

fn deployed_by(
    (input, output): (&Path, &Path),
    (budget, force): (&str, bool),
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    let (load, solve) = (
        LoadOptions::default(),
        SolveRequest {
            budget: budget.parse().expect("a budget"),
            max_overhead: None,
            solver: "search".to_owned(),
        },
    );
    let request = DeployRequest {
        fission: None,
        force,
        ..DeployRequest::new(input, Some(output), &load, &solve)
    };
    deploy(&request, host, control)
}

/// The lowest peak with tiles.
fn tiled(input: &Path, output: &Path, host: &Host) -> Deployment {
    let load = LoadOptions::default();
    let solve = SolveRequest {
        budget: "auto".parse().expect("a budget"),
        max_overhead: Some(500_000),
        solver: "search".to_owned(),
    };
    let request = DeployRequest::new(input, Some(output), &load, &solve);
    let control = SolveControl::new()
        .step_limit(2_000)
        .time_limit(Duration::from_secs(600));
    deploy(&request, Some(host), &control).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn what_is_predicted_is_what_is_measured() {
    let host = host();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    for name in ["unet_tiny_train", "mlp_tiny_train"] {
        let model = workspace().join(format!("test/models/{name}.onnx"));
        let found = deployed(&model, &out, "60%", Some(&host)).unwrap_or_else(|error| panic!("{error}"));
        let is_first = matches!(found.strategy, Strategy::LaidOut | Strategy::Fused) && found.rejected.is_empty();
        assert!(is_first, "{name}: {}, {:?}", found.strategy, found.rejected);
        assert!(out.exists() && found.lowering.clones > 0, "{name}");
        let check = found.check.as_ref().expect("the runtime is here");
        let Some((before, after)) = check.before.arena_off.zip(check.after.arena_off) else {
            assert!(check.unmeasured.is_some(), "{name}");
            continue;
        };
        assert!(after < before, "{name}: {before} became {after}");
        assert!(found.exceeded_prediction().is_none(), "{name}");
        let off = after.abs_diff(found.prediction.peak_bytes);
        assert!(
            off <= after * 3 / 100,
            "{name}: predicted {}, measured {after}",
            found.prediction.peak_bytes
        );
        let peak = found.model.baseline_peak();
        assert_eq!((peak.bytes, peak.of), (before, BaselineOf::Measured), "{name}");
        let budget = before * 60 / 100;
        assert!(
            found.prediction.peak_bytes <= budget,
            "{name}: the budget of {budget} is for what is predicted, {}",
            found.prediction.peak_bytes
        );
    }
}

/// Scores of an attention, which Softmax overwrites: they are in memory once, in plans as in the runtime, before as after. In tiles they are never
/// there as a whole.
pub(crate) fn a_kernel_that_overwrites_its_operand_does_so_in_plans_and_files() {
    const ROWS: i64 = 1024;
    let node = |op: &str, inputs: &[&str], output: &str| NodeProto {
        op_type: op.to_owned(),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    };
    let bytes = std::fs::read(unet()).expect("the model is there");
    let mut model = ModelProto::parse_from_bytes(&bytes).expect("the model is one");
    let value = |name: &str| {
        let mut value = ValueInfoProto {
            name: name.to_owned(),
            ..ValueInfoProto::default()
        };
        let tensor = value.type_.mut_or_insert_default().mut_tensor_type();
        tensor.elem_type = 1;
        for size in [ROWS, 16] {
            let mut dim = Dimension::new();
            dim.set_dim_value(size);
            tensor.shape.mut_or_insert_default().dim.push(dim);
        }
        value
    };
    model.graph = Some(GraphProto {
        name: "attention".to_owned(),
        node: vec![
            node("Transpose", &["x"], "across"),
            node("MatMul", &["x", "across"], "scores"),
            node("Softmax", &["scores"], "weights"),
            node("MatMul", &["weights", "x"], "y"),
        ],
        input: vec![value("x")],
        output: vec![value("y")],
        ..GraphProto::default()
    })
    .into();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, out) = (folder.path().join("attention.onnx"), folder.path().join("out.onnx"));
    std::fs::write(&input, model.write_to_bytes().expect("it has bytes")).expect("it can be written");

    let scores = u64::try_from(ROWS * ROWS * 4).expect("it is positive");
    let is_once = |peak: u64| (scores..scores + scores / 8).contains(&peak);
    let found = deployed(&input, &out, "auto", Some(&host())).unwrap_or_else(|error| panic!("{error}"));
    assert!(is_once(found.model.baseline().peak), "{}", found.model.baseline().peak);
    let check = found.check.expect("the runtime is here");
    if let Some((before, after)) = check.before.arena_off.zip(check.after.arena_off) {
        assert!(is_once(before) && is_once(after), "{before} became {after}");
    }
    let found = tiled(&input, &out, &host());
    assert_eq!(found.strategy, Strategy::Tiled, "{:?}", found.rejected);
    let fused_chains = &found.model.tiling().expect("it has tiles").fused_chains;
    assert!(
        fused_chains.iter().all(|fused_chain| fused_chain.tiles > 1),
        "{fused_chains:?}"
    );
    let check = found.check.as_ref().expect("the runtime is here");
    assert_eq!(check.outputs, Outputs::Identical);
    if let Some(after) = check.after.arena_off {
        assert!(after < scores * 6 / 10, "{after}, and the scores take {scores}");
        assert!(found.exceeded_prediction().is_none());
    }
}

pub(crate) fn without_the_runtime_the_model_itself_is_written_and_nothing_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let found = deployed(&unet(), &out, "60%", None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((found.strategy, found.check), (Strategy::Plain, None));
    assert!(found.lowering.clones > 0 && found.prediction.peak_bytes > 0);
}

pub(crate) fn what_is_written_without_the_runtime_computes_the_same() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    deployed(&unet(), &out, "60%", None).unwrap_or_else(|error| panic!("{error}"));
    let run = |model: &Path| run_seeded(runtime(), model, &SessionSettings::exact(OptimizationLevel::Off), 5);
    assert_eq!(run(&unet()).expect("it runs"), run(&out).expect("it runs"));
}

pub(crate) fn a_budget_that_cannot_be_met_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let error = deployed(&unet(), &out, "1%", None).expect_err("no plan takes so little");
    assert!(
        matches!(error, DeployError::Pipeline(Error::Solve(SolveError::Refused(_)))),
        "{error}"
    );
    assert!(!out.exists());
}

/// Both a strategy that fuses and those that do not are tried, and the refusal counts from what was measured.
pub(crate) fn a_budget_is_refused_after_every_strategy() {
    let host = host();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let error = deployed(&unet(), &out, "10%", Some(&host)).expect_err("no plan takes so little");
    let DeployError::Pipeline(Error::Solve(SolveError::Refused(refusal))) = error else {
        panic!("{error}")
    };
    assert_eq!(refusal.baseline.of, BaselineOf::Measured);
    assert_eq!(refusal.budget, refusal.baseline.bytes / 10);
    assert!(!out.exists());
    // What the model takes as it is keeps a budget of all of it, whatever becomes of plans.
    let found = deployed(&unet(), &out, "100%", Some(&host)).unwrap_or_else(|error| panic!("{error}"));
    let check = found.check.expect("the runtime is here");
    if let Some((after, budget)) = check.after.arena_off.zip(found.budget) {
        assert!(after <= budget, "{after} bytes, the budget is {budget}");
    }
}

pub(crate) fn only_models_run_in_the_runtime() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let graph = workspace().join("test/cli/training_chain.json");
    let error = deployed(&graph, &folder.path().join("out.onnx"), "75%", None).expect_err("it is no model");
    assert!(matches!(error, DeployError::NotForRuntime { .. }), "{error}");
}

pub(crate) fn at_the_end_of_the_time_a_verified_file_is_there_and_what_is_missing_is_told() {
    let host = host();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let control = SolveControl::new().time_limit(Duration::from_millis(50));
    let found = deployed_within(&unet(), &out, "auto", Some(&host), &control).unwrap_or_else(|error| panic!("{error}"));
    let check = found.check.expect("one run of each model is always measured");
    assert!(check.seeds >= 1 && out.exists());
    assert_eq!(check.time_ratio, None);
    assert!(found.left_out.contains(&LeftOut::Times), "{:?}", found.left_out);
    assert!(found.left_out.contains(&LeftOut::ArenaPeaks), "{:?}", found.left_out);
}

pub(crate) fn a_cancelled_deployment_leaves_no_file() {
    let host = host();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let stop = AtomicBool::new(true);
    let control = SolveControl::new().cancel(&stop);
    let error = deployed_within(&unet(), &out, "auto", Some(&host), &control).expect_err("nothing was measured");
    assert!(matches!(error, DeployError::Interrupted), "{error}");
    assert!(!out.exists());
}

pub(crate) fn an_original_that_never_ends_is_an_error_within_the_limit_and_what_is_granted_beyond() {
    let host = host();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let model = workspace().join("test/cli/infinite_loop.onnx");
    let control = SolveControl::new().time_limit(Duration::from_secs(1));
    let error = deployed_within(&model, &out, "auto", Some(&host), &control).expect_err("it never ends");
    let DeployError::Runtime(RuntimeError::TimedOut { model: named, limit }) = error else {
        panic!("{error}")
    };
    assert_eq!(named, model);
    assert!(limit <= Duration::from_secs(31), "{limit:?}");
    assert!(!out.exists());
}
