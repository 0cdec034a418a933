//! Changes of a dense sequence: a run comes, goes or moves; each can be undone.

use remat_plan::NodeId;

use super::{EventId, State};

/// A change that can be undone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// This event was inserted.
    Inserted(EventId),
    /// A run of `node` was removed at `position`.
    Removed { node: NodeId, position: u32 },
    /// This event was at position `from`.
    Moved { event: EventId, from: u32 },
}

impl State<'_> {
    /// Inserts a run of `node` before the event at `position`, no later than its [last place](State::last_place). The node must have run
    /// before.
    pub(crate) fn insert(&mut self, node: NodeId, position: usize) -> EventId {
        debug_assert!(
            position <= self.last_place(node),
            "what the node reads is overwritten by then"
        );
        let here = self.crossing(position) + self.dag.local(node);
        let event = self.new_event(node);
        self.events.insert(position, event);
        self.renumber(position, self.events.len());
        self.memory.insert(position, here);
        self.excess += self.over(here);
        self.layout.add(event);
        self.enter(event);
        event
    }

    /// Removes a run that is not the first of its node.
    pub(crate) fn remove(&mut self, event: EventId) -> Edit {
        let node = self.leave(event);
        let position = self.place_of(event);
        self.excess -= self.over(self.memory[position]);
        self.memory.remove(position);
        self.events.remove(position);
        self.renumber(position, self.events.len());
        self.layout.remove(event);
        let position = position as u32;
        Edit::Removed { node, position }
    }

    /// Moves a run to another position, counted as if it were not there. It must stay between the runs of its node around it, and a
    /// first run behind those of its predecessors and before those of its successors: within its [window](State::window).
    pub(crate) fn move_to(&mut self, event: EventId, to: usize) -> Edit {
        let from = self.place_of(event);
        let index = self.run_index(event);
        self.steps += 1;
        self.release_inputs(event);
        if index > 0 {
            let previous = self.runs(self.node_of(event))[index - 1];
            self.hand_back(previous, event);
            self.relocate(event, from, to, 0);
            self.take_over(previous, event);
        } else {
            // All uses are behind both positions.
            let held = self.held(event);
            self.add_memory(from + 1, to + 1, -held);
            self.relocate(event, from, to, if to >= from { held } else { 0 });
            self.add_memory(to + 1, from + 1, held);
        }
        self.hold_inputs(event);
        let from = from as u32;
        Edit::Moved { event, from }
    }

    /// Takes changes back until `log` has `keep` entries.
    pub(crate) fn undo_to(&mut self, log: &mut Vec<Edit>, keep: usize) {
        while log.len() > keep {
            match log.pop() {
                Some(Edit::Inserted(event)) => {
                    self.remove(event);
                }
                Some(Edit::Removed { node, position }) => {
                    self.insert(node, position as usize);
                }
                Some(Edit::Moved { event, from }) => {
                    self.move_to(event, from as usize);
                }
                None => break,
            }
        }
    }

    /// What is resident before a position and needed at it or behind it.
    fn crossing(&self, position: usize) -> i32 {
        match self.events.get(position) {
            Some(&next) => self.memory[position] - self.dag.local(self.node_of(next)),
            None => self.dag.kept_total(),
        }
    }

    /// Carries an event that holds no inputs from one position to another, with what crosses it there, less so many bytes.
    fn relocate(&mut self, event: EventId, from: usize, to: usize, less: i32) {
        let node = self.node_of(event);
        let behind = if to < from { to } else { to + 1 };
        let here = self.crossing(behind) - less + self.dag.local(node);
        self.excess += self.over(here) - self.over(self.memory[from]);
        if to < from {
            self.events.copy_within(to..from, to + 1);
            self.memory.copy_within(to..from, to + 1);
        } else {
            self.events.copy_within(from + 1..=to, from);
            self.memory.copy_within(from + 1..=to, from);
        }
        self.events[to] = event;
        self.memory[to] = here;
        self.renumber(from.min(to), from.max(to) + 1);
    }

    fn renumber(&mut self, from: usize, to: usize) {
        for (at, &event) in self.events[from..to].iter().enumerate() {
            self.place[event] = (from + at) as u32;
        }
    }
}
