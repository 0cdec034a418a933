//! The simulation against ONNX Runtime on exported networks.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests fail and speak like tests"
)]

#[path = "suite/comparison.rs"]
mod comparison;
#[path = "suite/facts.rs"]
mod facts;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use comparison::{SETTINGS, compare};
use facts::Facts;
use remat_testing::{Need, is_nightly, run, trial, workspace};

/// Of these the first ones are enough for every change.
const MODELS: [&str; 7] = [
    "densenet121_infer",
    "unet_train",
    "swin_t_infer",
    "efficientnet_b0_infer",
    "gpt_train",
    "resnet18_train",
    "unet_infer",
];

fn main() -> ExitCode {
    run([trial!(
        orders_and_peaks_of_real_models_are_those_of_the_runtime,
        Need::Models,
        Need::Python,
        Need::HeapMeterInC,
        Need::CCompiler,
    )])
}

fn orders_and_peaks_of_real_models_are_those_of_the_runtime() {
    let mut wrong = Vec::new();
    for &model in if is_nightly() { &MODELS[..] } else { &MODELS[..2] } {
        // The large ones take their time: one setting must do.
        let settings = if ["gpt_train", "resnet18_train"].contains(&model) {
            &SETTINGS[2..]
        } else {
            &SETTINGS
        };
        for &(level, order) in settings {
            let facts = measure(&format!("{model}.onnx"), level, order);
            wrong.extend(compare(model, &facts, level, order));
        }
    }
    assert!(wrong.is_empty(), "more than 3 per mille off: {wrong:#?}");
}

/// Runs the model.
fn measure(model: &str, level: &str, order: &str) -> Facts {
    let output = Command::new(workspace().join("third_party/venv/bin/python"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/facts.py"))
        .arg(workspace().join("../shared/models").join(model))
        .args([level, order])
        .env("LD_PRELOAD", meter())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The heap meter, built on first use.
fn meter() -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("heap_peak.so");
    if !library.exists() {
        let part = library.with_extension(format!("{}.so", std::process::id()));
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&part);
        compile.arg(workspace().join("../shared/tools/heap_peak.c"));
        assert!(compile.status().unwrap().success());
        std::fs::rename(part, &library).unwrap();
    }
    library
}
