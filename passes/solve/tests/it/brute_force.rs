//! Comparison with an exhaustive search on small problems.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use remat_plan::{OrderMode, Problem, Status, Structure, TensorId};
use remat_solve::{Search, SolveControl, Solver, minimize_peak};
use remat_testing::net::{in_free_order, paper};
use remat_testing::random::{Features, Views, budgeted};
use remat_truth::{Space, least};

/// The least duration of any plan in the problem's order under a budget; `None` where there is no plan.
fn exhaustive(problem: &Problem, budget: u64) -> Option<u64> {
    let problem = Problem {
        budget: Some(budget),
        ..problem.clone()
    };
    let space = match problem.order {
        OrderMode::Fixed => Space::FixedOrder,
        OrderMode::Free => Space::AllPlans,
    };
    least(&problem, space)
}

fn samples(count: usize, features: Features, order: OrderMode) -> impl Iterator<Item = Problem> {
    let mut runner = TestRunner::deterministic();
    let ops = if order == OrderMode::Fixed { 4..8 } else { 3..7 };
    let strategy = (budgeted(ops, features), 2u32..4).prop_map(move |(mut problem, most)| {
        problem.order = order;
        problem.max_computes = Some(most);
        problem
    });
    let draw = move || {
        strategy
            .new_tree(&mut runner)
            .expect("the strategy rejects nothing")
            .current()
    };
    std::iter::repeat_with(draw)
        .filter(views_read_their_storage_only)
        .take(count)
}

/// The search runs a view where it is read, or in its place if nobody reads it; a plan may run it elsewhere, when more of what it reads is
/// still there.
fn views_read_their_storage_only(problem: &Problem) -> bool {
    let structure = Structure::of(problem);
    let storage = |&tensor: &TensorId| problem.tensors[tensor].storage;
    let mut views = problem
        .ops
        .iter_enumerated()
        .filter(|(id, _)| structure.owns(*id).is_empty());
    views.all(|(id, view)| {
        let mut all = view.reads.iter().chain(&view.defines).map(storage);
        let first = all.next();
        structure.is_lazy(id) && all.all(|other| Some(other) == first)
    })
}

/// How often a solver finds a plan where there is one, and the best one.
#[derive(Debug, Default)]
struct Score {
    possible: usize,
    found: usize,
    best: usize,
}

fn score(features: Features, order: OrderMode) -> Score {
    let mut score = Score::default();
    for problem in samples(250, features, order) {
        let budget = problem.budget.expect("the strategy sets one");
        let least = exhaustive(&problem, budget);
        let outcome = Search.solve(&problem, &SolveControl::new().step_limit(20_000));
        let objective = outcome.certificate.objective;
        assert!(
            least.is_some() || objective.is_none(),
            "a plan where there is none: {}",
            problem.to_json()
        );
        if let Some(least) = least {
            assert_ne!(outcome.certificate.status, Status::Infeasible);
            assert!(
                objective.is_none_or(|objective| least <= objective),
                "shorter than the shortest"
            );
        }
        score.possible += usize::from(least.is_some());
        score.found += usize::from(objective.is_some());
        score.best += usize::from(objective.is_some() && objective == least);
    }
    score
}

#[test]
fn in_the_setting_of_the_papers_small_plans_are_found_and_are_the_best() {
    let score = score(Features::PAPER, OrderMode::Fixed);
    assert!(score.possible > 100, "the test would show nothing: {score:?}");
    assert!(score.found * 100 >= score.possible * 99, "{score:?}");
    assert!(score.best * 100 >= score.possible * 97, "{score:?}");
}

#[test]
fn small_plans_of_models_are_found_and_are_the_best() {
    let score = score(Features::EXACT, OrderMode::Fixed);
    assert!(score.possible > 100, "the test would show nothing: {score:?}");
    assert!(score.found * 100 >= score.possible * 99, "{score:?}");
    assert!(score.best * 100 >= score.possible * 97, "{score:?}");
}

#[test]
fn in_free_order_small_plans_are_found_and_are_the_best() {
    for features in [Features::PAPER, Features::EXACT] {
        let score = score(features, OrderMode::Free);
        assert!(score.possible > 100, "the test would show nothing: {score:?}");
        assert!(score.found * 100 >= score.possible * 99, "{score:?}");
        assert!(score.best * 100 >= score.possible * 97, "{score:?}");
    }
}

#[test]
fn what_is_called_infeasible_is_infeasible() {
    let fixed = samples(400, Features::PAPER, OrderMode::Fixed);
    let free = samples(400, Features::PAPER, OrderMode::Free);
    let mut proved = 0;
    for mut problem in fixed.chain(free) {
        let structure = Structure::of(&problem);
        let need = problem.bottleneck(&structure).expect("there are ops").bytes;
        problem.budget = Some(need);
        let outcome = Search.solve(&problem, &SolveControl::new().step_limit(5_000));
        if outcome.certificate.status == Status::Infeasible {
            proved += 1;
            assert_eq!(exhaustive(&problem, need), None, "{}", problem.to_json());
        }
    }
    assert!(proved > 10, "the test would show nothing: {proved}");
}

#[test]
fn the_lowest_peak_is_found_on_most_small_problems() {
    let (mut lowest, mut all) = (0, 0);
    let features = Features {
        views: Views::Absent,
        ..Features::EXACT
    };
    let fixed = samples(40, features, OrderMode::Fixed);
    for problem in fixed.chain(samples(40, features, OrderMode::Free)) {
        let outcome = minimize_peak(&problem, None, &SolveControl::new().step_limit(20_000));
        let peak = outcome.lowest_peak.expect("there is always a plan");
        assert!(
            exhaustive(&problem, peak).is_some(),
            "the peak is claimed to be possible"
        );
        all += 1;
        lowest += usize::from(peak == 0 || exhaustive(&problem, peak - 1).is_none());
    }
    assert!(lowest * 100 >= all * 95, "{lowest} of {all}");
}

#[test]
fn sums_of_sizes_that_do_not_fit_32_bits_are_counted_right_from_move_to_move() {
    let ops: [(u64, u64, &[usize]); 6] = [
        (1, 297_097_111_000, &[]),
        (10, 562_623_128_000, &[]),
        (10, 906_432_124_000, &[1]),
        (6, 139_365_475_000, &[2]),
        (10, 179_435_427_000, &[0, 2]),
        (7, 738_156_942_000, &[0, 1, 4]),
    ];
    let mut problem = in_free_order(paper(&ops));
    problem.budget = Some(1_911_501_677_523);
    let outcome = Search.solve(&problem, &SolveControl::new().step_limit(50_000));
    let best = exhaustive(&problem, 1_911_501_677_523);
    assert_eq!(outcome.certificate.objective, best);
}
