//! Plan files: read what was written, refuse what is none.

use remat_files::DocumentError;
use remat_plan::{
    Block, BlockPlacement, Bound, BoundCovers, Certificate, DeviceRecord, Evidence, OpId, PLAN_FORMAT, PLAN_FORMAT_1,
    PlacedInterval, PlacementCertificate, PlacementProof, Plan, PlanFile, PlanFileError, Problem, Resident, Setup,
    Status, StepKind, StopReason, StorageId,
};

use remat_testing::net::example;
use remat_testing::plans::{PLAIN, RECOMPUTING, file, plan};

fn setup(problem: &Problem) -> Setup {
    Setup {
        graph: problem.graph_digest(),
        problem: problem.digest(),
        dims: [("batch".to_owned(), 8)].into(),
        device: Some(DeviceRecord {
            name: "mine".to_owned(),
            figures: Some(serde_json::json!({ "vector_bytes": 4 })),
        }),
        paging: Some(remat_testing::net::paging()),
        ..Setup::default()
    }
}

fn certified() -> PlanFile {
    let problem = example().with(|problem| problem.budget = Some(300)).done();
    PlanFile {
        baseline_peak_bytes: 400,
        setup: Some(setup(&problem)),
        certificate: Some(Certificate {
            status: Status::Optimal,
            objective: Some(52),
            bound: 52,
            bound_covers: BoundCovers::FixedOrder,
            evidence: Some(Evidence::solver("CP-SAT", 0.0)),
            gap: Some(0.0),
            stop: StopReason::Proved,
            solver: "by-hand".into(),
            seed: 0,
            threads: 1,
            steps: 12,
            elapsed_ms: 3,
            problem: problem.digest(),
        }),
        ..file(&problem, &plan(&problem, RECOMPUTING), 300, 52)
    }
}

#[test]
fn a_plan_file_has_one_line_for_each_step() {
    insta::assert_snapshot!(certified().to_json());
}

#[test]
fn what_is_written_is_read_back() {
    let problem = example().done();
    let plain = file(&problem, &plan(&problem, PLAIN), 400, 41);
    let empty = file(&problem, &Plan::default(), 0, 0);
    for file in [certified(), plain, empty] {
        assert_eq!(PlanFile::from_json(&file.to_json()), Ok(file));
    }
}

/// A place for each storage of the plan, and for a workspace.
fn placement(problem: &Problem) -> BlockPlacement {
    let storage = |step, name: &str, offset| PlacedInterval {
        step,
        what: Resident::Storage(remat_testing::net::storage(problem, name)),
        offset,
    };
    let gemm = Resident::Workspace(remat_testing::net::op(problem, "gemm"));
    let workspace = PlacedInterval {
        step: 2,
        what: gemm,
        offset: 448,
    };
    BlockPlacement {
        block: Block {
            bytes: 512,
            alignment: 64,
            outputs_bytes: Some(100),
            certificate: Some(PlacementCertificate {
                status: Status::Feasible,
                height: Some(512),
                bound: 448,
                proof: PlacementProof::Load,
                stop: StopReason::TimeLimit,
                seed: 3,
                tries: 1000,
            }),
        },
        intervals: vec![
            storage(0, "a", 0),
            storage(2, "b", 128),
            workspace,
            storage(3, "c", 384),
            storage(5, "y", 0),
        ],
    }
}

#[test]
fn offsets_stand_at_the_steps_from_which_they_hold() {
    let problem = example().done();
    let plan = plan(&problem, PLAIN);
    let file = file(&problem, &plan, 400, 41).placed(&problem, &placement(&problem));
    let file = PlanFile {
        budget_bytes: Some(512),
        bound: Bound::Block,
        ..file
    };
    insta::assert_snapshot!(file.to_json());
    let read = PlanFile::from_json(&file.to_json()).unwrap();
    assert_eq!(read, file);
    assert_eq!(read.placement(&problem), Ok(Some(placement(&problem))));
    assert_eq!(read.plan(&problem), Ok(plan));
}

#[test]
fn offsets_without_a_block_or_of_what_is_not_there_are_refused() {
    let problem = example().done();
    let placed = |change: fn(&mut PlanFile)| {
        let mut file = file(&problem, &plan(&problem, PLAIN), 400, 41).placed(&problem, &placement(&problem));
        change(&mut file);
        file.placement(&problem)
    };
    let error = placed(|file| file.block = None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "step 0 gives offsets, and the plan states no `block`"
    );
    let error = placed(|file| file.steps[3].at = [("v".to_owned(), 0)].into()).unwrap_err();
    assert_eq!(error.to_string(), "step 3: there is no tensor `v` that roots a storage");
    let error = placed(|file| file.steps[4].workspace_at = Some(0)).unwrap_err();
    assert_eq!(error.to_string(), "step 4 (Free) runs nothing and has no workspace");
    let nothing = placed(|file| {
        file.block = None;
        file.steps
            .iter_mut()
            .for_each(|step| (step.at, step.workspace_at) = (std::collections::BTreeMap::new(), None));
    });
    assert_eq!(nothing, Ok(None));
}

#[test]
fn names_stand_for_the_ids_of_every_kind_of_step() {
    let problem = example()
        .with(|problem| {
            problem.paging = Some(remat_testing::net::paging());
        })
        .done();
    let steps = "compute conv, recompute conv, page_out a, page_in a, free a";
    let plan = plan(&problem, steps);
    assert_eq!(file(&problem, &plan, 0, 0).plan(&problem), Ok(plan));
}

#[test]
fn a_file_by_hand_needs_neither_format_nor_model_nor_certificate() {
    let text = r#"{"accounting": "paper", "peak_bytes": 1, "duration": 2, "baseline_peak_bytes": 3,
        "baseline_duration": 4, "steps": []}"#;
    let file = PlanFile::from_json(text).unwrap();
    assert_eq!((file.format.as_str(), file.model.as_str()), (PLAN_FORMAT, ""));
}

#[test]
fn the_first_format_is_read_as_well() {
    let first = PlanFile {
        format: PLAN_FORMAT_1.into(),
        setup: None,
        ..certified()
    };
    assert_eq!(PlanFile::from_json(&first.to_json()), Ok(first));
}

#[test]
fn a_graph_is_told_by_names_and_not_by_figures() {
    let digest = |change: fn(&mut Problem)| example().with(change).done().graph_digest();
    let same = digest(|_| {});
    assert_eq!(digest(|problem| problem.ops[OpId::new(0)].duration += 1), same);
    assert_eq!(digest(|problem| problem.storages[StorageId::new(0)].bytes += 1), same);
    assert_eq!(digest(|problem| problem.budget = Some(1)), same);
    assert_ne!(digest(|problem| problem.ops[OpId::new(0)].name.push('x')), same);
}

#[test]
fn another_version_and_what_is_no_plan_are_refused() {
    let newer = PlanFile {
        format: "remat-plan/3".into(),
        ..certified()
    };
    let error = PlanFile::from_json(&newer.to_json());
    assert!(
        matches!(&error, Err(PlanFileError::Document(DocumentError::Format { found, .. })) if found == "remat-plan/3"),
        "{error:?}"
    );
    let step = |step: &str| certified().to_json().replace(r#"{"op":"compute","node":"conv"}"#, step);
    for text in [
        String::new(),
        "[]".into(),
        "{}".into(),
        step(r#"{"op":"compute","op":"conv"}"#),
        step(r#"{"op":"jump","node":"conv"}"#),
        step(r#"{"op":"compute","node":"conv","device":1}"#),
        certified().to_json().replace("52", "-52"),
    ] {
        let error = PlanFile::from_json(&text);
        let is_no_plan = matches!(error, Err(PlanFileError::Document(DocumentError::Json { .. })));
        assert!(is_no_plan, "{error:?} for {text}");
    }
}

#[test]
fn steps_without_name_or_with_one_that_the_problem_lacks_are_refused() {
    let problem = example().done();
    let with = |change: fn(&mut PlanFile)| {
        let mut file = certified();
        change(&mut file);
        file.plan(&problem).unwrap_err()
    };
    assert_eq!(
        with(|file| file.steps[1].node = None),
        PlanFileError::MissingName {
            step: 1,
            kind: StepKind::Compute,
            field: "node"
        }
    );
    assert_eq!(
        with(|file| file.steps[3].tensor = None),
        PlanFileError::MissingName {
            step: 3,
            kind: StepKind::Free,
            field: "tensor"
        }
    );
    assert_eq!(
        with(|file| file.steps[0].node = Some("a".into())),
        PlanFileError::UnknownNode {
            step: 0,
            node: "a".into()
        }
    );
    assert_eq!(
        with(|file| file.steps[3].tensor = Some("v".into())),
        PlanFileError::UnknownTensor {
            step: 3,
            tensor: "v".into()
        }
    );
}
