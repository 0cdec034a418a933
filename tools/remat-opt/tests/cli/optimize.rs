//! `remat-opt IN`: the main job, its help, and what it refuses.

use crate::{Folder, SEARCH, assert_contains_all, remat_opt, settings, stdout_of};

#[test]
fn a_graph_is_solved_to_a_budget() {
    assert_run!("cli/training_chain.json --budget 80% {SEARCH}");
}

#[test]
fn the_report_is_json_on_request() {
    assert_run!("cli/training_chain.json --budget 80% {SEARCH} --format json");
}

#[test]
fn a_budget_below_the_largest_op_names_the_op() {
    assert_run!("cli/training_chain.json --budget 1MiB");
}

#[test]
fn the_lowest_peak_is_found() {
    assert_run!("cli/training_chain.json --budget min {SEARCH}");
}

#[test]
fn a_missing_file_is_an_input_error() {
    assert_run!("no-such-model.onnx");
}

#[test]
fn a_file_of_another_kind_is_an_input_error() {
    assert_run!("cli/README.md");
}

#[test]
fn a_budget_that_is_none_is_a_usage_error() {
    assert_run!(remat_opt("cli/training_chain.json --budget").arg("a lot"));
}

#[test]
fn a_graph_has_no_model_to_rewrite() {
    assert_run!("cli/training_chain.json -o out.onnx");
}

#[test]
fn an_unknown_extension_is_refused_before_the_search() {
    assert_run!("cli/training_chain.json -o out.txt");
}

#[test]
fn the_input_is_never_overwritten() {
    assert_run!("cli/training_chain.json -o cli/training_chain.json");
}

#[test]
fn unknown_devices_and_solvers_list_what_exists() {
    assert_run!("cli/training_chain.json --solver oracle");
    assert_run!("models/unet_tiny_train.onnx --device abacus");
}

/// At the largest shape there is no such plan; the lowest peak keeps the budget in others.
#[test]
fn a_budget_holds_for_as_many_shapes_as_may_be() {
    let folder = Folder::new();
    let line = format!("models/features/dynamic_batch.onnx --shapes batch=1..64 --budget 100KiB {SEARCH} -o");
    let output = remat_opt(&line)
        .arg(folder.path("plan.json"))
        .output()
        .expect("it runs");
    assert!(folder.path("plan.json").exists() && output.status.code() == Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_contains_all(
        &text,
        &[
            "in any run of these shapes: batch=1..64",
            "the budget of 100.0 KiB holds in ",
        ],
    );
}

#[test]
fn a_real_model_is_rewritten() {
    let folder = Folder::new();
    let out = folder.path("out.onnx");
    let line = format!("models/unet_tiny_train.onnx --budget 60% {SEARCH} -o");
    let stdout = stdout_of(remat_opt(&line).arg(&out));
    assert!(out.exists());
    settings().bind(|| insta::assert_snapshot!(stdout));
}
