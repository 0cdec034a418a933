//! A stretch of a timeline that is worked on by itself.

use super::timeline::Timeline;
use crate::Rng;
use crate::control::Meter;
use crate::sequence::EventId;

/// What is live in a stretch of the timeline, [`Gapped::frame`](super::timeline::Gapped::frame), and can be acted upon.
#[derive(Default)]
pub(super) struct Frame {
    /// Runs before the frame one of whose values is resident at its beginning.
    pub(super) entering: Vec<EventId>,
    /// Recomputes in the frame, and such that were inserted by work on it. Those that were removed since are among them.
    pub(super) recomputes: Vec<EventId>,
}

impl Frame {
    /// Looks at the slots `frame`.
    pub(super) fn set(&mut self, timeline: &mut Timeline<'_>, frame: std::ops::Range<usize>) {
        let frame = frame.start.min(timeline.len())..frame.end.min(timeline.len());
        self.entering.clear();
        self.recomputes.clear();
        let dag = timeline.dag();
        for slot in 0..frame.start {
            let event = timeline.event_at(slot);
            if event == EventId::NONE || dag.max_computes(timeline.node_of(event)) == 1 {
                continue;
            }
            let mut values = dag.values(timeline.node_of(event));
            if values.any(|value| timeline.place_of(timeline.end_of(event, value)) > frame.start) {
                self.entering.push(event);
            }
        }
        for slot in frame.clone() {
            let event = timeline.event_at(slot);
            if event != EventId::NONE && !timeline.is_first(event) {
                self.recomputes.push(event);
            }
        }
        timeline.steps += 1 + frame.end as u64 / 256;
        timeline.layout.frame = frame;
    }

    /// A recompute of the list that is still there.
    pub(super) fn some_recompute(&mut self, timeline: &Timeline<'_>, rng: &mut Rng) -> Option<EventId> {
        while !self.recomputes.is_empty() {
            let index = rng.below(self.recomputes.len());
            let event = self.recomputes[index];
            if timeline.is_recompute(event) {
                return Some(event);
            }
            self.recomputes.swap_remove(index);
        }
        None
    }
}

/// What a search in a frame works with.
pub(super) struct Tools<'t, 'a> {
    pub(super) rng: &'t mut Rng,
    pub(super) meter: &'t mut Meter<'a>,
}
