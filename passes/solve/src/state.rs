//! The sequence of small graphs: events stand one beside the other.

mod edit;

use remat_plan::NodeId;
use typed_index_collections::TiVec;

use crate::dag::Dag;
use crate::sequence::{EventId, Layout, Sequence};
pub(crate) use edit::Edit;

/// No index among the recomputes.
const NOWHERE: u32 = u32::MAX;

/// No place is empty: a place is the position in the sequence.
///
/// Costs: `insert` and `remove` touch the events behind the position once, `move_to` those between the two positions, each the
/// memory between the ends that change.
#[derive(Default)]
pub(crate) struct Dense {
    /// The events that are not first runs, in no particular order.
    recomputes: Vec<EventId>,
    /// Per event: its index in `recomputes`.
    index: TiVec<EventId, u32>,
}

impl Layout for Dense {
    fn place(index: usize) -> usize {
        index
    }

    fn places(count: usize) -> usize {
        count
    }

    #[inline]
    fn changed(&mut self, _: std::ops::Range<usize>) {}

    fn loaded(&mut self, _: usize, recomputes: Vec<EventId>) {
        self.recomputes.clear();
        self.index.clear();
        recomputes.into_iter().for_each(|event| self.add(event));
    }
}

impl Dense {
    fn add(&mut self, event: EventId) {
        if event >= self.index.next_key() {
            self.index.resize(event.index() + 1, NOWHERE);
        }
        self.index[event] = self.recomputes.len() as u32;
        self.recomputes.push(event);
    }

    fn remove(&mut self, event: EventId) {
        let hole = std::mem::replace(&mut self.index[event], NOWHERE);
        self.recomputes.swap_remove(hole as usize);
        if let Some(&moved) = self.recomputes.get(hole as usize) {
            self.index[moved] = hole;
        }
    }
}

/// A value that could be dropped across a position.
#[derive(Clone, Copy)]
pub(crate) struct Droppable {
    /// The run that made it.
    pub(crate) event: EventId,
    /// The node of that run.
    pub(crate) node: NodeId,
    /// The event in front of which it would be made again: the first use behind the position, or, where its node must not run as late as
    /// that, the last one that it may precede.
    pub(crate) before: EventId,
    /// The position of that event.
    pub(crate) next: usize,
}

/// The sequence of a small graph.
pub(crate) type State<'a> = Sequence<'a, Dense>;

impl<'a> State<'a> {
    /// The reference order without recomputes, under a budget in units.
    pub(crate) fn new(dag: &'a Dag, budget: i32) -> Self {
        let nodes: Vec<NodeId> = dag.nodes().collect();
        Self::of(dag, budget, &nodes)
    }

    /// Goes back to the reference order without recomputes.
    pub(crate) fn load_reference(&mut self) {
        let nodes: Vec<NodeId> = self.dag.nodes().collect();
        self.load(&nodes);
    }

    /// What is resident across a position, unused there, and could be dropped and made again before its next use.
    pub(crate) fn droppable(&self, position: usize) -> impl Iterator<Item = Droppable> + '_ {
        self.events[..position].iter().flat_map(move |&event| {
            let node = self.node_of(event);
            self.dag.values(node).filter_map(move |value| {
                if self.place_of(self.end_of(event, value)) <= position || !self.may_run_again(node) {
                    return None;
                }
                let before = self.last_chance(node, self.next_use(value, position)?);
                let next = self.place_of(before);
                (next > position).then_some(Droppable {
                    event,
                    node,
                    before,
                    next,
                })
            })
        })
    }

    /// The events in order.
    pub(crate) fn sequence(&self) -> &[EventId] {
        &self.events
    }

    /// The events that are not first runs.
    pub(crate) fn recomputes(&self) -> &[EventId] {
        &self.layout.recomputes
    }

    /// The largest memory at a position.
    pub(crate) fn peak(&self) -> i32 {
        self.memory.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
