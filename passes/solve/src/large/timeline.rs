//! A sequence of runs with room in between, for graphs on which renumbering a whole sequence at every change is too slow.

use std::ops::Range;

use remat_plan::NodeId;

use crate::sequence::{EMPTY, EventId, Layout, Sequence};

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

/// Events stand in *slots*, a third of which are empty at first: an insertion moves the events up to the nearest empty slot only. Every change
/// costs that and the slots between the ends of lives that change, not the length of the sequence. Slots order events; they change
/// when events are spread out again, so nothing but [`Gapped::frame`] may remember one across an insertion.
#[derive(Default)]
pub(crate) struct Gapped {
    /// Per block an upper bound of its largest memory, and whether it may be too large.
    largest: Vec<i32>,
    stale: Vec<bool>,
    /// The slots worked on; kept current when events are spread out.
    pub(super) frame: Range<usize>,
}

impl Layout for Gapped {
    fn place(index: usize) -> usize {
        spread_slot(index)
    }

    fn places(count: usize) -> usize {
        spread_slot(count) + 1
    }

    #[inline]
    fn changed(&mut self, places: Range<usize>) {
        self.stale[places.start / BLOCK..=(places.end - 1) / BLOCK].fill(true);
    }

    fn loaded(&mut self, places: usize, _: Vec<EventId>) {
        let blocks = places.div_ceil(BLOCK);
        self.largest = vec![0; blocks];
        self.stale = vec![true; blocks];
    }
}

/// The sequence of a large graph.
pub(super) type Timeline<'a> = Sequence<'a, Gapped>;

impl Timeline<'_> {
    /// Inserts a run of `node` in front of `next`, at the end of the sequence if that is [`EventId::NONE`]; no later than its
    /// [last place](Sequence::last_place). The node must have run before.
    pub(super) fn insert(&mut self, node: NodeId, next: EventId) -> EventId {
        let place = (next != EventId::NONE).then(|| self.place_of(next));
        let last = self.last_place(node);
        debug_assert!(
            place.unwrap_or(usize::MAX) <= last,
            "what the node reads is overwritten by then"
        );
        let event = self.new_event(node);
        let at = self.occupy(event, next);
        let here = self.crossing(next) + self.dag.local(node);
        self.put_memory(at, here);
        self.enter(event);
        event
    }

    /// Removes a run that is not the first of its node.
    pub(super) fn remove(&mut self, event: EventId) -> Edit {
        let node = self.leave(event);
        let at = self.place_of(event);
        self.vacate(at);
        let next = self.next_event(at);
        Edit::Removed { node, next }
    }

    /// Moves a first run in front of `next`: behind all it needs, and before the first use of its values, the next run of its node, and
    /// the end of the sequence, where it must not stand itself either.
    pub(super) fn relocate(&mut self, event: EventId, next: EventId) -> Edit {
        let dag = self.dag;
        let node = self.node_of(event);
        let from = self.place_of(event);
        self.steps += 1;
        let lasting = self.held(event);
        self.release_inputs(event);
        self.vacate(from);
        let successor = self.next_event(from);
        let at = self.occupy(event, next);
        let mut here = self.crossing(next) + dag.local(node);
        let successor_at = self.place_of(successor);
        if self.place_of(next) >= successor_at {
            here -= lasting;
        }
        if at < successor_at {
            self.add_memory(at + 1, successor_at, lasting);
        } else {
            self.add_memory(successor_at, at, -lasting);
        }
        self.put_memory(at, here);
        self.hold_inputs(event);
        self.empty_before(self.place_of(successor));
        Edit::Moved { event, next: successor }
    }

    /// Empties the free slots in front of one anew. Those that a moved event leaves behind were counted on the wrong side of it, which would
    /// add up from move to move.
    fn empty_before(&mut self, slot: usize) {
        let mut free = slot;
        while free > 0 && self.events[free - 1] == EventId::NONE {
            free -= 1;
            self.excess -= self.over(self.memory[free]);
            self.memory[free] = EMPTY;
            self.layout.stale[free / BLOCK] = true;
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

    /// Finds a slot right in front of an event, and puts another one there. Its memory is yet to be set.
    fn occupy(&mut self, event: EventId, next: EventId) -> usize {
        let at = self.open(next).unwrap_or_else(|| {
            self.spread();
            self.open(next)
                .expect("spreading leaves a free slot before every event")
        });
        self.events[at] = event;
        self.place[event] = at as u32;
        at
    }

    fn vacate(&mut self, at: usize) {
        self.excess -= self.over(self.memory[at]);
        self.layout.stale[at / BLOCK] = true;
        self.events[at] = EventId::NONE;
        self.memory[at] = EMPTY;
    }

    fn put_memory(&mut self, at: usize, memory: i32) {
        self.memory[at] = memory;
        self.excess += self.over(memory);
        self.layout.stale[at / BLOCK] = true;
    }

    /// What is resident across an event, its inputs included.
    fn crossing(&self, event: EventId) -> i32 {
        if event == EventId::NONE {
            return self.dag.kept_total();
        }
        self.memory[self.place_of(event)] - self.dag.local(self.node_of(event))
    }

    /// Makes room right in front of an event by moving those up to the nearest empty slot.
    fn open(&mut self, next: EventId) -> Option<usize> {
        let at = if next == EventId::NONE {
            self.events.len()
        } else {
            self.place_of(next)
        };
        let back = (at.saturating_sub(REACH)..at)
            .rev()
            .find(|&slot| self.events[slot] == EventId::NONE);
        let ahead = (at..self.events.len().min(at + REACH)).find(|&slot| self.events[slot] == EventId::NONE);
        let (hole, free) = match (back, ahead) {
            (Some(back), Some(ahead)) if ahead - at < at - 1 - back => (ahead, at),
            (Some(back), _) => (back, at - 1),
            (None, Some(ahead)) => (ahead, at),
            (None, None) => return None,
        };
        let moved = hole.min(free)..hole.max(free) + 1;
        let shifted = if hole < free {
            self.events.copy_within(hole + 1..free + 1, hole);
            self.memory.copy_within(hole + 1..free + 1, hole);
            hole..free
        } else {
            self.events.copy_within(free..hole, free + 1);
            self.memory.copy_within(free..hole, free + 1);
            free + 1..hole + 1
        };
        for slot in shifted {
            self.place[self.events[slot]] = slot as u32;
        }
        for block in moved.start / BLOCK..=(moved.end - 1) / BLOCK {
            self.layout.stale[block] = true;
        }
        self.events[free] = EventId::NONE;
        self.memory[free] = EMPTY;
        Some(free)
    }

    /// Spreads the events out: every third slot is empty.
    fn spread(&mut self) {
        let (slots, memory) = (std::mem::take(&mut self.events), std::mem::take(&mut self.memory));
        let mut frame = self.layout.frame.clone();
        let count = slots.iter().filter(|&&event| event != EventId::NONE).count();
        self.events.resize(spread_slot(count) + 1, EventId::NONE);
        self.memory.resize(spread_slot(count) + 1, EMPTY);
        let mut spread = 0;
        for (old, (event, memory)) in slots.into_iter().zip(memory).enumerate() {
            let at = spread_slot(spread);
            if old == self.layout.frame.start {
                frame.start = at;
            }
            if old < self.layout.frame.end {
                frame.end = at + 1;
            }
            if event != EventId::NONE {
                self.events[at] = event;
                self.memory[at] = memory;
                self.place[event] = at as u32;
                spread += 1;
            }
        }
        self.layout.frame = frame.start.min(self.events.len())..frame.end.min(self.events.len());
        self.steps += count as u64 / 256;
        self.layout.loaded(self.events.len(), Vec::new());
    }

    /// The slot of the largest memory in a range of slots, if it exceeds the budget.
    pub(super) fn worst_in(&self, range: Range<usize>) -> Option<usize> {
        let mut worst = None;
        let mut most = self.budget();
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
            if self.largest_of(slot / BLOCK) > self.budget() {
                let block = slot..end.min(self.memory.len());
                if let Some(found) = block.into_iter().find(|&slot| self.memory[slot] > self.budget()) {
                    return Some(found);
                }
            }
            slot = end;
        }
        None
    }

    fn largest_of(&mut self, block: usize) -> i32 {
        if std::mem::replace(&mut self.layout.stale[block], false) {
            let end = ((block + 1) * BLOCK).min(self.memory.len());
            let memory = &self.memory[block * BLOCK..end];
            self.layout.largest[block] = memory.iter().copied().fold(EMPTY, i32::max);
        }
        self.layout.largest[block]
    }

    /// The largest memory of all.
    pub(super) fn peak(&mut self) -> i32 {
        (0..self.layout.largest.len())
            .map(|block| self.largest_of(block))
            .fold(0, i32::max)
    }

    /// Sum of what exceeds the budget in a range of slots.
    pub(super) fn excess_in(&self, range: Range<usize>) -> i64 {
        let end = range.end.min(self.memory.len());
        self.memory[range.start.min(end)..end]
            .iter()
            .map(|&m| self.over(m))
            .sum()
    }

    /// Whether an event is in the sequence and not the first run of its node.
    #[inline]
    pub(super) fn is_recompute(&self, event: EventId) -> bool {
        self.runs(self.node_of(event)).iter().skip(1).any(|&run| run == event)
    }

    /// Where a first run may stand: behind the first slot, before the second.
    pub(super) fn freedom(&self, event: EventId) -> (usize, usize) {
        let (dag, node) = (self.dag, self.node_of(event));
        let first = |&other: &NodeId| self.place_of(self.runs(other)[0]);
        let last = |&other: &NodeId| self.runs(other).last().map_or(0, |&run| self.place_of(run));
        let after = dag.predecessors(node).iter().map(first);
        let after = after.chain(dag.anti_predecessors(node).iter().map(last)).max();
        let users = dag.successors(node).iter().map(first);
        let again = self.runs(node).get(1).map(|&run| self.place_of(run));
        (
            after.unwrap_or(0),
            users.chain(again).min().unwrap_or(self.events.len()),
        )
    }

    /// The first event at or behind a slot, `EventId::NONE` behind the last.
    pub(super) fn next_event(&self, slot: usize) -> EventId {
        self.events[slot..]
            .iter()
            .copied()
            .find(|&event| event != EventId::NONE)
            .unwrap_or(EventId::NONE)
    }

    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}

/// Where an event stands when all are spread out: every third slot is empty.
fn spread_slot(index: usize) -> usize {
    1 + index + index / 2
}
