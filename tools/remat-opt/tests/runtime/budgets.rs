//! Budgets are kept as they were measured, to the byte: what the exit status says is what the report says.

use std::path::PathBuf;

use remat::onnx::proto::Message;
use remat_testing::onnx::{FLOAT, graph, model, node, tensor_type};
use remat_testing::{is_nightly, workspace};
use serde_json::Value;

use crate::{Folder, with_runtime};

/// What is asked for of each model.
const BUDGETS: [&str; 7] = ["auto", "min", "none", "90%", "75%", "60%", "40%"];

/// Models that are looked at in each run of the tests: a training step, and tensors that are smaller than the tables of the runtime.
const MODELS: [&str; 2] = ["models/mlp_tiny_train.onnx", "models/features/split.onnx"];

/// What came of a model and a budget.
struct Outcome {
    code: i32,
    report: Value,
    is_written: bool,
}

fn optimized(input: &str, budget: &str, options: &str) -> Outcome {
    let folder = Folder::new();
    let out = folder.path("out.onnx");
    let line =
        format!("{input} --budget {budget} --step-limit 50 --time-limit 600s --threads 1 --format json {options}");
    let output = with_runtime(&line).arg("-o").arg(&out).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).map_err(|error| format!("{line}: {error}: {stderr}"));
    Outcome {
        code: output.status.code().unwrap_or(-1),
        report: report.expect("a report"),
        is_written: out.exists(),
    }
}

/// What is wrong with what came of it, if something is.
fn lies(found: &Outcome) -> Option<String> {
    let Outcome {
        code,
        report,
        is_written,
    } = found;
    let bytes = |pointer: &str| report.pointer(pointer).and_then(Value::as_u64);
    if report["format"] != "remat-report/2" {
        // It is refused before a file is measured: proved, or for want of steps.
        let is_refused = [1, 4].contains(code) && !is_written;
        return (!is_refused).then(|| format!("exit status {code}: {}", report["error"]["message"]));
    }
    let buffers = bytes("/memory/buffers/after_bytes").or(bytes("/memory/after_bytes"));
    let after = bytes("/measured/after/arena_off").or(bytes("/predicted_peak_bytes"));
    if report["memory"]["of"] != "plan" && buffers != after {
        return Some(format!("{buffers:?} is not what was measured or predicted"));
    }
    match (code, bytes("/missed/budget_bytes").zip(bytes("/missed/reached_bytes"))) {
        (0, None) => None,
        (1, Some((budget, reached))) if reached > budget && after == Some(reached) && !is_written => None,
        (_, missed) => Some(format!("exit status {code}, missed {missed:?}, written: {is_written}")),
    }
}

/// Whether a file that a run ended with exit status 0 for is within the share of the baseline that was asked for.
fn keeps(found: &Outcome, share: u64) -> Result<(), String> {
    let bytes = |pointer: &str| found.report.pointer(pointer).and_then(Value::as_u64);
    let (Some(before), Some(after)) = (bytes("/measured/before/arena_off"), bytes("/measured/after/arena_off")) else {
        return Ok(());
    };
    let budget = u128::from(before) * u128::from(share) / 100;
    match found.code {
        0 if u128::from(after) > budget => Err(format!("exit status 0 with {after} of {before} bytes at {share} %")),
        1 if u128::from(after) <= budget => Err(format!("exit status 1 with {after} of {before} bytes at {share} %")),
        _ => Ok(()),
    }
}

fn every_model() -> Vec<String> {
    let test = workspace().join("test");
    let folders = ["models", "models/features", "models/bodies"];
    let in_folder = |folder: &str| {
        let entries = std::fs::read_dir(test.join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it is readable").path());
        let models = paths.filter(|path| path.extension().is_some_and(|extension| extension == "onnx"));
        models.collect::<Vec<PathBuf>>()
    };
    let mut models: Vec<String> = folders
        .into_iter()
        .flat_map(in_folder)
        .map(|path| path.display().to_string())
        .collect();
    models.sort();
    models
}

pub(crate) fn the_exit_status_is_that_of_the_measured_peak() {
    let models = if is_nightly() {
        every_model()
    } else {
        MODELS.map(str::to_owned).to_vec()
    };
    let mut wrong = Vec::new();
    let mut kept = 0;
    for model in &models {
        for budget in BUDGETS {
            let found = optimized(model, budget, "");
            let share = budget.strip_suffix('%').and_then(|share| share.parse().ok());
            let is_kept = share.map_or(Ok(()), |share| keeps(&found, share));
            kept += usize::from(found.code == 0 && found.is_written);
            let why = lies(&found).or(is_kept.err());
            wrong.extend(why.map(|why| format!("{model} at {budget}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kept > 0, "no file was written: the test shows nothing");
}

/// A chain whose results are all read again, in reverse: small tensors, beside which the runtime keeps tables and nodes that are added.
fn chain(folder: &Folder) -> PathBuf {
    const NODES: usize = 40;
    let name = |place: usize| {
        if place == 0 {
            "x".to_owned()
        } else {
            format!("t{place}")
        }
    };
    let mut nodes: Vec<_> = (0..NODES)
        .map(|place| node("Exp", &[&name(place)], &[&name(place + 1)]))
        .collect();
    // What the first half makes is read again by the second one.
    nodes.extend((0..NODES).map(|place| {
        let before = if place == 0 { name(NODES) } else { format!("s{place}") };
        node("Add", &[&before, &name(NODES - place)], &[&format!("s{}", place + 1)])
    }));
    let x = tensor_type(FLOAT, "256");
    let model = model(graph(&[("x", x)], nodes, &[&format!("s{NODES}")]));
    let path = folder.path("chain.onnx");
    std::fs::write(&path, model.write_to_bytes().expect("it has bytes")).expect("it can be written");
    path
}

pub(crate) fn a_budget_that_no_file_keeps_is_said_first_and_nothing_is_written_unless_forced() {
    let folder = Folder::new();
    let input = chain(&folder);
    let out = folder.path("out.onnx");
    const BUDGET: &str = "16KiB";
    let line = format!(
        "{} --budget {BUDGET} --step-limit 200 --time-limit 600s --threads 1",
        input.display()
    );
    let output = with_runtime(&line).arg("-o").arg(&out).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.starts_with("Budget   missed by"), "{text}");
    assert!(!out.exists());
    let forced = optimized(&input.display().to_string(), BUDGET, "--force");
    assert_eq!(forced.code, 1, "{}", forced.report);
    assert!(
        forced.is_written && !forced.report["missed"].is_null(),
        "{}",
        forced.report
    );
}

pub(crate) fn the_first_figures_are_measured_on_both_models() {
    let found = optimized("models/mlp_tiny_train.onnx", "none", "");
    assert_eq!(found.code, 0, "{}", found.report);
    let memory = &found.report["memory"];
    if memory["of"] == "growth-default-session" {
        let measured = |which: &str, key: &str| found.report["measured"][which][key].as_u64();
        for (which, bytes) in [("before", "before_bytes"), ("after", "after_bytes")] {
            let first = measured(which, "resident_first_bytes").expect("the system tells");
            let later = measured(which, "resident_later_bytes").unwrap_or(0);
            assert_eq!(memory[bytes].as_u64(), Some(first.max(later)), "{memory}");
            assert_eq!(
                memory["buffers"][bytes].as_u64(),
                measured(which, "arena_off"),
                "{memory}"
            );
        }
    }
}

/// What comes in goes out.
pub(crate) fn a_model_without_nodes_ends() {
    let folder = Folder::new();
    let mut graph = graph(&[("x", tensor_type(FLOAT, "256"))], Vec::new(), &["x"]);
    graph.name = "nothing".to_owned();
    let path = folder.path("nothing.onnx");
    std::fs::write(&path, model(graph).write_to_bytes().expect("it has bytes")).expect("it can be written");
    let found = optimized(&path.display().to_string(), "auto", "");
    assert_eq!((found.code, found.is_written), (0, false), "{}", found.report);
}
