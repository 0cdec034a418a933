//! Where events stand, and what is asked of ranges of places.

use std::ops::Range;

use super::{EMPTY, EventId, Sequence};

/// Places per block; of each block the largest memory is remembered.
const BLOCK: usize = 256;
/// How far from its place an insertion looks for an empty one before all events are spread out again.
const REACH: usize = 256;

impl Sequence<'_> {
    /// Puts an event that stands nowhere right in front of another one, or at the end.
    pub(super) fn put(&mut self, event: EventId, next: EventId, memory: i32) {
        let at = self.open(next).unwrap_or_else(|| {
            self.spread();
            self.open(next)
                .expect("spreading leaves a free place before every event")
        });
        self.events[at] = event;
        self.place[event] = at as u32;
        self.memory[at] = memory;
        self.excess += self.over(memory);
        self.stale[at / BLOCK] = true;
    }

    /// Empties a place.
    pub(super) fn take(&mut self, at: usize) {
        self.excess -= self.over(self.memory[at]);
        self.events[at] = EventId::NONE;
        self.memory[at] = EMPTY;
        self.stale[at / BLOCK] = true;
    }

    /// Makes room right in front of an event by moving those up to the nearest empty place.
    fn open(&mut self, next: EventId) -> Option<usize> {
        let at = self.place_or_end(next);
        let is_free = |&place: &usize| self.events[place] == EventId::NONE;
        let back = (at.saturating_sub(REACH)..at).rev().find(is_free);
        let ahead = (at..self.len().min(at + REACH)).find(is_free);
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
        self.mark_stale(hole.min(free)..hole.max(free) + 1);
        self.events[free] = EventId::NONE;
        self.memory[free] = EMPTY;
        Some(free)
    }

    /// Spreads the events out: every third place is empty.
    fn spread(&mut self) {
        let (events, memory) = (std::mem::take(&mut self.events), std::mem::take(&mut self.memory));
        let old_frame = self.frame.clone();
        let places = Sequence::spread_place(self.count) + 1;
        let mut frame = 0..places;
        let old_places = events.len();
        self.events.resize(places, EventId::NONE);
        self.memory.resize(places, EMPTY);
        let mut spread = 0;
        for (old, (event, memory)) in events.into_iter().zip(memory).enumerate() {
            let at = Sequence::spread_place(spread);
            if old == old_frame.start && old > 0 {
                frame.start = at;
            }
            if old < old_frame.end && old_frame.end < old_places {
                frame.end = at + 1;
            }
            if event != EventId::NONE {
                self.events[at] = event;
                self.memory[at] = memory;
                self.place[event] = at as u32;
                spread += 1;
            }
        }
        self.frame = frame.start.min(places)..frame.end.min(places);
        self.steps += self.count as u64 / 256;
        self.renew_blocks();
    }

    pub(super) fn renew_blocks(&mut self) {
        let blocks = self.len().div_ceil(BLOCK);
        self.largest.resize(blocks, 0);
        self.stale.clear();
        self.stale.resize(blocks, true);
    }

    /// The memory of some places changed, of one at least.
    #[inline]
    pub(super) fn mark_stale(&mut self, places: Range<usize>) {
        self.stale[places.start / BLOCK..=(places.end - 1) / BLOCK].fill(true);
    }

    /// The place of an event; after all places that of [`EventId::NONE`].
    pub(crate) fn place_or_end(&self, event: EventId) -> usize {
        if event == EventId::NONE {
            self.len()
        } else {
            self.place_of(event)
        }
    }

    /// The first event at or after a place, [`EventId::NONE`] after the last.
    pub(crate) fn next_event(&self, place: usize) -> EventId {
        let rest = self.events.get(place..).unwrap_or_default();
        let next = rest.iter().find(|&&event| event != EventId::NONE);
        next.copied().unwrap_or(EventId::NONE)
    }

    /// The place of the largest memory in the frame, if it exceeds the budget.
    pub(crate) fn worst(&self) -> Option<usize> {
        let (mut worst, mut most) = (None, self.budget);
        for place in self.frame.clone() {
            if self.memory[place] > most {
                (worst, most) = (Some(place), self.memory[place]);
            }
        }
        worst
    }

    /// The first place at or after another whose memory exceeds the budget.
    pub(crate) fn next_excess(&mut self, from: usize) -> Option<usize> {
        let mut place = from;
        while place < self.len() {
            let end = (place / BLOCK + 1) * BLOCK;
            if self.largest_of(place / BLOCK) > self.budget {
                let mut block = place..end.min(self.len());
                if let Some(found) = block.find(|&place| self.memory[place] > self.budget) {
                    return Some(found);
                }
            }
            place = end;
        }
        None
    }

    fn largest_of(&mut self, block: usize) -> i32 {
        if std::mem::replace(&mut self.stale[block], false) {
            let end = ((block + 1) * BLOCK).min(self.len());
            let memory = &self.memory[block * BLOCK..end];
            self.largest[block] = memory.iter().copied().fold(EMPTY, i32::max);
        }
        self.largest[block]
    }

    /// The largest memory of all.
    pub(crate) fn peak(&self) -> i32 {
        self.memory.iter().copied().fold(0, i32::max)
    }

    /// Sum of what exceeds the budget in the frame.
    pub(crate) fn excess_in_frame(&self) -> i64 {
        self.memory[self.frame.clone()].iter().map(|&m| self.over(m)).sum()
    }
}
