//! A segment of a sequence that is worked on by itself; the whole sequence is one, too.

use std::ops::Range;

use crate::control::Meter;
use crate::rng::Rng;
use crate::sequence::{EventId, Sequence};

/// What is live in a segment, [`Sequence::frame`], and can be acted upon.
#[derive(Default)]
pub(crate) struct Frame {
    /// Runs before the segment one of whose values is resident at its beginning.
    pub(crate) entering: Vec<EventId>,
    /// Recomputes in the segment, and such that were inserted by work on it. Those that were removed since are among them.
    pub(crate) recomputes: Vec<EventId>,
}

impl Frame {
    /// Looks at these places.
    pub(crate) fn set(&mut self, sequence: &mut Sequence<'_>, places: Range<usize>) {
        let places = places.start.min(sequence.len())..places.end.min(sequence.len());
        self.entering.clear();
        self.recomputes.clear();
        let dag = sequence.dag();
        for place in 0..places.start {
            let event = sequence.event_at(place);
            if event == EventId::NONE || dag.max_computes(sequence.node_of(event)) == 1 {
                continue;
            }
            let mut values = dag.values(sequence.node_of(event));
            if values.any(|value| sequence.place_of(sequence.end_of(event, value)) > places.start) {
                self.entering.push(event);
            }
        }
        for place in places.clone() {
            let event = sequence.event_at(place);
            if event != EventId::NONE && sequence.is_recompute(event) {
                self.recomputes.push(event);
            }
        }
        sequence.steps += 1 + places.end as u64 / 256;
        sequence.frame = places;
    }

    /// A recompute of the list that is still there.
    pub(crate) fn some_recompute(&mut self, sequence: &Sequence<'_>, rng: &mut Rng) -> Option<EventId> {
        while !self.recomputes.is_empty() {
            let index = rng.below(self.recomputes.len());
            let event = self.recomputes[index];
            if sequence.is_recompute(event) {
                return Some(event);
            }
            self.recomputes.swap_remove(index);
        }
        None
    }
}

/// What a search works with.
pub(crate) struct Tools<'t, 'a> {
    pub(crate) rng: &'t mut Rng,
    pub(crate) meter: &'t mut Meter<'a>,
}
