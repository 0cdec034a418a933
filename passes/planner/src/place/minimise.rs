//! The lowest placement of one part: heuristics from above, the exact search and a local one between them and the bound.

use alloc::vec::Vec;

use crate::dense::Table;

use crate::limits::Meter;
use crate::place::heuristic;
use crate::place::instance::{Instance, Item};
use crate::place::repair::Repair;
use crate::place::search::{Answer, Search};
use crate::place::second::{self, Heard, Second};

/// Pairs of buffers that meet in time, up to which the exact search is used: lists of neighbours have two entries for each.
const MOST_PAIRS: usize = 10_000_000;
/// Tries of the first attempt at the bound; every round of attempts has twice as many.
const FIRST_ATTEMPT: u64 = 60_000;
/// Attempts above the bound have this part of the tries, but not fewer than the first one.
const ABOVE_BOUND: u64 = 2;
/// Tries of the exact search at the bound before the local search begins: enough for the recorded training step of a U-Net.
const ALONE: u64 = 8_000;
/// Tries of the exact search before the local search goes on, and how many that has for each of these: its tries take less time.
const TURN: u64 = 8_000;
const REPAIR: u64 = 2;
/// A round narrows the gap between bound and height down to this part of it.
const NARROWED: i64 = 8;
/// Another method is asked after this part of the tries without progress after which the search gives up.
const STALLED: u64 = 8;
/// The search gives up after this many tries without progress, divided by the number of buffers, ...
const PATIENCE: u64 = 2_000_000_000;
/// ... if these are also more than this multiple of the tries up to the last progress.
const PATIENCE_FACTOR: u64 = 4;

/// What a lower bound on the height, or the claim that there is no placement, rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// At one time so much is taken, or a pinned buffer ends there.
    Load,
    /// The exact search has tried every placement below it; of several blocks, none can be filled to its end.
    Refutation,
    /// The [`Second`] says that there is none below it.
    Second,
}

/// The lowest placement that was found, and what is known of lower ones; in units.
pub(crate) struct BestPlacement {
    pub(crate) offsets: Table<Item, i64>,
    pub(crate) height: i64,
    /// No placement is lower.
    pub(crate) bound: i64,
    pub(crate) proof: Proof,
    /// Tries at the last progress.
    progress: u64,
}

/// What is to be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aim {
    /// As low as possible; below this height nothing is gained.
    Lowest(i64),
    /// Not higher than this; whatever is lower is the same.
    Within(i64),
}

impl Aim {
    /// The least height that is worth to be sought.
    pub(crate) fn target(self, bound: i64) -> i64 {
        match self {
            Self::Lowest(enough) => enough.max(bound),
            Self::Within(capacity) => capacity,
        }
    }

    /// A placement that is not below this is of no use where one of this height is known.
    fn end(self, height: i64) -> i64 {
        match self {
            Self::Lowest(_) => height,
            Self::Within(capacity) => capacity.saturating_add(1),
        }
    }
}

impl BestPlacement {
    fn is_enough(&self, aim: Aim) -> bool {
        self.height <= aim.target(self.bound) || self.is_impossible(aim)
    }

    /// Whether it is proved that the capacity holds no placement.
    pub(crate) fn is_impossible(&self, aim: Aim) -> bool {
        matches!(aim, Aim::Within(capacity) if self.bound > capacity)
    }

    pub(crate) fn lower_to(&mut self, offsets: Table<Item, i64>, instance: &Instance, meter: &Meter<'_>) {
        let height = instance.height(&offsets);
        if height < self.height {
            (self.height, self.offsets) = (height, offsets);
            self.progress = meter.tries();
        }
    }

    /// Notes what came of an attempt at a capacity.
    fn note(
        &mut self,
        answer: Answer,
        offsets: impl FnOnce() -> Table<Item, i64>,
        capacity: i64,
        instance: &Instance,
        meter: &Meter<'_>,
    ) -> Answer {
        match answer {
            Answer::Placed => self.lower_to(offsets(), instance, meter),
            Answer::Impossible => self.refute(capacity, meter),
            Answer::Stopped => {}
        }
        answer
    }

    /// Notes what another method says.
    fn hear(&mut self, heard: Heard, instance: &Instance, meter: &Meter<'_>) {
        if let Some(offsets) = heard.offsets {
            self.lower_to(heuristic::settle(instance, &offsets), instance, meter);
        }
        let bound = heard.bound.min(self.height);
        if bound > self.bound {
            (self.bound, self.proof, self.progress) = (bound, Proof::Second, meter.tries());
        }
    }

    fn refute(&mut self, capacity: i64, meter: &Meter<'_>) {
        if capacity >= self.bound {
            self.bound = capacity + 1;
            self.proof = Proof::Refutation;
            self.progress = meter.tries();
        }
    }
}

/// What heuristics find; `order` is one in which the buffers may be placed, the warm start.
pub(crate) fn heuristics(
    instance: &Instance,
    order: Option<&Table<Item, i64>>,
    meter: &mut Meter<'_>,
) -> BestPlacement {
    let offsets = heuristic::place(instance, meter);
    let mut found = BestPlacement {
        height: instance.height(&offsets),
        offsets,
        bound: instance.bound,
        proof: Proof::Load,
        progress: meter.tries(),
    };
    if let Some(order) = order {
        found.lower_to(heuristic::settle(instance, order), instance, meter);
    }
    found
}

/// Searches until the aim is reached or proved to be impossible, a limit is reached, or nothing gets better for long.
pub(crate) fn search(
    instance: &Instance,
    found: &mut BestPlacement,
    aim: Aim,
    second: Option<&mut (dyn Second + '_)>,
    seed: u64,
    meter: &mut Meter<'_>,
) {
    if found.is_enough(aim) || meter.is_over() {
        return;
    }
    let Some(neighbours) = instance.neighbours(MOST_PAIRS) else {
        return;
    };
    let mut methods = Methods {
        search: Search::new(instance, &neighbours, seed),
        repair: Repair::new(instance, &neighbours, seed),
    };
    attempts(instance, &mut methods, found, aim, (second, &neighbours), meter);
}

/// How a capacity is attempted.
struct Methods<'a> {
    search: Search<'a>,
    /// Where it helps.
    repair: Option<Repair<'a>>,
}

/// Attempts at the least height that is not refuted, further and further above it as long as all are refuted, then by bisection between it and the height that was found, in rounds of more tries. Where
/// these get no further, another method is asked once.
fn attempts(
    instance: &Instance,
    methods: &mut Methods<'_>,
    found: &mut BestPlacement,
    aim: Aim,
    (mut second, neighbours): (Option<&mut (dyn Second + '_)>, &Table<Item, Vec<Item>>),
    meter: &mut Meter<'_>,
) {
    let patience = PATIENCE / (instance.len() as u64).max(1);
    let (mut tries, mut above) = (FIRST_ATTEMPT, 0);
    if methods.repair.is_some() {
        let target = aim.target(found.bound);
        let answer = methods.search.attempt(target, ALONE, meter);
        found.note(answer, || methods.search.offsets(), target, instance, meter);
    }
    while !found.is_enough(aim) && !meter.is_over() {
        let idle = meter.tries() - found.progress;
        if idle > patience / STALLED
            && let Some(second) = second.take()
        {
            let (enough, end) = (aim.target(found.bound), aim.end(found.height));
            if let Some(heard) = second::ask(second, instance, neighbours, &found.offsets, enough, end) {
                found.hear(heard, instance, meter);
            }
            continue;
        }
        if idle > patience && idle / PATIENCE_FACTOR > found.progress {
            return;
        }
        let target = match aim {
            Aim::Lowest(_) => (aim.target(found.bound) + above).min(found.height - 1),
            Aim::Within(capacity) => capacity,
        };
        let answer = methods.attempt(instance, found, target, tries, meter);
        // What is refuted may go on far above the bound: one tiny buffer makes every byte a height of its own.
        above = if answer == Answer::Impossible { above * 2 + 1 } else { 0 };
        if answer != Answer::Stopped {
            continue;
        }
        if matches!(aim, Aim::Lowest(_)) {
            let (mut failed, mut reached) = (target, found.height);
            let narrow = ((reached - failed) / NARROWED).max(1);
            while reached - failed > narrow && !meter.is_over() {
                let middle = failed + (reached - failed) / 2;
                let tries = (tries / ABOVE_BOUND).max(FIRST_ATTEMPT);
                match methods.attempt(instance, found, middle, tries, meter) {
                    Answer::Placed => reached = found.height.min(middle),
                    Answer::Impossible | Answer::Stopped => failed = middle,
                }
            }
        }
        tries *= 2;
    }
}

impl Methods<'_> {
    /// One attempt, by the exact search and by the local one in turns.
    fn attempt(
        &mut self,
        instance: &Instance,
        found: &mut BestPlacement,
        capacity: i64,
        tries: u64,
        meter: &mut Meter<'_>,
    ) -> Answer {
        let Some(repair) = &mut self.repair else {
            let answer = self.search.attempt(capacity, tries, meter);
            return found.note(answer, || self.search.offsets(), capacity, instance, meter);
        };
        let end = meter.tries().saturating_add(tries * (1 + REPAIR));
        loop {
            let answer = self.search.attempt(capacity, TURN, meter);
            if answer != Answer::Stopped {
                return found.note(answer, || self.search.offsets(), capacity, instance, meter);
            }
            let answer = repair.attempt(capacity, TURN * REPAIR, meter);
            if answer != Answer::Stopped || meter.is_over() || meter.tries() >= end {
                return found.note(answer, || repair.offsets(), capacity, instance, meter);
            }
        }
    }
}
