//! What a certificate may say.

use remat_plan::{BoundCovers, Certificate, Evidence, OrderMode, Status, StopReason};

fn settled(status: Status, objective: Option<u64>, bound: u64, covers: BoundCovers, stop: StopReason) -> Certificate {
    let mut certificate = Certificate {
        status,
        objective,
        bound,
        bound_covers: covers,
        evidence: Some(Evidence::Combinatorial),
        gap: None,
        stop,
        solver: "by-hand".to_owned(),
        seed: 0,
        threads: 1,
        steps: 0,
        elapsed_ms: 0,
        problem: String::new(),
    };
    certificate.settle();
    let once = certificate.clone();
    certificate.settle();
    assert_eq!(certificate, once, "settled twice is settled once");
    certificate
}

fn says(certificate: &Certificate) -> (Status, StopReason, u64) {
    (certificate.status, certificate.stop, certificate.bound)
}

#[test]
fn a_plan_that_meets_a_bound_on_all_plans_is_optimal_whatever_the_solver_says() {
    for covers in [BoundCovers::AllPlans, BoundCovers::FixedOrder] {
        let certificate = settled(Status::Feasible, Some(7), 7, covers, StopReason::TimeLimit);
        assert_eq!(says(&certificate), (Status::Optimal, StopReason::Proved, 7));
    }
}

#[test]
fn a_plan_that_meets_a_bound_on_fewer_plans_is_optimal_only_where_the_solver_says_so() {
    for covers in [BoundCovers::StageForm, BoundCovers::CandidateSet] {
        let claimed = settled(Status::Optimal, Some(7), 7, covers, StopReason::Proved);
        assert_eq!(says(&claimed), (Status::Optimal, StopReason::Proved, 7));
        let unclaimed = settled(Status::Feasible, Some(7), 7, covers, StopReason::Proved);
        assert_eq!(says(&unclaimed), (Status::Feasible, StopReason::Converged, 7));
    }
}

#[test]
fn a_plan_outside_what_a_bound_covers_lowers_the_bound_and_is_not_optimal() {
    let certificate = settled(Status::Optimal, Some(7), 9, BoundCovers::StageForm, StopReason::Proved);
    assert_eq!(says(&certificate), (Status::Feasible, StopReason::Converged, 7));
}

#[test]
fn a_false_bound_on_all_plans_is_left_for_the_checker_to_find() {
    let certificate = settled(
        Status::Feasible,
        Some(7),
        9,
        BoundCovers::AllPlans,
        StopReason::StepLimit,
    );
    assert_eq!(certificate.bound, 9);
}

#[test]
fn a_run_that_was_cancelled_proves_nothing() {
    for (status, objective, left) in [
        (Status::Optimal, Some(7), Status::Feasible),
        (Status::Infeasible, None, Status::Unknown),
    ] {
        let cancelled = settled(status, objective, 7, BoundCovers::AllPlans, StopReason::Cancelled);
        assert_eq!(says(&cancelled), (left, StopReason::Cancelled, 7));
        let mut interrupted = settled(status, objective, 7, BoundCovers::AllPlans, StopReason::Proved);
        assert_eq!(interrupted.status, status);
        interrupted.interrupt();
        assert_eq!(interrupted, cancelled);
    }
}

#[test]
fn that_there_is_no_plan_is_a_proof_or_not_said() {
    let stopped = settled(
        Status::Infeasible,
        None,
        7,
        BoundCovers::AllPlans,
        StopReason::MemoryLimit,
    );
    assert_eq!(says(&stopped), (Status::Unknown, StopReason::MemoryLimit, 7));
}

#[test]
fn only_a_proof_for_every_plan_of_the_order_is_final() {
    for (covers, fixed, free) in [
        (BoundCovers::AllPlans, true, true),
        (BoundCovers::FixedOrder, true, false),
        (BoundCovers::StageForm, false, false),
        (BoundCovers::CandidateSet, false, false),
    ] {
        let certificate = settled(Status::Infeasible, None, 7, covers, StopReason::Proved);
        assert_eq!(certificate.is_final(OrderMode::Fixed), fixed);
        assert_eq!(certificate.is_final(OrderMode::Free), free);
    }
}

#[test]
fn a_plan_that_was_changed_is_not_optimal_among_fewer_plans_any_more() {
    let mut certificate = settled(
        Status::Optimal,
        Some(9),
        9,
        BoundCovers::CandidateSet,
        StopReason::Proved,
    );
    certificate.restate(8, "digest".to_owned());
    assert_eq!(says(&certificate), (Status::Feasible, StopReason::Converged, 8));
    let mut proved = settled(
        Status::Feasible,
        Some(9),
        8,
        BoundCovers::AllPlans,
        StopReason::StepLimit,
    );
    proved.restate(8, "digest".to_owned());
    assert_eq!(says(&proved), (Status::Optimal, StopReason::Proved, 8));
}
