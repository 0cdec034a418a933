//! What certificates say, and what they must not say.

use proptest::prelude::*;
use remat_ortools::{Candidates, Gap, Moccasin, Refusal};
use remat_plan::{
    BoundCovers, OrderMode, Paging, PagingMode, Problem, Status, StopReason, TensorId, Transfer, baseline,
};
use remat_solve::{SolveControl, Solver};

use crate::nets::{Op, any_ops, baseline_peak, fan, problem, with_budget};
use remat_truth::sequences as brute;

fn all_stages() -> Gap {
    Gap::NEW.only(Candidates::AllStages)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_that_a_bound_covers_beats_it(ops in any_ops(6), budget in 0u64..100, view_duration in 0u64..3, view_workspace in 0u64..3) {
        let mut ops = ops;
        for op in ops.iter_mut().filter(|op| op.results.is_empty()) {
            (op.duration, op.workspace) = (view_duration, view_workspace);
        }
        let problem = with_budget(problem(&ops), budget);
        let optimum = brute::stage_form(&problem);
        for solver in [&all_stages() as &dyn Solver, &Moccasin::NEW, &Gap::NEW] {
            let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
            if certificate.bound_covers != BoundCovers::CandidateSet {
                prop_assert!(optimum.is_none_or(|optimum| certificate.bound <= optimum), "{certificate:?}");
                prop_assert!(certificate.status != Status::Infeasible || optimum.is_none(), "{certificate:?}");
            }
        }
    }
}

#[test]
fn a_bound_over_all_stages_says_so_and_one_over_some_does_not() {
    let problem = with_budget(fan(), 30);
    let covers = |solver: &dyn Solver| solver.solve(&problem, &SolveControl::new()).certificate.bound_covers;
    assert_eq!(covers(&all_stages()), BoundCovers::StageForm);
    assert_eq!(covers(&Moccasin::NEW), BoundCovers::StageForm);
    assert_eq!(covers(&Gap::NEW.only(Candidates::Uses(1))), BoundCovers::CandidateSet);
}

#[test]
fn a_limit_below_that_of_the_problem_makes_a_bound_one_of_a_candidate_set() {
    let mut problem = with_budget(fan(), 30);
    problem.max_computes = None;
    let covers = |solver: &dyn Solver| solver.solve(&problem, &SolveControl::new()).certificate.bound_covers;
    assert_eq!(covers(&Moccasin { computes: Some(2) }), BoundCovers::CandidateSet);
    assert_eq!(covers(&all_stages()), BoundCovers::StageForm);
}

#[test]
fn in_free_order_a_bound_on_one_order_is_not_one_on_all() {
    let mut problem = with_budget(fan(), 30);
    problem.order = OrderMode::Free;
    let certificate = all_stages().solve(&problem, &SolveControl::new()).certificate;
    assert!(certificate.bound_covers == BoundCovers::CandidateSet || certificate.bound == problem.total_duration());
}

const WAY: Transfer = Transfer {
    latency_ns: 0,
    bytes_per_s: 1,
    energy_pj: 0,
    energy_pj_per_byte: 0,
};

#[test]
fn where_paging_is_allowed_a_bound_without_it_covers_a_candidate_set_only() {
    let mut problem = with_budget(fan(), 30);
    problem.paging = Some(Paging {
        mode: PagingMode::Sync,
        capacity: None,
        page_out: WAY,
        page_in: WAY,
    });
    let certificate = all_stages().solve(&problem, &SolveControl::new()).certificate;
    assert_eq!(certificate.bound_covers, BoundCovers::CandidateSet);
}

#[test]
fn a_budget_that_the_baseline_keeps_needs_no_model() {
    let mut problem = fan();
    problem.budget = Some(baseline_peak(&problem));
    for solver in crate::solvers_for_time() {
        let outcome = solver.solve(&problem, &SolveControl::new());
        assert_eq!(outcome.plan, Some(baseline(&problem)));
        assert_eq!(outcome.certificate.status, Status::Optimal);
        assert_eq!(outcome.certificate.bound_covers, BoundCovers::AllPlans);
    }
}

#[test]
fn a_budget_below_the_largest_op_is_infeasible_in_every_plan_of_the_order() {
    let mut problem = fan();
    problem.budget = Some(3);
    for solver in crate::solvers_for_time() {
        let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
        assert_eq!(
            (certificate.status, certificate.stop),
            (Status::Infeasible, StopReason::Proved)
        );
        assert_eq!(certificate.bound_covers, BoundCovers::FixedOrder);
    }
}

#[test]
fn sums_beyond_what_cp_sat_counts_are_refused_with_the_reason() {
    let huge = problem(&[
        Op::plain(1, (1 << 61) + 1, &[]),
        Op::plain(1, 1 << 60, &[0]),
        Op::plain(1, 3, &[0, 1]),
    ]);
    let huge = Problem {
        budget: Some((1 << 62) - 1),
        ..huge
    };
    let refusal = Gap::model_size(&huge, Candidates::Uses(1)).unwrap_err();
    assert!(matches!(refusal, Refusal::Range { what: "sizes", .. }), "{refusal}");
    let outcome = Gap::NEW.solve(&huge, &SolveControl::new());
    assert_eq!(
        (outcome.certificate.status, outcome.certificate.stop),
        (Status::Unknown, StopReason::Refused)
    );
    assert!(outcome.plan.is_none());
}

#[test]
fn durations_beyond_32_bits_are_counted_in_their_common_unit() {
    let scale = |mut problem: Problem, unit: u64| {
        for op in &mut problem.ops {
            op.duration *= unit;
        }
        problem
    };
    let duration = |problem: &Problem| all_stages().solve(problem, &SolveControl::new()).certificate.objective;
    let small = with_budget(fan(), 30);
    let large = scale(small.clone(), 10_000_000_000_000);
    assert_eq!(
        duration(&large),
        duration(&small).map(|duration| duration * 10_000_000_000_000)
    );
}

#[test]
fn a_model_that_runs_views_at_their_readers_denies_no_plan_that_runs_them_before() {
    // The third op looks into the second result and reads the first one, which has to be gone when the fourth op runs.
    let view = Op {
        results: Vec::new(),
        ..Op::plain(0, 0, &[1, 0])
    };
    let mut last = Op::plain(3, 2, &[2]);
    last.workspace = 5;
    let mut second = Op::plain(12, 4, &[]);
    second.workspace = 4;
    let mut problem = problem(&[Op::plain(7, 7, &[]), second, view, last]);
    let (operand, base) = (
        problem.tensors[TensorId::new(0)].storage,
        problem.tensors[TensorId::new(1)].storage,
    );
    let reader = problem.ops.iter_mut().nth(2).unwrap();
    reader.reads = vec![TensorId::new(0), TensorId::new(1)];
    assert_ne!(operand, base);
    problem.tensors[TensorId::new(2)].storage = base;
    problem.budget = Some(12);
    assert!(remat_truth::least(&problem, remat_truth::Space::FixedOrder).is_some());
    for solver in crate::solvers_for_time() {
        let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
        assert!(
            certificate.status != Status::Infeasible || certificate.bound_covers == BoundCovers::CandidateSet,
            "{certificate:?}"
        );
    }
}
