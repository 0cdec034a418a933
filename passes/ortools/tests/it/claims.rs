//! What certificates say, and what they must not say.

use proptest::prelude::*;
use remat_moccasin::Moccasin;
use remat_ortools::{Candidates, Gap, Refusal};
use remat_plan::{BoundCovers, OpId, OrderMode, Problem, Status, StopReason, Structure, baseline};
use remat_solve::{SolveControl, Solver};

use remat_testing::net::{Net, Place, at_most_twice, baseline_peak, fan, paging, paper, transient, with_budget};

use remat_testing::{Need, Trial, trial};
use remat_truth::answers::models;
use remat_truth::sequences as brute;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(no_plan_that_a_bound_covers_beats_it, Need::OrTools),
        trial!(
            a_bound_over_all_stages_says_so_and_one_over_some_does_not,
            Need::OrTools
        ),
        trial!(
            a_limit_below_that_of_the_problem_makes_a_bound_one_of_a_candidate_set,
            Need::OrTools
        ),
        trial!(in_free_order_a_bound_on_one_order_is_not_one_on_all, Need::OrTools),
        trial!(
            where_paging_is_allowed_a_bound_without_it_covers_a_candidate_set_only,
            Need::OrTools
        ),
        trial!(a_budget_that_the_baseline_keeps_needs_no_model, Need::OrTools),
        trial!(
            a_budget_below_the_largest_op_is_infeasible_in_every_plan_of_the_order,
            Need::OrTools
        ),
        trial!(
            sums_beyond_what_cp_sat_counts_are_refused_with_the_reason,
            Need::OrTools
        ),
        trial!(durations_beyond_32_bits_are_counted_in_their_common_unit, Need::OrTools),
        trial!(
            a_model_that_runs_views_at_their_readers_denies_no_plan_that_runs_them_before,
            Need::OrTools
        ),
    ]
}

fn all_stages() -> Gap {
    Gap::only(Candidates::AllStages)
}

proptest! {
    #![proptest_config(remat_testing::cases(48))]

    fn no_plan_that_a_bound_covers_beats_it(mut problem in models(6), budget in 0u64..100, view_duration in 0u64..3, view_workspace in 0u64..3) {
        let structure = Structure::of(&problem);
        for (_, view) in problem.ops.iter_mut_enumerated().filter(|(op, _)| structure.is_lazy(*op)) {
            (view.duration, view.workspace) = (view_duration, view_workspace);
        }
        let problem = with_budget(problem, budget);
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

fn a_bound_over_all_stages_says_so_and_one_over_some_does_not() {
    let problem = with_budget(fan(), 30);
    let covers = |solver: &dyn Solver| solver.solve(&problem, &SolveControl::new()).certificate.bound_covers;
    assert_eq!(covers(&all_stages()), BoundCovers::StageForm);
    assert_eq!(covers(&Moccasin::NEW), BoundCovers::StageForm);
    assert_eq!(covers(&Gap::only(Candidates::Uses(1))), BoundCovers::CandidateSet);
}

fn a_limit_below_that_of_the_problem_makes_a_bound_one_of_a_candidate_set() {
    let mut problem = with_budget(fan(), 30);
    problem.max_computes = None;
    let covers = |solver: &dyn Solver| solver.solve(&problem, &SolveControl::new()).certificate.bound_covers;
    assert_eq!(covers(&Moccasin { computes: Some(2) }), BoundCovers::CandidateSet);
    assert_eq!(covers(&all_stages()), BoundCovers::StageForm);
}

fn in_free_order_a_bound_on_one_order_is_not_one_on_all() {
    let mut problem = with_budget(fan(), 30);
    problem.order = OrderMode::Free;
    let certificate = all_stages().solve(&problem, &SolveControl::new()).certificate;
    assert!(certificate.bound_covers == BoundCovers::CandidateSet || certificate.bound == problem.total_duration());
}

fn where_paging_is_allowed_a_bound_without_it_covers_a_candidate_set_only() {
    let mut problem = with_budget(fan(), 30);
    problem.paging = Some(paging());
    let certificate = all_stages().solve(&problem, &SolveControl::new()).certificate;
    assert_eq!(certificate.bound_covers, BoundCovers::CandidateSet);
}

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

fn sums_beyond_what_cp_sat_counts_are_refused_with_the_reason() {
    let ops: &[(u64, u64, &[usize])] = &[(1, (1 << 61) + 1, &[]), (1, 1 << 60, &[0]), (1, 3, &[0, 1])];
    let huge = Problem {
        budget: Some((1 << 62) - 1),
        ..at_most_twice(paper(ops))
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

fn a_model_that_runs_views_at_their_readers_denies_no_plan_that_runs_them_before() {
    // The view reads a result that has to be gone when the last op runs.
    let net = Net::new()
        .op("first", 7, &[], &[("operand", transient(7))])
        .op("second", 12, &[], &[("base", transient(4))])
        .op("view", 0, &["operand", "base"], &[("v", Place::View("base"))])
        .op("last", 3, &["v"], &[("y", transient(2))])
        .with(|problem| {
            problem.ops[OpId::new(1)].workspace = 4;
            problem.ops[OpId::new(3)].workspace = 5;
            (problem.order, problem.budget) = (OrderMode::Fixed, Some(12));
        });
    let problem = at_most_twice(net.done());
    assert!(remat_truth::least(&problem, remat_truth::Space::FixedOrder).is_some());
    for solver in crate::solvers_for_time() {
        let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
        assert!(
            certificate.status != Status::Infeasible || certificate.bound_covers == BoundCovers::CandidateSet,
            "{certificate:?}"
        );
    }
}
