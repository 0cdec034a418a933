//! Changes of a sequence: a run comes, goes or moves; each can be undone.

use std::ops::Range;

use remat_plan::NodeId;

use super::{EventId, Sequence};

/// A change that can be undone. `next` is the event in front of which it was made, [`EventId::NONE`] at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// This event was inserted.
    Inserted(EventId),
    /// A run of `node` was removed.
    Removed { node: NodeId, next: EventId },
    /// This event was moved from its place.
    Moved { event: EventId, next: EventId },
}

impl Edit {
    /// The event that was inserted.
    pub(crate) fn inserted(&self) -> Option<EventId> {
        match *self {
            Self::Inserted(event) => Some(event),
            Self::Removed { .. } | Self::Moved { .. } => None,
        }
    }
}

impl Sequence<'_> {
    /// Inserts a run of `node` in front of `next`, at the end of the sequence if that is [`EventId::NONE`]. The node must have run before.
    pub(crate) fn insert(&mut self, node: NodeId, next: EventId) -> EventId {
        let event = self.new_event(node);
        let memory = self.crossing(next) + self.dag.local(node);
        self.put(event, next, memory);
        self.enter(event);
        event
    }

    /// Removes a run that is not the first of its node.
    pub(crate) fn remove(&mut self, event: EventId) -> Edit {
        let node = self.leave(event);
        let at = self.place_of(event);
        self.take(at);
        let next = self.next_event(at);
        Edit::Removed { node, next }
    }

    /// Moves a run in front of another one, or to the end: within its [window](Sequence::window).
    pub(crate) fn relocate(&mut self, event: EventId, next: EventId) -> Edit {
        let node = self.node_of(event);
        let (from, to) = (self.place_of(event), self.place_or_end(next));
        let successor = self.next_event(from + 1);
        self.steps += 1;
        self.release_inputs(event);
        let previous = self
            .is_recompute(event)
            .then(|| self.runs[node][self.run_index(event) - 1]);
        let held = if let Some(previous) = previous {
            self.hand_back(previous, event);
            0
        } else {
            // All uses are after both places.
            self.held(event)
        };
        self.add_memory(from + 1, to, -held);
        self.add_memory(to, from, held);
        let memory = self.crossing(next) - held + self.dag.local(node);
        self.take(from);
        self.put(event, next, memory);
        if let Some(previous) = previous {
            self.take_over(previous, event);
        }
        self.hold_inputs(event);
        Edit::Moved { event, next: successor }
    }

    /// Takes changes back until `log` has `keep` entries.
    pub(crate) fn undo_to(&mut self, log: &mut Vec<Edit>, keep: usize) {
        while log.len() > keep {
            match log.pop() {
                Some(Edit::Inserted(event)) => {
                    self.remove(event);
                }
                Some(Edit::Removed { node, next }) => {
                    self.insert(node, next);
                }
                Some(Edit::Moved { event, next }) => {
                    self.relocate(event, next);
                }
                None => break,
            }
        }
    }

    /// The places of events in front of which a run may stand, the end of the sequence included: it stays between the runs of its node
    /// around it, a first run after the first runs of its predecessors and before those of its successors.
    pub(crate) fn window(&self, event: EventId) -> Range<usize> {
        let (dag, node) = (self.dag, self.node_of(event));
        let runs = self.runs(node);
        let index = self.run_index(event);
        let end = runs.get(index + 1).map_or(self.len(), |&run| self.place_of(run));
        if index > 0 {
            return self.place_of(runs[index - 1]) + 1..end + 1;
        }
        let first_run = |&other: &NodeId| self.place_of(self.runs(other)[0]);
        let begin = dag.predecessors(node).iter().map(|other| first_run(other) + 1).max();
        let end = dag.successors(node).iter().map(first_run).fold(end, usize::min);
        begin.unwrap_or(0)..end + 1
    }

    /// What is resident in front of an event and needed at it or after it.
    fn crossing(&self, event: EventId) -> i32 {
        if event == EventId::NONE {
            return self.dag.kept_total();
        }
        self.memory[self.place_of(event)] - self.dag.local(self.node_of(event))
    }
}
