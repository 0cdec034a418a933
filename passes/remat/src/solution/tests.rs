use std::path::Path;

use remat_plan::{Certificate, Evidence, OrderMode, Step};

use super::*;
use crate::{ErrorKind, LoadOptions};

fn model() -> Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models/unet_tiny_train.onnx");
    Model::open(&path, &LoadOptions::default()).unwrap()
}

fn certificate() -> Certificate {
    Certificate {
        status: Status::Feasible,
        objective: None,
        bound: 0,
        bound_covers: BoundCovers::AllPlans,
        evidence: None,
        gap: None,
        stop: StopReason::Converged,
        solver: "faulty".to_owned(),
        seed: 0,
        threads: 1,
        steps: 0,
        elapsed_ms: 0,
        problem: String::new(),
    }
}

fn without_plan(status: Status) -> Outcome {
    Outcome::new(
        None,
        Certificate {
            status,
            stop: StopReason::Proved,
            evidence: Some(Evidence::Combinatorial),
            ..certificate()
        },
        None,
    )
}

#[test]
fn a_wrong_plan_of_a_solver_is_our_bug_and_is_kept() {
    let model = model();
    let mut plan = model.baseline_plan().clone();
    plan.steps
        .retain(|step| !matches!(step, Step::Compute(op) if op.index() == 3));
    let error = accept(&model, model.problem().clone(), plan.clone(), certificate()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let Error::Solve(SolveError::Rejected(rejected)) = error else {
        panic!("{error}")
    };
    assert_eq!((rejected.plan, rejected.solver.as_str()), (Some(plan), "faulty"));
}

#[test]
fn a_plan_over_the_budget_never_becomes_a_solution() {
    let model = model();
    let mut problem = model.problem().clone();
    problem.budget = Some(model.baseline().peak - 1);
    let result = accept(&model, problem, model.baseline_plan().clone(), certificate());
    assert!(matches!(result, Err(Error::Solve(SolveError::Rejected(_)))));
}

#[test]
fn a_solver_that_knows_no_deadline_finds_nothing_where_its_plan_is_late() {
    let model = model();
    let goal = Goal {
        deadline: Some(remat_plan::Deadline::Factor(1_000_000)),
        ..Goal::default()
    };
    let request = SolveRequest {
        budget: BudgetSpec::Share(600_000),
        max_overhead: None,
        solver: "search".to_owned(),
    };
    let control = SolveControl::new().step_limit(2_000);
    let error = solve_for(&model, &request, goal, &control).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(solve(&model, &request, &control).is_ok());
}

#[test]
fn the_baseline_is_accepted() {
    let model = model();
    let solution = accept(
        &model,
        model.problem().clone(),
        model.baseline_plan().clone(),
        certificate(),
    )
    .unwrap();
    assert_eq!(solution.replay.peak, model.baseline().peak);
    assert!(solution.overhead.percent().abs() < 1e-9);
}

#[test]
fn no_plan_is_a_finding_where_it_is_proved_and_a_limit_elsewhere() {
    let mut problem = model().problem().clone();
    (problem.budget, problem.order) = (Some(1), OrderMode::Fixed);
    assert_eq!(
        no_plan(&problem, &without_plan(Status::Unknown)).kind(),
        ErrorKind::Limit
    );
    let proof = without_plan(Status::Infeasible);
    assert_eq!(no_plan(&problem, &proof).kind(), ErrorKind::Negative);
    for (covers, kind) in [
        (BoundCovers::FixedOrder, ErrorKind::Negative),
        (BoundCovers::StageForm, ErrorKind::Limit),
        (BoundCovers::CandidateSet, ErrorKind::Limit),
    ] {
        let mut of_fewer = proof.clone();
        of_fewer.certificate.bound_covers = covers;
        let error = no_plan(&problem, &of_fewer);
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(
            error.to_string().contains("no plan of its kind"),
            kind == ErrorKind::Limit,
            "{error}"
        );
    }
}

#[test]
fn that_there_is_no_plan_is_a_bug_where_running_every_op_once_is_one() {
    let mut problem = model().problem().clone();
    problem.budget = Some(u64::MAX);
    let error = no_plan(&problem, &without_plan(Status::Infeasible));
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
}

#[test]
fn a_bound_above_its_own_plan_is_a_bug_and_never_a_result() {
    let model = model();
    let duration = model.baseline().duration;
    let claim = |bound, evidence| Certificate {
        objective: Some(duration),
        bound,
        evidence,
        ..certificate()
    };
    let judged = |claim| accept(&model, model.problem().clone(), model.baseline_plan().clone(), claim);
    let error = judged(claim(duration + 1, Some(Evidence::ExactIntegers))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    let Error::Solve(SolveError::FalseClaim(bug)) = error else {
        panic!("{error}")
    };
    assert_eq!(bug.rejection.codes(), [Code::C002]);
    assert_eq!(bug.certificates[0].bound, duration + 1);
    assert!(judged(claim(duration, None)).is_ok());
}

#[test]
fn a_claim_of_one_part_that_the_plan_of_another_refutes_is_a_bug() {
    let model = model();
    let mut problem = model.problem().clone();
    problem.order = OrderMode::Fixed;
    let duration = model.baseline().duration;
    let found = Outcome::new(
        Some(model.baseline_plan().clone()),
        Certificate {
            objective: Some(duration),
            bound: duration,
            ..certificate()
        },
        None,
    );
    let with = |part: Outcome| Outcome {
        parts: vec![part],
        ..found.clone()
    };
    let mut above = found.clone();
    above.plan = None;
    above.certificate.bound = duration + 1;
    for false_claim in [without_plan(Status::Infeasible), above.clone()] {
        let error = agree(&problem, &with(false_claim), None).unwrap_err();
        let Error::Solve(SolveError::FalseClaim(bug)) = error else {
            panic!("{error}")
        };
        assert_eq!(bug.certificates.len(), 2, "the claim and what is claimed of the plan");
        assert_eq!(bug.plan.as_ref(), Some(model.baseline_plan()));
    }
    let alone = |mut claim: Outcome| {
        claim.plan = None;
        agree(&problem, &claim, Some(model.baseline_plan()))
    };
    assert!(
        alone(above.clone()).is_err(),
        "the plan that a run starts from is known, too"
    );
    above.certificate.bound_covers = BoundCovers::CandidateSet;
    assert!(
        agree(&problem, &with(above), None).is_ok(),
        "its model may not cover the plan"
    );
}

#[test]
fn the_longest_allowed_duration_does_not_overflow() {
    assert_eq!(longest(1_000, 50_000), 1_050);
    assert_eq!(longest(u64::MAX, 50_000), u64::MAX);
}
