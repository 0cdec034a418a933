//! Large neighbourhood search: some recomputes are removed together, and the budget is restored another way. Recomputes that became
//! superfluous go.

use crate::Rng;
use crate::control::Meter;
use crate::repair::{Repair, RepairOptions};
use crate::sequence::{Edit, EventId, Sequence};

/// The most recomputes removed at once.
const MAX_REMOVED: usize = 8;

/// Large neighbourhood search; holds the buffers.
#[derive(Default)]
pub(crate) struct Neighbourhood {
    repair: Repair,
    log: Vec<Edit>,
    buffer: Vec<EventId>,
}

impl Neighbourhood {
    /// Repairs the frame of a sequence. Returns whether it is within the budget.
    pub(crate) fn restore(
        &mut self,
        sequence: &mut Sequence<'_>,
        options: RepairOptions,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
    ) -> bool {
        self.log.clear();
        self.repair.run(sequence, options, rng, meter, &mut self.log)
    }

    /// Removes recomputes of the frame, the most expensive first, while the excess does not grow.
    ///
    /// Repair adds recomputes one after another; later ones can make earlier ones superfluous.
    pub(crate) fn cleanup(&mut self, sequence: &mut Sequence<'_>) {
        self.buffer.clear();
        self.buffer.extend_from_slice(sequence.recomputes());
        let cost = |event: EventId| sequence.dag().again(sequence.node_of(event));
        self.buffer.sort_by_key(|&event| std::cmp::Reverse(cost(event)));
        for &event in &self.buffer {
            let (excess, keep) = (sequence.excess(), self.log.len());
            self.log.push(sequence.remove(event));
            if sequence.excess() > excess {
                sequence.undo_to(&mut self.log, keep);
            }
        }
    }

    /// One step from a feasible sequence to another whose duration is larger by `slack` at most. Returns whether the sequence changed;
    /// if not, it is as before.
    pub(crate) fn step(
        &mut self,
        sequence: &mut Sequence<'_>,
        slack: i64,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
    ) -> bool {
        let before = sequence.duration();
        self.log.clear();
        self.choose(sequence, rng);
        for index in 0..self.buffer.len() {
            let edit = sequence.remove(self.buffer[index]);
            self.log.push(edit);
        }
        if self.log.is_empty() {
            return false;
        }
        let options = RepairOptions {
            noise: [0.15, 0.4, 0.8][rng.below(3)],
            duration_limit: before + slack + 1,
            ..RepairOptions::GREEDY
        };
        let repaired = self.repair.run(sequence, options, rng, meter, &mut self.log);
        if repaired {
            // A little above the limit, superfluous recomputes may make up for it.
            if sequence.duration() <= before + slack + before / 500 {
                self.cleanup(sequence);
            }
            if sequence.duration() <= before + slack {
                return true;
            }
        }
        sequence.undo_to(&mut self.log, 0);
        false
    }

    /// Lists the recomputes to remove: any, those near one in time, or those that span one position.
    fn choose(&mut self, sequence: &Sequence<'_>, rng: &mut Rng) {
        self.buffer.clear();
        let recomputes = sequence.recomputes();
        if recomputes.is_empty() {
            return;
        }
        let count = 1 + rng.below(MAX_REMOVED.min(recomputes.len()));
        match rng.below(3) {
            0 => {
                self.buffer.extend_from_slice(recomputes);
                shuffle_front(&mut self.buffer, count, rng);
            }
            1 => {
                let centre = sequence.place_of(recomputes[rng.below(recomputes.len())]);
                self.buffer.extend_from_slice(recomputes);
                let distance = |&event: &EventId| (sequence.place_of(event).abs_diff(centre), event);
                if count < self.buffer.len() {
                    self.buffer.select_nth_unstable_by_key(count, distance);
                    self.buffer.truncate(count);
                }
                self.buffer.sort_unstable_by_key(distance);
            }
            _ => {
                let position = rng.below(sequence.len());
                let spans = |&event: &EventId| {
                    let node = sequence.node_of(event);
                    let previous = sequence.runs(node)[sequence.run_index(event) - 1];
                    let mut ends = sequence
                        .dag()
                        .values(node)
                        .map(|value| sequence.end_of(previous, value));
                    sequence.place_of(event) > position && ends.any(|end| sequence.place_of(end) < position)
                };
                self.buffer.extend(recomputes.iter().copied().filter(spans));
                shuffle_front(&mut self.buffer, count, rng);
            }
        }
        self.buffer.truncate(count);
    }
}

/// Brings random elements to the first `count` places.
fn shuffle_front(items: &mut [EventId], count: usize, rng: &mut Rng) {
    for index in 0..count.min(items.len()) {
        let other = index + rng.below(items.len() - index);
        items.swap(index, other);
    }
}
