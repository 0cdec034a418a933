//! The sequence against the definition of what it takes.

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{OrderMode, Structure};

use super::*;
use remat_testing::net::paper;
use remat_testing::random::{Features, problems};

/// Memory of each run, straight from the definition.
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

fn events(sequence: &Sequence<'_>) -> Vec<EventId> {
    let events = sequence.events.iter().copied();
    events.filter(|&event| event != EventId::NONE).collect()
}

fn assert_consistent(sequence: &mut Sequence<'_>) {
    let (dag, nodes, events) = (sequence.dag(), sequence.nodes(), events(sequence));
    let memory: Vec<i32> = events
        .iter()
        .map(|&event| sequence.memory[sequence.place_of(event)])
        .collect();
    assert_eq!(memory, memory_by_definition(dag, &nodes));
    let over = |&memory: &i32| memory > sequence.budget();
    let first = memory.iter().position(over);
    let fresh = Sequence::of(dag, sequence.budget(), &nodes);
    assert_eq!(sequence.duration(), fresh.duration());
    assert_eq!(sequence.excess(), fresh.excess());
    assert_eq!(sequence.excess_in_frame(), fresh.excess());
    assert_eq!(sequence.peak(), fresh.peak());
    assert_eq!(sequence.recomputes().len(), fresh.recomputes().len());
    for (&event, other) in events.iter().zip(self::events(&fresh)) {
        assert_eq!(sequence.event_at(sequence.place_of(event)), event);
        assert_eq!(sequence.is_recompute(event), !sequence.is_first(event));
        for value in dag.values(sequence.node_of(event)) {
            let (end, as_fresh) = (sequence.end_of(event, value), fresh.end_of(other, value));
            let index = events.iter().position(|&event| event == end);
            let expected = self::events(&fresh).iter().position(|&event| event == as_fresh);
            assert_eq!(index, expected, "end of value {value:?}");
        }
    }
    let found = sequence.next_excess(0).map(|place| sequence.event_at(place));
    assert_eq!(found, first.map(|at| events[at]));
}

proptest! {
    #[test]
    fn changes_and_their_undoing_leave_what_a_fresh_start_gives(
        mut problem in problems(2..12, Features::ALL),
        free in any::<bool>(),
        budget in 0u64..40,
        changes in prop::collection::vec((0..3u8, any::<Index>(), any::<Index>()), 1..40),
        keep in any::<Index>(),
    ) {
        problem.order = if free { OrderMode::Free } else { OrderMode::Fixed };
        let dag = Dag::of(&problem, &Structure::of(&problem));
        prop_assume!(!dag.is_empty());
        let nodes: Vec<NodeId> = dag.nodes().collect();
        let mut sequence = Sequence::of(&dag, dag.scaled_budget(Some(budget)), &nodes);
        assert_consistent(&mut sequence);
        let (mut log, mut history) = (Vec::new(), vec![sequence.nodes()]);
        for (change, what, place) in changes {
            let events = events(&sequence);
            let event = events[what.index(events.len())];
            let edit = match change {
                0 => {
                    let window = sequence.window(event);
                    let next = sequence.next_event(window.start + place.index(window.len()));
                    if next == event {
                        continue;
                    }
                    let index = sequence.run_index(event);
                    let edit = sequence.relocate(event, next);
                    prop_assert_eq!(sequence.next_event(sequence.place_of(event) + 1), next);
                    prop_assert_eq!(sequence.run_index(event), index);
                    edit
                }
                1 if sequence.is_recompute(event) => sequence.remove(event),
                _ => {
                    let node = sequence.node_of(event);
                    let first = sequence.place_of(sequence.runs(node)[0]) + 1;
                    let next = sequence.next_event(first + place.index(sequence.len() + 1 - first));
                    Edit::Inserted(sequence.insert(node, next))
                }
            };
            log.push(edit);
            history.push(sequence.nodes());
            assert_consistent(&mut sequence);
        }
        let keep = keep.index(log.len() + 1);
        sequence.undo_to(&mut log, keep);
        prop_assert_eq!(sequence.nodes(), history[keep].clone());
        assert_consistent(&mut sequence);
    }
}

#[test]
fn many_insertions_at_one_place_spread_the_events_out() {
    let problem = paper(&[(1, 1, &[][..]), (1, 1, &[0]), (1, 1, &[1])]);
    let dag = Dag::of(&problem, &Structure::of(&problem));
    let mut sequence = Sequence::of(&dag, 2, &[0, 1, 2].map(NodeId::new));
    let last = *sequence.runs(NodeId::new(2)).last().expect("it ran");
    for _ in 0..1000 {
        sequence.insert(NodeId::new(1), last);
    }
    assert_eq!(sequence.nodes().len(), 1003);
    assert_consistent(&mut sequence);
}

#[test]
fn a_recompute_at_the_end_of_the_sequence_comes_and_goes() {
    let problem = paper(&[(1, 3, &[][..]), (1, 5, &[0]), (1, 1, &[0])]);
    let dag = Dag::of(&problem, &Structure::of(&problem));
    let mut sequence = Sequence::of(&dag, 4, &[0, 1, 2, 1].map(NodeId::new));
    let last = *sequence.runs(NodeId::new(1)).last().expect("it ran");
    let mut log = vec![sequence.remove(last)];
    assert_eq!(sequence.nodes(), [0, 1, 2].map(NodeId::new));
    assert_consistent(&mut sequence);
    sequence.undo_to(&mut log, 0);
    assert_eq!(sequence.nodes(), [0, 1, 2, 1].map(NodeId::new));
    assert_consistent(&mut sequence);
}
