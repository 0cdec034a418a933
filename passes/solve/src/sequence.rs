//! A sequence of runs and the memory it takes, kept current while runs come, go and move.
//!
//! Between the runs there is room, so that a change costs what it touches and not the length of the sequence.

mod edit;
mod frame;
mod lives;
#[cfg(test)]
mod tests;

use std::ops::Range;

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

/// No index among the recomputes.
const NOWHERE: u32 = u32::MAX;
/// Memory of an empty place: below every budget, whatever crosses it.
const EMPTY: i32 = -(1 << 30);

/// A sequence of runs in which first runs stand in some topological order; as long as none is moved, in that which was loaded.
///
/// An *instance* is a value made by one event. It serves all uses of the value up to the next event of its producer, and is
/// resident from its own step to the last of these uses. *Places* order the events, a third of them empty at first; the memory at a place is
/// what is resident while its event runs. An insertion moves the events up to the nearest empty place only. Places change when events are
/// spread out again, so nothing but the frame may remember one across an insertion.
///
/// Searches work on the *frame*, a range of places: all of them, until another one is set.
pub(crate) struct Sequence<'a> {
    pub(crate) dag: &'a Dag,
    budget: i32,
    /// The event at each place, or [`EventId::NONE`].
    events: Vec<EventId>,
    /// Bytes resident at each place; of empty ones a very negative number.
    memory: Vec<i32>,
    /// Per event: its place.
    place: TiVec<EventId, u32>,
    /// Per event: the node it runs.
    node: TiVec<EventId, NodeId>,
    /// Per event: index of its first instance in `end`.
    instances: TiVec<EventId, u32>,
    /// Per instance: the event of its last use, its own event if it has none.
    end: Vec<EventId>,
    /// Per node: its events in order; the first is the first run.
    runs: TiVec<NodeId, SmallVec<[EventId; 4]>>,
    /// Per node: removed events, the last one first to be used again.
    spare: TiVec<NodeId, SmallVec<[EventId; 2]>>,
    /// Number of events in the sequence.
    count: usize,
    duration: i64,
    excess: i64,
    /// Places whose change of excess can be summed in `i32`.
    chunk: usize,
    arch: Arch,
    /// The places worked on; kept current when events are spread out.
    frame: Range<usize>,
    /// Runs before the frame one of whose values is resident at its beginning.
    entering: Vec<EventId>,
    /// The events in the frame that are not first runs, and those that came since it was set; in no particular order.
    recomputes: Vec<EventId>,
    /// Per event: its index in `recomputes`.
    index: TiVec<EventId, u32>,
    /// Steps taken, for limits: one per change; scans of the sequence add their share.
    pub(crate) steps: u64,
}

impl<'a> Sequence<'a> {
    /// A valid sequence of nodes under a budget in units.
    pub(crate) fn of(dag: &'a Dag, budget: i32, nodes: &[NodeId]) -> Self {
        let mut sequence = Self {
            dag,
            budget,
            events: Vec::new(),
            memory: Vec::new(),
            place: TiVec::new(),
            node: TiVec::new(),
            instances: TiVec::new(),
            end: Vec::new(),
            runs: ti_vec![SmallVec::new(); dag.len()],
            spare: ti_vec![SmallVec::new(); dag.len()],
            count: 0,
            duration: 0,
            excess: 0,
            chunk: (i32::MAX / dag.largest_change().max(1)).clamp(1, 256) as usize,
            arch: Arch::new(),
            frame: 0..0,
            entering: Vec::new(),
            recomputes: Vec::new(),
            index: TiVec::new(),
            steps: 0,
        };
        sequence.load(nodes);
        sequence
    }

    /// The reference order without recomputes, under a budget in units.
    pub(crate) fn new(dag: &'a Dag, budget: i32) -> Self {
        let nodes: Vec<NodeId> = dag.nodes().collect();
        Self::of(dag, budget, &nodes)
    }

    /// Loads a start, by default the reference order without recomputes.
    pub(crate) fn load_start(&mut self, start: Option<&[NodeId]>) {
        match start {
            Some(start) => self.load(start),
            None => self.load(&self.dag.nodes().collect::<Vec<NodeId>>()),
        }
    }

    /// Replaces the sequence by these nodes: every node at least once, first runs in topological order.
    pub(crate) fn load(&mut self, nodes: &[NodeId]) {
        self.place.clear();
        self.index.clear();
        self.recomputes.clear();
        self.node.clear();
        self.instances.clear();
        self.end.clear();
        self.runs.iter_mut().for_each(SmallVec::clear);
        self.spare.iter_mut().for_each(SmallVec::clear);
        self.duration = 0;
        self.count = nodes.len();
        self.events.clear();
        self.events.resize(spread_place(nodes.len()) + 1, EventId::NONE);
        let dag = self.dag;
        for (index, &node) in nodes.iter().enumerate() {
            let event = self.new_event(node);
            let place = spread_place(index);
            self.place[event] = place as u32;
            self.events[place] = event;
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
                self.list(event);
            }
            self.runs[node].push(event);
        }
        self.entering.clear();
        self.frame = 0..self.len();
        self.sum_memory();
        self.steps += self.len() as u64 / 256 + nodes.len() as u64 / 16 + 2;
    }

    /// Takes note of an event that is not a first run.
    pub(super) fn list(&mut self, event: EventId) {
        self.index[event] = self.recomputes.len() as u32;
        self.recomputes.push(event);
    }

    fn sum_memory(&mut self) {
        let dag = self.dag;
        let mut change = vec![0i32; self.events.len() + 1];
        for (at, &event) in self.events.iter().enumerate() {
            if event == EventId::NONE {
                continue;
            }
            let node = self.node_of(event);
            if self.is_first(event) {
                change[at + 1] += dag.kept(node);
            }
            for value in dag.values(node) {
                let end = self.place_of(self.end_of(event, value));
                if end > at {
                    change[at + 1] += dag.bytes(value);
                    change[end + 1] -= dag.bytes(value);
                }
            }
        }
        let mut crossing = 0;
        self.memory.clear();
        for (&event, change) in self.events.iter().zip(change) {
            crossing += change;
            let local = (event != EventId::NONE).then(|| dag.local(self.node[event]));
            self.memory.push(local.map_or(EMPTY, |local| crossing + local));
        }
        self.set_budget(self.budget);
    }

    /// Changes the budget.
    pub(crate) fn set_budget(&mut self, budget: i32) {
        self.budget = budget;
        self.excess = self.memory.iter().map(|&memory| over(memory, budget)).sum();
    }

    /// An event of a node that stands nowhere yet.
    pub(crate) fn new_event(&mut self, node: NodeId) -> EventId {
        if let Some(event) = self.spare[node].pop() {
            return event;
        }
        let event = self.node.push_and_get_key(node);
        self.place.push(0);
        self.index.push(NOWHERE);
        self.instances.push(self.end.len() as u32);
        self.end.extend(self.dag.values(node).map(|_| event));
        event
    }

    /// Adds to the memory of the places `from..to` and keeps the excess current.
    #[inline]
    pub(crate) fn add_memory(&mut self, from: usize, to: usize, bytes: i32) {
        if from >= to || bytes == 0 {
            return;
        }
        let memory = &mut self.memory[from..to];
        self.excess += curve::add(self.arch, memory, bytes, self.budget, self.chunk);
    }

    /// What an event at a place of this memory exceeds the budget by.
    #[inline]
    pub(crate) fn over(&self, memory: i32) -> i64 {
        over(memory, self.budget)
    }

    /// Index of an event among the runs of its node.
    pub(crate) fn run_index(&self, event: EventId) -> usize {
        self.runs[self.node_of(event)]
            .iter()
            .position(|&run| run == event)
            .expect("runs of a node are its events in the sequence")
    }

    /// The event whose instance of `value` serves a use at a place.
    #[inline]
    pub(crate) fn serving(&self, value: ValueId, at: usize) -> Option<EventId> {
        let runs = &self.runs[self.dag.producer(value)];
        runs.iter().rev().copied().find(|&run| self.place_of(run) < at)
    }

    /// The last event strictly between two places that uses a value.
    #[inline]
    pub(crate) fn last_use(&self, value: ValueId, after: usize, before: usize) -> Option<EventId> {
        let (mut last, mut at) = (None, after);
        for &user in self.dag.users(value) {
            for &event in &self.runs[user] {
                let place = self.place_of(event);
                if place > at && place < before {
                    (last, at) = (Some(event), place);
                }
            }
        }
        last
    }

    /// The first event at or behind a place that uses a value.
    #[inline]
    pub(crate) fn next_use(&self, value: ValueId, from: usize) -> Option<EventId> {
        let (mut next, mut at) = (None, usize::MAX);
        for &user in self.dag.users(value) {
            for &event in &self.runs[user] {
                let place = self.place_of(event);
                if place >= from && place < at {
                    (next, at) = (Some(event), place);
                }
            }
        }
        next
    }

    /// The event of the last use of an instance, its own event if it has none.
    #[inline]
    pub(crate) fn end_of(&self, event: EventId, value: ValueId) -> EventId {
        self.end[self.instances[event] as usize + self.dag.rank(value)]
    }

    #[inline]
    fn end_mut(&mut self, event: EventId, value: ValueId) -> &mut EventId {
        &mut self.end[self.instances[event] as usize + self.dag.rank(value)]
    }

    /// Whether a node may run once more.
    #[inline]
    pub(crate) fn may_run_again(&self, node: NodeId) -> bool {
        self.runs[node].len() < self.dag.max_computes(node)
    }

    /// The place in front of which a node may stand at most: that of the first of the first runs that it must not follow.
    #[inline]
    pub(crate) fn last_place(&self, node: NodeId) -> usize {
        let others = self.dag.anti_successors(node).iter();
        others
            .map(|&other| self.place_of(self.runs[other][0]))
            .min()
            .unwrap_or(usize::MAX)
    }

    /// The last event at or before `next` in front of which a node may run: `next`, or the first of the first runs that it must not follow.
    #[inline]
    pub(crate) fn last_chance(&self, node: NodeId, next: EventId) -> EventId {
        let others = self.dag.anti_successors(node).iter().map(|&other| self.runs[other][0]);
        others.fold(next, |earliest, other| {
            if self.place_of(other) < self.place_of(earliest) {
                other
            } else {
                earliest
            }
        })
    }

    /// Where a first run may stand: behind the first place, before the second.
    pub(crate) fn freedom(&self, event: EventId) -> (usize, usize) {
        let (dag, node) = (self.dag, self.node_of(event));
        let first = |&other: &NodeId| self.place_of(self.runs(other)[0]);
        let last = |&other: &NodeId| self.runs(other).last().map_or(0, |&run| self.place_of(run));
        let after = dag.predecessors(node).iter().map(first);
        let after = after.chain(dag.anti_predecessors(node).iter().map(last)).max();
        let users = dag.successors(node).iter().map(first);
        let again = self.runs(node).get(1).map(|&run| self.place_of(run));
        (after.unwrap_or(0), users.chain(again).min().unwrap_or(self.len()))
    }

    /// Whether the sequence has reached the length at which the search gives up.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= (self.dag.len() + 1) * MAX_RUNS_PER_NODE
    }

    /// Whether an event is in the sequence.
    #[inline]
    pub(crate) fn is_present(&self, event: EventId) -> bool {
        self.runs[self.node_of(event)].contains(&event)
    }

    /// Whether an event is in the sequence and the first run of its node.
    #[inline]
    pub(crate) fn is_first(&self, event: EventId) -> bool {
        self.runs[self.node_of(event)].first() == Some(&event)
    }

    #[inline]
    pub(crate) fn place_of(&self, event: EventId) -> usize {
        self.place[event] as usize
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

    /// The event at a place, [`EventId::NONE`] at an empty one.
    #[inline]
    pub(crate) fn event_at(&self, place: usize) -> EventId {
        self.events[place]
    }

    /// Bytes resident at each place; empty ones hold a negative number.
    pub(crate) fn memory(&self) -> &[i32] {
        &self.memory
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

    /// Sum over all places of what exceeds the budget.
    pub(crate) fn excess(&self) -> i64 {
        self.excess
    }

    /// Number of places.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The largest memory of all.
    pub(crate) fn peak(&self) -> i32 {
        self.memory.iter().copied().fold(0, i32::max)
    }

    /// The nodes in the order in which they run.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let events = self.events.iter().filter(|&&event| event != EventId::NONE);
        events.map(|&event| self.node_of(event)).collect()
    }
}

#[inline]
fn over(memory: i32, budget: i32) -> i64 {
    i64::from(memory.max(budget)) - i64::from(budget)
}

/// Where an event stands when all are spread out: every third place is empty.
fn spread_place(index: usize) -> usize {
    1 + index + index / 2
}
