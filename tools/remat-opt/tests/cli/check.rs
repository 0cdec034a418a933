//! `remat-opt check` without a runtime: predictions, limits, baselines and the forms of the report.

use std::process::Command;

use serde_json::Value;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of};

const UNET: &str = "models/unet_tiny_train.onnx";
const BOTH: &str = "models/unet_tiny_train.onnx models/mlp_tiny_train.onnx";

/// A check whose commit is stated by nobody, whatever runs the tests.
fn check(line: &str) -> Command {
    let mut command = remat_opt(&format!("check {line}"));
    let services = ["GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION", "BITBUCKET_COMMIT"];
    let others = ["BUILDKITE_COMMIT", "CIRCLE_SHA1", "GIT_COMMIT", "TRAVIS_COMMIT"];
    for variable in services.iter().chain(&others) {
        command.env_remove(variable);
    }
    command
}

/// A baseline of models, as the program writes it.
fn baseline(folder: &Folder, models: &str) -> Value {
    stdout_of(
        check(&format!("{models} --commit 1f2e3d"))
            .arg("--write-baseline")
            .arg(folder.path("memory.json")),
    );
    serde_json::from_str(&folder.read("memory.json")).expect("it is JSON")
}

/// A check against a baseline, which comes from stdin.
fn against(folder: &Folder, baseline: &Value, line: &str) -> Command {
    std::fs::write(folder.path("memory.json"), baseline.to_string()).expect("it can be written");
    let mut command = check(&format!("{line} --baseline -"));
    command.stdin(std::fs::File::open(folder.path("memory.json")).expect("it is there"));
    command
}

/// A baseline of the model when it was smaller.
fn smaller(folder: &Folder) -> Value {
    let mut before = baseline(folder, UNET);
    before["models"][0]["predicted_bytes"] = (20 << 20).into();
    before["models"][0]["ops"] = 70.into();
    before["models"][0]["weights_bytes"] = 65_536.into();
    before["models"][0]["peak_op"] = "enc1.y".into();
    before
}

fn error_of(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("it runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_limit_that_holds_leaves_memory() {
    assert_run!(check(&format!("{UNET} --limit 64MiB")));
}

#[test]
fn a_limit_that_is_exceeded_is_a_finding_that_names_the_op() {
    assert_run!(check(&format!("{UNET} --limit 16MiB")));
    assert_run!(check(&format!("{UNET} --limit 16MiB --format json -q")));
}

#[test]
fn a_limit_is_kept_to_the_byte() {
    let folder = Folder::new();
    let bytes = baseline(&folder, UNET)["models"][0]["predicted_bytes"]
        .as_u64()
        .expect("a number");
    for (limit, status) in [(bytes, 0), (bytes - 1, 1)] {
        let found = error_of(&mut check(&format!("{UNET} --limit {limit}")));
        assert_eq!(found.0, Some(status), "{}", found.1);
    }
}

#[test]
fn a_baseline_holds_what_the_next_check_needs() {
    let folder = Folder::new();
    insta::assert_json_snapshot!(baseline(&folder, BOTH));
}

#[test]
fn a_model_that_is_as_it_was_passes_without_any_growth() {
    let folder = Folder::new();
    let before = baseline(&folder, BOTH);
    let found = stdout_of(&mut against(&folder, &before, &format!("{BOTH} --max-growth 0")));
    assert_contains_all(&found, &["+0 B, +0.0 %"]);
}

#[test]
fn a_model_that_grew_says_since_when_and_what_changed() {
    let folder = Folder::new();
    let before = smaller(&folder);
    assert_run!(against(
        &folder,
        &before,
        &format!("{UNET} --max-growth 5% --limit 64MiB")
    ));
    assert_run!(against(
        &folder,
        &before,
        &format!("{UNET} --max-growth 5% --format markdown --commit 4d5c6b")
    ));
    let found = stdout_of(&mut against(&folder, &before, &format!("{UNET} --max-growth 12MiB")));
    assert_contains_all(&found, &["32.0 MiB (--max-growth)"]);
}

#[test]
fn several_models_are_a_table_and_those_that_exceed_limits_are_told_in_full() {
    let folder = Folder::new();
    let before = smaller(&folder);
    assert_run!(against(&folder, &before, &format!("{BOTH} ./{UNET} --limit 30MiB")));
    assert_run!(against(
        &folder,
        &before,
        &format!("{BOTH} --limit 48MiB --format markdown")
    ));
}

#[test]
fn a_report_and_a_badge_are_written_although_a_limit_is_exceeded() {
    let folder = Folder::new();
    for (limit, color) in [("--limit 16MiB", "red"), ("--limit 64MiB", "brightgreen"), ("", "blue")] {
        let mut command = check(&format!("{UNET} {limit}"));
        command.arg("--badge").arg(folder.path("badge.json"));
        command.arg("-o").arg(folder.path("report.json"));
        error_of(&mut command);
        let badge: Value = serde_json::from_str(&folder.read("badge.json")).expect("it is JSON");
        let expected =
            serde_json::json!({"schemaVersion": 1, "label": "runs in", "message": "31.0 MiB", "color": color});
        assert_eq!(badge, expected);
        let report: Value = serde_json::from_str(&folder.read("report.json")).expect("it is JSON");
        assert_eq!(report["format"], "remat-check/1");
        assert_eq!(report.get("error").is_some(), color == "red");
    }
}

#[test]
fn the_commit_is_that_of_the_service_unless_one_is_stated() {
    let commit = |command: &mut Command| {
        let report: Value = serde_json::from_str(&stdout_of(command)).expect("it is JSON");
        report["commit"].as_str().map(str::to_owned)
    };
    let line = format!("{UNET} --format json");
    assert_eq!(commit(&mut check(&line)), None);
    assert_eq!(
        commit(check(&line).env("CI_COMMIT_SHA", "77aa")).as_deref(),
        Some("77aa")
    );
    let stated = check(&format!("{line} --commit 88bb"))
        .env("GITHUB_SHA", "77aa")
        .output()
        .expect("it runs");
    assert_contains_all(&String::from_utf8_lossy(&stated.stdout), &[r#""commit": "88bb""#]);
}

#[test]
fn a_baseline_that_is_none_is_a_broken_input() {
    let folder = Folder::new();
    let good = baseline(&folder, UNET);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed
    };
    let twice = |value: &mut Value| {
        let record = value["models"][0].clone();
        value["models"].as_array_mut().expect("a list").push(record);
    };
    for (broken, why) in [
        (Value::Null, "not a baseline"),
        (
            serde_json::json!({"format": "remat-plan/2"}),
            "`remat-plan/2` is not known",
        ),
        (with(&|value| value["models"] = Value::Null), "not a baseline"),
        (
            with(&|value| value["models"][0]["predicted_bytes"] = (-1).into()),
            "not a baseline",
        ),
        (
            with(&|value| value["models"][0]["predicted_bytes"] = 1e30.into()),
            "not a baseline",
        ),
        (
            with(&|value| value["models"][0]["peak_op"] = Value::Null),
            "not a baseline",
        ),
        (with(&twice), "twice"),
        (
            with(&|value| value["models"][0]["dims"] = serde_json::json!({"batch": 8})),
            "made for batch=8, and this is without `--dim`",
        ),
    ] {
        let (status, text) = error_of(&mut against(&folder, &broken, UNET));
        assert_eq!(status, Some(2), "{broken}: {text}");
        assert_contains_all(&text, &[why]);
    }
}

#[test]
fn figures_of_a_baseline_at_their_bounds_do_not_overflow() {
    let folder = Folder::new();
    for bytes in [0, 1, u64::MAX] {
        let mut before = baseline(&folder, UNET);
        before["models"][0]["predicted_bytes"] = bytes.into();
        before["models"][0]["weights_bytes"] = bytes.into();
        before["models"][0]["ops"] = bytes.into();
        for growth in ["0", "100000%", "15000000TiB"] {
            let (status, text) = error_of(&mut against(&folder, &before, &format!("{UNET} --max-growth {growth}")));
            // Of little, no multiple is much; of nothing less.
            let is_exceeded = bytes <= 1 && growth != "15000000TiB";
            assert_eq!(status, Some(i32::from(is_exceeded)), "{bytes} {growth}: {text}");
        }
    }
}

#[test]
fn names_of_a_baseline_write_neither_on_a_terminal_nor_in_a_comment() {
    let folder = Folder::new();
    let mut before = baseline(&folder, UNET);
    before["models"][0]["peak_op"] = "`</code>|<img src=x>\u{1b}[2J\n# FAKE".into();
    before["commit"] = "`|\u{1b}[2J\n# FAKE @you".into();
    for form in ["text", "markdown", "json"] {
        let found = stdout_of(&mut against(&folder, &before, &format!("{UNET} --format {form}")));
        assert!(!found.chars().any(|c| c.is_control() && c != '\n'), "{found:?}");
        assert!(
            !found.lines().any(|line| line.trim_start().starts_with("# FAKE")),
            "{found}"
        );
        if form == "markdown" {
            assert!(!found.contains("<img") && !found.contains("@you"), "{found}");
            let row = found
                .lines()
                .find(|line| line.starts_with("| `models/"))
                .expect("the model has a row");
            assert_eq!(row.matches('|').count(), 7, "{row}");
        }
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let folder = Folder::new();
    baseline(&folder, UNET);
    let file = folder.path("memory.json").display().to_string();
    for (line, why) in [
        ("".to_owned(), "required"),
        ("cli/training_chain.json".to_owned(), "not an ONNX model"),
        ("models/features/dynamic_batch.onnx".to_owned(), "--dim batch=N"),
        (format!("{UNET} --max-growth 5%"), "--baseline"),
        (format!("{UNET} --baseline {file} --max-growth 5"), "did you mean `5%`?"),
        (
            format!("{UNET} --baseline {file} --write-baseline {file}"),
            "memory.json",
        ),
        (format!("{UNET} --baseline {UNET}"), "valid UTF-8"),
        (format!("{UNET} --write-baseline {UNET}"), "unet_tiny_train.onnx"),
        (format!("{BOTH} --badge {file}.svg"), "one model"),
        (format!("{UNET} --format html"), "markdown"),
    ] {
        let (status, text) = error_of(&mut check(&line));
        assert_eq!(status, Some(2), "{line}: {text}");
        assert_contains_all(&text, &[why]);
    }
}
