//! The frame: the part of a sequence that is worked on by itself.

use std::ops::Range;

use super::{EMPTY, EventId, NOWHERE, Sequence};

/// Places that are looked at together.
const BLOCK: usize = 256;

impl Sequence<'_> {
    /// Works on these places from now on.
    pub(crate) fn set_frame(&mut self, frame: Range<usize>) {
        self.frame = frame.start.min(self.len())..frame.end.min(self.len());
        for event in std::mem::take(&mut self.recomputes) {
            self.index[event] = NOWHERE;
        }
        self.entering.clear();
        for place in 0..self.frame.start {
            let event = self.events[place];
            if event == EventId::NONE || self.dag.max_computes(self.node_of(event)) == 1 {
                continue;
            }
            let mut values = self.dag.values(self.node_of(event));
            if values.any(|value| self.place_of(self.end_of(event, value)) > self.frame.start) {
                self.entering.push(event);
            }
        }
        for place in self.frame.clone() {
            let event = self.events[place];
            if event != EventId::NONE && !self.is_first(event) {
                self.list(event);
            }
        }
        self.steps += 1 + self.frame.end as u64 / 256;
    }

    /// Works on all places from now on.
    pub(crate) fn set_whole_frame(&mut self) {
        self.set_frame(0..self.len());
    }

    /// The places worked on.
    pub(crate) fn frame(&self) -> Range<usize> {
        self.frame.clone()
    }

    /// Runs before the frame one of whose values was resident at its beginning when it was set. Some may be gone.
    pub(crate) fn entering(&self) -> &[EventId] {
        &self.entering
    }

    /// The events in the frame that are not first runs, and those that came since it was set; in no particular order.
    pub(crate) fn recomputes(&self) -> &[EventId] {
        &self.recomputes
    }

    pub(super) fn unlist(&mut self, event: EventId) {
        let hole = std::mem::replace(&mut self.index[event], NOWHERE);
        if hole == NOWHERE {
            return;
        }
        self.recomputes.swap_remove(hole as usize);
        if let Some(&moved) = self.recomputes.get(hole as usize) {
            self.index[moved] = hole;
        }
    }

    /// The first place in a range whose memory exceeds the budget.
    pub(crate) fn next_excess(&self, range: Range<usize>) -> Option<usize> {
        let end = range.end.min(self.len());
        for from in range.step_by(BLOCK) {
            let block = &self.memory[from.min(end)..end.min(from + BLOCK)];
            if block.iter().copied().fold(EMPTY, i32::max) > self.budget {
                let is_over = |&memory: &i32| memory > self.budget;
                return Some(from + block.iter().position(is_over)?);
            }
        }
        None
    }

    /// The most places in blocks after one another of which each exceeds the budget.
    pub(crate) fn longest_excess(&self) -> usize {
        let (mut longest, mut blocks) = (0, 0);
        for block in self.memory.chunks(BLOCK) {
            let is_over = block.iter().any(|&memory| memory > self.budget);
            blocks = if is_over { blocks + 1 } else { 0 };
            longest = longest.max(blocks);
        }
        longest * BLOCK
    }

    /// Sum of what exceeds the budget in the frame.
    pub(crate) fn frame_excess(&self) -> i64 {
        self.memory[self.frame()].iter().map(|&memory| self.over(memory)).sum()
    }

    /// The first event at or behind a place, [`EventId::NONE`] behind the last.
    pub(crate) fn next_event(&self, place: usize) -> EventId {
        let mut events = self.events[place..].iter().copied();
        events.find(|&event| event != EventId::NONE).unwrap_or(EventId::NONE)
    }
}
