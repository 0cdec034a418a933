//! Large neighbourhood search: some recomputes are removed together, and the budget is restored another way.

use crate::Rng;
use crate::cleanup::cleanup;
use crate::control::Meter;
use crate::repair::{Repair, RepairOptions};
use crate::sequence::EventId;
use crate::state::{Edit, State};

/// The most recomputes removed at once.
const MAX_REMOVED: usize = 8;

/// Large neighbourhood search; holds the buffers.
#[derive(Default)]
pub(crate) struct Neighbourhood {
    pub(crate) repair: Repair,
    log: Vec<Edit>,
    buffer: Vec<EventId>,
}

impl Neighbourhood {
    /// One step from a feasible state to another whose duration is larger by `slack` at most. Returns whether the state changed;
    /// if not, it is as before.
    pub(crate) fn step(&mut self, state: &mut State<'_>, slack: i64, rng: &mut Rng, meter: &mut Meter<'_>) -> bool {
        let before = state.duration();
        self.log.clear();
        self.choose(state, rng);
        for index in 0..self.buffer.len() {
            let edit = state.remove(self.buffer[index]);
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
        let repaired = self.repair.run(state, options, rng, meter, &mut self.log);
        if repaired {
            // A little above the limit, superfluous recomputes may make up for it.
            if state.duration() <= before + slack + before / 500 {
                cleanup(state, &mut self.buffer, &mut self.log);
            }
            if state.duration() <= before + slack {
                return true;
            }
        }
        state.undo_to(&mut self.log, 0);
        false
    }

    /// Lists the recomputes to remove: any, those near one in time, or those that span one position.
    fn choose(&mut self, state: &State<'_>, rng: &mut Rng) {
        self.buffer.clear();
        let recomputes = state.recomputes();
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
                let centre = state.place_of(recomputes[rng.below(recomputes.len())]);
                self.buffer.extend_from_slice(recomputes);
                let distance = |&event: &EventId| (state.place_of(event).abs_diff(centre), event);
                if count < self.buffer.len() {
                    self.buffer.select_nth_unstable_by_key(count, distance);
                    self.buffer.truncate(count);
                }
                self.buffer.sort_unstable_by_key(distance);
            }
            _ => {
                let position = rng.below(state.sequence().len());
                let spans = |&event: &EventId| {
                    let node = state.node_of(event);
                    let previous = state.runs(node)[state.run_index(event) - 1];
                    let mut ends = state.dag().values(node).map(|value| state.end_of(previous, value));
                    state.place_of(event) > position && ends.any(|end| state.place_of(end) < position)
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
