//! The integer program of the Checkmate paper and its linear relaxation, next to trying everything.

use proptest::prelude::*;
use remat_checkmate::{CheckmateIlp, CheckmateLp, Freeing};
use remat_plan::{BoundCovers, OrderMode, Status, StopReason};
use remat_solve::{Search, SolveControl, Solver};

use remat_testing::net::{self, Net, at_most_twice, fan, transient, with_budget};
use remat_testing::random::Features;

use remat_testing::{Need, Trial, trial};
use remat_truth::answers::{assert_honest, models, paper, random, solve};
use remat_truth::sequences as brute;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(the_program_finds_the_best_plan_in_stage_form, Need::OrTools),
        trial!(
            without_a_limit_on_repetitions_each_node_may_run_in_every_stage,
            Need::OrTools
        ),
        trial!(
            ops_of_all_kinds_with_one_result_are_planned_as_well_as_trying_everything_does,
            Need::OrTools
        ),
        trial!(
            nothing_is_claimed_of_ops_with_several_results_that_does_not_hold,
            Need::OrTools
        ),
        trial!(
            the_linear_relaxation_bounds_the_program_and_its_plans_are_plans,
            Need::OrTools
        ),
        trial!(a_warm_start_changes_nothing_about_the_optimum, Need::OrTools),
        trial!(
            a_result_without_memory_beside_another_makes_a_bound_one_of_a_candidate_set,
            Need::OrTools
        ),
        trial!(the_relaxation_of_a_fan_is_rounded_to_a_plan, Need::OrTools),
        trial!(a_program_that_is_too_large_is_refused_before_it_is_built, Need::OrTools),
        trial!(a_flag_and_a_deadline_stop_the_relaxation, Need::OrTools),
        trial!(
            the_solution_at_the_end_counts_where_it_was_not_told_of_before,
            Need::OrTools
        ),
    ]
}

const PACKED: CheckmateIlp = CheckmateIlp {
    freeing: Freeing::Packed,
};
const PROGRAMS: [CheckmateIlp; 2] = [CheckmateIlp::NEW, PACKED];

proptest! {
    #![proptest_config(remat_testing::cases(32))]

    fn the_program_finds_the_best_plan_in_stage_form(problem in paper(6), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let optimum = brute::stage_form(&problem);
        for ilp in PROGRAMS {
            let (outcome, duration) = solve(&ilp, &problem);
            let certificate = &outcome.certificate;
            prop_assert_eq!(duration, optimum, "{:?} {:?}\n{:?}", ilp, certificate, problem);
            let status = if optimum.is_some() { Status::Optimal } else { Status::Infeasible };
            prop_assert_eq!(certificate.status, status, "{:?} {:?}\n{:?}", ilp, certificate, problem);
        }
    }

    fn without_a_limit_on_repetitions_each_node_may_run_in_every_stage(problem in paper(5), budget in 0u64..60) {
        let mut problem = with_budget(problem, budget);
        problem.max_computes = None;
        prop_assert_eq!(solve(&CheckmateIlp::NEW, &problem).1, brute::stage_form(&problem));
    }

    fn ops_of_all_kinds_with_one_result_are_planned_as_well_as_trying_everything_does(
        problem in random(6, Features { results: 1, ..Features::EXACT }), budget in 0u64..100
    ) {
        let problem = with_budget(problem, budget);
        let optimum = brute::stage_form(&problem);
        for ilp in PROGRAMS {
            let (outcome, duration) = solve(&ilp, &problem);
            prop_assert_eq!(duration, optimum, "{:?} {:?}\n{:?}", ilp, outcome.certificate, problem);
        }
    }

    fn nothing_is_claimed_of_ops_with_several_results_that_does_not_hold(problem in models(6), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let optimum = brute::stage_form(&problem);
        assert_honest(&CheckmateIlp::NEW, &problem, optimum);
        assert_honest(&CheckmateLp, &problem, optimum);
    }

    fn the_linear_relaxation_bounds_the_program_and_its_plans_are_plans(problem in paper(12), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let (_, optimum) = solve(&PACKED, &problem);
        let (outcome, duration) = solve(&CheckmateLp, &problem);
        let certificate = &outcome.certificate;
        prop_assert!(optimum.is_none_or(|optimum| certificate.bound <= optimum), "{certificate:?} {optimum:?}");
        prop_assert!(certificate.status != Status::Infeasible || optimum.is_none(), "{certificate:?}");
        prop_assert!(duration.is_none_or(|duration| optimum.is_some_and(|optimum| optimum <= duration)));
    }

    fn a_warm_start_changes_nothing_about_the_optimum(problem in paper(9), budget in 0u64..100) {
        let problem = with_budget(problem, budget);
        let start = Search.solve(&problem, &SolveControl::new().step_limit(20_000)).plan;
        let mut control = SolveControl::new();
        control.warm_start = start.as_ref();
        let warm = CheckmateIlp::NEW.solve(&problem, &control).certificate;
        let cold = CheckmateIlp::NEW.solve(&problem, &SolveControl::new()).certificate;
        prop_assert!(start.is_none() || warm.objective <= cold.objective.or(warm.objective));
        // A plan that runs the nodes of a stage in another order than the form's may take less time than any in the form, or be there where
        // the form has none.
        let in_form = (cold.status != Status::Infeasible).then_some(cold.bound);
        let shortest = warm.objective.into_iter().chain(in_form).min();
        prop_assert_eq!(warm.bound, shortest.unwrap_or(cold.bound));
    }
}

/// The second result of the second op takes nothing, so that a plan may hold it without the first; the program cannot.
fn a_result_without_memory_beside_another_makes_a_bound_one_of_a_candidate_set() {
    let net = Net::new()
        .op("first", 1, &[], &[("a", transient(3))])
        .op("double", 5, &[], &[("b", transient(4)), ("empty", transient(0))])
        .op("large", 1, &["b"], &[("c", transient(6))])
        .op("small", 1, &["c"], &[("d", transient(1))])
        .op("largest", 1, &["d"], &[("e", transient(8))])
        .op("last", 1, &["empty", "d", "a"], &[("f", transient(1))])
        .with(|problem| (problem.order, problem.budget) = (OrderMode::Fixed, Some(10)));
    let problem = at_most_twice(net.done());
    let once = problem.total_duration();
    assert_eq!(brute::stage_form(&problem), Some(once + 1));
    let (outcome, duration) = solve(&CheckmateIlp::NEW, &problem);
    assert_eq!(duration, Some(once + 6));
    assert_eq!(outcome.certificate.bound_covers, BoundCovers::CandidateSet);
}

fn the_relaxation_of_a_fan_is_rounded_to_a_plan() {
    let problem = with_budget(fan(), 60);
    let (outcome, duration) = solve(&CheckmateLp, &problem);
    assert_eq!(outcome.certificate.bound_covers, BoundCovers::StageForm);
    assert!(outcome.certificate.bound > problem.total_duration());
    assert!(duration.is_some(), "{:?}", outcome.certificate);
}

fn a_program_that_is_too_large_is_refused_before_it_is_built() {
    let reads = |index: usize| {
        [index / 2, index.wrapping_sub(1)]
            .into_iter()
            .filter(|&read| read < index)
            .collect()
    };
    let ops: Vec<(u64, u64, Vec<usize>)> = (0..2000).map(|index| (1, 1, reads(index))).collect();
    let problem = with_budget(at_most_twice(net::paper(&ops)), 50);
    for solver in [&CheckmateIlp::NEW as &dyn Solver, &CheckmateLp] {
        let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
        assert_eq!(
            (certificate.status, certificate.stop),
            (Status::Unknown, StopReason::Refused)
        );
    }
    let small = with_budget(fan(), 60);
    for solver in [&CheckmateIlp::NEW as &dyn Solver, &CheckmateLp] {
        let solve = |bytes| {
            solver
                .solve(&small, &SolveControl::new().memory_limit(bytes))
                .certificate
                .stop
        };
        assert_eq!(solve(1 << 20), StopReason::Refused);
        assert_ne!(solve(1 << 30), StopReason::Refused);
    }
}

fn a_flag_and_a_deadline_stop_the_relaxation() {
    let problem = with_budget(fan(), 30);
    let flag = std::sync::atomic::AtomicBool::new(true);
    let certificate = CheckmateLp
        .solve(&problem, &SolveControl::new().cancel(&flag))
        .certificate;
    assert_eq!(certificate.stop, StopReason::Cancelled);
    let none = SolveControl::new().time_limit(std::time::Duration::ZERO);
    let certificate = CheckmateLp.solve(&problem, &none).certificate;
    assert_eq!(
        (certificate.stop, certificate.bound),
        (StopReason::TimeLimit, problem.total_duration())
    );
}

/// HiGHS finds the best solution here without telling of it as an improvement.
fn the_solution_at_the_end_counts_where_it_was_not_told_of_before() {
    let ops: &[(u64, u64, &[usize])] = &[
        (0, 2, &[]),
        (0, 2, &[0]),
        (3, 1, &[1]),
        (0, 4, &[1]),
        (5, 3, &[3, 0]),
        (0, 7, &[1, 2]),
    ];
    let mut problem = at_most_twice(net::paper(ops));
    problem.budget = Some(11);
    let (outcome, duration) = solve(&CheckmateIlp::NEW, &problem);
    assert_eq!(duration, Some(problem.total_duration()));
    assert_eq!(outcome.certificate.status, Status::Optimal);
}
