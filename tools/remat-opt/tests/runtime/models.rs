//! `remat-opt profile`, `remat-opt verify` on two models, and plans for fused graphs.

use std::path::Path;
use std::process::{Command, Output};

use remat::onnx::proto::{Message, ModelProto, TensorProto};
use remat::profile::ProfileFile;
use remat_testing::onnx::{FLOAT, graph, model, node, tensor_type};
use serde_json::Value;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of, with_runtime};

const MLP: &str = "models/mlp_tiny_train.onnx";
const UNET: &str = "models/unet_tiny_train.onnx";

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, stderr)
}

pub(crate) fn a_model_computes_what_it_computes() {
    let mut command = with_runtime(&format!("verify {MLP} {MLP} --runs 2 --seeds 2"));
    let folder = Folder::new();
    let text = stdout_of(command.arg("-o").arg(folder.path("report.json")));
    assert_contains_all(&text, &["time, median", "outputs for each of 2 seeds: bit-identical"]);
    let report: Value = serde_json::from_str(&folder.read("report.json")).expect("the report is JSON");
    assert_eq!(report["identical"], true);
    assert_eq!(report["settings"]["level"], "all");
    let peak = &report["base"]["first_run_peak_bytes"];
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        assert!(peak.as_u64() > Some(1 << 20), "{report}");
        assert_contains_all(&text, &["peak, first run", "peak, later runs"]);
        assert_contains_all(&text, &["growth, first run", "growth, later runs"]);
        let growth = &report["rewritten"]["resident_later_bytes"];
        assert!(growth.as_u64() > Some(1 << 20), "{report}");
    } else {
        assert_contains_all(&text, &["peaks are not known"]);
    }
}

pub(crate) fn the_first_output_that_differs_is_named_and_is_a_finding() {
    let mut command = with_runtime(&format!("verify {MLP} {UNET} --runs 1 --seeds 1"));
    let (output, stderr) = run(&mut command);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_contains_all(&stderr, &["does not compute what", "output `loss` differs"]);
}

pub(crate) fn a_model_that_cannot_be_loaded_is_an_input_error() {
    let folder = Folder::new();
    let broken = folder.path("broken.onnx");
    std::fs::write(&broken, "no model").expect("it can be written");
    let mut command = with_runtime(&format!("verify {MLP}"));
    let (output, stderr) = run(command.arg(&broken));
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_contains_all(&stderr, &["ONNX Runtime cannot load", "broken.onnx", "--no-measure"]);
}

pub(crate) fn a_measured_profile_is_used_like_any_other() {
    let folder = Folder::new();
    let mut command = with_runtime(&format!("profile {MLP} --runs 2"));
    stdout_of(command.arg("-o").arg(folder.path("profile.json")));
    let file = ProfileFile::from_json(&folder.read("profile.json")).expect("it is a profile");
    assert_eq!(file.ops.len(), 57);
    assert!(file.ops.iter().all(|op| !op.outputs.is_empty()));
    assert!(
        file.run
            .is_some_and(|run| run.runtime.starts_with("ONNX Runtime 1.") && run.runs == 2)
    );
    stdout_of(remat_opt(&format!("inspect {MLP} --profile")).arg(folder.path("profile.json")));
    let other = remat_opt(&format!("inspect {UNET} --profile"))
        .arg(folder.path("profile.json"))
        .output();
    assert_eq!(other.expect("the program runs").status.code(), Some(2));
    let mut command = with_runtime(&format!("inspect {MLP} --profile measured"));
    stdout_of(&mut command);
}

pub(crate) fn the_slowest_ops_are_listed() {
    let mut command = with_runtime(&format!("profile {MLP} --runs 2 --top 3"));
    let text = stdout_of(&mut command);
    assert_contains_all(&text, &["57 ops take", "median of 2 warm runs", "bytes of results"]);
}

/// Writes a tensor of 32-bit floats as a test data set of the `onnx` package does.
fn write_input(path: &Path, name: &str, dims: &[i64]) {
    let count: i64 = dims.iter().product();
    let tensor = TensorProto {
        name: name.to_owned(),
        dims: dims.to_vec(),
        data_type: 1,
        float_data: vec![0.5; usize::try_from(count).expect("it is small")],
        ..TensorProto::default()
    };
    std::fs::write(path, tensor.write_to_bytes().expect("it can be written")).expect("it can be written");
}

pub(crate) fn inputs_come_from_a_folder_and_must_fit() {
    let folder = Folder::new();
    write_input(&folder.path("input_0.pb"), "x", &[4096, 64]);
    let line = format!("profile {MLP} --runs 1");
    let run_with = |folder: &Folder| run(with_runtime(&line).arg("--inputs").arg(folder.path("")));
    let (output, stderr) = run_with(&folder);
    assert!(output.status.success(), "{stderr}");
    write_input(&folder.path("input_0.pb"), "x", &[4096, 65]);
    let (output, stderr) = run_with(&folder);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_contains_all(&stderr, &["input `x`", "4096, 65"]);
    write_input(&folder.path("input_0.pb"), "other", &[4096, 64]);
    let (output, stderr) = run_with(&folder);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_contains_all(&stderr, &["holds tensor `other`, input 0 is `x`"]);
}

/// A plan that is made with `options` says of the model what is `stated`, passes the checker, and gives the same file again.
fn is_applied_again(options: &str, model: &str, stated: &[&str]) {
    let folder = Folder::new();
    let (plan, first, again) = (
        folder.path("plan.json"),
        folder.path("first.onnx"),
        folder.path("again.onnx"),
    );
    let steps = "--step-limit 500 --time-limit 10m --threads 1 --no-measure -q";
    let mut make = with_runtime(&format!("{model} {steps} {options}"));
    stdout_of(make.arg("-o").arg(&first).arg("--emit-plan").arg(&plan));
    assert_contains_all(&folder.read("plan.json"), stated);
    stdout_of(with_runtime(&format!("verify {model}")).arg(&plan));
    let mut apply = with_runtime(&format!("{model} --no-measure -q"));
    stdout_of(apply.arg("--plan").arg(&plan).arg("-o").arg(&again));
    let bytes = |name: &str| std::fs::read(folder.path(name)).expect("it was written");
    assert_eq!(bytes("first.onnx"), bytes("again.onnx"), "{model}");
}

pub(crate) fn a_plan_for_a_fused_graph_is_checked_on_that_graph() {
    let stated = ["\"fused_by\": \"ONNX Runtime", "\"order_hint\": \"priority\""];
    is_applied_again("--order-hint priority", MLP, &stated);
}

pub(crate) fn a_plan_for_a_laid_out_graph_is_checked_on_that_graph() {
    is_applied_again("--fission off", UNET, &["laid out for this machine"]);
}

pub(crate) fn a_plan_for_tiles_is_checked_on_tiles() {
    is_applied_again("", UNET, &["\"tiling\": {", "\"fused_by\": \"ONNX Runtime"]);
}

/// Convolutions with activations, which the runtime fuses.
fn convolutions() -> ModelProto {
    use remat_testing::onnx::{FLOAT, NodeExt, graph, model, node, numbers, tensor_type};
    let layers = (0..4).map(|layer| [format!("c{layer}"), format!("r{layer}")]);
    let mut nodes = Vec::new();
    let mut last = "x".to_owned();
    for [convolved, rectified] in layers {
        nodes.push(node("Conv", &[&last, "w"], &[&convolved]).ints("pads", &[1, 1, 1, 1]));
        nodes.push(node("Relu", &[&convolved], &[&rectified]));
        last = rectified;
    }
    let shape = tensor_type(FLOAT, "1 16 64 64");
    let mut built = graph(&[("x", shape.clone())], nodes, &[&last]);
    built.output[0].type_ = Some(shape).into();
    built.initializer.push(numbers("w", &[16, 16, 3, 3]));
    model(built)
}

pub(crate) fn times_of_a_profile_are_carried_over_to_fused_nodes() {
    let folder = Folder::new();
    let [input, profile, plan, out] =
        ["in.onnx", "profile.json", "plan.json", "out.onnx"].map(|name| folder.path(name));
    let bytes = convolutions().write_to_bytes().expect("it can be written");
    std::fs::write(&input, bytes).expect("it can be written");
    let mut measure = with_runtime("profile --runs 2");
    stdout_of(measure.arg(&input).arg("-o").arg(&profile));
    let mut make = with_runtime("--step-limit 500 --time-limit 10m --threads 1 --no-measure -q");
    make.arg(&input).arg("--profile").arg(&profile);
    // The size of a value that is gone when the nodes are fused.
    make.args(["--size", "c0=262144"]);
    stdout_of(make.arg("--emit-plan").arg(&plan).arg("-o").arg(&out));
    let plan: Value = serde_json::from_str(&folder.read("plan.json")).expect("the plan is JSON");
    let carried = plan["setup"]["durations_ns"].as_object().expect("it has times");
    let stated = ProfileFile::from_json(&folder.read("profile.json")).expect("it is a profile");
    assert!(plan["setup"]["fused_by"].is_string(), "{plan}");
    assert_eq!((carried.len(), stated.ops.len()), (4, 8), "{carried:?}");
    let carried: u64 = carried.values().filter_map(Value::as_u64).sum();
    assert_eq!(carried, stated.ops.iter().map(|op| op.duration_ns).sum::<u64>());
}

pub(crate) fn ops_are_measured_where_a_file_is_written() {
    let folder = Folder::new();
    let (plan, out) = (folder.path("plan.json"), folder.path("out.onnx"));
    let mut make = with_runtime(&format!("{MLP} --profile measured --step-limit 500 --no-measure -q"));
    stdout_of(make.arg("--emit-plan").arg(&plan).arg("-o").arg(&out));
    let plan: Value = serde_json::from_str(&folder.read("plan.json")).expect("the plan is JSON");
    let measured = plan["setup"]["durations_ns"].as_object().expect("it has times");
    assert!(out.exists() && measured.len() > 20, "{measured:?}");
}

/// One op: its result is all that there is.
fn one_op() -> ModelProto {
    let large = || tensor_type(FLOAT, "1024 1024");
    let mut main = graph(&[("x", large())], vec![node("Relu", &["x"], &["y"])], &["y"]);
    main.output[0].type_ = Some(large()).into();
    model(main)
}

pub(crate) fn no_file_is_written_where_none_takes_less_unless_it_is_forced() {
    let folder = Folder::new();
    let (input, out) = (folder.path("in.onnx"), folder.path("out.onnx"));
    std::fs::write(&input, one_op().write_to_bytes().expect("it has bytes")).expect("it can be written");
    let run = |options: &str| {
        let mut command = with_runtime(options);
        stdout_of(command.arg(&input).arg("-o").arg(&out))
    };
    let text = run("--time-limit 5s");
    assert!(
        text.starts_with("Memory   nothing gained: the original takes "),
        "{text}"
    );
    assert_contains_all(
        &text,
        &[
            "Written  nothing: no file takes less than the original; `--force` writes one",
            "Less     ",
        ],
    );
    assert!(!out.exists());
    let report: Value = serde_json::from_str(&run("--time-limit 5s --format json")).expect("the report is JSON");
    assert_eq!(
        (&report["is_written"], &report["output"]),
        (&Value::Bool(false), &Value::Null)
    );
    assert!(!out.exists());
    for written in ["--force", "--budget 100%", "--settings", "--budget none"] {
        let text = run(&format!("--time-limit 5s {written}"));
        assert!(
            text.contains(&format!("Written  {}: ", out.display())),
            "{written}: {text}"
        );
        std::fs::remove_file(&out).expect("it was written");
    }
    let report: Value =
        serde_json::from_str(&run("--time-limit 5s --force --format json")).expect("the report is JSON");
    assert_eq!(
        (&report["is_written"], report["output"].is_string()),
        (&Value::Bool(true), true)
    );
}
