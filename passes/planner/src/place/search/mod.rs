//! The exact search: is there a placement that is no higher than this?
//!
//! Depth-first search over canonical placements, after MiniMalloc (Moffitt, ASPLOS 2023), in which no buffer can be let down alone.
//! Buffers are placed in ascending order of their offsets, so each lies as low as those before it allow. One file holds one part:
//!
//! 0. `state`: what a search knows; `node`: what is open, and the way there;
//! 1. `preference`: which of two buffers at one offset is tried first; weights of sections where attempts failed;
//! 2. `descend`: one buffer after the other, and what is known to fit no more;
//! 3. `estimate`: how high every section gets at least, its `floor`;
//! 4. `split`: what does not meet in time any more is placed apart;
//! 5. `memo`: parts that were proved impossible.
//!
//! A search that takes long begins anew with another preference, and with weights that tell where it failed; later failures weigh more.
//! Restarts are counted in tries, a try is one buffer at one offset: the answer depends on the seed and not on the time.

mod descend;
mod estimate;
mod floor;
mod memo;
mod node;
mod preference;
mod split;
mod state;

use alloc::vec::Vec;

pub(crate) use self::node::Answer;
use self::preference::PREFERENCES;
pub(crate) use self::state::Search;
use crate::dense::Table;
use crate::float::power;
use crate::limits::Meter;
use crate::place::instance::Item;

/// Tries of a restart in the first round.
const FIRST_RESTART: f64 = 5_000.0;
/// How much longer those of the next round are.
const GROWTH: f64 = 1.25;
/// The last round in which they grow.
const MOST_GROWN: usize = 60;
/// The most that noise adds to a preference, in 64ths, in each round.
const NOISE: [usize; 4] = [4, 8, 16, 40];

impl Search<'_> {
    /// Looks for a placement that is no higher than the capacity, for so many tries; another call goes on with longer restarts.
    pub(crate) fn attempt(&mut self, capacity: i64, tries: u64, meter: &mut Meter<'_>) -> Answer {
        if capacity > self.capacity {
            // What is impossible below may be possible now.
            self.memo.clear();
        }
        self.capacity = capacity;
        let end = meter.tries().saturating_add(tries);
        let mut restarts = self.restarts.get(&capacity).copied().unwrap_or_default();
        let answer = loop {
            if meter.is_over() || meter.tries() >= end {
                break Answer::Stopped;
            }
            let round = restarts / PREFERENCES.len();
            let length = FIRST_RESTART * power(GROWTH, round.min(MOST_GROWN));
            self.left = (length as u64).min(end - meter.tries());
            let noise = (round % 2 == 1).then(|| NOISE[round % NOISE.len()]);
            match self.restart(self.next, noise, meter) {
                Answer::Stopped => {}
                answer => break answer,
            }
            restarts += 1;
            self.next = (self.next + 1) % PREFERENCES.len();
        };
        self.restarts.insert(capacity, restarts);
        answer
    }

    /// The offsets after an attempt that placed all buffers.
    pub(crate) fn offsets(&self) -> Table<Item, i64> {
        self.offset.iter().map(|offset| offset.unwrap_or_default()).collect()
    }

    fn restart(&mut self, preference: usize, noise: Option<usize>, meter: &mut Meter<'_>) -> Answer {
        self.weights.decay();
        self.preference.choose(PREFERENCES[preference], noise, &mut self.rng);
        self.trail.clear();
        let items: Vec<Item> = self.offset.keys().collect();
        for &item in &items {
            self.reopen(item);
            self.lowest[item] = self.instance.pinned[item].unwrap_or(0);
        }
        let sections = 0..self.instance.sections();
        self.place_part(items, sections, meter)
    }
}
