//! What every answer of every solver in pure Rust keeps to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use remat_plan::{BoundCovers, OrderMode, Plan, Problem, Status, StopReason, baseline};
use remat_solve::{Domain, Observer, Patience, Progress, Registry, Search, SolveControl, Solver, minimize_peak};
use remat_testing::net::{baseline_peak, in_free_order, least_budget};
use remat_testing::random::{Features, budgeted, in_either_order, problems};
use remat_truth::judge::checked;
use remat_verify::replay;

/// Limits under which the small problems of these tests are searched.
fn quick() -> SolveControl<'static> {
    SolveControl::new().step_limit(3_000)
}

fn solvers_for_time() -> impl Iterator<Item = &'static dyn Solver> {
    let registry = Registry::of(&[remat_solve::register, remat_classic::register]);
    registry.solvers().filter(|solver| solver.domain() == Domain::Time)
}

proptest! {
    #![proptest_config(remat_testing::cases(300))]

    #[test]
    fn every_plan_passes_the_checker(problem in in_either_order(budgeted(1..25, Features::ALL)), seed in any::<u64>()) {
        for solver in solvers_for_time() {
            let outcome = solver.solve(&problem, &quick().seed(seed));
            checked(&problem, &outcome);
        }
    }

    #[test]
    fn the_number_of_computes_is_respected(mut problem in in_either_order(budgeted(5..25, Features::ALL)), most in 1u32..4) {
        problem.max_computes = Some(most);
        for solver in solvers_for_time() {
            let outcome = solver.solve(&problem, &quick());
            checked(&problem, &outcome);
        }
    }

    #[test]
    fn no_plan_is_shorter_than_one_without_a_budget(problem in in_either_order(problems(1..15, Features::ALL))) {
        let outcome = Search.solve(&problem, &quick());
        checked(&problem, &outcome);
        prop_assert_eq!(outcome.plan, Some(baseline(&problem)));
        prop_assert_eq!(outcome.certificate.status, Status::Optimal);
        prop_assert_eq!(outcome.certificate.stop, StopReason::Proved);
        prop_assert_eq!(outcome.certificate.bound_covers, BoundCovers::AllPlans);
    }

    #[test]
    fn a_budget_below_one_op_is_infeasible_at_once(mut problem in in_either_order(problems(2..15, Features::ALL))) {
        let need = least_budget(&problem);
        prop_assume!(need > 0);
        problem.budget = Some(need - 1);
        for solver in solvers_for_time() {
            let outcome = solver.solve(&problem, &quick());
            prop_assert_eq!(outcome.certificate.status, Status::Infeasible);
            prop_assert_eq!(outcome.certificate.steps, 0);
            prop_assert!(outcome.plan.is_none());
        }
    }

    #[test]
    fn same_seed_and_steps_give_the_same_answer(problem in in_either_order(budgeted(10..30, Features::ALL)), seed in any::<u64>()) {
        for solver in solvers_for_time() {
            let solve = || {
                let mut outcome = solver.solve(&problem, &quick().seed(seed));
                outcome.certificate.elapsed_ms = 0;
                outcome
            };
            let (first, second) = (solve(), solve());
            prop_assert_eq!(first.plan, second.plan);
            prop_assert_eq!(first.certificate, second.certificate);
        }
    }

    #[test]
    fn the_lowest_peak_found_is_not_above_the_baseline(problem in in_either_order(budgeted(2..20, Features::ALL))) {
        let outcome = minimize_peak(&problem, None, &quick());
        let free = Problem { budget: None, ..problem.clone() };
        let replayed = replay(&free, outcome.plan.as_ref().expect("the baseline is a plan")).expect("the plan is valid");
        let most = baseline_peak(&free);
        prop_assert!(replayed.peak <= most);
        prop_assert!(outcome.lowest_peak.is_some_and(|peak| replayed.peak <= peak && peak <= most));
        prop_assert_eq!(outcome.certificate.objective, Some(replayed.duration));
    }

    #[test]
    fn the_lowest_budget_keeps_within_the_duration(problem in in_either_order(budgeted(2..20, Features::ALL)), share in 0u64..60) {
        let limit = problem.total_duration() * (100 + share) / 100;
        let outcome = minimize_peak(&problem, Some(limit), &quick());
        let free = Problem { budget: None, ..problem };
        let replayed = replay(&free, outcome.plan.as_ref().expect("the baseline is a plan")).expect("the plan is valid");
        prop_assert!(replayed.duration <= limit, "{} exceeds {limit}", replayed.duration);
        prop_assert_eq!(outcome.certificate.objective, Some(replayed.duration));
    }

    #[test]
    fn a_warm_start_is_never_made_worse(problem in in_either_order(budgeted(10..25, Features::ALL))) {
        let solver = Search;
        let first = solver.solve(&problem, &quick().seed(1));
        let Some(plan) = &first.plan else { return Ok(()) };
        let control = SolveControl::new().step_limit(300).seed(2).warm_start(plan);
        let second = solver.solve(&problem, &control);
        checked(&problem, &second);
        prop_assert!(second.certificate.objective <= first.certificate.objective);
    }

    #[test]
    fn a_larger_budget_is_never_worse_on_small_graphs(problem in budgeted(2..8, Features::PAPER), more in 1u64..10) {
        let problem = in_free_order(problem);
        let larger = Problem { budget: problem.budget.map(|budget| budget + more), ..problem.clone() };
        let control = SolveControl::new().step_limit(20_000);
        let solve = |problem: &Problem| Search.solve(problem, &control).certificate.objective;
        if let Some(objective) = solve(&problem) {
            prop_assert!(solve(&larger).is_some_and(|other| other <= objective));
        }
    }
}

#[test]
fn in_free_order_hardly_any_plan_is_longer_than_in_fixed_order() {
    let mut runner = TestRunner::deterministic();
    let strategy = budgeted(2..9, Features::ALL);
    let (mut compared, mut longer) = (0, 0);
    for _ in 0..300 {
        let tree = strategy.new_tree(&mut runner).expect("the strategy rejects nothing");
        let fixed = Search.solve(&tree.current(), &quick());
        let free = Search.solve(&in_free_order(tree.current()), &SolveControl::new().step_limit(20_000));
        if let Some(objective) = fixed.certificate.objective {
            compared += 1;
            longer += usize::from(free.certificate.objective.is_none_or(|free| free > objective));
        }
    }
    assert!(compared > 100, "only {compared} problems have a plan in fixed order");
    assert!(longer * 50 <= compared, "{longer} of {compared} plans are longer");
}

/// A problem on which there is something to search for.
fn hard() -> Problem {
    let mut runner = TestRunner::deterministic();
    let strategy = problems(
        300..301,
        Features {
            reach: 60,
            ..Features::PAPER
        },
    );
    let mut problem = strategy
        .new_tree(&mut runner)
        .expect("the strategy rejects nothing")
        .current();
    problem.budget = Some(baseline_peak(&problem) * 8 / 10);
    problem
}

#[test]
fn a_raised_flag_stops_the_search_and_keeps_the_plan() {
    let problem = hard();
    let flag = AtomicBool::new(false);
    struct Raise<'a>(&'a AtomicBool);
    impl Observer for Raise<'_> {
        fn improved(&self, _: &Progress, _: &dyn Fn() -> Option<Plan>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let raise = Raise(&flag);
    let control = SolveControl::new()
        .patience(Patience::ENDLESS)
        .cancel(&flag)
        .observer(&raise);
    let outcome = Search.solve(&problem, &control);
    assert_eq!(outcome.certificate.stop, StopReason::Cancelled);
    let plan = outcome.plan.expect("the first improvement raised the flag");
    assert!(replay(&problem, &plan).is_ok());
}

#[test]
fn a_deadline_in_the_past_ends_without_a_plan_and_without_a_claim() {
    let problem = hard();
    let outcome = Search.solve(&problem, &SolveControl::new().time_limit(Duration::ZERO));
    assert_eq!(outcome.certificate.status, Status::Unknown);
    assert_eq!(outcome.certificate.stop, StopReason::TimeLimit);
    assert!(outcome.plan.is_none());
    assert!(outcome.lowest_peak.is_some());
}

#[test]
fn improvements_are_told_in_order_and_the_last_is_the_answer() {
    struct Record(Mutex<Vec<Progress>>);
    impl Observer for Record {
        fn improved(&self, progress: &Progress, _: &dyn Fn() -> Option<Plan>) {
            self.0.lock().unwrap().push(*progress);
        }
    }
    let problem = hard();
    let record = Record(Mutex::new(Vec::new()));
    let control = SolveControl::new().step_limit(500_000).observer(&record);
    let outcome = Search.solve(&problem, &control);
    let told = record.0.into_inner().unwrap();
    assert!(told.len() > 1, "the first plan can be improved");
    assert!(
        told.windows(2)
            .all(|pair| pair[1].objective < pair[0].objective && pair[1].steps >= pair[0].steps)
    );
    assert_eq!(told.last().map(|last| last.objective), outcome.certificate.objective);
}

#[test]
fn several_threads_are_not_worse_than_one_and_as_reproducible() {
    let problem = hard();
    let solve = |threads| {
        let control = SolveControl::new().step_limit(20_000).threads(threads);
        Search.solve(&problem, &control)
    };
    let (one, four, again) = (solve(1), solve(4), solve(4));
    assert!(four.certificate.objective <= one.certificate.objective);
    assert_eq!(four.plan, again.plan);
    assert_eq!(four.certificate.threads, 4);
}

#[test]
fn a_plan_that_is_none_is_no_warm_start() {
    let mut problem = hard();
    problem.order = OrderMode::Free;
    let mut plan = baseline(&problem);
    plan.steps.reverse();
    let outcome = Search.solve(&problem, &SolveControl::new().step_limit(20_000).warm_start(&plan));
    assert!(replay(&problem, &outcome.plan.expect("there is one")).is_ok());
}

/// Two chains that meet, with large values in their middle, and all of their ops in turns: what one of them holds stands in the
/// way of the other.
fn interleaved() -> Problem {
    let ops: &[(u64, u64, &[usize])] = &[
        (1, 1, &[]),
        (1, 1, &[]),
        (1, 10, &[0]),
        (1, 10, &[1]),
        (1, 1, &[2]),
        (1, 1, &[3]),
        (1, 1, &[4, 5]),
    ];
    Problem {
        budget: Some(13),
        ..remat_testing::net::paper(ops)
    }
}

#[test]
fn another_order_needs_no_recompute_and_is_known_to_be_the_best() {
    let fixed = Search.solve(&interleaved(), &SolveControl::new().step_limit(20_000));
    assert_eq!(fixed.certificate.status, Status::Feasible);
    let problem = in_free_order(interleaved());
    let outcome = Search.solve(&problem, &SolveControl::new());
    assert_eq!(outcome.certificate.status, Status::Optimal);
    assert_eq!(outcome.certificate.stop, StopReason::Proved);
    assert_eq!(outcome.certificate.objective, Some(problem.total_duration()));
    assert!(replay(&problem, &outcome.plan.expect("there is one")).is_ok());
}

#[test]
fn a_plan_in_another_order_is_a_warm_start_in_free_order_only() {
    let problem = in_free_order(interleaved());
    let found = Search.solve(&problem, &SolveControl::new());
    let plan = found.plan.expect("there is one");
    let again = SolveControl::new().step_limit(1).warm_start(&plan);
    let outcome = Search.solve(&problem, &again);
    assert_eq!(outcome.plan.as_ref(), Some(&plan));
    assert!(Search.solve(&interleaved(), &again).plan.is_none());
}

#[test]
fn a_search_without_limits_ends_by_convergence() {
    let problem = hard();
    let patience = Patience {
        min_steps: 20_000,
        factor: 1.0,
    };
    let outcome = Search.solve(&problem, &SolveControl::new().patience(patience));
    assert_eq!(outcome.certificate.stop, StopReason::Converged);
}

#[test]
fn hardly_any_budget_from_the_lowest_peak_found_on_is_missed_in_free_order() {
    let mut runner = TestRunner::deterministic();
    let (mut tight, mut tried, mut missed) = (0, 0, 0);
    for _ in 0..25 {
        let problem = problems(8..20, Features::PAPER)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let problem = in_free_order(problem);
        let lowest = minimize_peak(&problem, None, &SolveControl::new().step_limit(20_000));
        let peak = lowest.lowest_peak.expect("there is always a plan");
        tight += usize::from(lowest.certificate.objective > Some(problem.total_duration()));
        for percent in [100, 102, 105, 110, 120, 140] {
            let budget = Some(peak * percent / 100);
            let problem = Problem {
                budget,
                ..problem.clone()
            };
            let outcome = Search.solve(&problem, &SolveControl::new().step_limit(20_000).seed(percent));
            tried += 1;
            missed += usize::from(outcome.plan.is_none());
        }
    }
    assert!(tight > 5, "the test would show nothing: {tight}");
    assert!(missed * 30 <= tried, "{missed} of {tried} are missed");
}
