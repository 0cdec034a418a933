//! Plans in one block of memory: `--place`, `--bound`, `--block-svg`, and what is written of them.

use serde_json::Value;

use crate::{Folder, SEARCH, assert_contains_all, remat_opt, stdout_of};

const CHAIN: &str = "cli/training_chain.json";
/// Its load is 500 bytes, and no block with the outputs at its beginning, in the order in which they come, is below 600.
const OUTPUTS_FIRST: &str = "cli/outputs_first.json";
const UNET: &str = "models/unet_tiny_train.onnx --target onnx";

#[test]
fn a_plan_is_placed_on_request() {
    assert_run!("{CHAIN} --budget 80% {SEARCH} --place");
    assert_run!("{OUTPUTS_FIRST} --budget 500 {SEARCH} --place");
    assert_run!("{OUTPUTS_FIRST} --budget 500 {SEARCH} --place --format json");
}

#[test]
fn a_budget_may_bound_the_block() {
    assert_run!("{OUTPUTS_FIRST} --budget 600 {SEARCH} --bound block");
    assert_run!("{OUTPUTS_FIRST} --budget 500 {SEARCH} --bound block");
    assert_run!("cli/fragmented.json --budget 256 {SEARCH} --bound block");
    assert_run!("{UNET} --budget 65% --step-limit 2000 --time-limit 10m --threads 1 --solver search -q --bound block");
}

#[test]
fn the_block_is_in_every_form_of_the_plan_and_is_verified() {
    let folder = Folder::new();
    let write = |name: &str| {
        let line =
            format!("{UNET} --budget 65% --step-limit 2000 --time-limit 10m --threads 1 --solver search -q --place");
        let line = line.replace("--target onnx", "");
        let out = folder.path(name);
        stdout_of(remat_opt(&line).arg("-o").arg(&out));
        out
    };
    let verified = |name: &str| {
        let mut verify = remat_opt("verify models/unet_tiny_train.onnx");
        stdout_of(verify.arg(folder.path(name)))
    };
    let plan = write("plan.json");
    assert_contains_all(
        &verified("plan.json"),
        &["valid: peak", "\nblock     ", "optimal: so much is needed"],
    );
    write("plan.sched");
    assert_eq!(std::fs::read(folder.path("plan.sched")).expect("it was written")[4], 2);
    assert_contains_all(&verified("plan.sched"), &["valid: peak", "\nblock     "]);
    write("plan.remat");
    assert_contains_all(
        &folder.read("plan.remat"),
        &["\n  block ", " align 64\n", " at 0 = compute @", " workspace "],
    );
    // A given plan keeps its offsets, and a byte that is moved is found.
    let text = folder.read("plan.json");
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    file["block"]["bytes"] = (file["block"]["bytes"].as_u64().expect("a number") - 1).into();
    std::fs::write(&plan, file.to_string()).expect("it can be written");
    let output = remat_opt("verify models/unet_tiny_train.onnx --format json")
        .arg(&plan)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["violations"][0]["code"], "P002", "{report}");
}

#[test]
fn a_device_program_in_tiles_is_verified_with_the_plan_that_states_them() {
    let folder = Folder::new();
    let [model, program, plan] = ["net.onnx", "net.sched", "net.json"].map(|name| folder.path(name));
    std::fs::write(&model, remat_testing::mobile_net(40)).expect("it can be written");
    let device = "--device cortex-m7 --device-memory 64KiB";
    let tiled = format!("--bound block --fission exact --tiles 8 --axis rows {device} {SEARCH} -v");
    let mut write = remat_opt("");
    let write = write.arg(&model).args(tiled.split(' ')).arg("-o").arg(&program);
    let said = stdout_of(write.arg("--emit-plan").arg(&plan));
    assert_contains_all(&said, &["tiles     `stem` .. ", "block 4"]);
    let verify = || {
        let mut verify = remat_opt("verify");
        verify.arg(&model).arg(&program).args(device.split(' '));
        verify
    };
    let said = stdout_of(verify().arg("--tiles-from").arg(&plan));
    assert_contains_all(&said, &["valid: peak 4", "block     4"]);
    let without = verify().output().expect("it runs");
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(!without.status.success());
    assert_contains_all(&said, &["the schedule is for ", "`--tiles-from PLAN`"]);
}

#[test]
fn the_block_is_drawn() {
    let folder = Folder::new();
    let svg = folder.path("block.svg");
    stdout_of(remat_opt(&format!("{CHAIN} --budget 60% {SEARCH} -q --block-svg")).arg(&svg));
    let drawn = folder.read("block.svg");
    assert_contains_all(
        &drawn,
        &[
            "training_chain: the block of the plan",
            "<title>f1: 1048576 bytes at ",
            "recompute",
        ],
    );
    let plan = folder.path("plan.json");
    stdout_of(remat_opt(&format!("{CHAIN} --budget 60% {SEARCH} -q --place -o")).arg(&plan));
    stdout_of(
        remat_opt(&format!("verify {CHAIN}"))
            .arg(&plan)
            .arg("--block-svg")
            .arg(&svg),
    );
    assert_eq!(folder.read("block.svg"), drawn);
    stdout_of(remat_opt(&format!("{CHAIN} --budget 60% {SEARCH} -q -o")).arg(&plan));
    let output = remat_opt(&format!("verify {CHAIN}"))
        .arg(&plan)
        .arg("--block-svg")
        .arg(&svg)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
    assert_contains_all(&message, &["the plan has no block to draw"]);
}

#[test]
fn what_follows_no_offsets_has_no_budget_for_them() {
    let refused = |line: &str, message: &str| {
        let output = remat_opt(line).output().expect("it runs");
        let found = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
        assert_eq!(output.status.code(), Some(2), "{found}");
        assert_contains_all(&found, &[message]);
    };
    refused(
        "models/unet_tiny_train.onnx --target ort --budget 70% --bound block",
        "ONNX Runtime places results itself",
    );
    refused(
        &format!("{CHAIN} --plan cli/wrong_plan.json --bound block"),
        "cannot be used with",
    );
}
