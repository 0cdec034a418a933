//! `remat-opt check` where models run.

use std::path::Path;
use std::process::Command;

use remat::onnx::proto::Message;
use remat_testing::onnx::{FLOAT, graph, model, node, opset, tensor_type};
use serde_json::Value;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of, with_runtime};

const UNET: &str = "models/unet_tiny_train.onnx";

/// By how much the growth of two processes of one model may differ.
const NOISE: u64 = 2 << 20;

/// Exit status and report.
fn report(command: &mut Command) -> (Option<i32>, Value) {
    let output = command.args(["--format", "json"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {said}"));
    (output.status.code(), report.expect("a report"))
}

fn measured(report: &Value) -> u64 {
    report["models"][0]["measured_bytes"].as_u64().expect("it was measured")
}

pub(crate) fn what_is_checked_is_what_the_main_command_measures_of_the_original() {
    let folder = Folder::new();
    let mut main = with_runtime(&format!(
        "{UNET} --budget none --step-limit 50 --threads 1 --time-limit 600s"
    ));
    let (_, found) = report(main.arg("-o").arg(folder.path("same.onnx")));
    let before = &found["measured"]["before"];
    let first = before["resident_first_bytes"].as_u64().expect("the system tells");
    let most = before["resident_later_bytes"].as_u64().unwrap_or(0).max(first);
    let (status, checked) = report(&mut with_runtime(&format!("check {UNET}")));
    assert_eq!(status, Some(0), "{checked}");
    assert!(checked["runtime"].is_string(), "{checked}");
    assert!(measured(&checked).abs_diff(most) < NOISE, "{most}: {checked}");
    let predicted = checked["models"][0]["predicted_bytes"].as_u64().expect("a number");
    assert!(predicted.abs_diff(most) < NOISE, "{most}: {checked}");
}

pub(crate) fn a_limit_is_about_what_was_measured() {
    let (_, checked) = report(&mut with_runtime(&format!("check {UNET}")));
    let bytes = measured(&checked);
    for (limit, status) in [(bytes + NOISE, 0), (bytes - NOISE, 1)] {
        let (found, report) = report(&mut with_runtime(&format!("check {UNET} --limit {limit}")));
        assert_eq!(found, Some(status), "{limit}: {report}");
        let held = &report["models"][0]["limits"][0];
        assert_eq!(held["of"], "measured", "{report}");
        assert_eq!(held["bytes"].as_u64(), Some(measured(&report)), "{report}");
    }
}

/// A model whose intermediate results have so many elements each.
fn write_wide(path: &Path, elements: u64, version: i64) {
    let nodes = vec![
        node("Exp", &["x"], &["a"]),
        node("Tanh", &["a"], &["b"]),
        node("Add", &["a", "b"], &["c"]),
        node("ReduceSum", &["c"], &["y"]),
    ];
    let mut model = model(graph(
        &[("x", tensor_type(FLOAT, &elements.to_string()))],
        nodes,
        &["y"],
    ));
    model.opset_import = vec![opset("", version)];
    std::fs::write(path, model.write_to_bytes().expect("it has bytes")).expect("it can be written");
}

pub(crate) fn a_model_that_grew_is_told_by_what_was_measured_before_and_now() {
    let folder = Folder::new();
    let (path, memory) = (folder.path("wide.onnx"), folder.path("memory.json"));
    write_wide(&path, 4 << 20, 18);
    let (status, before) = report(with_runtime("check").arg(&path).arg("--write-baseline").arg(&memory));
    assert_eq!(status, Some(0), "{before}");
    let against = |growth: &str| {
        let mut command = with_runtime(&format!("check --max-growth {growth}"));
        report(command.arg(&path).arg("--baseline").arg(&memory))
    };
    let (status, same) = against("2MiB");
    assert_eq!(status, Some(0), "{same}");
    write_wide(&path, 6 << 20, 18);
    let (status, grown) = against("20%");
    assert_eq!(status, Some(1), "{grown}");
    let since = &grown["models"][0]["since"];
    assert_eq!(since["of"], "measured", "{grown}");
    assert_eq!(since["before_bytes"].as_u64(), Some(measured(&before)), "{grown}");
    assert_eq!(since["after_bytes"].as_u64(), Some(measured(&grown)), "{grown}");
    assert_eq!(against("100%").0, Some(0));
    // What was not measured is held against a prediction.
    let mut without = remat_opt("check --max-growth 20%");
    let (status, predicted) = report(without.arg(&path).arg("--baseline").arg(&memory));
    assert_eq!(status, Some(1), "{predicted}");
    assert_eq!(predicted["models"][0]["since"]["of"], "predicted", "{predicted}");
    stdout_of(remat_opt("check").arg(&path).arg("--write-baseline").arg(&memory));
    let mixed = stdout_of(with_runtime("check").arg(&path).arg("--baseline").arg(&memory));
    assert_contains_all(&mixed, &["+0 B, +0.0 %", "differences are those of predictions"]);
}

pub(crate) fn a_model_that_does_not_run_is_no_model_within_its_limit() {
    let folder = Folder::new();
    let path = folder.path("future.onnx");
    write_wide(&path, 1 << 20, 99);
    let output = with_runtime("check --limit 1GiB").arg(&path).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_contains_all(&said, &["ONNX Runtime cannot load", "future.onnx"]);
    let predicted = remat_opt("check --limit 1GiB").arg(&path).output().expect("it runs");
    assert!(predicted.status.success());
}
