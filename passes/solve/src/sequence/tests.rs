//! The sequence against the definition of what it takes.

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{OrderMode, Problem, Structure, ValueId};

use super::*;
use remat_testing::net::paper;
use remat_testing::random::{Features, problems};

fn dag_of(problem: &Problem) -> Dag {
    Dag::of(problem, &Structure::of(problem))
}

/// Memory at each place, straight from the definition.
fn memory_by_definition(dag: &Dag, nodes: &[NodeId]) -> Vec<i32> {
    let latest = |value: ValueId, before: usize| nodes[..before].iter().rposition(|&n| n == dag.producer(value));
    let resident = |at: usize| {
        let mut sum = dag.local(nodes[at]);
        for (made, &node) in nodes[..at].iter().enumerate() {
            if !nodes[..made].contains(&node) {
                sum += dag.kept(node);
            }
            for value in dag.values(node) {
                let used = (at..nodes.len())
                    .any(|use_at| dag.needs(nodes[use_at]).contains(&value) && latest(value, use_at) == Some(made));
                sum += if used { dag.bytes(value) } else { 0 };
            }
        }
        sum
    };
    (0..nodes.len()).map(resident).collect()
}

/// Compares with the definition, and with a fresh start from the same nodes.
fn assert_consistent(sequence: &Sequence<'_>) {
    let dag = sequence.dag();
    let nodes = sequence.nodes();
    for (at, &node) in nodes.iter().enumerate() {
        assert!(dag.may_run_after(node, |other| nodes[..at].contains(&other)));
    }
    let events = |sequence: &Sequence<'_>| -> Vec<EventId> {
        let all = (0..sequence.len()).map(|place| sequence.event_at(place));
        all.filter(|&event| event != EventId::NONE).collect()
    };
    let memory = |sequence: &Sequence<'_>| -> Vec<i32> {
        let places = events(sequence).into_iter().map(|event| sequence.place_of(event));
        places.map(|place| sequence.memory()[place]).collect()
    };
    assert_eq!(memory(sequence), memory_by_definition(dag, &nodes));
    let fresh = Sequence::of(dag, sequence.budget(), &nodes);
    assert_eq!(memory(sequence), memory(&fresh));
    assert_eq!(sequence.duration(), fresh.duration());
    assert_eq!(sequence.excess(), fresh.excess());
    assert_eq!(sequence.frame_excess(), fresh.excess());
    assert_eq!(sequence.peak(), fresh.peak());
    assert_eq!(sequence.recomputes().len(), fresh.recomputes().len());
    let rank = |sequence: &Sequence<'_>, event: EventId| events(sequence).iter().position(|&other| other == event);
    for (&event, &other) in events(sequence).iter().zip(&events(&fresh)) {
        for value in dag.values(sequence.node_of(event)) {
            let end = rank(sequence, sequence.end_of(event, value));
            assert_eq!(end, rank(&fresh, fresh.end_of(other, value)), "end of value {value:?}");
        }
    }
    let first = memory(&fresh).iter().position(|&memory| memory > sequence.budget());
    let found = sequence
        .next_excess(0..sequence.len())
        .map(|place| sequence.event_at(place));
    assert_eq!(found.and_then(|event| rank(sequence, event)), first);
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
        let mut sequence = Sequence::new(&dag, dag.scaled_budget(Some(budget)));
        assert_consistent(&sequence);
        let (mut log, mut history) = (Vec::new(), vec![sequence.nodes()]);
        for (kind, what, place) in changes {
            let events: Vec<EventId> = (0..sequence.len()).map(|place| sequence.event_at(place)).filter(|&e| e != EventId::NONE).collect();
            let at = what.index(events.len());
            let event = events[at];
            let edit = match kind {
                0 if !sequence.is_first(event) => sequence.remove(event),
                1 if free && sequence.is_first(event) => {
                    let (after, before) = sequence.freedom(event);
                    let others = events.iter().copied().filter(|&e| e != event);
                    let mut places: Vec<EventId> = others.filter(|&e| sequence.place_of(e) > after && sequence.place_of(e) <= before).collect();
                    if before == sequence.len() {
                        places.push(EventId::NONE);
                    }
                    if places.is_empty() {
                        continue;
                    }
                    sequence.relocate(event, places[place.index(places.len())])
                }
                _ if at + 1 < events.len() => {
                    let node = sequence.node_of(event);
                    let last = sequence.last_place(node);
                    let places: Vec<EventId> = events[at + 1..].iter().copied().filter(|&e| sequence.place_of(e) <= last).collect();
                    if places.is_empty() {
                        continue;
                    }
                    Edit::Inserted(sequence.insert(node, places[place.index(places.len())]))
                }
                _ => continue,
            };
            log.push(edit);
            history.push(sequence.nodes());
            assert_consistent(&sequence);
        }
        let keep = keep.index(log.len() + 1);
        sequence.undo_to(&mut log, keep);
        prop_assert_eq!(sequence.nodes(), history[keep].clone());
        assert_consistent(&sequence);
    }
}

#[test]
fn many_insertions_at_one_place_spread_the_events_out() {
    let ops: Vec<(u64, u64, &[usize])> = vec![(1, 1, &[]), (1, 1, &[0]), (1, 1, &[1])];
    let problem = paper(&ops);
    let dag = dag_of(&problem);
    let mut sequence = Sequence::new(&dag, 2);
    let last = *sequence.runs(NodeId::new(2)).last().expect("it ran");
    for _ in 0..1000 {
        sequence.insert(NodeId::new(1), last);
    }
    assert_eq!(sequence.nodes().len(), 1003);
    assert_consistent(&sequence);
}

#[test]
fn a_recompute_at_the_end_of_the_sequence_comes_and_goes() {
    let ops: Vec<(u64, u64, &[usize])> = vec![(1, 3, &[]), (1, 5, &[0]), (1, 1, &[0])];
    let problem = paper(&ops);
    let dag = dag_of(&problem);
    let mut sequence = Sequence::of(&dag, 4, &[0, 1, 2, 1].map(NodeId::new));
    let last = *sequence.runs(NodeId::new(1)).last().expect("it ran");
    let mut log = vec![sequence.remove(last)];
    assert_eq!(sequence.nodes(), [0, 1, 2].map(NodeId::new));
    assert_consistent(&sequence);
    sequence.undo_to(&mut log, 0);
    assert_eq!(sequence.nodes(), [0, 1, 2, 1].map(NodeId::new));
    assert_consistent(&sequence);
}
