//! The search on large graphs, on small ones.

use std::sync::atomic::AtomicBool;
use web_time::Instant;

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{NodeId, OrderMode, Problem, Structure, lower_sequence};
use remat_verify::replay;
use typed_index_collections::{TiVec, ti_vec};

use super::Large;
use super::timeline::{Edit, Timeline};
use crate::Rng;
use crate::SolveControl;
use crate::control::Meter;
use crate::dag::Dag;
use crate::descent::Descent;
use crate::sequence::EventId;
use crate::state::State;
use remat_testing::random::{Features, budgeted, problems};

fn dag_of(problem: &Problem) -> Dag {
    Dag::of(problem, &Structure::of(problem))
}

fn reference(dag: &Dag) -> Vec<NodeId> {
    dag.nodes().collect()
}

/// Compares with a fresh start from the same nodes.
fn assert_consistent(timeline: &mut Timeline<'_>) {
    let dag = timeline.dag();
    let nodes = timeline.nodes();
    for (at, &node) in nodes.iter().enumerate() {
        assert!(dag.may_run_after(node, |other| nodes[..at].contains(&other)));
    }
    let mut state = State::new(dag, timeline.budget());
    state.load(&nodes);
    let slots = 0..timeline.len();
    let occupied = slots.clone().filter(|&slot| timeline.event_at(slot) != EventId::NONE);
    let memory: Vec<i32> = occupied.map(|slot| timeline.memory()[slot]).collect();
    assert_eq!(memory, state.memory());
    assert_eq!(timeline.duration(), state.duration());
    assert_eq!(timeline.excess(), state.excess());
    assert_eq!(timeline.excess_in(slots), state.excess());
    assert_eq!(timeline.peak(), state.peak());
    let first = state.memory().iter().position(|&memory| memory > timeline.budget());
    let found = timeline.next_excess(0).map(|slot| timeline.event_at(slot));
    assert_eq!(found.map(|event| timeline.node_of(event)), first.map(|at| nodes[at]));
}

/// Searches as on a large graph; the nodes in the order found, if they are within the budget.
fn search(problem: &Problem, seed: u64, steps: u64) -> (Vec<NodeId>, bool) {
    let dag = dag_of(problem);
    let (control, done) = (SolveControl::new().step_limit(steps), AtomicBool::new(false));
    let mut meter = Meter::new(&control, &done, Instant::now(), dag.len());
    let budget = dag.scaled_budget(problem.budget);
    let mut large = Large::new(&dag, budget, &reference(&dag), Rng::new(seed, 0), 0);
    let reached = large.reach(&mut meter, u64::MAX);
    if reached {
        let mut least = large.best().duration;
        large.improve(dag.total_duration(), u64::MAX, &mut meter, |large| {
            let best = large.best();
            assert!(best.duration < least && best.peak <= budget);
            least = best.duration;
        });
    }
    let best = large.best();
    assert_eq!(reached, best.peak <= budget);
    (best.sequence, reached)
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn changes_and_their_undoing_leave_what_a_fresh_start_gives(
        mut problem in problems(2..12, Features::ALL),
        free in any::<bool>(),
        budget in 0u64..40,
        changes in prop::collection::vec((0u8..3, any::<Index>(), any::<Index>()), 1..40),
        keep in any::<Index>(),
    ) {
        problem.order = if free { OrderMode::Free } else { OrderMode::Fixed };
        let dag = dag_of(&problem);
        prop_assume!(!dag.is_empty());
        let mut timeline = Timeline::of(&dag, dag.scaled_budget(Some(budget)), &reference(&dag));
        assert_consistent(&mut timeline);
        let (mut log, mut history) = (Vec::new(), vec![timeline.nodes()]);
        for (kind, what, place) in changes {
            let events: Vec<EventId> = (0..timeline.len()).map(|slot| timeline.event_at(slot)).filter(|&e| e != EventId::NONE).collect();
            let at = what.index(events.len());
            let event = events[at];
            let edit = match kind {
                0 if timeline.is_recompute(event) => timeline.remove(event),
                1 if free && timeline.is_first(event) && at + 1 < events.len() => {
                    let (after, before) = timeline.freedom(event);
                    let others = events.iter().copied().filter(|&e| e != event);
                    let places: Vec<EventId> = others.filter(|&e| timeline.place_of(e) > after && timeline.place_of(e) <= before).collect();
                    if places.is_empty() {
                        continue;
                    }
                    timeline.relocate(event, places[place.index(places.len())])
                }
                _ if at + 1 < events.len() => {
                    let node = timeline.node_of(event);
                    let last = timeline.last_place(node);
                    let places: Vec<EventId> = events[at + 1..].iter().copied().filter(|&e| timeline.place_of(e) <= last).collect();
                    if places.is_empty() {
                        continue;
                    }
                    Edit::Inserted(timeline.insert(node, places[place.index(places.len())]))
                }
                _ => continue,
            };
            log.push(edit);
            history.push(timeline.nodes());
            assert_consistent(&mut timeline);
        }
        let keep = keep.index(log.len() + 1);
        timeline.undo_to(&mut log, keep);
        prop_assert_eq!(timeline.nodes(), history[keep].clone());
        assert_consistent(&mut timeline);
    }

    #[test]
    fn sequences_within_the_budget_pass_the_checker_and_are_reproducible(
        mut problem in budgeted(2..25, Features::ALL),
        free in any::<bool>(),
        most in prop::option::of(1u32..4),
        seed in any::<u64>(),
    ) {
        problem.order = if free { OrderMode::Free } else { OrderMode::Fixed };
        problem.max_computes = most;
        let (nodes, reached) = search(&problem, seed, 1_000);
        prop_assert_eq!((&nodes, reached), (&search(&problem, seed, 1_000).0, reached));
        if !reached {
            problem.budget = None;
        }
        let (structure, dag) = (Structure::of(&problem), dag_of(&problem));
        let plan = lower_sequence(&problem, &structure, nodes.iter().map(|&node| dag.op(node))).expect("an order of uses");
        let replayed = replay(&problem, &plan);
        prop_assert!(replayed.is_ok(), "{}", replayed.expect_err("checked"));
    }
}

/// Lowers the peak as on a large graph; whether each peak told of was lower than the one before, and the nodes in the order found.
fn lower(problem: &Problem, max_duration: i64, steps: u64) -> (bool, crate::best::Best) {
    let dag = dag_of(problem);
    let (control, done) = (SolveControl::new().step_limit(steps), AtomicBool::new(false));
    let mut meter = Meter::new(&control, &done, Instant::now(), dag.len());
    let descent = Descent {
        target: dag.floor(),
        max_duration,
        announce: true,
        share: 1.0,
        last_step: u64::MAX,
    };
    let mut large = Large::new(&dag, descent.target, &reference(&dag), Rng::new(0, 0), 0);
    let (mut peak, mut falls) = (large.peak(), true);
    large.descend(descent, &mut meter, |large| {
        falls &= large.peak() < peak;
        peak = large.peak();
    });
    assert_eq!(large.peak(), peak);
    (falls, large.best())
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
        let (falls, best) = lower(&problem, limit, 2_000);
        prop_assert!(falls);
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
        dag.unscaled(lower(&problem, limit, 10_000).1.peak)
    };
    let total = dag_of(&problem).total_duration();
    assert_eq!(peak(total), 15);
    assert_eq!(peak(2 * total), 10);
}

#[test]
fn many_insertions_at_one_place_spread_the_events_out() {
    let ops: Vec<(u64, u64, &[usize])> = vec![(1, 1, &[]), (1, 1, &[0]), (1, 1, &[1])];
    let problem = remat_testing::net::paper(&ops);
    let dag = dag_of(&problem);
    let mut timeline = Timeline::of(&dag, 2, &reference(&dag));
    let last = *timeline.runs(NodeId::new(2)).last().expect("it ran");
    for _ in 0..1000 {
        timeline.insert(NodeId::new(1), last);
    }
    assert_eq!(timeline.nodes().len(), 1003);
    assert_consistent(&mut timeline);
}

#[test]
fn a_recompute_at_the_end_of_the_sequence_comes_and_goes() {
    let ops: Vec<(u64, u64, &[usize])> = vec![(1, 3, &[]), (1, 5, &[0]), (1, 1, &[0])];
    let problem = remat_testing::net::paper(&ops);
    let dag = dag_of(&problem);
    let mut timeline = Timeline::of(&dag, 4, &[0, 1, 2, 1].map(NodeId::new));
    let last = *timeline.runs(NodeId::new(1)).last().expect("it ran");
    let mut log = vec![timeline.remove(last)];
    assert_eq!(timeline.nodes(), [0, 1, 2].map(NodeId::new));
    assert_consistent(&mut timeline);
    timeline.undo_to(&mut log, 0);
    assert_eq!(timeline.nodes(), [0, 1, 2, 1].map(NodeId::new));
    assert_consistent(&mut timeline);
}

#[test]
fn list_scheduling_keeps_to_the_graph_and_takes_the_cheap_branch_first() {
    // A large value and a small one are made of one input each, and used together: the large one is made last.
    let ops: &[(u64, u64, &[usize])] = &[(1, 9, &[]), (1, 1, &[]), (1, 9, &[0]), (1, 1, &[1]), (1, 1, &[2, 3])];
    let mut problem = remat_testing::net::paper(ops);
    problem.order = OrderMode::Free;
    let dag = dag_of(&problem);
    assert_eq!(super::order::forward(&dag), [1, 3, 0, 2, 4].map(NodeId::new));
    assert_eq!(super::order::backward(&dag).len(), 5);
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn list_scheduling_keeps_to_the_graph(mut problem in problems(1..25, Features::ALL)) {
        problem.order = OrderMode::Free;
        let dag = dag_of(&problem);
        for order in [super::order::forward(&dag), super::order::backward(&dag)] {
            let mut ran: TiVec<NodeId, bool> = ti_vec![false; dag.len()];
            for node in order {
                prop_assert!(dag.predecessors(node).iter().all(|&other| ran[other]));
                prop_assert!(!std::mem::replace(&mut ran[node], true));
            }
            prop_assert!(ran.into_iter().all(|ran| ran));
        }
    }
}
