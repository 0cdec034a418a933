//! Plans that carry what their model was read with, and rewritten files that lost what they carry.

use remat::onnx::RECOMPUTE_OF;
use remat::onnx::proto::{Message, ModelProto};
use serde_json::Value;

use crate::{Folder, SEARCH, assert_contains_all, remat_opt, stdout_of};

const UNET: &str = "models/unet_tiny_train.onnx";

/// A plan with paging, made on a board.
fn paged_plan(folder: &Folder) {
    let line = format!(
        "{UNET} --device raspberry-pi-4 --paging dma --budget 70% --step-limit 2000 --time-limit 10m --threads 1 -q"
    );
    stdout_of(remat_opt(&line).arg("-o").arg(folder.path("plan.json")));
}

#[test]
fn a_plan_needs_no_option_that_it_was_made_with() {
    let folder = Folder::new();
    paged_plan(&folder);
    let plan = folder.path("plan.json");
    let text = stdout_of(remat_opt(&format!("verify {UNET}")).arg(&plan));
    assert_contains_all(&text, &["valid: peak"]);
    stdout_of(remat_opt(&format!("inspect {UNET} --plan")).arg(&plan));
    let mut apply = remat_opt(&format!("{UNET} --plan"));
    stdout_of(apply.arg(&plan).arg("-o").arg(folder.path("out.remat")));
    assert_contains_all(&folder.read("out.remat"), &["  page_out %"]);
}

#[test]
fn an_option_that_the_plan_contradicts_is_refused() {
    let folder = Folder::new();
    paged_plan(&folder);
    for (command, options, message) in [
        (
            "verify",
            "--device mkr1000",
            "`--device mkr1000` contradicts the plan, which was made with raspberry-pi-4",
        ),
        (
            "verify",
            "--paging off",
            "`--paging off` contradicts the plan, which was made with dma",
        ),
        (
            "",
            "--objective energy",
            "`--objective energy` contradicts the plan, which was made with time",
        ),
    ] {
        let mut run = match command {
            "" => remat_opt(&format!("{UNET} {options} --plan")),
            command => remat_opt(&format!("{command} {UNET} {options}")),
        };
        let output = run.arg(folder.path("plan.json")).output().expect("the program runs");
        let found = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
        assert_eq!(output.status.code(), Some(2), "{found}");
        assert_contains_all(&found, &[message]);
    }
}

#[test]
fn a_plan_for_another_model_is_called_that() {
    let folder = Folder::new();
    paged_plan(&folder);
    let mut verify = remat_opt("verify models/mlp_tiny_train.onnx --format json");
    let output = verify.arg(folder.path("plan.json")).output().expect("the program runs");
    let found = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert_contains_all(&found, &["the plan is for another model, `unet"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    assert_eq!(report["valid"], false);
}

/// What a simplifier does: clones are merged with their originals.
fn merge_clones(model: &mut ModelProto) -> usize {
    let nodes = &mut model.graph.mut_or_insert_default().node;
    let is_clone =
        |node: &remat::onnx::proto::NodeProto| node.metadata_props.iter().any(|entry| entry.key == RECOMPUTE_OF);
    let before = nodes.len();
    nodes.retain(|node| !is_clone(node));
    for name in nodes.iter_mut().flat_map(|node| &mut node.input) {
        if let Some((original, _)) = name.split_once("__remat") {
            *name = original.to_owned();
        }
    }
    before - nodes.len()
}

#[test]
fn a_rewritten_file_that_a_simplifier_went_over_is_told_from_a_whole_one() {
    let folder = Folder::new();
    let out = folder.path("out.onnx");
    stdout_of(remat_opt(&format!("{UNET} --target onnx --budget 60% {SEARCH} -o")).arg(&out));
    let inspect = || {
        let mut run = remat_opt("inspect --format json");
        let output = run.arg(&out).output().expect("the program runs");
        assert!(output.status.success());
        let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        report["warnings"].to_string()
    };
    assert!(!inspect().contains("simplif"), "{}", inspect());
    let mut model = ModelProto::parse_from_bytes(&std::fs::read(&out).expect("it was written")).expect("a model");
    let merged = merge_clones(&mut model);
    assert!(merged > 0);
    std::fs::write(&out, model.write_to_bytes().expect("a model")).expect("it can be written");
    let message = format!("{merged} of {merged} recomputed nodes");
    assert_contains_all(&inspect(), &[&message, "simplify before, never after"]);
}
