//! Comparison with an exhaustive search on small problems.

#[expect(dead_code, reason = "the tests beside these use the rest")]
mod support;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use remat_plan::{OpId, OrderMode, Problem, Status, StorageId, StorageRole, Structure, baseline};
use remat_solve::{SolveControl, measure, minimize_peak, registry};
use support::{Features, budgeted};

/// What is resident, and how often each op ran.
type Situation = (u32, Vec<u8>);

/// The least duration of any plan in the problem's order, by Dijkstra's algorithm over all situations; `None` where there is no plan.
fn exhaustive(problem: &Problem, budget: u64) -> Option<u64> {
    let structure = Structure::of(problem);
    let scheduled: Vec<OpId> = structure.scheduled().collect();
    let views: u64 = problem
        .ops
        .keys()
        .filter(|&op| structure.is_lazy(op))
        .map(|op| problem.ops[op].duration)
        .sum();
    let counted = |s: StorageId| problem.storages[s].role != StorageRole::External;
    let bytes = |set: u32| -> u64 {
        let resident = problem
            .storages
            .iter_enumerated()
            .filter(|(s, _)| set >> s.index() & 1 == 1);
        resident.map(|(_, storage)| storage.bytes).sum()
    };
    assert!(problem.storages.len() <= 32);
    let most = problem.max_computes.unwrap_or(u32::from(u8::MAX));
    let mut best: BTreeMap<Situation, u64> = BTreeMap::new();
    let mut queue = BinaryHeap::from([Reverse((0, (0u32, vec![0u8; scheduled.len()])))]);
    while let Some(Reverse((duration, (resident, runs)))) = queue.pop() {
        if runs.iter().all(|&count| count > 0) {
            return Some(duration + views);
        }
        if best
            .get(&(resident, runs.clone()))
            .is_some_and(|&known| known < duration)
        {
            continue;
        }
        let mut reach = |duration: u64, situation: Situation| {
            if best.get(&situation).is_none_or(|&known| duration < known) {
                best.insert(situation.clone(), duration);
                queue.push(Reverse((duration, situation)));
            }
        };
        for storage in problem.storages.keys() {
            let transient = problem.storages[storage].role == StorageRole::Transient;
            if transient && resident >> storage.index() & 1 == 1 {
                reach(duration, (resident & !(1 << storage.index()), runs.clone()));
            }
        }
        let next = match problem.order {
            OrderMode::Fixed => runs.iter().position(|&count| count == 0).unwrap_or(runs.len()),
            OrderMode::Free => runs.len(),
        };
        for (node, &op) in scheduled.iter().enumerate().take(next + 1) {
            let again = runs[node] > 0;
            if again && (!problem.ops[op].recomputable || u32::from(runs[node]) >= most) {
                continue;
            }
            if structure.needs(op).iter().any(|s| resident >> s.index() & 1 == 0) {
                continue;
            }
            let made: Vec<StorageId> = structure.owns(op).iter().copied().filter(|&s| counted(s)).collect();
            let made_bytes: u64 = made.iter().map(|&s| problem.storages[s].bytes).sum();
            if bytes(resident) + made_bytes + problem.ops[op].workspace > budget {
                continue;
            }
            let set = made.iter().fold(resident, |set, s| set | 1 << s.index());
            let mut runs = runs.clone();
            runs[node] += 1;
            reach(duration + problem.ops[op].duration, (set, runs));
        }
    }
    None
}

fn samples(count: usize, features: Features, order: OrderMode) -> impl Iterator<Item = Problem> {
    let mut runner = TestRunner::deterministic();
    let ops = if order == OrderMode::Fixed { 4..8 } else { 3..7 };
    let strategy = (budgeted(ops, features), 2u32..4).prop_map(move |(mut problem, most)| {
        problem.order = order;
        problem.max_computes = Some(most);
        problem
    });
    (0..count).map(move |_| {
        strategy
            .new_tree(&mut runner)
            .expect("the strategy rejects nothing")
            .current()
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
        // Views that run where they stand, not where they are read, may let go of what they read earlier.
        let unchanged = measure(&problem, &Structure::of(&problem), &baseline(&problem));
        let unchanged = (unchanged.peak <= budget).then_some(unchanged.duration);
        let least = exhaustive(&problem, budget).into_iter().chain(unchanged).min();
        let outcome = registry()[0].solve(&problem, &SolveControl::new().step_limit(20_000));
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
        let outcome = registry()[0].solve(&problem, &SolveControl::new().step_limit(5_000));
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
        views: false,
        ..Features::EXACT
    };
    let fixed = samples(40, features, OrderMode::Fixed);
    for problem in fixed.chain(samples(40, features, OrderMode::Free)) {
        let outcome = minimize_peak(&problem, &SolveControl::new().step_limit(20_000));
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
