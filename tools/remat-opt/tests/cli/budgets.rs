//! Budgets: what is not a budget, what is refused, and that the command which a refusal prints works.

use std::process::{Command, Output};

use serde_json::Value;

use crate::{Folder, SEARCH, assert_contains_all, remat_opt, workspace};

const CHAIN: &str = "cli/training_chain.json";
const UNET: &str = "models/unet_tiny_train.onnx";

fn run(line: &str) -> (Output, String) {
    let output = remat_opt(line).output().expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
    (output, message)
}

#[test]
fn what_is_no_budget_is_told_what_was_meant() {
    for (budget, part) in [
        ("0.8", "did you mean `80%`?"),
        ("-5%", "must not be negative"),
        ("0", "nothing fits into it"),
        ("0%", "nothing fits into it"),
        ("101%", "more than the model takes"),
        ("512Mi", "did you mean `512MiB`?"),
        ("MiB", "the number is missing"),
        ("99999999999GiB", "too large"),
    ] {
        for form in [format!("-b {budget}"), format!("--budget={budget}")] {
            let (output, message) = run(&format!("{CHAIN} {form}"));
            assert_eq!(output.status.code(), Some(2), "{message}");
            assert_contains_all(&message, &[&format!("`{budget}` is not a budget"), part]);
        }
    }
}

#[test]
fn a_bare_number_is_asked_whether_it_was_a_share_and_a_share_is_not() {
    let (_, message) = run(&format!("{CHAIN} --budget 10 {SEARCH}"));
    assert_contains_all(&message, &["did you mean 10%?"]);
    // A share of a problem so small is fewer than 100 bytes.
    let folder = Folder::new();
    let tiny = folder.path("tiny.json");
    let text = r#"{"directed": true, "multigraph": false, "graph": {"name": "tiny", "order": [0, 1]},
        "nodes": [{"id": 0, "name": "a", "cost_cpu": 1, "cost_ram": 9}, {"id": 1, "name": "b", "cost_cpu": 1, "cost_ram": 8}],
        "links": [{"source": 0, "target": 1}]}"#;
    std::fs::write(&tiny, text).expect("it can be written");
    let (output, message) = run(&format!("{} --budget 80% {SEARCH}", tiny.display()));
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(!message.contains("did you mean"), "{message}");
}

/// The command that a failure prints, which is its last line.
fn command_of(message: &str) -> &str {
    let line = message.lines().rev().find(|line| !line.trim().is_empty());
    line.expect("there is a last line").trim()
}

/// Runs a line in a shell, in `test/`.
fn shell(line: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(workspace().join("test"));
    shell.output().expect("the shell runs")
}

#[cfg(unix)]
#[test]
fn the_command_that_a_refused_budget_prints_works() {
    for line in [
        format!("{CHAIN} --budget 10% {SEARCH}"),
        format!("{CHAIN} -b 1MiB {SEARCH}"),
        format!("{UNET} -qb20% {SEARCH}"),
    ] {
        let (output, message) = run(&line);
        assert!(matches!(output.status.code(), Some(1 | 4)), "{message}");
        assert_contains_all(&message, &["alone needs", "the lowest peak", " %"]);
        let again = shell(command_of(&message));
        assert!(
            again.status.success(),
            "{message}\n{}",
            String::from_utf8_lossy(&again.stderr)
        );
    }
}

#[cfg(unix)]
#[test]
fn programs_get_the_figures_of_a_refused_budget() {
    let (output, message) = run(&format!("{CHAIN} --budget 10% {SEARCH} --format json"));
    assert_eq!(output.status.code(), Some(1), "{message}");
    let failure: Value = serde_json::from_slice(&output.stdout).expect("the failure is JSON");
    let details = &failure["error"]["details"];
    let (need, lowest) = (&details["need_bytes"], &details["lowest_peak_bytes"]);
    assert!(
        details["op"].is_string() && need.as_u64() <= lowest.as_u64(),
        "{failure}"
    );
    assert!(need.as_u64() > details["budget_bytes"].as_u64(), "{failure}");
    assert_eq!(details["lowest_is_proved"], need == lowest, "{failure}");
    let again = shell(details["command"].as_str().expect("there is a command"));
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

#[cfg(unix)]
#[test]
fn an_overhead_beside_a_budget_is_kept_or_refused_with_one_that_works() {
    let (output, message) = run(&format!("{UNET} -b 60% --max-overhead 0% {SEARCH}"));
    assert!(matches!(output.status.code(), Some(1 | 4)), "{message}");
    assert_contains_all(&message, &["% are allowed"]);
    let again = shell(command_of(&message));
    assert!(
        again.status.success(),
        "{message}\n{}",
        String::from_utf8_lossy(&again.stderr)
    );
}

#[test]
fn a_plan_beyond_the_memory_of_the_device_is_refused() {
    let (output, message) = run(&format!("{UNET} --device mkr1000 -b 80% {SEARCH}"));
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_contains_all(&message, &["device `mkr1000` has 32.0 KiB", "--device-memory none"]);
    let (output, message) = run(&format!("{UNET} --device mkr1000 --device-memory none -b 80% {SEARCH}"));
    assert!(output.status.success(), "{message}");
}

#[test]
fn without_a_runtime_the_first_line_says_what_to_install() {
    let folder = Folder::new();
    let without_runtime = |options: &str| {
        let mut make = remat_opt(&format!("{UNET} --ort-library none --budget 80% {SEARCH} {options} -o"));
        crate::stdout_of(make.arg(folder.path("out.onnx")))
    };
    let text = without_runtime("");
    let first = text.lines().next().expect("there is a first line");
    assert_contains_all(first, &["ONNX Runtime", "nothing gained", "pip install onnxruntime"]);
    let report: Value = serde_json::from_str(&without_runtime("--format json")).expect("the report is JSON");
    let warnings = report["warnings"].to_string();
    assert_contains_all(&warnings, &["nothing gained", "pip install onnxruntime"]);
    // Where any runtime is asked for, this one is not named.
    assert!(!without_runtime("--target onnx").contains("pip install"));
}

/// A per cent is one of the same bytes in every command.
#[test]
fn every_command_has_one_baseline() {
    let baseline = |line: &str| {
        let report: Value = serde_json::from_str(&crate::stdout_of(&mut remat_opt(line))).expect("JSON");
        let bytes = report["baseline_peak_bytes"].as_u64().expect("a number");
        (bytes, report["baseline_of"].as_str().expect("a word").to_owned())
    };
    let commands = |options: &str| {
        let lines = [
            format!("inspect {UNET} {options} --format json"),
            format!("{UNET} -b 60% {options} {SEARCH} --format json"),
            format!("{UNET} -b 60% --target ort {options} {SEARCH} --format json"),
            format!("sweep {UNET} --budgets 60% {options} {SEARCH} --format json"),
            format!("compare {UNET} --budgets 60% {options} --solvers search --step-limit 1000 --format json"),
        ];
        let mut all: Vec<_> = lines.iter().map(|line| baseline(line)).collect();
        all.dedup();
        all
    };
    let [(in_runtime, simulated)] = &commands("")[..] else {
        panic!("{:?}", commands(""))
    };
    let [(in_file, file_order)] = &commands("--baseline file")[..] else {
        panic!("{:?}", commands("--baseline file"))
    };
    assert_eq!((&**simulated, &**file_order), ("simulated", "file-order"));
    assert!(in_runtime != in_file);
}
