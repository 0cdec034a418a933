//! Small problems are solved: every answer held against an exhaustive search, and problems of up to 20 ops proved.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use remat_plan::{OrderMode, Problem, StopReason, StorageRole, TensorId};
use remat_solve::{Small, SolveControl, Solver, least_peak, minimize_peak};
use remat_testing::net::{Net, Place, baseline_peak, in_free_order, step};
use remat_testing::random::{Features, budgeted};
use remat_truth::judge::{Truth, checked};
use remat_truth::problems::problem;
use remat_truth::{Space, least};
use remat_verify::replay;

const PROBLEMS: u64 = 400;

fn space(problem: &Problem) -> Space {
    match problem.order {
        OrderMode::Fixed => Space::FixedOrder,
        OrderMode::Free => Space::AllPlans,
    }
}

fn under(problem: &Problem, budget: u64) -> Problem {
    Problem {
        budget: Some(budget),
        ..problem.clone()
    }
}

/// The first tiny problems, and those among them that are asked for.
fn numbered(problems: u64, is_asked: impl Fn(&Problem) -> bool) -> impl Iterator<Item = (u64, Problem)> {
    let numbered = (0..problems).map(|number| (number, problem(number)));
    numbered.filter(move |(_, problem)| is_asked(problem))
}

#[test]
fn what_it_says_of_tiny_problems_is_what_trying_everything_says() {
    for (number, problem) in numbered(PROBLEMS, |problem| Small.is_quick(problem)) {
        let outcome = Small.solve(&problem, &SolveControl::new());
        checked(&problem, &outcome);
        let certificate = &outcome.certificate;
        let best = least(&problem, space(&problem));
        assert_eq!(certificate.objective, best, "problem {number}");
        assert_eq!(certificate.stop, StopReason::Proved, "problem {number}");
        let judged = Truth::of(&problem).judge(outcome.plan.as_ref(), certificate);
        assert_eq!(judged, Ok(()), "problem {number}");
    }
}

#[test]
fn the_lowest_peak_of_tiny_problems_is_the_lowest_there_is() {
    for (number, problem) in numbered(PROBLEMS / 2, Problem::is_time_within_budget) {
        let outcome = minimize_peak(&problem, None, &SolveControl::new());
        let peak = outcome.lowest_peak.unwrap();
        let shortest = least(&under(&problem, peak), space(&problem));
        assert_eq!(outcome.certificate.objective, shortest, "problem {number}");
        assert_eq!(
            least_peak(&problem, &SolveControl::new()).bytes,
            peak,
            "problem {number}"
        );
        if let Some(less) = peak.checked_sub(1) {
            assert_eq!(least(&under(&problem, less), space(&problem)), None, "problem {number}");
        }
    }
}

#[test]
fn the_lowest_peak_within_a_duration_is_the_lowest_there_is() {
    for (number, problem) in numbered(PROBLEMS / 4, Problem::is_time_within_budget) {
        let longest = problem.total_duration() + problem.total_duration() / 5;
        let outcome = minimize_peak(&problem, Some(longest), &SolveControl::new());
        let peak = outcome.lowest_peak.unwrap();
        assert!(outcome.certificate.objective.unwrap() <= longest);
        if let Some(less) = peak.checked_sub(1) {
            let best = least(&under(&problem, less), space(&problem));
            assert!(best.is_none_or(|best| best > longest), "problem {number}");
        }
    }
}

/// Random problems of so many ops, in both orders, with budgets from tight to loose.
fn larger(ops: std::ops::Range<usize>, features: Features, count: usize) -> Vec<Problem> {
    let mut runner = TestRunner::deterministic();
    let strategy = budgeted(ops, features);
    let mut problems = Vec::new();
    for _ in 0..count {
        let problem = strategy
            .new_tree(&mut runner)
            .expect("a strategy without filters")
            .current();
        problems.push(in_free_order(problem.clone()));
        problems.push(problem);
    }
    problems
}

#[test]
fn problems_of_up_to_20_ops_are_solved_with_proof() {
    let mut problems = larger(12..21, Features::ALL, 20);
    problems.extend(larger(12..21, Features::PAPER, 20));
    for problem in problems {
        let control = SolveControl::new();
        let floor = least_peak(&problem, &control).bytes;
        let lowest = minimize_peak(&problem, None, &control);
        assert_eq!(lowest.lowest_peak, Some(floor), "{}", problem.to_json());
        // From the lowest peak there is to that of running every op once.
        let room = baseline_peak(&problem) - floor;
        for quarters in 0..=4 {
            let problem = under(&problem, floor + room * quarters / 4);
            let outcome = Small.solve(&problem, &control);
            checked(&problem, &outcome);
            assert_eq!(outcome.certificate.stop, StopReason::Proved, "{}", problem.to_json());
        }
    }
}

/// Storages without bytes tie ops together that no bytes tie: every op still runs after what it reads.
#[test]
fn the_search_for_the_lowest_peak_runs_ops_after_those_whose_results_have_no_bytes() {
    // Too many ops to be solved, so that the search works.
    let mut net = Net::new().with(|problem| problem.order = OrderMode::Free);
    for copy in 0..10 {
        let name = |part: &str| format!("{part}{copy}");
        let first = net.0.tensors.len();
        net.add(step(&name("seed"), 7, vec![]), [Place::New(StorageRole::Transient, 0)]);
        net.add(step(&name("left"), 2, vec![]), [Place::New(StorageRole::Transient, 70)]);
        let empty = TensorId::new(first);
        net.add(
            step(&name("right"), 8, vec![empty]),
            [Place::New(StorageRole::Transient, 99)],
        );
        let both = vec![TensorId::new(first + 1), TensorId::new(first + 2)];
        net.add(step(&name("sum"), 3, both), [Place::New(StorageRole::Transient, 40)]);
    }
    let problem = net.done();
    assert!(!Small.is_quick(&problem));
    let outcome = minimize_peak(&problem, None, &SolveControl::new().step_limit(2_000));
    let free = Problem {
        budget: None,
        ..problem
    };
    let replayed = replay(&free, outcome.plan.as_ref().unwrap()).unwrap();
    assert_eq!((replayed.peak, replayed.duration), (209, free.total_duration()));
}
