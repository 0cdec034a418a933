//! `remat-opt profile`, and `remat-opt verify` on two models: what needs no ONNX Runtime.

use std::process::{Command, Output};

use crate::{assert_contains_all, remat_opt};

const MLP: &str = "models/mlp_tiny_train.onnx";

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, stderr)
}

#[test]
fn a_library_that_is_not_there_is_an_input_error() {
    let (output, stderr) = run(&mut remat_opt(&format!(
        "profile {MLP} --ort-library nowhere/libonnxruntime.so"
    )));
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_contains_all(&stderr, &["cannot load ONNX Runtime from `nowhere/libonnxruntime.so`"]);
}

#[test]
fn what_models_run_on_is_checked() {
    let (output, stderr) = run(&mut remat_opt(&format!("verify {MLP} {MLP} --device abacus")));
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_contains_all(&stderr, &["not on `abacus`"]);
}
