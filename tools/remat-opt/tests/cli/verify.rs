//! `remat-opt verify` and `explain`: plans and the rules they are held to.

use crate::{Folder, SEARCH, remat_opt, stdout_of};

#[test]
fn a_wrong_plan_is_rejected_with_every_violation() {
    assert_run!("verify cli/training_chain.json cli/wrong_plan.json");
}

#[test]
fn a_wrong_plan_is_rejected_in_json_too() {
    assert_run!("verify cli/training_chain.json cli/wrong_plan.json --format json");
}

#[test]
fn rules_are_listed_and_explained() {
    assert_run!("explain");
    assert_run!("explain v006");
    assert_run!("explain V999");
}

/// A plan written by one run is accepted by `verify` and applied by another run.
#[test]
fn a_plan_travels_between_runs() {
    let folder = Folder::new();
    let (plan, direct, applied) = ("plan.json", "direct.remat", "applied.remat");
    let model = "models/unet_tiny_train.onnx";
    let mut make = remat_opt(&format!("{model} --budget 60% {SEARCH}"));
    make.arg("-o").arg(folder.path(direct));
    make.arg("--emit-plan").arg(folder.path(plan));
    stdout_of(&mut make);
    stdout_of(remat_opt(&format!("verify {model}")).arg(folder.path(plan)));
    let mut apply = remat_opt(model);
    apply.arg("-o").arg(folder.path(applied));
    apply.arg("--plan").arg(folder.path(plan));
    stdout_of(&mut apply);
    assert_eq!(folder.read(direct), folder.read(applied));
    assert!(
        folder.read(direct).contains("recompute"),
        "the plan recomputes something"
    );
}
