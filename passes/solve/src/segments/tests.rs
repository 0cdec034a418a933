//! The search on large graphs, on small ones.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use proptest::prelude::*;
use remat_plan::{NodeId, OrderMode, Problem, Structure, lower_sequence};
use remat_verify::replay;

use crate::SolveControl;
use crate::control::{Meter, Phase};
use crate::dag::Dag;
use crate::descent::Descent;
use crate::strategy::Found;
use crate::strategy::{Best, Worker};
use remat_testing::net::paper;
use remat_testing::random::{Features, budgeted, problems};

fn dag_of(problem: &Problem) -> Dag {
    Dag::of(problem, &Structure::of(problem))
}

/// What a search finds that takes the graph for a large one; `report` is told of every improvement.
fn found(
    dag: &Dag,
    seed: u64,
    steps: u64,
    report: &dyn Fn(&Best, u64, Phase),
    search: impl FnOnce(&mut Worker<'_>) -> Found,
) -> Found {
    let (control, done) = (SolveControl::new().step_limit(steps), AtomicBool::new(false));
    let meter = Meter::new(&control, &done, Instant::now(), dag.len());
    let mut worker = Worker::new(dag, meter, seed, 0, report);
    worker.is_large = true;
    search(&mut worker)
}

/// The shortest sequence within the budget that is found.
fn shortest(problem: &Problem, seed: u64, steps: u64) -> Option<Vec<NodeId>> {
    let dag = dag_of(problem);
    let (budget, least) = (dag.scaled_budget(problem.budget), Cell::new(i64::MAX));
    let report = |best: &Best, _: u64, _: Phase| {
        assert!(best.duration < least.get() && best.peak <= budget);
        least.set(best.duration);
    };
    let found = found(&dag, seed, steps, &report, |worker| {
        worker.minimize_duration(budget, None)
    });
    assert_eq!(found.best.is_some(), found.lowest_peak <= budget);
    found.best.map(|best| best.sequence)
}

/// The sequence of the lowest peak that is found.
fn lowest(problem: &Problem, max_duration: i64, steps: u64) -> Best {
    let dag = dag_of(problem);
    let descent = Descent {
        target: dag.floor(),
        max_duration,
        announce: true,
        share: 1.0,
        last_step: u64::MAX,
    };
    let least = Cell::new((i32::MAX, i64::MAX));
    let report = |best: &Best, _: u64, phase: Phase| {
        let (peak, duration) = least.replace((best.peak, best.duration));
        let lower = phase == Phase::Feasibility && best.peak < peak;
        assert!(lower || best.peak <= peak && best.duration < duration);
    };
    let found = found(&dag, 0, steps, &report, |worker| worker.minimize_peak(descent, None));
    found.best.expect("the reference order at least")
}

proptest! {
    #[test]
    fn sequences_within_the_budget_pass_the_checker_and_are_reproducible(
        mut problem in budgeted(2..25, Features::ALL),
        free in any::<bool>(),
        most in prop::option::of(1u32..4),
        seed in any::<u64>(),
    ) {
        problem.order = if free { OrderMode::Free } else { OrderMode::Fixed };
        problem.max_computes = most;
        let nodes = shortest(&problem, seed, 1_000);
        prop_assert_eq!(&nodes, &shortest(&problem, seed, 1_000));
        let Some(nodes) = nodes else {
            return Ok(());
        };
        let (structure, dag) = (Structure::of(&problem), dag_of(&problem));
        let plan = lower_sequence(&problem, &structure, nodes.iter().map(|&node| dag.op(node))).expect("an order of uses");
        let replayed = replay(&problem, &plan);
        prop_assert!(replayed.is_ok(), "{}", replayed.expect_err("checked"));
    }

    #[test]
    fn lower_peaks_are_those_of_sequences_that_pass_the_checker(
        mut problem in problems(2..25, Features::ALL),
        free in any::<bool>(),
        share in 100i64..160,
    ) {
        problem.order = if free { OrderMode::Free } else { OrderMode::Fixed };
        problem.budget = None;
        let (structure, dag) = (Structure::of(&problem), dag_of(&problem));
        let limit = dag.total_duration() * share / 100;
        let best = lowest(&problem, limit, 2_000);
        prop_assert!(best.duration <= limit);
        let plan = lower_sequence(&problem, &structure, best.sequence.iter().map(|&node| dag.op(node)));
        problem.budget = Some(dag.unscaled(best.peak));
        let replayed = replay(&problem, &plan.expect("an order of uses"));
        prop_assert!(replayed.is_ok(), "{}", replayed.expect_err("checked"));
    }
}

#[test]
fn the_peak_is_lowered_as_far_as_the_duration_allows() {
    // The first value is large and used again at the end; dropping it in between costs one more run of it.
    let ops: &[(u64, u64, &[usize])] = &[(1, 5, &[]), (1, 5, &[0]), (1, 5, &[1]), (1, 1, &[2]), (1, 1, &[0, 3])];
    let problem = paper(ops);
    let dag = dag_of(&problem);
    let peak = |limit: i64| dag.unscaled(lowest(&problem, limit, 10_000).peak);
    let total = dag.total_duration();
    assert_eq!(peak(total), 15);
    assert_eq!(peak(2 * total), 10);
}
