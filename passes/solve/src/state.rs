//! A sequence of runs and the memory it takes, kept current while runs come, go and move.

mod edit;

use pulp::Arch;
use remat_plan::{NodeId, ValueId};
use smallvec::SmallVec;
use typed_index_collections::{TiVec, ti_vec};

use crate::curve;
use crate::dag::{Dag, MAX_RUNS_PER_NODE};
pub(crate) use edit::Edit;

remat_ir::dense_id!(
    /// An event: one run of one node in a sequence. Ids are reused, always for the same node.
    EventId
);

impl EventId {
    /// No event.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// No place among the recomputes.
const NOWHERE: u32 = u32::MAX;

/// A value that could be dropped across a position.
#[derive(Clone, Copy)]
pub(crate) struct Droppable {
    /// The run that made it.
    pub(crate) event: EventId,
    /// The node of that run.
    pub(crate) node: NodeId,
    /// The first use behind the position.
    pub(crate) before: EventId,
    /// The position of that use.
    pub(crate) next: usize,
}

/// A sequence of runs in which first runs stand in some topological order; as long as none is moved, in that which was loaded.
///
/// An *instance* is a value made by one event. It serves all uses of the value up to the next event of its producer, and is
/// resident from its own step to the last of these uses. `memory[p]` is what is resident while the event at position `p` runs.
///
/// Costs: `insert` and `remove` touch the events behind the position once, `move_to` those between the two positions, each the
/// memory between the ends that change.
pub(crate) struct State<'a> {
    dag: &'a Dag,
    budget: i32,
    /// Events in order.
    sequence: Vec<EventId>,
    /// Bytes resident at each position.
    memory: Vec<i32>,
    /// Per event: position in the sequence.
    position: TiVec<EventId, u32>,
    /// Per event: the node it runs.
    node: TiVec<EventId, NodeId>,
    /// Per event: index of its first instance in `end`.
    slot: TiVec<EventId, u32>,
    /// Per instance: the event of its last use, its own event if it has none.
    end: Vec<EventId>,
    /// Per node: its events in order; the first is the first run.
    runs: TiVec<NodeId, SmallVec<[EventId; 4]>>,
    /// Per node: removed events.
    spare: TiVec<NodeId, SmallVec<[EventId; 2]>>,
    /// The events that are not first runs, in no particular order.
    recomputes: Vec<EventId>,
    /// Per event: its index in `recomputes`.
    recompute_index: TiVec<EventId, u32>,
    duration: i64,
    excess: i64,
    /// Positions whose excess can be summed in `i32`.
    chunk: usize,
    arch: Arch,
    /// Steps taken, for limits: one per change; scans of the sequence add their share.
    pub(crate) steps: u64,
}

impl<'a> State<'a> {
    /// The reference order without recomputes, under a budget in units.
    pub(crate) fn new(dag: &'a Dag, budget: i32) -> Self {
        let mut state = Self {
            dag,
            budget,
            sequence: Vec::new(),
            memory: Vec::new(),
            position: TiVec::new(),
            node: TiVec::new(),
            slot: TiVec::new(),
            end: Vec::new(),
            runs: ti_vec![SmallVec::new(); dag.len()],
            spare: ti_vec![SmallVec::new(); dag.len()],
            recomputes: Vec::new(),
            recompute_index: TiVec::new(),
            duration: 0,
            excess: 0,
            chunk: (i32::MAX / dag.largest_change().max(1)).clamp(1, 256) as usize,
            arch: Arch::new(),
            steps: 0,
        };
        state.load_reference();
        state
    }

    /// Goes back to the reference order without recomputes.
    pub(crate) fn load_reference(&mut self) {
        let nodes: Vec<NodeId> = self.dag.nodes().collect();
        self.load(&nodes);
    }

    /// Replaces the sequence by these nodes: every node at least once, first runs in topological order.
    pub(crate) fn load(&mut self, nodes: &[NodeId]) {
        self.sequence.clear();
        self.position.clear();
        self.node.clear();
        self.slot.clear();
        self.end.clear();
        self.recomputes.clear();
        self.recompute_index.clear();
        self.runs.iter_mut().for_each(SmallVec::clear);
        self.spare.iter_mut().for_each(SmallVec::clear);
        self.duration = 0;
        let dag = self.dag;
        for (at, &node) in nodes.iter().enumerate() {
            let event = self.new_event(node);
            self.position[event] = at as u32;
            self.sequence.push(event);
            for &value in dag.needs(node) {
                let serving = *self.runs[dag.producer(value)]
                    .last()
                    .expect("a loaded sequence runs nothing before what it needs");
                *self.end_mut(serving, value) = event;
            }
            if self.runs[node].is_empty() {
                self.duration += dag.duration(node);
            } else {
                self.duration += dag.again(node);
                self.add_recompute(event);
            }
            self.runs[node].push(event);
        }
        self.sum_memory();
        self.steps += nodes.len() as u64 / 16 + 1;
    }

    fn sum_memory(&mut self) {
        let dag = self.dag;
        let mut change = vec![0i32; self.sequence.len() + 1];
        for (at, &event) in self.sequence.iter().enumerate() {
            let node = self.node_of(event);
            if self.runs[node][0] == event {
                change[at + 1] += dag.kept(node);
            }
            for value in dag.values(node) {
                let end = self.position_of(self.end_of(event, value));
                if end > at {
                    change[at + 1] += dag.bytes(value);
                    change[end + 1] -= dag.bytes(value);
                }
            }
        }
        self.memory.clear();
        let mut crossing = 0;
        for (at, &event) in self.sequence.iter().enumerate() {
            crossing += change[at];
            self.memory.push(crossing + dag.local(self.node[event]));
        }
        self.set_budget(self.budget);
    }

    /// Changes the budget.
    pub(crate) fn set_budget(&mut self, budget: i32) {
        self.budget = budget;
        self.excess = self.memory.iter().map(|&m| i64::from((m - budget).max(0))).sum();
    }

    fn new_event(&mut self, node: NodeId) -> EventId {
        if let Some(event) = self.spare[node].pop() {
            return event;
        }
        let event = self.node.push_and_get_key(node);
        self.position.push(0);
        self.recompute_index.push(NOWHERE);
        self.slot.push(self.end.len() as u32);
        self.end.extend(self.dag.values(node).map(|_| event));
        event
    }

    fn add_recompute(&mut self, event: EventId) {
        self.recompute_index[event] = self.recomputes.len() as u32;
        self.recomputes.push(event);
    }

    /// Adds to the memory of the positions `from..to` and keeps the excess current.
    #[inline]
    fn add_memory(&mut self, from: usize, to: usize, bytes: i32) {
        if from >= to {
            return;
        }
        let memory = &mut self.memory[from..to];
        self.excess += curve::add(self.arch, memory, bytes, self.budget, self.chunk);
    }

    #[inline]
    fn end_mut(&mut self, event: EventId, value: ValueId) -> &mut EventId {
        let slot = self.slot[event] as usize + self.dag.rank(value);
        &mut self.end[slot]
    }

    fn serving_index(&self, node: NodeId, position: usize) -> Option<usize> {
        let runs = &self.runs[node];
        runs.iter().rposition(|&run| self.position_of(run) < position)
    }

    /// Index of an event among the runs of its node.
    pub(crate) fn run_index(&self, event: EventId) -> usize {
        let runs = &self.runs[self.node_of(event)];
        runs.iter()
            .position(|&run| run == event)
            .expect("runs of a node are its events in the sequence")
    }

    /// The event whose instance of `value` serves a use at `position`.
    #[inline]
    pub(crate) fn serving(&self, value: ValueId, position: usize) -> Option<EventId> {
        let runs = &self.runs[self.dag.producer(value)];
        runs.iter().rev().copied().find(|&run| self.position_of(run) < position)
    }

    /// The last event strictly between two positions that uses a value.
    #[inline]
    pub(crate) fn last_use(&self, value: ValueId, after: usize, before: usize) -> Option<EventId> {
        let (mut last, mut at) = (None, after);
        for &user in self.dag.users(value) {
            for &event in &self.runs[user] {
                let position = self.position_of(event);
                if position > at && position < before {
                    (last, at) = (Some(event), position);
                }
            }
        }
        last
    }

    /// The first event at or behind a position that uses a value.
    #[inline]
    pub(crate) fn next_use(&self, value: ValueId, from: usize) -> Option<EventId> {
        let (mut next, mut at) = (None, usize::MAX);
        for &user in self.dag.users(value) {
            for &event in &self.runs[user] {
                let position = self.position_of(event);
                if position >= from && position < at {
                    (next, at) = (Some(event), position);
                }
            }
        }
        next
    }

    /// The event of the last use of an instance, its own event if it has none.
    #[inline]
    pub(crate) fn end_of(&self, event: EventId, value: ValueId) -> EventId {
        self.end[self.slot[event] as usize + self.dag.rank(value)]
    }

    /// What is resident across a position, unused there, and could be dropped and made again before its next use.
    pub(crate) fn droppable(&self, position: usize) -> impl Iterator<Item = Droppable> + '_ {
        self.sequence[..position].iter().flat_map(move |&event| {
            let node = self.node_of(event);
            self.dag.values(node).filter_map(move |value| {
                if self.position_of(self.end_of(event, value)) <= position || !self.may_run_again(node) {
                    return None;
                }
                let before = self.next_use(value, position)?;
                let next = self.position_of(before);
                (next != position).then_some(Droppable {
                    event,
                    node,
                    before,
                    next,
                })
            })
        })
    }

    /// Whether a node may run once more.
    #[inline]
    pub(crate) fn may_run_again(&self, node: NodeId) -> bool {
        self.runs[node].len() < self.dag.max_computes(node)
    }

    /// Whether the sequence has reached the length at which the search gives up.
    pub(crate) fn is_full(&self) -> bool {
        self.sequence.len() >= (self.dag.len() + 1) * MAX_RUNS_PER_NODE
    }

    #[inline]
    pub(crate) fn position_of(&self, event: EventId) -> usize {
        self.position[event] as usize
    }

    #[inline]
    pub(crate) fn node_of(&self, event: EventId) -> NodeId {
        self.node[event]
    }

    /// The runs of a node, in order.
    #[inline]
    pub(crate) fn runs(&self, node: NodeId) -> &[EventId] {
        &self.runs[node]
    }

    #[inline]
    pub(crate) fn event_at(&self, position: usize) -> EventId {
        self.sequence[position]
    }

    /// The events in order.
    pub(crate) fn sequence(&self) -> &[EventId] {
        &self.sequence
    }

    /// Bytes resident at each position.
    pub(crate) fn memory(&self) -> &[i32] {
        &self.memory
    }

    /// The events that are not first runs.
    pub(crate) fn recomputes(&self) -> &[EventId] {
        &self.recomputes
    }

    pub(crate) fn dag(&self) -> &'a Dag {
        self.dag
    }

    pub(crate) fn budget(&self) -> i32 {
        self.budget
    }

    /// Time of all runs.
    pub(crate) fn duration(&self) -> i64 {
        self.duration
    }

    /// Sum over all positions of what exceeds the budget.
    pub(crate) fn excess(&self) -> i64 {
        self.excess
    }

    /// The largest memory at a position.
    pub(crate) fn peak(&self) -> i32 {
        self.memory.iter().copied().max().unwrap_or(0)
    }

    /// The nodes in the order in which they run.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.sequence.iter().map(|&event| self.node_of(event)).collect()
    }
}

#[cfg(test)]
mod tests;
