//! The state against the definition of what a sequence takes.

use proptest::prelude::*;
use proptest::sample::Index;
use remat_plan::{Structure, ValueId};

use super::*;
use remat_testing::random::{Features, problems};

/// Memory at each position, straight from the definition.
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

fn assert_consistent(state: &State<'_>) {
    let dag = state.dag();
    let nodes = state.nodes();
    for (at, &node) in nodes.iter().enumerate() {
        assert!(dag.may_run_after(node, |other| nodes[..at].contains(&other)));
    }
    assert_eq!(state.memory(), memory_by_definition(dag, &nodes));
    let mut fresh = State::new(dag, state.budget());
    fresh.load(&nodes);
    assert_eq!(state.memory(), fresh.memory());
    assert_eq!(state.duration(), fresh.duration());
    assert_eq!(state.excess(), fresh.excess());
    assert_eq!(state.recomputes().len(), fresh.recomputes().len());
    for position in 0..nodes.len() {
        let (event, other) = (state.event_at(position), fresh.event_at(position));
        assert_eq!(state.place_of(event), position);
        for value in dag.values(state.node_of(event)) {
            let end = state.place_of(state.end_of(event, value));
            assert_eq!(
                end,
                fresh.place_of(fresh.end_of(other, value)),
                "end of value {value:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(remat_testing::cases(256))]

    #[test]
    fn changes_and_their_undoing_leave_what_a_fresh_start_gives(
        problem in problems(2..12, Features::ALL),
        budget in 0u64..40,
        changes in prop::collection::vec((0..3u8, any::<Index>(), any::<Index>()), 1..30),
        keep in any::<Index>(),
    ) {
        let dag = Dag::of(&problem, &Structure::of(&problem));
        prop_assume!(!dag.is_empty());
        let mut state = State::new(&dag, dag.scaled_budget(Some(budget)));
        assert_consistent(&state);
        let mut log = Vec::new();
        let mut history = vec![state.nodes()];
        for (change, what, place) in changes {
            let recomputes = state.recomputes().len();
            if change == 0 {
                let event = state.event_at(what.index(state.sequence().len()));
                let window = state.window(event);
                let to = window.start() + place.index(window.clone().count());
                let index = state.run_index(event);
                log.push(state.move_to(event, to));
                prop_assert_eq!(state.place_of(event), to);
                prop_assert_eq!(state.run_index(event), index);
            } else if change == 1 || recomputes == 0 {
                let node = NodeId::new(what.index(dag.len()));
                let first = state.place_of(state.runs(node)[0]) + 1;
                let last = state.last_place(node).min(state.sequence().len());
                let position = first + place.index(last + 1 - first);
                log.push(Edit::Inserted(state.insert(node, position)));
            } else {
                let event = state.recomputes()[what.index(recomputes)];
                log.push(state.remove(event));
            }
            history.push(state.nodes());
            assert_consistent(&state);
        }
        let keep = keep.index(log.len() + 1);
        state.undo_to(&mut log, keep);
        prop_assert_eq!(state.nodes(), history[keep].clone());
        assert_consistent(&state);
    }
}
