//! Files whose nodes stand in a branch of an `If`: bits, validity, and the memory of first and later runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use remat::Model;
use remat::onnx::proto::GraphProto;
use remat::onnx::{ImportOptions, OnnxModel};
use remat::solver::SolveControl;
use remat_onnxruntime_deploy::Deployment;
use remat_onnxruntime_lower::{Layout, Lowered, LoweringOptions, Shapes, lower};
use remat_testing::workspace;

use crate::common::{Facts, assert_same, models, original, runtime};
use crate::deploy::{deployed_within, host};

/// The least number of models that can stand in a branch.
const LEAST_MODELS: usize = 30;

/// A model without a plan, lowered, with all nodes in a branch, and its file; `None` where it cannot stand there.
fn in_branch(path: &Path, facts: &Facts, shapes: Shapes, out: &Path) -> Option<(GraphProto, Lowered)> {
    let model = Model::open(path, &facts.options).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let onnx = model.onnx().expect("it is an ONNX model");
    let options = LoweringOptions {
        shapes,
        ..LoweringOptions::default()
    };
    let mut lowered = lower(onnx, onnx.graph(), &options, &Layout::default()).expect("it can be written");
    lowered.put_in_branch();
    if !lowered.report.in_branch {
        return None;
    }
    onnx.save_proto(&lowered.written(), out).expect("it can be written");
    Some((onnx.proto().graph.get_or_default().clone(), lowered))
}

fn all_models() -> Vec<PathBuf> {
    [models("test/models"), models("test/models/features")].concat()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn nodes_in_a_branch_compute_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let mut compared = 0;
    for path in all_models() {
        let facts = Facts::of(&path);
        for shapes in [Shapes::StaticInPlace, Shapes::Dynamic] {
            if in_branch(&path, &facts, shapes, &out).is_some() {
                let before = original(runtime(), &path, &facts.options);
                assert_same(runtime(), &before, &out, &facts.options, &name(&path));
                compared += 1;
            }
        }
    }
    assert!(compared >= 2 * LEAST_MODELS, "only {compared} were compared");
}

/// Bytes of the weights of a graph and its subgraphs, in the file or beside it.
fn weights(graph: &GraphProto) -> usize {
    let of = |graph: &GraphProto| -> usize {
        let tensors = graph.initializer.iter();
        tensors.map(|tensor| tensor.dims.iter().product::<i64>() as usize).sum()
    };
    let attributes = graph.node.iter().flat_map(|node| &node.attribute);
    of(graph)
        + attributes
            .filter_map(|attribute| attribute.g.as_ref())
            .map(weights)
            .sum::<usize>()
}

pub(crate) fn the_signature_stays_no_weight_is_there_twice_and_the_file_opens_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let mut seen = 0;
    for path in all_models() {
        let facts = Facts::of(&path);
        let Some((before, lowered)) = in_branch(&path, &facts, Shapes::StaticInPlace, &out) else {
            continue;
        };
        let what = name(&path);
        let written = lowered.written();
        let after = written.graph.get_or_default();
        assert_eq!(before.input, after.input, "{what}");
        assert_eq!(before.output, after.output, "{what}");
        assert_eq!(weights(&before), weights(after), "{what}");
        assert_eq!(
            after.node.last().map(|node| node.op_type.as_str()),
            Some("If"),
            "{what}"
        );
        let sizes_at_run_time = ImportOptions {
            open_sizes: true,
            ..ImportOptions::default()
        };
        let again = OnnxModel::open(&out, &sizes_at_run_time);
        again.unwrap_or_else(|error| panic!("{what}: {error}"));
        seen += 1;
    }
    assert!(seen >= LEAST_MODELS, "only {seen} were looked at");
}

pub(crate) fn files_with_a_branch_pass_the_checker_of_onnx() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut written = Vec::new();
    for path in all_models() {
        let out = folder.path().join(format!("{}.onnx", name(&path)));
        let Some((before, _)) = in_branch(&path, &Facts::of(&path), Shapes::StaticInPlace, &out) else {
            continue;
        };
        // Shape inference of `onnx` knows sparse initializers in `Constant` only.
        if before.sparse_initializer.is_empty() {
            written.push(out);
        }
    }
    assert!(written.len() >= LEAST_MODELS - 1, "only {} were written", written.len());
    let check =
        "import onnx, sys\nfor path in sys.argv[1:]:\n  print(path); onnx.checker.check_model(path, full_check=True)";
    let output = Command::new(workspace().join("third_party/venv/bin/python"))
        .args(["-c", check])
        .args(&written)
        .output()
        .expect("Python is here");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}

fn deployed(input: &Path, output: &Path) -> Deployment {
    let control = SolveControl::new()
        .step_limit(5_000)
        .time_limit(Duration::from_secs(600));
    deployed_within(input, output, "auto", Some(&host()), &control).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn later_runs_of_a_branch_take_what_is_predicted_which_is_what_the_first_one_takes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    for input in models("test/models") {
        let what = name(&input);
        let found = deployed(&input, &out);
        let check = found.check.as_ref().expect("the runtime is here");
        assert!(found.lowering.in_branch && found.is_written, "{what}: {check:?}");
        let Some((first, later)) = check.after.first_run.zip(check.after.later_runs) else {
            assert!(check.unmeasured.is_some());
            return;
        };
        let before = check.before.later_runs.expect("it was measured, too");
        assert!(
            later <= first + first / 100,
            "{what}: {first}, and {later} in later runs"
        );
        assert!(later * 4 <= before * 3, "{what}: {before} became {later}");
        let prediction = &found.prediction;
        for (predicted, measured) in [(prediction.arena_bytes, first), (prediction.arena_steady_bytes, later)] {
            let off = predicted.abs_diff(measured);
            assert!(off <= measured / 100 + 100_000, "{what}: {predicted} became {measured}");
        }
        // With the memory arena off, the branch costs nothing.
        assert_eq!(found.exceeded_prediction(), None, "{what}");
        let most = check.before.arena_off.map(|bytes| bytes + bytes / 100);
        assert!(check.after.arena_off <= most, "{what}: {check:?}");
    }
}
