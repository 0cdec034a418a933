//! Repair of very large graphs: as [`crate::repair`], but most actions are priced without being carried out.

use crate::control::Meter;
use crate::repair::{Chain, insert_chain, least_price};
use crate::rng::Rng;
use crate::state::{Edit, Event, State};

/// Positions to both sides of the one under repair at which excess is counted.
const WINDOW: usize = 4_000;
/// Candidates priced for one position.
const MAX_PRICED: usize = 200;
/// Candidates for one position whose chains are carried out.
const MAX_CHAINS: usize = 4;
/// Positions without a useful action that are tried before giving up.
const TRIES: usize = 100;
/// Steps that lower the squared excess only.
const MAX_DETOURS: usize = 5_000;

struct Candidate {
    /// Optimistic price, from what the window shows.
    price: f64,
    node: u32,
    /// The run whose values would be dropped.
    from: Event,
    /// The use before which they would be computed again.
    before: Event,
}

struct Choice {
    score: f64,
    node: u32,
    before: Event,
    depth: usize,
}

/// Repairs large sequences; holds the buffers.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Sums of the excess, and of the positions above the budget, from the start of the window.
    excess: Vec<i64>,
    over: Vec<i64>,
    window_start: usize,
    candidates: Vec<Candidate>,
    /// Memory as it would be.
    memory: Vec<i32>,
    trial: Vec<Edit>,
}

impl Sweep {
    /// Adds recomputes until no position exceeds the budget; changes are appended to `log`. Returns whether it succeeded.
    ///
    /// One action costs a scan of the sequence, and a scan of the gap for each candidate that is priced; only the action that is
    /// chosen, and chains of dead inputs for a few, change the sequence. Where the worst position offers nothing, random ones are
    /// tried, and the excess is squared: a high peak may be traded for a low plateau.
    pub(crate) fn run(
        &mut self,
        state: &mut State<'_>,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
        log: &mut Vec<Edit>,
    ) -> bool {
        let least = least_price(state);
        let (mut failures, mut detours) = (0, 0);
        while state.excess() > 0 {
            state.steps += state.sequence().len() as u64 / 256 + 1;
            let stuck = failures > TRIES || detours > MAX_DETOURS;
            if stuck || meter.is_over(state.steps) || state.is_full() {
                return false;
            }
            let position = if failures == 0 {
                worst(state)
            } else {
                some_excess(state, rng)
            };
            let squared = failures > 0;
            self.look_around(state, position);
            self.collect(state, position, least);
            let Some(choice) = self.choose(state, least, squared, meter) else {
                failures += 1;
                continue;
            };
            let position = state.position_of(choice.before);
            let chain = Chain {
                depth: choice.depth,
                ..Chain::SHORT
            };
            insert_chain(state, choice.node, position, chain, &mut |_| true, log);
            detours += usize::from(squared);
            failures = 0;
        }
        true
    }

    /// Sums up the excess in the window around a position.
    fn look_around(&mut self, state: &State<'_>, position: usize) {
        self.window_start = position.saturating_sub(WINDOW);
        let end = (position + WINDOW).min(state.memory().len());
        self.excess.clear();
        self.over.clear();
        self.excess.push(0);
        self.over.push(0);
        let (mut excess, mut over) = (0, 0);
        for &memory in &state.memory()[self.window_start..end] {
            excess += i64::from((memory - state.budget()).max(0));
            over += i64::from(memory > state.budget());
            self.excess.push(excess);
            self.over.push(over);
        }
    }

    /// The most excess that dropping so many bytes between two positions, both excluded, can remove.
    fn most_gain(&self, after: usize, before: usize, bytes: i32) -> i64 {
        let last = self.excess.len() - 1;
        let from = (after + 1).saturating_sub(self.window_start).min(last);
        let to = before.saturating_sub(self.window_start).min(last);
        if from >= to {
            return 0;
        }
        let over = self.over[to] - self.over[from];
        (self.excess[to] - self.excess[from]).min(over * i64::from(bytes))
    }

    /// Lists what could be dropped across a position, by ascending optimistic price.
    fn collect(&mut self, state: &State<'_>, position: usize, least: f64) {
        self.candidates.clear();
        let dag = state.dag();
        for &from in &state.sequence()[..position] {
            let node = state.node_of(from);
            for value in dag.values(node) {
                if state.position_of(state.end_of(from, value)) <= position || !state.may_run_again(node) {
                    continue;
                }
                let Some(before) = state.next_use(value, position) else {
                    continue;
                };
                let next = state.position_of(before);
                if next == position {
                    continue;
                }
                let gains = gaps(state, from, next).map(|(value, last)| self.most_gain(last, next, dag.bytes(value)));
                let gain: i64 = gains.sum();
                if gain > 0 {
                    let price = (dag.again(node) as f64 + least) / gain as f64;
                    self.candidates.push(Candidate {
                        price,
                        node,
                        from,
                        before,
                    });
                }
            }
        }
        self.candidates.sort_by(|a, b| a.price.total_cmp(&b.price));
    }

    /// Prices the candidates and returns the best action.
    fn choose(&mut self, state: &mut State<'_>, least: f64, squared: bool, meter: &mut Meter<'_>) -> Option<Choice> {
        let candidates = std::mem::take(&mut self.candidates);
        let mut best: Option<Choice> = None;
        let mut chains = 0;
        for candidate in candidates.iter().take(MAX_PRICED) {
            let &Candidate {
                price,
                node,
                from,
                before,
            } = candidate;
            let hopeless = !squared && best.as_ref().is_some_and(|best| price >= best.score);
            if hopeless || meter.is_over(state.steps) {
                break;
            }
            let mut consider = |duration: i64, removed: f64, depth: usize| {
                let score = (duration as f64 + least) / removed;
                if removed > 0.0 && best.as_ref().is_none_or(|best| score < best.score) {
                    best = Some(Choice {
                        score,
                        node,
                        before,
                        depth,
                    });
                }
            };
            let (removed, revives) = self.price(state, from, state.position_of(before), squared);
            consider(state.dag().again(node), removed, 0);
            if squared || !revives || chains == MAX_CHAINS {
                continue;
            }
            chains += 1;
            let (duration, excess) = (state.duration(), state.excess());
            let mut length = 1;
            for depth in 1..=Chain::SHORT.depth {
                let position = state.position_of(before);
                let chain = Chain { depth, ..Chain::SHORT };
                insert_chain(state, node, position, chain, &mut |_| true, &mut self.trial);
                let inserted = self.trial.len();
                let (duration, removed) = (state.duration() - duration, excess - state.excess());
                state.undo_to(&mut self.trial, 0);
                if inserted == length {
                    break;
                }
                length = inserted;
                consider(duration, removed as f64, depth);
            }
        }
        self.candidates = candidates;
        best
    }

    /// What running the node of `from` again before position `next` removes, and whether inputs are dead there, which live on.
    fn price(&mut self, state: &State<'_>, from: Event, next: usize, squared: bool) -> (f64, bool) {
        let (dag, budget) = (state.dag(), state.budget());
        let node = state.node_of(from);
        let ends = dag.needs(node).iter().map(|&value| {
            let serving = state.serving(value, next).expect("inputs ran before");
            (value, state.position_of(state.end_of(serving, value)))
        });
        let dead = ends.filter(|&(_, end)| end < next);
        let first_dead = dead.clone().map(|(_, end)| end + 1).min();
        let first_gap = gaps(state, from, next).map(|(_, last)| last + 1).min();
        let start = first_dead.unwrap_or(next).min(first_gap.unwrap_or(next));
        self.memory.clear();
        self.memory.extend_from_slice(&state.memory()[start..next]);
        let mut here = state.memory()[next] - dag.local(state.node_of(state.event_at(next))) + dag.local(node);
        for (value, last) in gaps(state, from, next) {
            self.memory[last + 1 - start..]
                .iter_mut()
                .for_each(|memory| *memory -= dag.bytes(value));
            here -= dag.bytes(value);
        }
        for (value, end) in dead {
            self.memory[end + 1 - start..]
                .iter_mut()
                .for_each(|memory| *memory += dag.bytes(value));
            here += dag.bytes(value);
        }
        let old = &state.memory()[start..next];
        let removed = if squared {
            let square = |memory: i32| f64::from((memory - budget).max(0)).powi(2);
            let pairs = self.memory.iter().zip(old);
            let sum: f64 = pairs.map(|(&new, &old)| square(old) - square(new)).sum();
            // In units of the linear excess at the worst position, so that prices stay comparable.
            (sum - square(here)) / f64::from((state.peak() - budget).max(1))
        } else {
            let over = |memory: i32| i64::from((memory - budget).max(0));
            let sum: i64 = self
                .memory
                .iter()
                .zip(old)
                .map(|(&new, &old)| over(old) - over(new))
                .sum();
            (sum - over(here)) as f64
        };
        (removed, first_dead.is_some())
    }
}

/// The values of a run that are used at or behind a position, with the position of their last use before it.
fn gaps<'s>(state: &'s State<'_>, from: Event, next: usize) -> impl Iterator<Item = (u32, usize)> + 's {
    let values = state.dag().values(state.node_of(from));
    let live = values.filter(move |&value| state.position_of(state.end_of(from, value)) >= next);
    live.map(move |value| {
        let last = state.last_use(value, state.position_of(from), next).unwrap_or(from);
        (value, state.position_of(last))
    })
}

fn worst(state: &State<'_>) -> usize {
    let peak = state.peak();
    state.memory().iter().position(|&memory| memory == peak).unwrap_or(0)
}

/// A random position above the budget, or the worst one.
fn some_excess(state: &State<'_>, rng: &mut Rng) -> usize {
    let random = (0..1000).map(|_| rng.below(state.memory().len()));
    let mut over = random.filter(|&position| state.memory()[position] > state.budget());
    over.next().unwrap_or_else(|| worst(state))
}
