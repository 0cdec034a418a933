//! A sequence of runs with room in between, for graphs on which renumbering a whole sequence at every change is too slow.

use pulp::Arch;
use remat_plan::{NodeId, ValueId};
use smallvec::SmallVec;
use typed_index_collections::{TiVec, ti_vec};

use crate::curve;
use crate::dag::{Dag, MAX_RUNS_PER_NODE};
use crate::state::EventId;

/// Memory of an empty slot: below every budget, whatever crosses it.
const EMPTY: i32 = -(1 << 30);
/// Slots per block; of each block the largest memory is kept.
const BLOCK: usize = 256;
/// How far from its place an insertion looks for an empty slot before all events are spread out again.
const REACH: usize = 256;

/// A change that can be undone.
#[derive(Clone, Copy, Debug)]
pub(super) enum Edit {
    /// This event was inserted.
    Inserted(EventId),
    /// A run of `node` was removed in front of `next`, or at the end, which is `EventId::NONE`.
    Removed { node: NodeId, next: EventId },
    /// A first run was moved from its place in front of `next`.
    Moved { event: EventId, next: EventId },
}

/// A sequence of runs and the memory it takes, as [`crate::state::State`]: an *instance* is a value made by one event, it serves all
/// uses up to the next event of its producer and is resident up to the last of them.
///
/// Events stand in *slots*, a third of which are empty at first: an insertion moves the events up to the nearest empty slot only. Every change
/// costs that and the slots between the ends of lives that change, not the length of the sequence. Slots order events; they change
/// when events are spread out again, so nothing but [`Timeline::frame`] may remember one across an insertion.
pub(super) struct Timeline<'a> {
    dag: &'a Dag,
    budget: i32,
    /// EventId in each slot, or `EventId::NONE`.
    slots: Vec<EventId>,
    /// Bytes resident while the event of a slot runs; of empty slots a very negative number.
    memory: Vec<i32>,
    /// Per block an upper bound of its largest memory, and whether it may be too large.
    largest: Vec<i32>,
    stale: Vec<bool>,
    /// Per event: its slot.
    slot_of: TiVec<EventId, u32>,
    /// Per event: the node it runs.
    node: TiVec<EventId, NodeId>,
    /// Per event: index of its first instance in `end`.
    instances: TiVec<EventId, u32>,
    /// Per instance: the event of its last use, its own event if it has none.
    end: Vec<EventId>,
    /// Per node: its events in order.
    runs: TiVec<NodeId, SmallVec<[EventId; 2]>>,
    /// Per node: removed events, the last one first to be used again.
    spare: TiVec<NodeId, SmallVec<[EventId; 1]>>,
    /// Number of events in the sequence.
    count: usize,
    duration: i64,
    excess: i64,
    /// Slots whose change of excess can be summed in `i32`.
    chunk: usize,
    arch: Arch,
    /// The slots worked on; kept current when events are spread out.
    pub(super) frame: std::ops::Range<usize>,
    /// Steps taken, for limits.
    pub(super) steps: u64,
}

impl<'a> Timeline<'a> {
    /// A valid sequence of nodes under a budget in units.
    pub(super) fn new(dag: &'a Dag, budget: i32, nodes: &[NodeId]) -> Self {
        let mut timeline = Self {
            dag,
            budget,
            slots: Vec::new(),
            memory: Vec::new(),
            largest: Vec::new(),
            stale: Vec::new(),
            slot_of: TiVec::new(),
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
            steps: 0,
        };
        timeline.load(nodes);
        timeline
    }

    /// Replaces the sequence by these nodes: every node at least once, none before what it needs.
    pub(super) fn load(&mut self, nodes: &[NodeId]) {
        let dag = self.dag;
        self.slot_of.clear();
        self.node.clear();
        self.instances.clear();
        self.end.clear();
        self.runs.iter_mut().for_each(SmallVec::clear);
        self.spare.iter_mut().for_each(SmallVec::clear);
        self.duration = 0;
        self.count = nodes.len();
        self.slots.clear();
        self.slots.resize(spread_slot(nodes.len()) + 1, EventId::NONE);
        for (at, &node) in nodes.iter().enumerate() {
            let event = self.new_event(node);
            let slot = spread_slot(at);
            self.slot_of[event] = slot as u32;
            self.slots[slot] = event;
            for &value in dag.needs(node) {
                let serving = *self.runs[dag.producer(value)]
                    .last()
                    .expect("a loaded sequence runs nothing before what it needs");
                *self.end_mut(serving, value) = event;
            }
            let again = !self.runs[node].is_empty();
            self.duration += if again { dag.again(node) } else { dag.duration(node) };
            self.runs[node].push(event);
        }
        self.sum_memory();
        self.steps += nodes.len() as u64 / 16 + 1;
    }

    fn sum_memory(&mut self) {
        let dag = self.dag;
        let mut change = vec![0i32; self.slots.len() + 1];
        for (at, &event) in self.slots.iter().enumerate() {
            if event == EventId::NONE {
                continue;
            }
            let node = self.node_of(event);
            if self.is_first(event) {
                change[at + 1] += dag.kept(node);
            }
            for value in dag.values(node) {
                let end = self.slot(self.end_of(event, value));
                if end > at {
                    change[at + 1] += dag.bytes(value);
                    change[end + 1] -= dag.bytes(value);
                }
            }
        }
        let mut crossing = 0;
        self.memory.clear();
        for (&event, change) in self.slots.iter().zip(change) {
            crossing += change;
            let local = (event != EventId::NONE).then(|| dag.local(self.node[event]));
            self.memory.push(local.map_or(EMPTY, |local| crossing + local));
        }
        self.set_budget(self.budget);
        self.measure_blocks();
    }

    fn measure_blocks(&mut self) {
        let blocks = self.memory.len().div_ceil(BLOCK);
        self.largest = vec![0; blocks];
        self.stale = vec![true; blocks];
    }

    /// Changes the budget.
    pub(super) fn set_budget(&mut self, budget: i32) {
        self.budget = budget;
        self.excess = self.memory.iter().map(|&m| over(m, budget)).sum();
    }

    fn new_event(&mut self, node: NodeId) -> EventId {
        if let Some(event) = self.spare[node].pop() {
            return event;
        }
        let event = self.node.push_and_get_key(node);
        self.slot_of.push(0);
        self.instances.push(self.end.len() as u32);
        self.end.extend(self.dag.values(node).map(|_| event));
        event
    }

    /// Inserts a run of `node` in front of `next`, at the end of the sequence if that is [`EventId::NONE`]. The node must have run before.
    pub(super) fn insert(&mut self, node: NodeId, next: EventId) -> EventId {
        let dag = self.dag;
        let event = self.new_event(node);
        let at = self.occupy(event, next);
        let mut here = self.crossing(next) + dag.local(node);
        self.duration += dag.again(node);
        self.count += 1;
        self.steps += 1;
        let before = self.runs[node]
            .iter()
            .rposition(|&run| self.slot(run) < at)
            .expect("only nodes that ran before are inserted");
        let previous = self.runs[node][before];
        for value in dag.values(node) {
            let end = self.end_of(previous, value);
            let taken_over = self.slot(end) > at;
            *self.end_mut(event, value) = if taken_over { end } else { event };
            here -= if taken_over { dag.bytes(value) } else { 0 };
        }
        self.put_memory(at, here);
        for value in dag.values(node) {
            if self.end_of(event, value) == event {
                continue;
            }
            let last = self.last_use(value, self.slot(previous), at).unwrap_or(previous);
            *self.end_mut(previous, value) = last;
            self.add_memory(self.slot(last) + 1, at, -dag.bytes(value));
        }
        self.runs[node].insert(before + 1, event);
        self.read_inputs(event);
        event
    }

    /// Removes a run that is not the first of its node.
    pub(super) fn remove(&mut self, event: EventId) -> Edit {
        let dag = self.dag;
        let node = self.node_of(event);
        let at = self.slot(event);
        let runs = &self.runs[node];
        let index = runs
            .iter()
            .position(|&run| run == event)
            .expect("runs of a node are its events in the sequence");
        let previous = runs[index - 1];
        self.steps += 1;
        for value in dag.values(node) {
            let end = self.end_of(event, value);
            if end != event {
                let from = self.slot(self.end_of(previous, value)) + 1;
                *self.end_mut(previous, value) = end;
                self.add_memory(from, at, dag.bytes(value));
            }
        }
        self.runs[node].remove(index);
        self.release_inputs(event);
        self.vacate(at);
        self.spare[node].push(event);
        self.duration -= dag.again(node);
        self.count -= 1;
        let next = self.next_event(at);
        Edit::Removed { node, next }
    }

    /// Moves a first run in front of `next`: behind all it needs, and before the first use of its values, the next run of its node, and
    /// the end of the sequence, where it must not stand itself either.
    pub(super) fn relocate(&mut self, event: EventId, next: EventId) -> Edit {
        let dag = self.dag;
        let node = self.node_of(event);
        let from = self.slot(event);
        self.steps += 1;
        let used = dag.values(node).filter(|&value| self.end_of(event, value) != event);
        let lasting = used.map(|value| dag.bytes(value)).sum::<i32>() + dag.kept(node);
        self.release_inputs(event);
        self.vacate(from);
        let successor = self.next_event(from);
        let at = self.occupy(event, next);
        let mut here = self.crossing(next) + dag.local(node);
        let successor_at = self.slot(successor);
        if self.slot(next) >= successor_at {
            here -= lasting;
        }
        if at < successor_at {
            self.add_memory(at + 1, successor_at, lasting);
        } else {
            self.add_memory(successor_at, at, -lasting);
        }
        self.put_memory(at, here);
        self.read_inputs(event);
        self.empty_before(self.slot(successor));
        Edit::Moved { event, next: successor }
    }

    /// Empties the free slots in front of one anew. Those that a moved event leaves behind were counted on the wrong side of it, which would
    /// add up from move to move.
    fn empty_before(&mut self, slot: usize) {
        let mut free = slot;
        while free > 0 && self.slots[free - 1] == EventId::NONE {
            free -= 1;
            self.excess -= over(self.memory[free], self.budget);
            self.memory[free] = EMPTY;
            self.stale[free / BLOCK] = true;
        }
    }

    /// Takes changes back until `log` has `keep` entries.
    pub(super) fn undo_to(&mut self, log: &mut Vec<Edit>, keep: usize) {
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

    /// The inputs of an event live on to it.
    fn read_inputs(&mut self, event: EventId) {
        let (dag, at) = (self.dag, self.slot(event));
        for &value in dag.needs(self.node_of(event)) {
            let serving = self
                .serving(value, at)
                .expect("first runs stay behind those of their inputs");
            let end = self.slot(self.end_of(serving, value));
            if end < at {
                *self.end_mut(serving, value) = event;
                self.add_memory(end + 1, at + 1, dag.bytes(value));
            }
        }
    }

    /// The inputs of an event live no longer for its sake.
    fn release_inputs(&mut self, event: EventId) {
        let (dag, at) = (self.dag, self.slot(event));
        for &value in dag.needs(self.node_of(event)) {
            let serving = self
                .serving(value, at)
                .expect("first runs stay behind those of their inputs");
            if self.end_of(serving, value) == event {
                let last = self.last_use(value, self.slot(serving), at).unwrap_or(serving);
                *self.end_mut(serving, value) = last;
                self.add_memory(self.slot(last) + 1, at + 1, -dag.bytes(value));
            }
        }
    }

    /// Finds a slot right in front of an event, and puts another one there. Its memory is yet to be set.
    fn occupy(&mut self, event: EventId, next: EventId) -> usize {
        let at = self.open(next).unwrap_or_else(|| {
            self.spread();
            self.open(next)
                .expect("spreading leaves a free slot before every event")
        });
        self.slots[at] = event;
        self.slot_of[event] = at as u32;
        at
    }

    fn vacate(&mut self, at: usize) {
        self.excess -= over(self.memory[at], self.budget);
        self.stale[at / BLOCK] = true;
        self.slots[at] = EventId::NONE;
        self.memory[at] = EMPTY;
    }

    fn put_memory(&mut self, at: usize, memory: i32) {
        self.memory[at] = memory;
        self.excess += over(memory, self.budget);
        self.stale[at / BLOCK] = true;
    }

    /// What is resident across an event, its inputs included.
    fn crossing(&self, event: EventId) -> i32 {
        if event == EventId::NONE {
            return self.dag.kept_total();
        }
        self.memory[self.slot(event)] - self.dag.local(self.node_of(event))
    }

    /// Makes room right in front of an event by moving those up to the nearest empty slot.
    fn open(&mut self, next: EventId) -> Option<usize> {
        let at = if next == EventId::NONE {
            self.slots.len()
        } else {
            self.slot(next)
        };
        let back = (at.saturating_sub(REACH)..at)
            .rev()
            .find(|&slot| self.slots[slot] == EventId::NONE);
        let ahead = (at..self.slots.len().min(at + REACH)).find(|&slot| self.slots[slot] == EventId::NONE);
        let (hole, free) = match (back, ahead) {
            (Some(back), Some(ahead)) if ahead - at < at - 1 - back => (ahead, at),
            (Some(back), _) => (back, at - 1),
            (None, Some(ahead)) => (ahead, at),
            (None, None) => return None,
        };
        let moved = hole.min(free)..hole.max(free) + 1;
        let shifted = if hole < free {
            self.slots.copy_within(hole + 1..free + 1, hole);
            self.memory.copy_within(hole + 1..free + 1, hole);
            hole..free
        } else {
            self.slots.copy_within(free..hole, free + 1);
            self.memory.copy_within(free..hole, free + 1);
            free + 1..hole + 1
        };
        for slot in shifted {
            self.slot_of[self.slots[slot]] = slot as u32;
        }
        for block in moved.start / BLOCK..=(moved.end - 1) / BLOCK {
            self.stale[block] = true;
        }
        self.slots[free] = EventId::NONE;
        self.memory[free] = EMPTY;
        Some(free)
    }

    /// Spreads the events out: every third slot is empty.
    fn spread(&mut self) {
        let (slots, memory) = (std::mem::take(&mut self.slots), std::mem::take(&mut self.memory));
        let mut frame = self.frame.clone();
        let count = slots.iter().filter(|&&event| event != EventId::NONE).count();
        self.slots.resize(spread_slot(count) + 1, EventId::NONE);
        self.memory.resize(spread_slot(count) + 1, EMPTY);
        let mut spread = 0;
        for (old, (event, memory)) in slots.into_iter().zip(memory).enumerate() {
            let at = spread_slot(spread);
            if old == self.frame.start {
                frame.start = at;
            }
            if old < self.frame.end {
                frame.end = at + 1;
            }
            if event != EventId::NONE {
                self.slots[at] = event;
                self.memory[at] = memory;
                self.slot_of[event] = at as u32;
                spread += 1;
            }
        }
        self.frame = frame.start.min(self.slots.len())..frame.end.min(self.slots.len());
        self.steps += count as u64 / 256;
        self.measure_blocks();
    }

    /// Adds to the memory of a range of slots and keeps the excess current.
    #[inline]
    fn add_memory(&mut self, from: usize, to: usize, bytes: i32) {
        if from >= to || bytes == 0 {
            return;
        }
        let memory = &mut self.memory[from..to];
        self.excess += curve::add(self.arch, memory, bytes, self.budget, self.chunk);
        self.stale[from / BLOCK..=(to - 1) / BLOCK].fill(true);
    }

    /// The slot of the largest memory in a range of slots, if it exceeds the budget.
    pub(super) fn worst_in(&self, range: std::ops::Range<usize>) -> Option<usize> {
        let mut worst = None;
        let mut most = self.budget;
        for slot in range.start..range.end.min(self.memory.len()) {
            if self.memory[slot] > most {
                (worst, most) = (Some(slot), self.memory[slot]);
            }
        }
        worst
    }

    /// The first slot at or behind another whose memory exceeds the budget.
    pub(super) fn next_excess(&mut self, from: usize) -> Option<usize> {
        let mut slot = from;
        while slot < self.memory.len() {
            let end = (slot / BLOCK + 1) * BLOCK;
            if self.largest_of(slot / BLOCK) > self.budget {
                let block = slot..end.min(self.memory.len());
                if let Some(found) = block.into_iter().find(|&slot| self.memory[slot] > self.budget) {
                    return Some(found);
                }
            }
            slot = end;
        }
        None
    }

    fn largest_of(&mut self, block: usize) -> i32 {
        if std::mem::replace(&mut self.stale[block], false) {
            let end = ((block + 1) * BLOCK).min(self.memory.len());
            let memory = &self.memory[block * BLOCK..end];
            self.largest[block] = memory.iter().copied().fold(EMPTY, i32::max);
        }
        self.largest[block]
    }

    /// The largest memory of all.
    pub(super) fn peak(&mut self) -> i32 {
        (0..self.largest.len())
            .map(|block| self.largest_of(block))
            .fold(0, i32::max)
    }

    /// Sum of what exceeds the budget in a range of slots.
    pub(super) fn excess_in(&self, range: std::ops::Range<usize>) -> i64 {
        let end = range.end.min(self.memory.len());
        self.memory[range.start.min(end)..end]
            .iter()
            .map(|&m| over(m, self.budget))
            .sum()
    }

    #[inline]
    fn end_mut(&mut self, event: EventId, value: ValueId) -> &mut EventId {
        &mut self.end[self.instances[event] as usize + self.dag.rank(value)]
    }

    /// The event whose instance of `value` serves a use at a slot.
    #[inline]
    pub(super) fn serving(&self, value: ValueId, at: usize) -> Option<EventId> {
        let runs = &self.runs[self.dag.producer(value)];
        runs.iter().rev().copied().find(|&run| self.slot(run) < at)
    }

    /// The last event strictly between two slots that uses a value.
    #[inline]
    pub(super) fn last_use(&self, value: ValueId, after: usize, before: usize) -> Option<EventId> {
        let (mut last, mut at) = (None, after);
        for &user in self.dag.users(value) {
            for &event in &self.runs[user] {
                let slot = self.slot(event);
                if slot > at && slot < before {
                    (last, at) = (Some(event), slot);
                }
            }
        }
        last
    }

    /// The first event at or behind a slot that uses a value.
    #[inline]
    pub(super) fn next_use(&self, value: ValueId, from: usize) -> Option<EventId> {
        let (mut next, mut at) = (None, usize::MAX);
        for &user in self.dag.users(value) {
            for &event in &self.runs[user] {
                let slot = self.slot(event);
                if slot >= from && slot < at {
                    (next, at) = (Some(event), slot);
                }
            }
        }
        next
    }

    /// The event of the last use of an instance, its own event if it has none.
    #[inline]
    pub(super) fn end_of(&self, event: EventId, value: ValueId) -> EventId {
        self.end[self.instances[event] as usize + self.dag.rank(value)]
    }

    /// Whether a node may run once more.
    #[inline]
    pub(super) fn may_run_again(&self, node: NodeId) -> bool {
        self.runs[node].len() < self.dag.max_computes(node)
    }

    /// Whether the sequence has reached the length at which the search gives up.
    pub(super) fn is_full(&self) -> bool {
        self.count >= (self.dag.len() + 1) * MAX_RUNS_PER_NODE
    }

    /// Whether an event is in the sequence and the first run of its node.
    #[inline]
    pub(super) fn is_first(&self, event: EventId) -> bool {
        self.runs[self.node_of(event)].first() == Some(&event)
    }

    /// Whether an event is in the sequence and not the first run of its node.
    #[inline]
    pub(super) fn is_recompute(&self, event: EventId) -> bool {
        self.runs[self.node_of(event)].iter().skip(1).any(|&run| run == event)
    }

    /// Where a first run may stand: behind the first slot, before the second.
    pub(super) fn freedom(&self, event: EventId) -> (usize, usize) {
        let (dag, node) = (self.dag, self.node_of(event));
        let first = |&other: &NodeId| self.slot(self.runs[other][0]);
        let after = dag.predecessors(node).iter().map(first).max();
        let users = dag.successors(node).iter().map(first);
        let again = self.runs[node].get(1).map(|&run| self.slot(run));
        (after.unwrap_or(0), users.chain(again).min().unwrap_or(self.slots.len()))
    }

    #[inline]
    pub(super) fn slot(&self, event: EventId) -> usize {
        self.slot_of[event] as usize
    }

    #[inline]
    pub(super) fn node_of(&self, event: EventId) -> NodeId {
        self.node[event]
    }

    /// The runs of a node, in order.
    #[inline]
    pub(super) fn runs(&self, node: NodeId) -> &[EventId] {
        &self.runs[node]
    }

    /// The event in a slot, `EventId::NONE` in an empty one.
    #[inline]
    pub(super) fn event_at(&self, slot: usize) -> EventId {
        self.slots[slot]
    }

    /// The first event at or behind a slot, `EventId::NONE` behind the last.
    pub(super) fn next_event(&self, slot: usize) -> EventId {
        self.slots[slot..]
            .iter()
            .copied()
            .find(|&event| event != EventId::NONE)
            .unwrap_or(EventId::NONE)
    }

    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes resident at each slot; empty slots hold a negative number.
    pub(super) fn memory(&self) -> &[i32] {
        &self.memory
    }

    pub(super) fn dag(&self) -> &'a Dag {
        self.dag
    }

    pub(super) fn budget(&self) -> i32 {
        self.budget
    }

    /// Time of all runs.
    pub(super) fn duration(&self) -> i64 {
        self.duration
    }

    /// Sum over all slots of what exceeds the budget.
    pub(super) fn excess(&self) -> i64 {
        self.excess
    }

    /// The nodes in the order in which they run.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        let events = self.slots.iter().filter(|&&event| event != EventId::NONE);
        events.map(|&event| self.node_of(event)).collect()
    }
}

/// Where an event stands when all are spread out: every third slot is empty.
fn spread_slot(index: usize) -> usize {
    1 + index + index / 2
}

#[inline]
fn over(memory: i32, budget: i32) -> i64 {
    i64::from(memory.max(budget)) - i64::from(budget)
}
