//! `-` for stdin and stdout.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of, workspace};

const GRAPH: &str = "cli/training_chain.json";
const MODEL: &str = "models/mlp_tiny_train.onnx";
const QUICK: &str = "--budget 80% --step-limit 200 --threads 1 --target onnx";

/// Runs with a file of `test/` as stdin.
fn fed(mut command: Command, file: &str) -> Output {
    let bytes = std::fs::read(workspace().join("test").join(file)).expect("it is there");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A run that is refused does not read.
    _ = stdin.write_all(&bytes);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_model_goes_from_stdin_to_stdout_and_the_report_to_stderr() {
    let piped = fed(remat_opt(&format!("- -o - {QUICK}")), MODEL);
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    let folder = Folder::new();
    let mut direct = remat_opt(&format!("{MODEL} {QUICK} -o"));
    stdout_of(direct.arg(folder.path("out.onnx")));
    let written = std::fs::read(folder.path("out.onnx")).expect("it was written");
    assert_eq!(piped.stdout, written, "the same bytes");
    assert_contains_all(&text(&piped.stderr), &["Memory   ", "Written  -: "]);
}

#[test]
fn what_stdout_gets_follows_from_the_input_or_is_said() {
    let plan = fed(remat_opt(&format!("- -o - {QUICK} -q")), GRAPH);
    let value: Value = serde_json::from_slice(&plan.stdout).expect("a plan");
    assert_eq!(value["format"], "remat-plan/2");
    let drawing = fed(remat_opt(&format!("- -o - --output-format dot {QUICK}")), MODEL);
    assert!(
        text(&drawing.stdout).starts_with("digraph"),
        "{}",
        text(&drawing.stderr)
    );
}

#[test]
fn every_kind_of_input_is_told_from_its_beginning() {
    for (line, file) in [
        ("inspect -", GRAPH),
        ("inspect -", MODEL),
        ("inspect -", "dtr-logs/training_step.log"),
        ("inspect - --input-format log", "dtr-logs/training_step.log"),
        ("simulate - --ratio 0.8", "dtr-logs/training_step.log"),
    ] {
        let output = fed(remat_opt(line), file);
        assert!(output.status.success(), "{line} < {file}: {}", text(&output.stderr));
    }
}

#[test]
fn plans_charts_and_fronts_are_piped_too() {
    let plan = stdout_of(&mut remat_opt(&format!(
        "{GRAPH} -o - --budget 80% --step-limit 200 -q"
    )));
    let folder = Folder::new();
    std::fs::write(folder.path("plan.json"), &plan).expect("it can be written");
    let verified = fed(
        remat_opt(&format!("verify {GRAPH} -")),
        folder.path("plan.json").to_str().expect("a name"),
    );
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    let sweep = format!("sweep {GRAPH} --budgets 80% --step-limit 200 -q");
    let chart = stdout_of(&mut remat_opt(&format!("{sweep} --svg -")));
    assert!(chart.starts_with("<svg"), "{chart}");
    let front: Value = serde_json::from_str(&stdout_of(&mut remat_opt(&format!("{sweep} -o -")))).expect("JSON");
    assert_eq!(front["format"], "remat-front/1");
}

#[test]
fn a_report_in_json_goes_to_stderr_where_stdout_is_taken() {
    let output = fed(remat_opt(&format!("- -o - {QUICK} -q --format json")), MODEL);
    let report: Value = serde_json::from_slice(&output.stderr).expect("one object");
    assert_eq!((&report["input"], &report["output"]), (&"-".into(), &"-".into()));
    let failed = fed(remat_opt("- -o - --budget 1 -q --format json"), GRAPH);
    assert!(failed.stdout.is_empty(), "nothing that a reader could take for a plan");
    let failure: Value = serde_json::from_slice(&failed.stderr).expect("one object");
    assert_eq!(failure["format"], "remat-error/1");
}

#[test]
fn a_model_whose_weights_lie_in_other_files_is_refused_with_the_reason() {
    let output = fed(remat_opt("inspect -"), "models/features/external_data.onnx");
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr).replace("\n  │", "");
    assert_contains_all(
        &stderr,
        &["external data of `weight`", "name the model's file instead of `-`"],
    );
}

#[test]
fn a_stream_is_used_once_and_messages_call_it_by_its_name() {
    for (line, message) in [
        ("- --plan -", "only one input can be `-`"),
        ("- -o - --emit-plan -", "only one output can be `-`"),
        (
            "- --output-format dot -o out.dot",
            "`--output-format` says what `-o -` writes",
        ),
        (
            &format!("{GRAPH} --input-format json"),
            "`--input-format` says what stdin holds",
        ),
        ("- --input-format onnx -o out.txt", "`out.txt` has no extension"),
    ] {
        let output = fed(remat_opt(line), GRAPH);
        assert_eq!(output.status.code(), Some(2), "{line}");
        let stderr = text(&output.stderr).replace("\n  │", "");
        assert_contains_all(&stderr, &[message]);
        assert!(!stderr.contains("stdin."), "{stderr}");
    }
}

#[test]
fn events_are_plain_text() {
    let folder = Folder::new();
    let mut command = remat_opt(&format!("{MODEL} {QUICK} -vv -o"));
    let output = command.arg(folder.path("out.onnx")).output().expect("it runs");
    let said = text(&output.stderr);
    assert_contains_all(&said, &["DEBUG remat"]);
    assert!(!said.contains("\\u001b") && !said.contains('\u{1b}'), "{said}");
}
