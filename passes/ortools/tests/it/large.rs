//! Sizes that floating point cannot count: what is claimed of them holds, and is as much as of small ones.

use std::path::Path;

use proptest::prelude::*;
use remat_checkmate::CheckmateIlp;
use remat_moccasin::Moccasin;
use remat_ortools::{Candidates, Exact, Gap};
use remat_plan::{BoundCovers, OrderMode, Problem, Status, StopReason};
use remat_solve::{SolveControl, Solver};
use remat_testing::net::{baseline_peak, fan, with_budget};
use remat_truth::sequences as brute;

use remat_testing::{Need, Trial, trial};
use remat_truth::answers::{paper, solve};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(no_solver_says_what_is_not_true_of_sizes_of_any_magnitude, Need::OrTools),
        trial!(every_exact_solver_settles_small_problems_of_any_size, Need::OrTools),
        trial!(no_bound_lies_above_the_duration_of_a_plan, Need::OrTools),
        trial!(
            proofs_of_large_sizes_are_those_of_the_same_sizes_divided_by_a_thousand,
            Need::OrTools
        ),
        trial!(the_same_holds_in_free_order, Need::OrTools),
        trial!(
            runs_after_the_last_first_run_are_left_out_of_what_a_model_starts_from,
            Need::OrTools
        ),
        trial!(
            that_a_model_has_no_plan_is_said_of_the_plans_of_that_model,
            Need::OrTools
        ),
    ]
}

/// A graph of `tests/data` in fixed order, under the accounting of the papers.
fn graph(name: &str, budget: u64) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let read = remat_nodelink::read(&std::fs::read(path).unwrap()).unwrap();
    let mut problem = remat_cost::paper_problem(&read.graph, &read.durations).unwrap();
    problem.budget = Some(budget);
    problem
}

/// The least durations in fixed order and in stage form.
#[derive(Clone, Copy, Debug)]
struct Truth {
    fixed: Option<u64>,
    stages: Option<u64>,
}

/// What a solver says is true, and no plan is better than there can be.
fn assert_true(solver: &dyn Solver, problem: &Problem, truth: Truth) {
    let (outcome, duration) = solve(solver, problem);
    let certificate = &outcome.certificate;
    let optimum = match certificate.bound_covers {
        BoundCovers::AllPlans | BoundCovers::FixedOrder => truth.fixed,
        BoundCovers::StageForm => truth.stages,
        BoundCovers::CandidateSet => None,
    };
    let message = format!("{} {certificate:?} {truth:?}\n{problem:?}", solver.name());
    assert!(
        duration.is_none_or(|found| truth.fixed.is_some_and(|fixed| fixed <= found)),
        "{message}"
    );
    assert!(optimum.is_none_or(|optimum| certificate.bound <= optimum), "{message}");
    assert!(
        certificate.status != Status::Infeasible || optimum.is_none(),
        "{message}"
    );
    if let (Status::Optimal, Some(optimum)) = (certificate.status, optimum) {
        assert!(duration.is_some_and(|found| found <= optimum), "{message}");
    }
}

/// The problem with sizes of that magnitude and no common divisor.
fn enlarged(mut problem: Problem, magnitude: u64, noise: &[u64]) -> Problem {
    for (storage, noise) in problem.storages.iter_mut().zip(noise) {
        storage.bytes = storage.bytes * magnitude + noise % magnitude;
    }
    problem
}

/// The largest is more than CP-SAT counts in most problems, and then refused.
const MAGNITUDES: [u64; 5] = [1, 1_000, 1_000_000_000, 1_000_000_000_000, 1 << 54];

const ALL_STAGES: Gap = Gap::only(Candidates::AllStages);

proptest! {
    #![proptest_config(remat_testing::cases(40))]

    fn no_solver_says_what_is_not_true_of_sizes_of_any_magnitude(
        problem in paper(5),
        magnitude in prop::sample::select(&MAGNITUDES[..]),
        noise in prop::collection::vec(any::<u64>(), 5),
        budget in 0u64..100,
    ) {
        let problem = with_budget(enlarged(problem, magnitude, &noise), budget);
        let truth = Truth { fixed: brute::fixed_order(&problem), stages: brute::stage_form(&problem) };
        for solver in crate::solvers_for_time() {
            assert_true(solver, &problem, truth);
        }
    }

    fn every_exact_solver_settles_small_problems_of_any_size(
        problem in paper(6),
        magnitude in prop::sample::select(&MAGNITUDES[..]),
        noise in prop::collection::vec(any::<u64>(), 6),
        budget in 0u64..100,
    ) {
        let problem = with_budget(enlarged(problem, magnitude, &noise), budget);
        let optimum = brute::stage_form(&problem);
        for solver in [&ALL_STAGES as &dyn Solver, &CheckmateIlp::NEW, &Moccasin::NEW] {
            let (outcome, duration) = solve(solver, &problem);
            let certificate = &outcome.certificate;
            if certificate.stop == StopReason::Refused {
                prop_assert!(magnitude == 1 << 54, "{certificate:?}");
                continue;
            }
            prop_assert_eq!(certificate.stop, StopReason::Proved, "{:?}\n{:?}", certificate, problem);
            let is_outside = solver.name().starts_with("gap") && duration < optimum && duration.is_some();
            prop_assert!(is_outside || duration == optimum || optimum.is_none() && duration.is_some(), "{certificate:?} {optimum:?}\n{problem:?}");
        }
    }
}

/// HiGHS takes linear relaxations with these sizes for infeasible that are not.
fn no_bound_lies_above_the_duration_of_a_plan() {
    for (name, budget, optimum) in [
        ("false_optimal_auto.json", 3_072_044_103_741, Some(4863)),
        ("bound_min.json", 2_692_253_930_738, None),
    ] {
        let problem = graph(name, budget);
        let best = solve(&ALL_STAGES, &problem).1;
        let exact = Exact.solve(&problem, &SolveControl::new()).certificate;
        assert!(
            optimum.is_none_or(|optimum| exact.objective == Some(optimum)),
            "{exact:?}"
        );
        assert!(exact.bound <= exact.objective.unwrap(), "{exact:?}");
        assert!(exact.objective <= best, "{exact:?} {best:?}");
        for solver in crate::solvers_for_time() {
            let (outcome, duration) = solve(solver, &problem);
            assert!(
                duration.is_none_or(|found| exact.bound <= found),
                "{:?}",
                outcome.certificate
            );
        }
    }
}

fn proofs_of_large_sizes_are_those_of_the_same_sizes_divided_by_a_thousand() {
    let large = graph("bound_exact_16nodes.json", 0);
    let peak = baseline_peak(&large);
    for per_cent in [50, 60, 70, 80, 90] {
        let large = Problem {
            budget: Some(peak / 100 * per_cent),
            ..large.clone()
        };
        let mut small = large.clone();
        for storage in &mut small.storages {
            storage.bytes /= 1_000_000;
        }
        small.budget = large.budget.map(|budget| budget / 1_000_000);
        let of = |problem: &Problem| {
            let certificate = Exact.solve(problem, &SolveControl::new()).certificate;
            (certificate.status, certificate.objective, certificate.bound)
        };
        assert_eq!(of(&large), of(&small), "{per_cent} %");
    }
}

fn the_same_holds_in_free_order() {
    let mut problem = with_budget(fan(), 30);
    for (storage, noise) in problem.storages.iter_mut().zip(0u64..) {
        storage.bytes = storage.bytes * 1_000_000_000_000 + noise * noise;
    }
    problem.budget = problem.budget.map(|budget| budget * 1_000_000_000_000 + 1_000);
    problem.order = OrderMode::Free;
    let small = Problem {
        order: OrderMode::Free,
        ..with_budget(fan(), 30)
    };
    for solver in [&Exact as &dyn Solver, &Moccasin::NEW] {
        assert_eq!(solve(solver, &problem).1, solve(solver, &small).1, "{}", solver.name());
    }
}

/// A plan may run ops after the last first run, where they take no time: models have no place for that.
fn runs_after_the_last_first_run_are_left_out_of_what_a_model_starts_from() {
    let mut problem = graph("gap_panic.json", 15);
    for order in [OrderMode::Free, OrderMode::Fixed] {
        problem.order = order;
        for solver in crate::solvers_for_time() {
            solve(solver, &problem);
        }
    }
    problem.order = OrderMode::Free;
    assert!(solve(&Gap::NEW, &problem).1.is_some());
}

/// A model over stages has no plan here, and a plan there is.
fn that_a_model_has_no_plan_is_said_of_the_plans_of_that_model() {
    let problem = graph("false_infeasible.json", 19);
    for solver in [&Moccasin::NEW as &dyn Solver, &CheckmateIlp::NEW] {
        let certificate = solver.solve(&problem, &SolveControl::new()).certificate;
        assert_eq!(certificate.status, Status::Infeasible, "{certificate:?}");
        assert!(
            !certificate.bound_covers.is_every_plan(problem.order),
            "{certificate:?}"
        );
        assert!(certificate.evidence.is_some(), "{certificate:?}");
    }
    for solver in [&ALL_STAGES as &dyn Solver, &Exact] {
        assert!(solve(solver, &problem).1.is_some());
    }
}
