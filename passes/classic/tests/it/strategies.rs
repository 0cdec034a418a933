//! The classic strategies: the figures of the Checkmate paper's artifact, and what holds on every training step.

use proptest::prelude::*;
use remat_classic::{Candidates, Point, Refusal, RolesError, Strategy as Classic, Walk, curve};
use remat_plan::{Problem, StopReason, StorageRole, Structure, baseline};
use remat_solve::stages::{StageGraph, StageMatrix, Stages};
use remat_solve::{Registry, SolveControl, Solver};
use remat_testing::net::paper;
use remat_testing::random::{Features, problems};
use remat_testing::{Trial, trial};
use remat_verify::replay;

use crate::points::checked;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(plans_for_a_unit_chain_of_nine_forward_ops),
        trial!(more_checkpoints_never_make_a_chain_slower_and_enough_of_them_spare_all_recomputes),
        trial!(a_training_step_as_exporters_write_it_is_recognised_and_profits),
        trial!(what_is_no_chain_and_no_training_step_is_refused),
        trial!(a_solver_takes_the_cheapest_plan_within_the_budget_or_says_what_would_do),
        trial!(every_plan_of_every_strategy_passes_the_checker),
        trial!(plans_keep_to_what_models_forbid),
        trial!(checkpointing_all_recomputes_nothing),
        trial!(any_retention_is_completed_to_a_plan_that_the_papers_accounts_never_underrate),
    ]
}

fn named(name: &str) -> &'static dyn Solver {
    let registry = Registry::of(&[remat_classic::register]);
    let found = registry.solvers().find(|solver| solver.name() == name);
    found.expect("a solver of that name")
}

const EVERY: [Classic; 10] = [
    Classic::All(Candidates::All),
    Classic::All(Candidates::ArticulationPoints),
    Classic::Last,
    Classic::ChenSqrt(Candidates::All),
    Classic::ChenSqrt(Candidates::ArticulationPoints),
    Classic::ChenGreedy(Candidates::All, Walk::Reference),
    Classic::ChenGreedy(Candidates::ArticulationPoints, Walk::Reference),
    Classic::ChenGreedy(Candidates::All, Walk::DepthFirst),
    Classic::ChenGreedy(Candidates::ArticulationPoints, Walk::DepthFirst),
    Classic::Griewank,
];

/// Duration, bytes and forward operands of each forward op; the loss and the backward pass are added by the paper's convention.
fn training(forward: &[(u64, u64, Vec<usize>)]) -> Problem {
    let loss = forward.len();
    let mut ops: Vec<(u64, u64, Vec<usize>)> = forward.to_vec();
    ops.push((1, 1, vec![loss - 1]));
    for node in (0..loss).rev() {
        let users = (0..loss).filter(|&user| forward[user].2.contains(&node));
        let mut users: Vec<usize> = users.collect();
        if node == loss - 1 {
            users.push(loss);
        }
        let mut reads = vec![node];
        reads.extend(users.iter().flat_map(|&user| [user, 2 * loss - user]));
        ops.push((2 * forward[node].0, forward[node].1, reads));
    }
    paper(&ops)
}

/// A chain of ops of one unit each.
fn unit_chain(length: usize) -> Problem {
    let forward: Vec<_> = (0..length)
        .map(|node| (1, 1, node.checked_sub(1).into_iter().collect()))
        .collect();
    training(&forward)
}

/// Training steps whose forward pass has one sink.
fn training_steps(forward: std::ops::Range<usize>) -> impl Strategy<Value = Problem> {
    let op = (
        0u64..20,
        1u64..20,
        prop::collection::vec(any::<prop::sample::Index>(), 1..3),
    );
    prop::collection::vec(op, forward).prop_map(|draws| {
        let mut unread = Vec::new();
        let count = draws.len();
        let mut forward = Vec::new();
        for (node, (duration, bytes, operands)) in draws.into_iter().enumerate() {
            let near = |index: prop::sample::Index| node - 1 - index.index(node.min(5));
            let mut reads: Vec<usize> = if node == 0 {
                Vec::new()
            } else {
                operands.into_iter().map(near).collect()
            };
            if node + 1 == count {
                reads.append(&mut unread);
            }
            reads.sort_unstable();
            reads.dedup();
            unread.retain(|other| !reads.contains(other));
            unread.push(node);
            forward.push((duration, bytes, reads));
        }
        training(&forward)
    })
}

fn plans_for_a_unit_chain_of_nine_forward_ops() {
    let problem = unit_chain(9);
    let mut table = String::new();
    // On a chain every forward op is an articulation point, and both walks are the same.
    let same = |strategy: &Classic| {
        format!("{strategy:?}").contains("Articulation") || format!("{strategy:?}").contains("Depth")
    };
    for strategy in EVERY.into_iter().filter(|strategy| !same(strategy)) {
        for point in curve(&problem, strategy).unwrap() {
            let Point {
                parameter,
                duration,
                peak,
                schedule_peak,
                ..
            } = point;
            table += &format!(
                "{strategy:?} {parameter}: time {duration}, peak {peak}, peak in the paper's account {schedule_peak}\n"
            );
        }
    }
    insta::assert_snapshot!(table);
}

fn more_checkpoints_never_make_a_chain_slower_and_enough_of_them_spare_all_recomputes() {
    for length in [1, 2, 3, 8, 17, 40] {
        let problem = unit_chain(length);
        let points = curve(&problem, Classic::Griewank).unwrap();
        assert_eq!(points.len(), length);
        assert!(
            points.windows(2).all(|pair| pair[1].duration <= pair[0].duration),
            "{length}"
        );
        assert_eq!(
            points.last().map(|point| point.duration),
            Some(problem.total_duration())
        );
        let steps = length as u64;
        for (room, point) in points.iter().enumerate() {
            let least = griewank(steps + 1, room as u64 + 1);
            assert_eq!(
                point.duration,
                problem.total_duration() - steps + least,
                "{length}, {room}"
            );
        }
    }
}

/// Griewank and Walther's closed form: the least number of steps that bring `l` states in reverse where `s` can be stored, the first
/// one included.
fn griewank(l: u64, s: u64) -> u64 {
    let binomial = |n: u64, k: u64| (1..=k).fold(1u64, |product, i| product * (n + 1 - i) / i);
    let beta = |s: u64, r: u64| binomial(s.max(r) + s.min(r), s.min(r));
    let repetitions = (0..).find(|&r| l <= beta(s, r)).expect("beta grows without limit");
    let below = if repetitions == 0 {
        0
    } else {
        beta(s + 1, repetitions - 1)
    };
    repetitions * l - below
}

/// A chain of layers as exporters write training steps: the loss has no reader, each layer has a gradient of its input and one of
/// its weights, which nobody reads.
fn exported_chain(length: usize) -> Problem {
    let mut ops: Vec<(u64, u64, Vec<usize>)> = Vec::new();
    for node in 0..length {
        ops.push((10, 8, node.checked_sub(1).into_iter().collect()));
    }
    ops.push((1, 1, vec![length - 1]));
    ops.push((1, 8, vec![length - 1]));
    let mut gradient = length + 1;
    for node in (0..length).rev() {
        let weights = node.checked_sub(1).into_iter().chain([gradient]).collect();
        ops.push((10, 8, weights));
        ops.push((10, 8, vec![node, gradient]));
        gradient = ops.len() - 1;
    }
    paper(&ops)
}

fn a_training_step_as_exporters_write_it_is_recognised_and_profits() {
    let problem = exported_chain(25);
    let before = replay(&problem, &baseline(&problem)).unwrap().peak;
    for strategy in EVERY {
        checked(&problem, strategy);
    }
    let [point] = &curve(&problem, Classic::ChenSqrt(Candidates::All)).unwrap()[..] else {
        panic!("one plan");
    };
    assert!(point.peak * 2 < before, "{} of {before}", point.peak);
    // Each forward op runs twice at most.
    assert!(point.duration <= problem.total_duration() + 25 * 10);
}

fn what_is_no_chain_and_no_training_step_is_refused() {
    let inference = paper(&[(1, 8, &[][..]), (1, 8, &[0]), (1, 4, &[1])]);
    let diamond = training(&[(1, 1, vec![]), (1, 1, vec![0]), (1, 1, vec![0]), (1, 1, vec![1, 2])]);
    let error = curve(&diamond, Classic::Griewank).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the forward pass is not a chain: op 2 does not read the op before it, and nothing else"
    );
    for strategy in EVERY.into_iter().filter(|&strategy| strategy != Classic::Last) {
        assert_eq!(curve(&inference, strategy), Err(Refusal::Roles(RolesError::NoLoss)));
    }
    assert!(curve(&inference, Classic::Last).is_ok());
    let outcome = named("chen:sqrt").solve(&inference, &SolveControl::new());
    assert!(outcome.plan.is_none() && outcome.lowest_peak.is_none());
    assert_eq!(outcome.certificate.stop, StopReason::Refused);
}

fn a_solver_takes_the_cheapest_plan_within_the_budget_or_says_what_would_do() {
    let mut problem = unit_chain(30);
    let points = curve(&problem, Classic::ChenGreedy(Candidates::All, Walk::Reference)).unwrap();
    let solver = named("chen:greedy");
    let lowest = points.iter().map(|point| point.peak).min().unwrap();
    for budget in [lowest - 1, lowest, lowest + 3, 100] {
        problem.budget = Some(budget);
        let outcome = solver.solve(&problem, &SolveControl::new());
        let within = points.iter().filter(|point| point.peak <= budget);
        assert_eq!(
            outcome.certificate.objective,
            within.map(|point| point.duration).min(),
            "{budget}"
        );
        assert_eq!(outcome.plan.is_none(), budget < lowest);
        if let Some(plan) = &outcome.plan {
            assert_eq!(Some(replay(&problem, plan).unwrap().peak), outcome.lowest_peak);
        } else {
            assert_eq!(outcome.lowest_peak, Some(lowest));
        }
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(60))]

    fn every_plan_of_every_strategy_passes_the_checker(problem in training_steps(1..14)) {
        for strategy in EVERY {
            match curve(&problem, strategy) {
                Ok(points) => {
                    prop_assert!(!points.is_empty());
                    prop_assert_eq!(&points, &curve(&problem, strategy).unwrap());
                    checked(&problem, strategy);
                }
                Err(refusal) => prop_assert!(matches!(refusal, Refusal::NotAChain { .. }), "{refusal}"),
            }
        }
    }

    fn plans_keep_to_what_models_forbid(
        mut problem in training_steps(3..14),
        marks in prop::collection::vec(0u8..20, 60),
        most in prop::option::of(1u32..4),
    ) {
        problem.max_computes = most;
        let roots: Vec<_> = problem.storages.keys().collect();
        for ((op, storage), mark) in problem.ops.iter_mut().zip(roots).zip(marks) {
            op.recomputable = mark != 0;
            op.workspace = u64::from(mark % 5);
            if mark == 1 {
                problem.storages[storage].role = StorageRole::LiveOut;
            }
        }
        for strategy in EVERY {
            for point in curve(&problem, strategy).unwrap_or_default() {
                let replayed = replay(&problem, &point.plan).map_err(|rejection| TestCaseError::fail(rejection.to_string()))?;
                prop_assert_eq!((replayed.peak, replayed.duration), (point.peak, point.duration));
                prop_assert!(point.peak <= point.schedule_peak);
            }
        }
    }

    fn checkpointing_all_recomputes_nothing(problem in training_steps(1..14)) {
        let points = curve(&problem, Classic::All(Candidates::All)).unwrap();
        prop_assert_eq!(points[0].duration, problem.total_duration());
        let once = replay(&problem, &baseline(&problem)).unwrap();
        prop_assert_eq!(points[0].peak, once.peak);
    }

    fn any_retention_is_completed_to_a_plan_that_the_papers_accounts_never_underrate(
        problem in problems(1..20, Features::ALL),
        draws in prop::collection::vec(any::<bool>(), 200),
    ) {
        let structure = Structure::of(&problem);
        let graph = StageGraph::of(&problem, &structure).unwrap();
        let mut retained = StageMatrix::new(graph.len());
        let mut draws = draws.into_iter();
        for stage in 0..graph.len() {
            for node in (0..stage).filter(|_| draws.next().unwrap_or(false)) {
                retained.set(stage, node);
            }
        }
        let stages = Stages::complete(&graph, retained);
        let plan = remat_plan::lower_sequence(&problem, &structure, stages.sequence(&graph)).unwrap();
        let replayed = replay(&problem, &plan).unwrap();
        prop_assert!(replayed.peak <= stages.schedule_peak(&graph));
        let views = replayed.duration - stages.duration(&graph);
        prop_assert!(views == 0 || problem.ops.keys().any(|op| structure.is_lazy(op)));
        assert_forced(&graph, &stages)?;
    }
}

/// Every run of the completion is forced by a rule of stage form.
fn assert_forced(graph: &StageGraph, stages: &Stages) -> Result<(), TestCaseError> {
    let (retained, computed) = (stages.retained(), stages.computed());
    for stage in 0..graph.len() {
        prop_assert!(computed.get(stage, stage));
        for node in 0..graph.len() {
            let gain = retained.get(stage + 1, node) && !retained.get(stage, node);
            let read = graph.children(node).iter().any(|&user| computed.get(stage, user));
            let forced = node == stage || gain || (read && !retained.get(stage, node));
            prop_assert_eq!(computed.get(stage, node), forced, "stage {}, node {}", stage, node);
        }
    }
    Ok(())
}
