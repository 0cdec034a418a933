//! Simulated annealing with a price on excess memory that adapts.

use remat_plan::ValueId;

use crate::Rng;
use crate::dag::Dag;
use crate::order::propose_move;
use crate::price::{Price, Units};
use crate::repair::{Chain, insert_chain};
use crate::sequence::EventId;
use crate::state::{Edit, State};

/// Temperature at the end, in short durations.
const COLD: f64 = 0.01;

/// How an annealing begins, and what it pays for excess. Units are those of the problem: its mean duration and mean size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Schedule {
    /// Temperature at the beginning, in mean durations.
    pub(crate) hot: f64,
    /// Mean sizes of excess that cost as much as one mean duration.
    pub(crate) excess: f64,
    /// Whether the price of excess adapts, or stays as it is.
    pub(crate) adapts: bool,
    /// The share of proposals that move a run in free order.
    pub(crate) moves: f64,
}

impl Schedule {
    /// From a good sequence to better ones nearby, in its order.
    pub(crate) const NEAR: Self = Self {
        hot: 0.05,
        excess: 10.0,
        adapts: true,
        moves: 0.0,
    };
}

/// Annealing of a sequence: minimises `duration + price * excess`.
///
/// The [price](Price) of excess adapts where the schedule says so. The temperature falls geometrically with the share of the steps
/// that are used up; nothing depends on the clock.
pub(crate) struct Annealing {
    hot: f64,
    cold: f64,
    price: Price,
    adapts: bool,
    moves: f64,
    chain: Chain,
    log: Vec<Edit>,
}

impl Annealing {
    /// An annealing with temperatures and price fitting the problem.
    pub(crate) fn new(dag: &Dag, schedule: Schedule, chain: Chain) -> Self {
        let units = Units::of(dag);
        Self {
            hot: schedule.hot * units.duration,
            cold: COLD * units.short,
            price: Price::new(units, schedule.excess),
            adapts: schedule.adapts,
            moves: if dag.is_free() { schedule.moves } else { 0.0 },
            chain,
            log: Vec::new(),
        }
    }

    /// One move; `progress` in `[0, 1]` is the share of the annealing that is over. Returns whether the state changed.
    pub(crate) fn step(&mut self, state: &mut State<'_>, progress: f64, rng: &mut Rng) -> bool {
        if self.adapts {
            self.price.adapt(progress);
        }
        let (duration, excess) = (state.duration(), state.excess());
        self.log.clear();
        state.steps += 1;
        if self.moves > 0.0 && rng.chance(self.moves) {
            propose_move(state, &mut self.log, rng);
        } else {
            propose(state, self.chain, &mut self.log, rng);
        }
        if self.log.is_empty() {
            return false;
        }
        let change = (state.duration() - duration) as f64 + self.price.value * (state.excess() - excess) as f64;
        let temperature = self.hot * (self.cold / self.hot).powf(progress);
        let accepted = change <= 0.0 || rng.chance((-change / temperature).exp());
        if !accepted {
            state.undo_to(&mut self.log, 0);
        }
        self.price.count(state.excess() > 0);
        accepted
    }
}

/// Makes a random change; it is appended to `log`. No change where the draw offers none.
pub(crate) fn propose(state: &mut State<'_>, chain: Chain, log: &mut Vec<Edit>, rng: &mut Rng) {
    let draw = rng.unit();
    if state.recomputes().is_empty() || draw < 0.45 {
        add(state, chain, log, rng);
        return;
    }
    let event = state.recomputes()[rng.below(state.recomputes().len())];
    if draw < 0.72 {
        drop(state, event, log, rng);
    } else if draw < 0.86 {
        log.push(state.remove(event));
        add(state, chain, log, rng);
    } else {
        shift(state, event, log, rng);
    }
}

/// Recomputes a value that is resident and unused at a position above the budget, or anywhere if there is none.
fn add(state: &mut State<'_>, chain: Chain, log: &mut Vec<Edit>, rng: &mut Rng) {
    if state.is_full() {
        return;
    }
    let length = state.sequence().len();
    let mut position = rng.below(length);
    if state.excess() > 0 {
        for _ in 0..24 {
            if state.memory()[position] > state.budget() {
                break;
            }
            position = rng.below(length);
        }
    }
    let dag = state.dag();
    for attempt in 0..16 {
        // Far back anything may be resident, close by much is.
        let back = if attempt % 2 == 0 {
            1 + rng.below(position.max(1))
        } else {
            rng.nearby(position as f64)
        };
        let event = state.event_at(position.saturating_sub(back));
        let node = state.node_of(event);
        let values = dag.values(node);
        if values.len() == 0 || !state.may_run_again(node) {
            continue;
        }
        let value = dag.value(node, rng.below(values.len()));
        if state.place_of(state.end_of(event, value)) <= position {
            continue;
        }
        let Some(next) = state.next_use(value, position) else {
            continue;
        };
        let next = state.place_of(state.last_chance(node, next));
        if next > position {
            let revival = [1.0, 0.5, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0][rng.below(8)];
            let chain = if revival > 0.0 { chain } else { Chain::NONE };
            insert_chain(state, node, next, chain, &mut |_| rng.chance(revival), log);
            return;
        }
    }
}

/// Removes a recompute, sometimes with the recomputes of its inputs that nothing else needs.
fn drop(state: &mut State<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let (dag, node) = (state.dag(), state.node_of(event));
    let position = state.place_of(event);
    log.push(state.remove(event));
    if !rng.chance(0.3) {
        return;
    }
    for &value in dag.needs(node) {
        let Some(serving) = state.serving(value, position) else {
            continue;
        };
        let producer = dag.producer(value);
        let unused = dag
            .values(producer)
            .all(|value| state.end_of(serving, value) == serving);
        if unused && state.runs(producer)[0] != serving {
            log.push(state.remove(serving));
        }
    }
}

/// Moves a recompute between its neighbouring runs: before the use ahead of it, behind its first use, or a little.
fn shift(state: &mut State<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let (dag, node) = (state.dag(), state.node_of(event));
    let position = state.place_of(event);
    let runs = state.runs(node);
    let index = state.run_index(event);
    let first = state.place_of(runs[index - 1]) + 1;
    // Positions as they are without the event; the end of the sequence is no place for a recompute.
    let next_run = runs.get(index + 1).map(|&run| state.place_of(run));
    let end = next_run.unwrap_or(state.sequence().len() - 1);
    let last = end.min(state.last_place(node)) - 1;
    let values = dag.values(node);
    if values.len() == 0 {
        return;
    }
    let value = dag.value(node, rng.below(values.len()));
    let goal = match rng.below(3) {
        0 => state
            .last_use(value, first - 1, position)
            .map(|event| state.place_of(event)),
        1 => behind_first_use(state, value, position, rng),
        _ => {
            let distance = rng.nearby(40.0);
            Some(if rng.chance(0.5) {
                position.saturating_sub(distance)
            } else {
                position + distance
            })
        }
    };
    let Some(goal) = goal.filter(|&goal| goal >= first && goal <= last && goal != position) else {
        return;
    };
    log.push(state.remove(event));
    log.push(Edit::Inserted(state.insert(node, goal)));
}

/// Right before the first use of a recompute at `position`, or right before the second.
fn behind_first_use(state: &State<'_>, value: ValueId, position: usize, rng: &mut Rng) -> Option<usize> {
    let first = state.place_of(state.next_use(value, position + 1)?);
    if rng.chance(0.5) {
        return Some(first - 1);
    }
    let second = state.place_of(state.next_use(value, first + 1)?);
    Some(second - 1)
}
