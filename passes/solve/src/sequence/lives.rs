//! How long values live. A run that goes hands the uses of its values back to the run before it, and lets go of its inputs; a run that
//! comes takes uses over and holds its inputs.

use remat_plan::NodeId;

use super::{EventId, Sequence};

impl Sequence<'_> {
    /// An event that has just got its place, and whose memory there is what crosses the place and what it takes itself, becomes a run
    /// of its node. The node must have run before.
    pub(super) fn enter(&mut self, event: EventId) {
        let (node, at) = (self.node_of(event), self.place_of(event));
        let before = self.runs[node]
            .iter()
            .rposition(|&run| self.place_of(run) < at)
            .expect("only nodes that ran before are inserted");
        let previous = self.runs[node][before];
        // It serves the uses behind it that the run before it served so far.
        let dag = self.dag;
        for value in dag.values(node) {
            let end = self.end_of(previous, value);
            if self.place_of(end) <= at {
                *self.end_mut(event, value) = event;
                continue;
            }
            *self.end_mut(event, value) = end;
            let last = self.last_use(value, self.place_of(previous), at).unwrap_or(previous);
            *self.end_mut(previous, value) = last;
            self.add_memory(self.place_of(last) + 1, at + 1, -dag.bytes(value));
        }
        self.runs[node].insert(before + 1, event);
        self.hold_inputs(event);
        self.duration += dag.again(node);
        self.count += 1;
        self.steps += 1;
    }

    /// An event that is not the first of its node is no run of it any more; it still has its place.
    pub(super) fn leave(&mut self, event: EventId) -> NodeId {
        let node = self.node_of(event);
        let index = self.run_index(event);
        let previous = self.runs[node][index - 1];
        // The run before it serves its uses, too. What is resident at its own place is left out: it is about to leave.
        let dag = self.dag;
        for value in dag.values(node) {
            let end = self.end_of(event, value);
            if end != event {
                let from = self.place_of(self.end_of(previous, value)) + 1;
                *self.end_mut(previous, value) = end;
                self.add_memory(from, self.place_of(event), dag.bytes(value));
            }
        }
        self.runs[node].remove(index);
        self.release_inputs(event);
        self.spare[node].push(event);
        self.duration -= dag.again(node);
        self.count -= 1;
        self.steps += 1;
        node
    }

    /// The inputs of `event` stay until it ran.
    pub(super) fn hold_inputs(&mut self, event: EventId) {
        let (dag, at) = (self.dag, self.place_of(event));
        for &value in dag.needs(self.node_of(event)) {
            let serving = self
                .serving(value, at)
                .expect("first runs stay behind those of their inputs");
            let end = self.place_of(self.end_of(serving, value));
            if end < at {
                *self.end_mut(serving, value) = event;
                self.add_memory(end + 1, at + 1, dag.bytes(value));
            }
        }
    }

    /// Inputs that stay for `event` only go after the use before it.
    pub(super) fn release_inputs(&mut self, event: EventId) {
        let (dag, at) = (self.dag, self.place_of(event));
        for &value in dag.needs(self.node_of(event)) {
            let serving = self
                .serving(value, at)
                .expect("first runs stay behind those of their inputs");
            if self.end_of(serving, value) == event {
                let last = self.last_use(value, self.place_of(serving), at).unwrap_or(serving);
                *self.end_mut(serving, value) = last;
                self.add_memory(self.place_of(last) + 1, at + 1, -dag.bytes(value));
            }
        }
    }

    /// What a first run leaves behind: what is kept, and its values that are used.
    pub(super) fn held(&self, event: EventId) -> i32 {
        let (dag, node) = (self.dag, self.node_of(event));
        let used = dag.values(node).filter(|&value| self.end_of(event, value) != event);
        dag.kept(node) + used.map(|value| dag.bytes(value)).sum::<i32>()
    }
}
