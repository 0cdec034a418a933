//! Modules of MLIR in and out.

#[cfg(feature = "mlir")]
use crate::{Folder, STEPS, assert_contains_all, remat_opt, stdout_of};

#[cfg(not(feature = "mlir"))]
#[test]
fn a_module_is_refused_with_the_way_to_build_what_reads_it() {
    assert_run!("mlir/passes/tosa.mlir --budget 75%");
}

#[test]
fn a_pipeline_of_passes_is_for_modules() {
    assert_run!("models/mlp_tiny_train.onnx --pass-pipeline builtin.module()");
}

#[test]
fn other_commands_refuse_modules() {
    assert_run!("inspect mlir/passes/tosa.mlir");
}

#[cfg(feature = "mlir")]
#[test]
fn every_function_of_a_module_is_scheduled() {
    assert_run!("mlir/passes/tosa.mlir --budget 75% --solver search {STEPS}");
    assert_run!("mlir/passes/aliases.mlir --budget none {STEPS}");
}

#[cfg(feature = "mlir")]
#[test]
fn a_scheduled_module_is_written() {
    let folder = Folder::new();
    let mut command = remat_opt(&format!("mlir/passes/tosa.mlir --budget 75% {STEPS}"));
    stdout_of(command.arg("-o").arg(folder.path("out.mlir")));
    assert_contains_all(
        &folder.read("out.mlir"),
        &[
            "remat.peak = 768",
            "remat.dealloc %0",
            "remat.recompute %arg0 id(1) of(\"exp\")",
        ],
    );
}

#[cfg(feature = "mlir")]
#[test]
fn a_pipeline_runs_as_in_mlir_opt() {
    let mut command = remat_opt("mlir/passes/tosa.mlir --pass-pipeline");
    command.arg(
        "builtin.module(func.func(remat{budget=75% solver=search step-limit=20000},cse,canonicalize,remat-verify))",
    );
    assert_run!(command);
    assert_run!("mlir/passes/tosa.mlir --pass-pipeline builtin.module(func.func(oracle))");
}

#[cfg(feature = "mlir")]
#[test]
fn errors_stand_at_the_operation() {
    assert_run!("mlir/passes/diagnostics.mlir");
    assert_run!("mlir/passes/tosa.mlir --budget 10%");
    assert_run!("mlir/none.mlir");
}

#[cfg(feature = "mlir")]
#[test]
fn dynamic_extents_count_as_what_is_said() {
    let folder = Folder::new();
    let text = "func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {\n  %0 = math.exp %x : tensor<?x8xf32>\n  \
                return %0 : tensor<?x8xf32>\n}\n";
    std::fs::write(folder.path("in.mlir"), text).expect("the folder can be written");
    let mut command = remat_opt("--budget none --dim ?=4");
    let said = stdout_of(command.arg(folder.path("in.mlir")));
    assert!(said.starts_with("@f: peak 128 B -> 128 B"), "{said}");
}

#[cfg(feature = "mlir")]
#[test]
fn what_a_module_cannot_become_is_refused() {
    assert_run!("mlir/passes/tosa.mlir -o out.onnx");
    assert_run!("mlir/passes/tosa.mlir --emit-plan plan.json");
}
