//! The search on large graphs, on small ones.

use proptest::prelude::*;
use remat_plan::{OrderMode, Problem, Structure, lower_sequence};
use remat_testing::random::{Features, budgeted, problems};
use remat_verify::replay;

use crate::SolveControl;
use crate::best::Best;
use crate::control::Phase;
use crate::dag::Dag;
use crate::descent::Descent;
use crate::search::{Rank, Run};
use crate::strategy::Worker;

fn dag_of(problem: &Problem) -> Dag {
    Dag::of(problem, &Structure::of(problem))
}

/// What is found as on a large graph.
fn as_large(problem: &Problem, seed: u64, steps: u64, work: impl Fn(&mut Worker<'_>) + Sync) -> Option<Best> {
    let control = SolveControl::new().seed(seed).step_limit(steps);
    let run = Run::new(problem, &control, Rank::Duration);
    let found = run.on_all_threads(|worker| {
        worker.is_large = true;
        work(worker);
        worker.found()
    });
    found.into_iter().next()?.best
}

/// Searches as on a large graph for a sequence within the budget.
fn search(problem: &Problem, seed: u64, steps: u64) -> Option<Best> {
    let budget = dag_of(problem).scaled_budget(problem.budget);
    as_large(problem, seed, steps, |worker| {
        worker.load_start(budget, None);
        if !worker.reach(u64::MAX) {
            return;
        }
        worker.note(Phase::Greedy);
        worker.shorten_frames(worker.dag.total_duration(), u64::MAX, |worker| {
            assert!(worker.note(Phase::Annealing), "every improvement is one");
        });
        assert!(worker.state.peak() <= budget);
    })
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn sequences_within_the_budget_pass_the_checker_and_are_reproducible(
        mut problem in budgeted(2..25, Features::ALL),
        free in any::<bool>(),
        most in prop::option::of(1u32..4),
        seed in any::<u64>(),
    ) {
        problem.order = if free { OrderMode::Free } else { OrderMode::Fixed };
        problem.max_computes = most;
        let nodes = |best: Option<Best>| best.map(|best| best.sequence);
        let found = nodes(search(&problem, seed, 1_000));
        prop_assert_eq!(&found, &nodes(search(&problem, seed, 1_000)));
        if let Some(found) = found {
            let (structure, dag) = (Structure::of(&problem), dag_of(&problem));
            let plan = lower_sequence(&problem, &structure, found.iter().map(|&node| dag.op(node))).expect("an order of uses");
            let replayed = replay(&problem, &plan);
            prop_assert!(replayed.is_ok(), "{}", replayed.expect_err("checked"));
        }
    }
}

/// Lowers the peak as on a large graph.
fn lower(problem: &Problem, max_duration: i64, steps: u64) -> Best {
    let least = problem.bottleneck(&Structure::of(problem)).map_or(0, |most| most.bytes);
    let target = dag_of(problem).scaled_up(least);
    let lowest = as_large(problem, 0, steps, |worker| {
        let descent = Descent {
            target,
            max_duration,
            announce: true,
            share: 1.0,
        };
        worker.load_start(target, None);
        let lowest = worker.descend(descent, Phase::Feasibility);
        worker.best = Some(lowest);
    });
    lowest.expect("there is always a sequence")
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

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
        let best = lower(&problem, limit, 2_000);
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
    let problem = remat_testing::net::paper(ops);
    let peak = |limit: i64| {
        let dag = dag_of(&problem);
        dag.unscaled(lower(&problem, limit, 10_000).peak)
    };
    let total = dag_of(&problem).total_duration();
    assert_eq!(peak(total), 15);
    assert_eq!(peak(2 * total), 10);
}
