//! Simulated annealing with a price on excess memory that adapts.

use crate::Rng;
use crate::dag::Dag;
use crate::price::{Price, Units};
use crate::repair::{Chain, insert_chain};
use crate::sequence::{Edit, EventId, Sequence};

/// Places that are tried where one above the budget is sought, and the share of the searches after that which look at all.
const TRIES: usize = 36;
const SCANS: f64 = 0.25;

/// How an annealing begins and ends, and what it pays for excess. Units are those of the problem: its mean duration and mean size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Schedule {
    /// Temperature at the beginning, in mean durations.
    pub(crate) hot: f64,
    /// Temperature at the end, in short durations.
    pub(crate) cold: f64,
    /// Mean sizes of excess that cost as much as one mean duration.
    pub(crate) excess: f64,
    /// Whether the price of excess adapts, or stays as it is.
    pub(crate) adapts: bool,
    /// In free order, the share of proposals that move a first run.
    pub(crate) moves: f64,
}

impl Schedule {
    /// From a good sequence to better ones nearby.
    pub(crate) const NEAR: Self = Self {
        hot: 0.05,
        cold: 0.01,
        excess: 10.0,
        adapts: true,
        moves: 0.5,
    };
    /// To less memory, and little else: recomputes are cheap, and at first what is resident may change a lot.
    pub(crate) const MELT: Self = Self {
        hot: 40.0,
        cold: 0.01,
        excess: 0.05,
        adapts: false,
        moves: 0.4,
    };
    /// From a sequence within a tight budget to shorter ones: excess is so expensive that it never becomes too large to be removed again.
    pub(crate) const CLOSE: Self = Self {
        hot: 3.0,
        excess: 0.02,
        ..Self::MELT
    };
}

/// Annealing of the frame of a sequence: minimises `duration + price * excess`.
///
/// The [price](Price) of excess adapts where the schedule says so. The temperature falls geometrically with the share of the steps
/// that are used up; nothing depends on the clock.
pub(crate) struct Annealing {
    units: Units,
    schedule: Schedule,
    /// Of an excess, where it adapts; kept from frame to frame.
    price: Price,
    trial: Vec<Edit>,
    /// What was changed since this was last cleared.
    pub(crate) log: Vec<Edit>,
}

impl Annealing {
    /// An annealing with temperatures and price fitting the problem.
    pub(crate) fn new(dag: &Dag) -> Self {
        let units = Units::of(dag);
        Self {
            units,
            schedule: Schedule::NEAR,
            price: Price::new(units, Schedule::NEAR.excess),
            trial: Vec::new(),
            log: Vec::new(),
        }
    }

    /// From now on anneals like this.
    pub(crate) fn set(&mut self, schedule: Schedule) {
        self.schedule = schedule;
        self.restart();
    }

    /// The price begins anew.
    pub(crate) fn restart(&mut self) {
        self.price.value = Price::new(self.units, self.schedule.excess).value;
    }

    /// One move; `progress` in `[0, 1]` is the share of the annealing that is over, `allowed` the excess that is no concern of it. Returns
    /// whether the sequence changed.
    pub(crate) fn step(&mut self, sequence: &mut Sequence<'_>, allowed: i64, progress: f64, rng: &mut Rng) -> bool {
        if self.schedule.adapts {
            self.price.adapt(progress);
        }
        let (duration, excess) = (sequence.duration(), sequence.excess());
        self.trial.clear();
        sequence.steps += 1;
        if sequence.frame().is_empty() {
            return false;
        }
        if sequence.dag().is_free() && rng.chance(self.schedule.moves) {
            reorder(sequence, &mut self.trial, rng);
        } else {
            propose(sequence, &mut self.trial, rng);
        }
        if self.trial.is_empty() {
            return false;
        }
        let change = (sequence.duration() - duration) as f64 + self.price.value * (sequence.excess() - excess) as f64;
        let (hot, cold) = (
            self.schedule.hot * self.units.duration,
            self.schedule.cold * self.units.short,
        );
        let temperature = hot * (cold / hot).powf(progress);
        let accepted = change <= 0.0 || rng.chance((-change / temperature).exp());
        if accepted {
            self.log.append(&mut self.trial);
        } else {
            sequence.undo_to(&mut self.trial, 0);
        }
        self.price.count(sequence.excess() > allowed);
        accepted
    }
}

/// Makes a random change of recomputes; it is appended to `log`. No change where the draw offers none.
pub(crate) fn propose(sequence: &mut Sequence<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    let draw = rng.unit();
    if sequence.recomputes().is_empty() || draw < 0.45 {
        add(sequence, log, rng);
        return;
    }
    let event = sequence.recomputes()[rng.below(sequence.recomputes().len())];
    if draw < 0.72 {
        drop(sequence, event, log, rng);
    } else if draw < 0.86 {
        log.push(sequence.remove(event));
        add(sequence, log, rng);
    } else {
        shift(sequence, event, log, rng);
    }
}

/// A place of the frame that holds an event: one above the budget if there is any and it is found; sometimes all are looked at.
fn some_place(sequence: &Sequence<'_>, rng: &mut Rng) -> Option<usize> {
    let frame = sequence.frame();
    let mut any = None;
    for _ in 0..TRIES {
        let place = frame.start + rng.below(frame.len());
        if sequence.memory()[place] > sequence.budget() {
            return Some(place);
        }
        if sequence.event_at(place) != EventId::NONE {
            any = Some(place);
            if sequence.excess() == 0 {
                break;
            }
        }
    }
    if sequence.excess() == 0 || !rng.chance(SCANS) {
        return any;
    }
    let from = frame.start + rng.below(frame.len());
    let over = sequence.next_excess(from..frame.end);
    over.or_else(|| sequence.next_excess(frame.start..from)).or(any)
}

/// Recomputes a value that is resident and unused at a place above the budget, or anywhere if there is none.
fn add(sequence: &mut Sequence<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    if sequence.is_full() {
        return;
    }
    let Some(place) = some_place(sequence, rng) else {
        return;
    };
    let dag = sequence.dag();
    let start = sequence.frame().start;
    let inside = place - start;
    for attempt in 0..24 {
        let entering = sequence.entering();
        // Far back anything may be resident, close by much is.
        let way = if entering.is_empty() {
            1 + attempt % 2
        } else {
            attempt % 3
        };
        let event = match way {
            0 => entering[rng.below(entering.len())],
            1 => sequence.event_at(place - rng.below(inside + 1)),
            _ => sequence.event_at(place.saturating_sub(rng.nearby(inside as f64)).max(start)),
        };
        if event == EventId::NONE || sequence.place_of(event) >= place || !sequence.is_present(event) {
            continue;
        }
        let node = sequence.node_of(event);
        let values = dag.values(node);
        if values.len() == 0 || !sequence.may_run_again(node) {
            continue;
        }
        let value = dag.value(node, rng.below(values.len()));
        if sequence.place_of(sequence.end_of(event, value)) <= place {
            continue;
        }
        let next = sequence.next_use(value, place);
        let next = next.map(|next| sequence.last_chance(node, next));
        if let Some(next) = next.filter(|&next| sequence.place_of(next) > place) {
            let revival = [1.0, 0.5, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0][rng.below(8)];
            let chain = if revival > 0.0 { Chain::SHORT } else { Chain::NONE };
            insert_chain(sequence, node, next, chain, &mut |_| rng.chance(revival), log);
            return;
        }
    }
}

/// Removes a recompute, sometimes with the recomputes of its inputs that nothing else needs.
fn drop(sequence: &mut Sequence<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let (dag, node) = (sequence.dag(), sequence.node_of(event));
    let place = sequence.place_of(event);
    log.push(sequence.remove(event));
    if !rng.chance(0.3) {
        return;
    }
    for &value in dag.needs(node) {
        let Some(serving) = sequence.serving(value, place) else {
            continue;
        };
        let mut values = dag.values(dag.producer(value));
        let unused = values.all(|value| sequence.end_of(serving, value) == serving);
        if unused && !sequence.is_first(serving) {
            log.push(sequence.remove(serving));
        }
    }
}

/// Moves a recompute between its neighbouring runs: before the use ahead of it, behind its first use, or a little.
fn shift(sequence: &mut Sequence<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let (dag, node) = (sequence.dag(), sequence.node_of(event));
    let place = sequence.place_of(event);
    let runs = sequence.runs(node);
    let index = sequence.run_index(event);
    let first = sequence.place_of(runs[index - 1]) + 1;
    let next_run = runs.get(index + 1).map(|&run| sequence.place_of(run));
    let end = next_run.unwrap_or(sequence.len());
    let values = dag.values(node);
    if values.len() == 0 {
        return;
    }
    let value = dag.value(node, rng.below(values.len()));
    let goal = match rng.below(3) {
        0 => sequence.last_use(value, first - 1, place),
        1 => {
            let first = sequence.next_use(value, place + 1);
            let second = |first| sequence.next_use(value, sequence.place_of(first) + 1);
            if rng.chance(0.5) { first } else { first.and_then(second) }
        }
        _ => {
            let goal = nearby(place, 80.0, rng);
            // The run after is as good a place as any, the end of the sequence is none.
            Some(goal)
                .filter(|&goal| goal < end)
                .map(|goal| sequence.next_event(goal))
        }
    };
    let is_allowed = |&before: &EventId| {
        before != EventId::NONE
            && before != event
            && (first..=sequence.last_place(node)).contains(&sequence.place_of(before))
            && next_run.is_none_or(|next| sequence.place_of(before) <= next)
    };
    if let Some(before) = goal.filter(is_allowed) {
        log.push(sequence.remove(event));
        log.push(Edit::Inserted(sequence.insert(node, before)));
    }
}

/// A place at some distance, ahead or behind; it may be none.
fn nearby(place: usize, reach: f64, rng: &mut Rng) -> usize {
    let distance = rng.nearby(reach);
    if rng.chance(0.5) {
        place.saturating_sub(distance)
    } else {
        place + distance
    }
}

/// Moves a first run across a place above the budget, or anywhere near if there is none. One that nobody profits from gives its place up to
/// the second run.
pub(crate) fn reorder(sequence: &mut Sequence<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    let Some(centre) = some_place(sequence, rng) else {
        return;
    };
    let reach = sequence.frame().len() as f64 / 4.0;
    for _ in 0..8 {
        let place = nearby(centre, reach, rng);
        if place >= sequence.len() {
            continue;
        }
        let event = sequence.event_at(place);
        if event == EventId::NONE || !sequence.is_first(event) {
            continue;
        }
        let (after, before) = sequence.freedom(event);
        if give_up(sequence, event, before, log) {
            return;
        }
        let goal = match rng.below(4) {
            0 => before,
            1 => after + 1,
            _ => {
                let distance = rng.nearby(reach);
                if place < centre {
                    centre + distance
                } else {
                    centre.saturating_sub(distance)
                }
            }
        };
        let next = sequence.next_event(goal.clamp(after + 1, before));
        if next == event || sequence.next_event(place + 1) == next {
            continue;
        }
        log.push(sequence.relocate(event, next));
        return;
    }
}

/// A first run whose values are not used before its node runs again moves to the second run, which goes. Returns whether it did.
fn give_up(sequence: &mut Sequence<'_>, event: EventId, last: usize, log: &mut Vec<Edit>) -> bool {
    let node = sequence.node_of(event);
    let Some(&second) = sequence.runs(node).get(1) else {
        return false;
    };
    let used = |value| sequence.end_of(event, value) != event;
    if sequence.dag().values(node).any(used) || last != sequence.place_of(second) {
        return false;
    }
    log.push(sequence.relocate(event, second));
    log.push(sequence.remove(second));
    true
}
