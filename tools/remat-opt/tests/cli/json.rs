//! `--format json`: one object on stdout for every command and every failure.

use serde_json::Value;

use crate::{SEARCH, remat_opt, stdout_of};

/// Checks that an object has the keys that its schema demands, and no others.
fn assert_fits_schema(report: &Value) {
    let format = report["format"].as_str().expect("every object names its form");
    let text = stdout_of(&mut remat_opt(&format!("explain {format}")));
    let schema: Value = serde_json::from_str(&text).expect("schemas are JSON");
    assert_eq!(schema["properties"]["format"]["const"], format);
    let included = schema["$ref"]
        .as_str()
        .and_then(|place| schema.pointer(place.trim_start_matches('#')));
    for schema in std::iter::once(&schema).chain(included) {
        for key in schema["required"].as_array().into_iter().flatten() {
            assert!(
                report.get(key.as_str().unwrap_or_default()).is_some(),
                "{format} lacks {key}"
            );
        }
    }
    let is_known = |key: &str| {
        let mut schemas = std::iter::once(&schema).chain(included);
        schemas.any(|schema| schema["properties"].get(key).is_some())
    };
    for key in report.as_object().expect("an object").keys() {
        assert!(is_known(key), "the schema of {format} does not have `{key}`");
    }
}

/// The object on stdout, which fits its schema, and the exit status.
fn run(line: &str) -> (Value, i32) {
    let output = remat_opt(line).output().expect("the program runs");
    let value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON object");
    assert_fits_schema(&value);
    (value, output.status.code().expect("no signal"))
}

#[test]
fn every_report_names_its_form_and_has_a_place_for_warnings() {
    let graph = "cli/training_chain.json";
    for (line, format) in [
        (format!("{graph} --budget 80% {SEARCH}"), "remat-report/2"),
        (format!("inspect {graph}"), "remat-inspect/2"),
        ("place cli/buffers.csv".to_owned(), "remat-place/1"),
        (format!("sweep {graph} --budgets 80% {SEARCH}"), "remat-sweep/2"),
        (
            format!("compare {graph} --budgets 80% --solvers search --step-limit 100"),
            "remat-comparison/1",
        ),
        (
            format!("max-batch {graph} --batch-factor --memory 8MiB {SEARCH}"),
            "remat-max-batch/2",
        ),
        (
            "simulate dtr-logs/training_step.log --ratio 0.8".to_owned(),
            "remat-simulate/1",
        ),
        (
            "check models/mlp_tiny_train.onnx --limit 64MiB".to_owned(),
            "remat-check/1",
        ),
        ("explain V006".to_owned(), "remat-explain/1"),
        ("explain".to_owned(), "remat-explain/1"),
    ] {
        let (report, status) = run(&format!("{line} --format json"));
        assert_eq!(status, 0, "{line}");
        assert_eq!(report["format"], format, "{line}");
        assert_eq!(report["warnings"], Value::Array(vec![]), "{line}");
        assert_eq!(report.get("error"), None, "{line}");
    }
}

#[test]
fn failures_are_objects_of_one_form() {
    for (line, kind, status, kind_of_details) in [
        ("cli/training_chain.json --budget 1MiB", "finding", 1, "budget"),
        ("cli/training_chain.json --solver oracle", "input", 2, "unknown-name"),
        ("no-such-model.onnx", "input", 2, ""),
        (
            "inspect models/unet_tiny_train.onnx --dim bacth=2",
            "input",
            2,
            "unknown-name",
        ),
        (
            "sweep cli/training_chain.json -o cli/training_chain.json",
            "input",
            2,
            "",
        ),
        ("explain V999", "usage", 2, "unknown-name"),
        (
            "simulate dtr-logs/training_step.log --heuristic dtr-qe",
            "usage",
            2,
            "unknown-name",
        ),
        ("simulate dtr-logs/invalid/alias_missing.log", "input", 2, ""),
        ("cli/training_chain.json --budgte 80%", "usage", 2, ""),
        ("verify cli/training_chain.json", "usage", 2, ""),
    ] {
        let (failure, exit) = run(&format!("{line} --format json"));
        assert_eq!(failure["format"], "remat-error/1", "{line}");
        assert_eq!(exit, status, "{line}");
        let error = &failure["error"];
        assert_eq!(error["kind"], kind, "{line}");
        assert_eq!(error["exit_status"], status, "{line}");
        assert_ne!(error["message"], "", "{line}");
        let found = error["details"]["type"].as_str().unwrap_or_default();
        assert_eq!(found, kind_of_details, "{line}: {error}");
    }
}

#[test]
fn a_finding_stands_in_the_report_that_tells_it() {
    for (line, form) in [
        ("verify cli/training_chain.json cli/wrong_plan.json", "remat-verify/1"),
        ("sweep cli/training_chain.json --budgets 1%", "remat-sweep/2"),
        (
            "compare cli/training_chain.json --budgets 1% --solvers search",
            "remat-comparison/1",
        ),
    ] {
        let (report, status) = run(&format!("{line} --format json"));
        assert_eq!(status, 1, "{line}");
        assert_eq!(report["format"], form, "{line}");
        assert_eq!(report["error"]["kind"], "finding", "{line}");
    }
}

#[test]
fn the_object_of_a_failure_says_what_its_message_says() {
    assert_run!("cli/training_chain.json --budget 1MiB --format json");
    assert_run!("explain V06 --format=json");
    assert_run!("cli/training_chain.json --format json --budgte 80%");
}

#[test]
fn warnings_of_the_libraries_are_in_the_report() {
    let (report, _) = run(
        "models/unet_tiny_train.onnx --target ort --ort-library none --budget 80% --step-limit 200 -q --format json",
    );
    let warnings = report["warnings"].as_array().expect("a list");
    assert!(
        warnings
            .iter()
            .any(|warning| warning.as_str().is_some_and(|text| text.contains("ONNX Runtime"))),
        "{warnings:?}"
    );
}

#[test]
fn the_name_that_was_meant_is_suggested() {
    for (line, meant) in [
        ("cli/training_chain.json --solver serach", "search"),
        ("models/unet_tiny_train.onnx --device rasberry-pi-4", "raspberry-pi-4"),
        ("models/unet_tiny_train.onnx --size enc1.yy=4", "enc1.y"),
        ("explain V06", "V006"),
        ("simulate dtr-logs/training_step.log --heuristic dtr-qe", "dtr-eq"),
    ] {
        let output = remat_opt(line).output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        crate::assert_contains_all(&text, &[&format!("did you mean `{meant}`?")]);
    }
}
