//! `remat-bench zoo` on a folder of models of which only some can be deployed.
#![expect(clippy::panic, reason = "the helpers of tests fail as tests do")]

use std::path::Path;
use std::process::{Command, ExitCode};

use remat_testing::{Need, run, runtime_library, trial, workspace};
use serde_json::Value;

fn main() -> ExitCode {
    run([trial!(
        whatever_becomes_of_a_model_is_a_row_and_rows_are_made_once,
        Need::OnnxRuntime
    )])
}

/// What the command tells while it works, and the rows that it wrote.
fn zoo(folder: &Path, more: &[&str]) -> (String, Vec<Value>) {
    let rows = folder.join("rows.json");
    let output = Command::new(env!("CARGO_BIN_EXE_remat-bench"))
        .arg("zoo")
        .arg(folder.join("models"))
        .args(["--time", "1s", "--limit", "8s", "--batch", "32", "--format", "json"])
        .args(more)
        .arg("--rows")
        .arg(&rows)
        .arg("--ort-library")
        .arg(runtime_library())
        .output()
        .expect("the program runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let text = std::fs::read_to_string(rows).expect("the rows were written");
    let file: Value = serde_json::from_str(&text).expect("the rows are JSON");
    (told, file["rows"].as_array().expect("there are rows").clone())
}

fn row<'r>(rows: &'r [Value], model: &str) -> &'r Value {
    let found = rows.iter().find(|row| row["model"] == model);
    found.unwrap_or_else(|| panic!("no row of {model}: {rows:?}"))
}

fn whatever_becomes_of_a_model_is_a_row_and_rows_are_made_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = folder.path().join("models");
    std::fs::create_dir_all(models.join("inside")).expect("it can be made");
    let copy = |from: &str, to: &str| {
        std::fs::copy(workspace().join("test").join(from), models.join(to)).expect("it can be copied");
    };
    copy("models/features/dynamic_batch.onnx", "inside/dynamic.onnx");
    copy("cli/infinite_loop.onnx", "endless.onnx");
    std::fs::write(models.join("broken.onnx"), "no model").expect("it can be written");

    let (told, rows) = zoo(folder.path(), &[]);
    assert!(
        told.contains("1/3  broken") && told.contains("3/3  inside/dynamic"),
        "{told}"
    );
    let broken = &row(&rows, "broken")["opened"]["failed"];
    assert!(broken.as_str().is_some_and(|why| !why.contains('/')), "{broken}");
    let endless = &row(&rows, "endless")["deployed"]["failed"];
    assert!(
        endless.as_str().is_some_and(|why| why.contains("not over after 8 s")),
        "{endless}"
    );
    let dynamic = row(&rows, "inside/dynamic");
    assert_eq!(dynamic["opened"]["done"]["dims"]["batch"], 32);
    let deployed = &dynamic["deployed"]["done"];
    assert!(deployed["seeds"].as_u64() >= Some(1), "{dynamic}");
    let exact = ["before", "after"].map(|which| deployed["exact"][which].as_u64());
    if let [Some(before), Some(after)] = exact {
        assert!(after < before + (64 << 10), "{dynamic}");
    }

    let (told, again) = zoo(folder.path(), &[]);
    assert_eq!((told.as_str(), &again), ("", &rows));
    std::fs::write(models.join("broken.onnx"), "no model either").expect("it can be written");
    let (told, _) = zoo(folder.path(), &[]);
    assert_eq!(told, "1/3  broken\n");
    let (told, rows) = zoo(folder.path(), &["--only", "dynamic", "--dim", "batch=64"]);
    assert_eq!((told.as_str(), rows.len()), ("1/1  inside/dynamic\n", 3));
    assert_eq!(row(&rows, "inside/dynamic")["opened"]["done"]["dims"]["batch"], 64);
}
