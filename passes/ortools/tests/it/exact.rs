//! Bounds on all plans in fixed order.

use proptest::prelude::*;
use remat_checkmate::CheckmateIlp;
use remat_moccasin::Moccasin;
use remat_ortools::{Candidates, Exact, Gap};
use remat_plan::{BoundCovers, OrderMode, Problem, Status, StopReason, TensorId};
use remat_solve::{Search, SolveControl, Solver};

use remat_testing::net::{self, at_most_twice, fan, with_budget};

use remat_testing::{Need, Trial, trial};
use remat_truth::answers::{assert_honest, models, paper};
use remat_truth::sequences as brute;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(no_plan_in_fixed_order_beats_the_bound, Need::OrTools),
        trial!(
            no_plan_in_fixed_order_beats_the_bound_where_ops_are_of_all_kinds,
            Need::OrTools
        ),
        trial!(in_free_order_no_plan_at_all_beats_the_bound, Need::OrTools),
        trial!(
            in_free_order_no_plan_at_all_beats_the_bound_where_ops_are_of_all_kinds,
            Need::OrTools
        ),
        trial!(the_bound_is_none_above_what_other_models_find, Need::OrTools),
        trial!(the_plan_is_no_worse_than_that_of_the_search, Need::OrTools),
        trial!(most_small_plans_are_proved_the_best_in_fixed_order, Need::OrTools),
        trial!(stage_forms_do_not_cover_all_plans_in_fixed_order, Need::OrTools),
        trial!(in_free_order_a_bound_covers_all_plans, Need::OrTools),
        trial!(
            a_model_beyond_the_allowed_memory_is_refused_and_one_within_is_not,
            Need::OrTools
        ),
    ]
}

/// The problem in which two of three ops also read what the one before makes, so that many plans have their order forced on them.
fn chain(mut problem: Problem) -> Problem {
    for (index, op) in problem.ops.iter_mut().enumerate() {
        if index % 3 > 0 {
            op.reads.push(TensorId::new(index - 1));
            op.reads.sort_unstable();
            op.reads.dedup();
        }
    }
    problem
}

proptest! {
    #![proptest_config(remat_testing::cases(48))]

    fn no_plan_in_fixed_order_beats_the_bound(problem in paper(5), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        assert_honest(&Exact, &problem, brute::fixed_order(&problem));
    }

    fn no_plan_in_fixed_order_beats_the_bound_where_ops_are_of_all_kinds(problem in models(5), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        assert_honest(&Exact, &problem, brute::fixed_order(&problem));
    }

    fn in_free_order_no_plan_at_all_beats_the_bound(problem in paper(4), budget in 0u64..60) {
        let mut problem = with_budget(chain(problem), budget);
        problem.order = OrderMode::Free;
        assert_honest(&Exact, &problem, brute::any_order(&problem));
    }

    fn in_free_order_no_plan_at_all_beats_the_bound_where_ops_are_of_all_kinds(problem in models(4), budget in 0u64..60) {
        let mut problem = with_budget(problem, budget);
        problem.order = OrderMode::Free;
        assert_honest(&Exact, &problem, brute::any_order(&problem));
    }

    fn the_bound_is_none_above_what_other_models_find(problem in paper(9), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let gap = Gap::only(Candidates::AllStages).solve(&problem, &SolveControl::new()).certificate;
        let optimum = gap.objective;
        let exact = Exact.solve(&problem, &SolveControl::new()).certificate;
        prop_assert!(optimum.is_none_or(|optimum| exact.bound <= optimum), "{exact:?} {gap:?}");
        prop_assert!(exact.status != Status::Infeasible || optimum.is_none(), "{exact:?} {gap:?}");
    }

    fn the_plan_is_no_worse_than_that_of_the_search(problem in paper(9), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let searched = Search.solve(&problem, &SolveControl::new().step_limit(20_000));
        let mut control = SolveControl::new();
        control.warm_start = searched.plan.as_ref();
        let exact = Exact.solve(&problem, &control).certificate;
        if let Some(objective) = searched.certificate.objective {
            prop_assert!(exact.objective.is_some_and(|exact| exact <= objective));
        }
    }
}

fn most_small_plans_are_proved_the_best_in_fixed_order() {
    let proved = (5..100).step_by(5).filter(|&hundredths| {
        let problem = with_budget(fan(), hundredths);
        let certificate = Exact.solve(&problem, &SolveControl::new()).certificate;
        let gap = Gap::only(Candidates::AllStages)
            .solve(&problem, &SolveControl::new())
            .certificate;
        let closed = matches!(certificate.status, Status::Optimal | Status::Infeasible);
        assert!(
            !closed || certificate.objective == gap.objective,
            "{certificate:?} {gap:?}"
        );
        closed && certificate.bound_covers != BoundCovers::CandidateSet
    });
    assert!(proved.count() >= 15);
}

/// `y` of the large `x` has to be made again before the large `v`, although `v` comes first.
fn out_of_order() -> Problem {
    let [u, v, x]: [(u64, u64, &[usize]); 3] = [(1, 1, &[]), (1, 5, &[0]), (1, 5, &[])];
    let [y, large, last]: [(u64, u64, &[usize]); 3] = [(1, 1, &[2]), (1, 7, &[]), (1, 1, &[1, 3])];
    let mut problem = at_most_twice(net::paper(&[u, v, x, y, large, last]));
    problem.budget = Some(7);
    problem
}

fn stage_forms_do_not_cover_all_plans_in_fixed_order() {
    let problem = out_of_order();
    for solver in [&CheckmateIlp::NEW as &dyn Solver, &Moccasin::NEW] {
        let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
        assert_eq!(
            (certificate.status, certificate.bound_covers),
            (Status::Infeasible, BoundCovers::StageForm)
        );
    }
    let optimum = brute::fixed_order(&problem);
    assert_eq!(optimum, Some(10));
    // The plan of the search from which this model starts need not be in stage form.
    let gap = Gap::only(Candidates::AllStages).solve(&problem, &SolveControl::new());
    assert!(gap.certificate.objective.is_none_or(|objective| objective >= 10));
    assert_honest(&Exact, &problem, optimum);
}

fn in_free_order_a_bound_covers_all_plans() {
    let mut problem = with_budget(fan(), 10);
    problem.order = OrderMode::Free;
    let certificate = Exact.solve(&problem, &SolveControl::new()).certificate;
    assert_eq!(certificate.bound_covers, BoundCovers::AllPlans);
    assert!(certificate.bound > problem.total_duration(), "{certificate:?}");
}

fn a_model_beyond_the_allowed_memory_is_refused_and_one_within_is_not() {
    let problem = with_budget(fan(), 30);
    for solver in crate::solvers_for_time() {
        let stop = |bytes| {
            let control = SolveControl::new().memory_limit(bytes);
            solver.solve(&problem, &control).certificate.stop
        };
        assert_eq!(stop(1 << 20), StopReason::Refused, "{}", solver.name());
        assert_ne!(stop(4 << 30), StopReason::Refused, "{}", solver.name());
    }
}
