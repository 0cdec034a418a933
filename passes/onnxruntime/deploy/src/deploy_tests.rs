use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::{BaselineOf, BaselinePeak, LoadOptions, SolveRequest};
use remat_onnx::OnnxModel;
use remat_onnx::proto::ModelProto;
use remat_onnxruntime_lower::Shapes;

use super::*;
use crate::check::{Check, Outputs};
use crate::measure::Differs;
use crate::original::looked_at;
use crate::peaks::Measured;
use crate::relax::Relaxation;

/// What a runtime that is not there makes of a file: whether it loads, which bits it has, and what it takes.
type Verdict = fn(&ModelProto, place: usize) -> Result<(Bits, u64), RuntimeError>;

#[derive(Clone, Copy, PartialEq)]
enum Bits {
    Same,
    Other,
    /// Those of the original, in a loaded session that takes as much more as a run of that takes.
    SameOfMoreNodes,
}

/// Time of a file over that of the original, by how many nodes it has.
type Ratio = fn(nodes: usize) -> Option<f64>;

/// Stands for a runtime, and notes how many nodes of each kind the files have that it measures.
struct Scripted {
    verdict: Verdict,
    ratio: Ratio,
    original: u64,
    seen: RefCell<Vec<ModelProto>>,
}

impl Measures for Scripted {
    fn took(&self) -> Duration {
        Duration::ZERO
    }

    fn completing(&self) -> Duration {
        Duration::ZERO
    }

    fn first(&self, written: &Path, outputs: Outputs) -> Result<(Check, Differs), RuntimeError> {
        let proto = OnnxModel::open(written, &looked_at())
            .expect("it is a model")
            .proto()
            .clone();
        let place = self.seen.borrow().len();
        self.seen.borrow_mut().push(proto.clone());
        let (bits, peak) = (self.verdict)(&proto, place)?;
        let peaks = |exact, loaded| Measured {
            arena_off: Some(exact),
            loaded_bytes: Some(loaded),
            ..Measured::default()
        };
        let loaded = if bits == Bits::SameOfMoreNodes {
            self.original
        } else {
            0
        };
        let check = Check {
            before: peaks(self.original, 0),
            after: peaks(peak, loaded),
            time_ratio: None,
            arena_off_time_ratio: None,
            before_ns: 1,
            arena_off_before_ns: None,
            allocation_ns_per_mib: 1,
            seeds: 1,
            outputs,
            closeness: None,
            sizes: None,
            unmeasured: None,
        };
        let differs = (bits == Bits::Other).then(|| Rejection::OutputDiffers {
            output: "y".to_owned(),
            seed: 0,
        });
        Ok((check, differs))
    }

    fn further(&self, what: Further, written: &Path, check: &mut Check) -> Result<Differs, RuntimeError> {
        if what == Further::Times {
            let model = OnnxModel::open(written, &looked_at()).expect("it is a model");
            check.time_ratio = (self.ratio)(nodes(model.proto()));
        }
        Ok(None)
    }

    fn has_bits(&self, _: &Path) -> bool {
        true
    }
}

/// What the model takes as it is.
const ORIGINAL: u64 = 1 << 40;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../test/models/mlp_tiny_train.onnx")
}

/// What comes of the model in a runtime of this kind, and the files that it measured.
fn deployed(
    budget: &str,
    verdict: Verdict,
    table: &[Relaxation],
) -> (Result<Deployment, DeployError>, Vec<ModelProto>) {
    deployed_in(budget, verdict, (|_| None, None), table)
}

/// The same where files take that much time, and so many millionths more are allowed.
fn deployed_in(
    budget: &str,
    verdict: Verdict,
    (ratio, max_overhead): (Ratio, Option<u64>),
    table: &[Relaxation],
) -> (Result<Deployment, DeployError>, Vec<ModelProto>) {
    let (path, load) = (path(), LoadOptions::default());
    let solve = SolveRequest {
        budget: budget.parse().expect("it is a budget"),
        max_overhead,
        solver: "search".to_owned(),
    };
    let request = DeployRequest {
        fission: None,
        ..DeployRequest::new(&path, None, &load, &solve)
    };
    let clock = Clock::start(
        &SolveControl::new()
            .step_limit(2_000)
            .time_limit(Duration::from_secs(3_600)),
    );
    let runtime = Scripted {
        verdict,
        ratio,
        original: ORIGINAL,
        seen: RefCell::default(),
    };
    let scratch = scratch_folder().expect("there is a folder");
    let model = remat::Model::open(&path, &load).expect("the model opens");
    let context = Context {
        request: &request,
        clock: &clock,
        bench: None,
        measures: Some(&runtime),
        scratch: scratch.path(),
        peak: BaselinePeak {
            bytes: model.baseline().peak,
            of: BaselineOf::Measured,
        },
        relaxations: table,
    };
    let found = Deploying::new(&context, Models::new(&context, None)).run();
    (found, runtime.seen.into_inner())
}

/// Nodes of a model, those of a branch among them.
fn nodes(proto: &ModelProto) -> usize {
    let attributes = proto.graph.node.iter().flat_map(|node| &node.attribute);
    let inner = attributes.filter_map(|attribute| attribute.g.as_ref());
    proto.graph.node.len() + inner.map(|graph| graph.node.len()).max().unwrap_or(0)
}

fn has(proto: &ModelProto, op_type: &str) -> bool {
    proto.graph.node.iter().any(|node| node.op_type == op_type)
}

#[test]
fn what_changes_the_bits_is_taken_out_of_the_file_one_by_one() {
    let verdict = |_: &ModelProto, place| Ok((if place < 2 { Bits::Other } else { Bits::Same }, 1 << 20));
    let (found, seen) = deployed("auto", verdict, RELAXATIONS);
    let found = found.expect("the third file has the bits");
    assert!(has(&seen[0], "If") && !has(&seen[1], "If"), "first outside of a branch");
    assert_eq!(
        (found.strategy, found.lowering.shapes),
        (Strategy::Plain, Shapes::Dynamic)
    );
    assert_eq!((seen.len(), found.rejected.len()), (3, 0));
}

#[test]
fn a_file_with_other_bits_is_never_the_result() {
    let (found, seen) = deployed("auto", |_, _| Ok((Bits::Other, 1)), RELAXATIONS);
    let error = found.expect_err("every file has other bits");
    assert!(matches!(error, DeployError::AllRejected { .. }), "{error}");
    assert!(seen.len() > 3, "{} files were measured", seen.len());
}

#[test]
fn a_file_that_takes_more_than_the_original_is_never_the_result() {
    let (found, _) = deployed("auto", |_, _| Ok((Bits::Same, ORIGINAL * 2)), RELAXATIONS);
    let error = found.expect_err("every file takes more");
    assert!(matches!(error, DeployError::AllRejected { .. }), "{error}");
}

#[test]
fn what_nodes_take_that_are_added_counts_as_memory() {
    let (found, _) = deployed("auto", |_, _| Ok((Bits::SameOfMoreNodes, ORIGINAL)), RELAXATIONS);
    let error = found.expect_err("every file takes more in all");
    assert!(matches!(error, DeployError::AllRejected { .. }), "{error}");
    let verdict = |_: &ModelProto, place| Ok((if place == 0 { Bits::SameOfMoreNodes } else { Bits::Same }, 1 << 30));
    let (found, seen) = deployed("auto", verdict, RELAXATIONS);
    let check = found
        .expect("the second file takes less")
        .check
        .expect("it was measured");
    assert!(seen.len() > 1 && check.after.loaded_bytes == Some(0));
}

#[test]
fn a_row_that_is_added_to_the_table_is_tried() {
    let verdict = |_: &ModelProto, place| match place {
        0 => Err(RuntimeError::Load {
            model: PathBuf::new(),
            why: "it knows no such node".to_owned(),
        }),
        _ => Ok((Bits::Same, 1 << 20)),
    };
    let (found, _) = deployed("auto", verdict, &[]);
    assert_eq!(found.expect("another strategy does").strategy, Strategy::StaticShapes);
    let row = Relaxation {
        without: "nodes that a runtime may not know",
        helps: |trouble| matches!(trouble.reason, Rejection::DoesNotRun(_)),
        relax: |lowering| (lowering.branch, lowering.anchors) = (false, false),
    };
    let (found, seen) = deployed("auto", verdict, &[row]);
    let found = found.expect("the row helps");
    assert_eq!(
        (found.strategy, seen.len(), found.rejected.len()),
        (Strategy::Plain, 2, 0)
    );
    assert!(has(&seen[0], "If") && !has(&seen[1], "If"));
}

#[test]
fn where_more_is_measured_than_predicted_the_next_plan_leaves_room_for_it() {
    // The first file takes half a megabyte more than the budget, whatever is predicted of it.
    let verdict = |_: &ModelProto, place| Ok((Bits::Same, if place == 0 { 25 << 19 } else { 11 << 20 }));
    let (found, seen) = deployed("12MiB", verdict, RELAXATIONS);
    let found = found.expect("the second file keeps the budget");
    assert_eq!((seen.len(), found.missed), (2, None), "{} files", seen.len());
    let peak = found.solution.replay.peak;
    assert!(peak <= 23 << 19, "{peak}");
}

#[test]
fn of_files_above_the_budget_the_closest_is_told_and_not_written() {
    let verdict = |_: &ModelProto, place| Ok((Bits::Same, (20 << 20) - place as u64));
    let (found, seen) = deployed("12MiB", verdict, RELAXATIONS);
    let found = found.expect("the closest is told");
    let missed = found.missed.expect("it is above the budget");
    assert_eq!(missed.reached, (20 << 20) - (seen.len() as u64 - 1));
    assert!(missed.is_measured && !found.is_written);
}

#[test]
fn a_plan_that_takes_longer_than_allowed_is_followed_by_one_that_runs_fewer_ops_again() {
    let verdict = |_: &ModelProto, _| Ok((Bits::Same, 1 << 20));
    let runs = |ratio: Ratio| {
        let (found, seen) = deployed_in("auto", verdict, (ratio, Some(300_000)), RELAXATIONS);
        let found = found.expect("a plan is found").solution;
        (found.plan.recomputes(), found.overhead.duration, seen.len())
    };
    let (recomputes, duration, files) = runs(|_| Some(1.0));
    assert!(recomputes > 0 && files == 1, "{recomputes} recomputes, {files} files");
    let (fewer, shorter, files) = runs(|nodes| Some(if nodes > 125 { 1.4 } else { 1.0 }));
    assert!(
        files == 2 && shorter < duration && (1..recomputes).contains(&fewer),
        "{fewer} of {recomputes}"
    );
    // Of so little time nothing is left to what runs again.
    let (none, shortest, files) = runs(|nodes| Some(if nodes > 100 { 9.0 } else { 1.0 }));
    assert!(files == 2 && shortest < shorter && none == 0, "{none} of {recomputes}");
}
