//! Changes of a sequence: a run comes, goes or moves; each can be undone.

use remat_plan::NodeId;

use super::{EMPTY, EventId, Sequence, spread_place};

/// How far from its place an insertion looks for an empty place before all events are spread out again.
const REACH: usize = 256;

/// A change that can be undone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    /// This event was inserted.
    Inserted(EventId),
    /// A run of `node` was removed in front of `next`, or at the end, which is `EventId::NONE`.
    Removed { node: NodeId, next: EventId },
    /// A first run was moved from its place in front of `next`, or from the end.
    Moved { event: EventId, next: EventId },
}

impl Sequence<'_> {
    /// Inserts a run of `node` in front of `next`, at the end of the sequence if that is [`EventId::NONE`]; no later than its
    /// [last place](Sequence::last_place). The node must have run before.
    pub(crate) fn insert(&mut self, node: NodeId, next: EventId) -> EventId {
        debug_assert!(
            self.place_or_end(next) <= self.last_place(node),
            "what the node reads is overwritten by then"
        );
        let event = self.new_event(node);
        let at = self.occupy(event, next);
        let here = self.crossing(next) + self.dag.local(node);
        self.put_memory(at, here);
        self.enter(event);
        self.list(event);
        event
    }

    /// Removes a run that is not the first of its node.
    pub(crate) fn remove(&mut self, event: EventId) -> Edit {
        let node = self.leave(event);
        self.unlist(event);
        let at = self.place_of(event);
        self.vacate(at);
        let next = self.next_event(at);
        Edit::Removed { node, next }
    }

    /// Moves a first run in front of `next`, or to the end if that is [`EventId::NONE`]: behind all it needs, and before the first use of its
    /// values and the next run of its node.
    pub(crate) fn relocate(&mut self, event: EventId, next: EventId) -> Edit {
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
        let successor_at = self.place_or_end(successor);
        if self.place_or_end(next) >= successor_at {
            here -= lasting;
        }
        if at < successor_at {
            self.add_memory(at + 1, successor_at, lasting);
        } else {
            self.add_memory(successor_at, at, -lasting);
        }
        self.put_memory(at, here);
        self.hold_inputs(event);
        self.empty_before(self.place_or_end(successor));
        Edit::Moved { event, next: successor }
    }

    /// The place of an event, the end of the sequence for none.
    fn place_or_end(&self, event: EventId) -> usize {
        if event == EventId::NONE {
            self.len()
        } else {
            self.place_of(event)
        }
    }

    /// Empties the free places in front of one anew. Those that a moved event leaves behind were counted on the wrong side of it, which would
    /// add up from move to move.
    fn empty_before(&mut self, place: usize) {
        let mut free = place;
        while free > 0 && self.events[free - 1] == EventId::NONE {
            free -= 1;
            self.excess -= self.over(self.memory[free]);
            self.memory[free] = EMPTY;
        }
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

    /// Finds a place right in front of an event, and puts another one there. Its memory is yet to be set.
    fn occupy(&mut self, event: EventId, next: EventId) -> usize {
        let at = self.open(next).unwrap_or_else(|| {
            self.spread();
            self.open(next)
                .expect("spreading leaves a free place before every event")
        });
        self.events[at] = event;
        self.place[event] = at as u32;
        at
    }

    fn vacate(&mut self, at: usize) {
        self.excess -= self.over(self.memory[at]);
        self.events[at] = EventId::NONE;
        self.memory[at] = EMPTY;
    }

    fn put_memory(&mut self, at: usize, memory: i32) {
        self.memory[at] = memory;
        self.excess += self.over(memory);
    }

    /// What is resident across an event, its inputs included.
    fn crossing(&self, event: EventId) -> i32 {
        if event == EventId::NONE {
            return self.dag.kept_total();
        }
        self.memory[self.place_of(event)] - self.dag.local(self.node_of(event))
    }

    /// Makes room right in front of an event by moving those up to the nearest empty place.
    fn open(&mut self, next: EventId) -> Option<usize> {
        let at = self.place_or_end(next);
        let back = (at.saturating_sub(REACH)..at)
            .rev()
            .find(|&place| self.events[place] == EventId::NONE);
        let ahead = (at..self.events.len().min(at + REACH)).find(|&place| self.events[place] == EventId::NONE);
        let (hole, free) = match (back, ahead) {
            (Some(back), Some(ahead)) if ahead - at < at - 1 - back => (ahead, at),
            (Some(back), _) => (back, at - 1),
            (None, Some(ahead)) => (ahead, at),
            (None, None) => return None,
        };
        let shifted = if hole < free {
            self.events.copy_within(hole + 1..free + 1, hole);
            self.memory.copy_within(hole + 1..free + 1, hole);
            hole..free
        } else {
            self.events.copy_within(free..hole, free + 1);
            self.memory.copy_within(free..hole, free + 1);
            free + 1..hole + 1
        };
        for place in shifted {
            self.place[self.events[place]] = place as u32;
        }
        self.events[free] = EventId::NONE;
        self.memory[free] = EMPTY;
        Some(free)
    }

    /// Spreads the events out: every third place is empty.
    fn spread(&mut self) {
        let (places, memory) = (std::mem::take(&mut self.events), std::mem::take(&mut self.memory));
        let mut frame = self.frame.clone();
        let is_whole = frame.end == places.len();
        let count = places.iter().filter(|&&event| event != EventId::NONE).count();
        self.events.resize(spread_place(count) + 1, EventId::NONE);
        self.memory.resize(spread_place(count) + 1, EMPTY);
        let mut spread = 0;
        for (old, (event, memory)) in places.into_iter().zip(memory).enumerate() {
            let at = spread_place(spread);
            if old == self.frame.start && old > 0 {
                frame.start = at;
            }
            if old < self.frame.end {
                frame.end = at + 1;
            }
            if event != EventId::NONE {
                self.events[at] = event;
                self.memory[at] = memory;
                self.place[event] = at as u32;
                spread += 1;
            }
        }
        let end = if is_whole {
            self.len()
        } else {
            frame.end.min(self.len())
        };
        self.frame = frame.start.min(self.len())..end;
        self.steps += count as u64 / 256;
    }
}
