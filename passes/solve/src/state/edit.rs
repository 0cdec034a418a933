//! Changes of a sequence: a run comes, goes or moves; each can be undone.
//!
//! A run that goes hands the uses of its values back to the run before it, and lets go of its inputs; a run that comes takes
//! uses over and holds its inputs. A run that moves does both.

use remat_plan::NodeId;

use super::{EventId, NOWHERE, State};

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
    /// Inserts a run of `node` before the event at `position`. The node must have run before.
    pub(crate) fn insert(&mut self, node: NodeId, position: usize) -> EventId {
        let dag = self.dag;
        let here = self.crossing(position) + dag.local(node);
        let event = self.new_event(node);
        self.sequence.insert(position, event);
        self.renumber(position, self.sequence.len());
        self.add_recompute(event);
        self.duration += dag.again(node);
        self.steps += 1;
        self.memory.insert(position, here);
        self.excess += i64::from((here - self.budget).max(0));

        let before = self
            .serving_index(node, position)
            .expect("only nodes that ran before are inserted");
        let previous = self.runs[node][before];
        self.take_over(previous, event);
        self.runs[node].insert(before + 1, event);
        self.hold_inputs(event);
        event
    }

    /// Removes a run that is not the first of its node.
    pub(crate) fn remove(&mut self, event: EventId) -> Edit {
        let node = self.node_of(event);
        let position = self.position_of(event);
        let index = self.run_index(event);
        let previous = self.runs[node][index - 1];
        self.steps += 1;
        self.hand_back(previous, event);
        self.runs[node].remove(index);
        self.release_inputs(event);
        self.excess -= i64::from((self.memory[position] - self.budget).max(0));
        self.memory.remove(position);
        self.sequence.remove(position);
        self.renumber(position, self.sequence.len());
        let hole = self.recompute_index[event] as usize;
        self.recomputes.swap_remove(hole);
        if let Some(&moved) = self.recomputes.get(hole) {
            self.recompute_index[moved] = hole as u32;
        }
        self.recompute_index[event] = NOWHERE;
        self.spare[node].push(event);
        self.duration -= self.dag.again(node);
        let position = position as u32;
        Edit::Removed { node, position }
    }

    /// Moves a run to another position, counted as if it were not there. It must stay between the runs of its node around it, and a
    /// first run behind those of its predecessors and before those of its successors: within its [window](State::window).
    pub(crate) fn move_to(&mut self, event: EventId, to: usize) -> Edit {
        let from = self.position_of(event);
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

    /// `event` serves the uses behind it that `previous`, the run of its node before it, served so far.
    fn take_over(&mut self, previous: EventId, event: EventId) {
        let dag = self.dag;
        let position = self.position_of(event);
        for value in dag.values(self.node_of(event)) {
            let end = self.end_of(previous, value);
            if self.position_of(end) <= position {
                *self.end_mut(event, value) = event;
                continue;
            }
            *self.end_mut(event, value) = end;
            let last = self
                .last_use(value, self.position_of(previous), position)
                .unwrap_or(previous);
            *self.end_mut(previous, value) = last;
            self.add_memory(self.position_of(last) + 1, position + 1, -dag.bytes(value));
        }
    }

    /// `previous`, the run of the same node before `event`, serves the uses of `event` too. What is resident at the position of
    /// `event` itself is left out: it is about to leave.
    fn hand_back(&mut self, previous: EventId, event: EventId) {
        let dag = self.dag;
        for value in dag.values(self.node_of(event)) {
            let end = self.end_of(event, value);
            if end != event {
                let from = self.position_of(self.end_of(previous, value)) + 1;
                *self.end_mut(previous, value) = end;
                self.add_memory(from, self.position_of(event), dag.bytes(value));
            }
        }
    }

    /// The inputs of `event` stay until it ran.
    fn hold_inputs(&mut self, event: EventId) {
        let dag = self.dag;
        let position = self.position_of(event);
        for &value in dag.needs(self.node_of(event)) {
            let serving = self
                .serving(value, position)
                .expect("first runs stay behind those of their inputs");
            let end = self.position_of(self.end_of(serving, value));
            if end < position {
                *self.end_mut(serving, value) = event;
                self.add_memory(end + 1, position + 1, dag.bytes(value));
            }
        }
    }

    /// Inputs that stay for `event` only go after the use before it.
    fn release_inputs(&mut self, event: EventId) {
        let dag = self.dag;
        let position = self.position_of(event);
        for &value in dag.needs(self.node_of(event)) {
            let serving = self
                .serving(value, position)
                .expect("first runs stay behind those of their inputs");
            if self.end_of(serving, value) == event {
                let last = self
                    .last_use(value, self.position_of(serving), position)
                    .unwrap_or(serving);
                *self.end_mut(serving, value) = last;
                self.add_memory(self.position_of(last) + 1, position + 1, -dag.bytes(value));
            }
        }
    }

    /// What a first run leaves behind: what is kept, and its values that are used.
    fn held(&self, event: EventId) -> i32 {
        let node = self.node_of(event);
        let used = self
            .dag
            .values(node)
            .filter(|&value| self.end_of(event, value) != event);
        self.dag.kept(node) + used.map(|value| self.dag.bytes(value)).sum::<i32>()
    }

    /// What is resident before a position and needed at it or behind it.
    fn crossing(&self, position: usize) -> i32 {
        match self.sequence.get(position) {
            Some(&next) => self.memory[position] - self.dag.local(self.node_of(next)),
            None => self.dag.kept_total(),
        }
    }

    /// Carries an event that holds no inputs from one position to another, with what crosses it there, less so many bytes.
    fn relocate(&mut self, event: EventId, from: usize, to: usize, less: i32) {
        let node = self.node_of(event);
        let behind = if to < from { to } else { to + 1 };
        let here = self.crossing(behind) - less + self.dag.local(node);
        let over = |memory: i32| i64::from((memory - self.budget).max(0));
        self.excess += over(here) - over(self.memory[from]);
        if to < from {
            self.sequence.copy_within(to..from, to + 1);
            self.memory.copy_within(to..from, to + 1);
        } else {
            self.sequence.copy_within(from + 1..=to, from);
            self.memory.copy_within(from + 1..=to, from);
        }
        self.sequence[to] = event;
        self.memory[to] = here;
        self.renumber(from.min(to), from.max(to) + 1);
    }

    fn renumber(&mut self, from: usize, to: usize) {
        for (at, &event) in self.sequence[from..to].iter().enumerate() {
            self.position[event] = (from + at) as u32;
        }
    }
}
