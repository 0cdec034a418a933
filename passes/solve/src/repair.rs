//! Recomputes are added until the budget holds: greedy by the price of a byte of excess.

use remat_plan::NodeId;

use crate::Rng;
use crate::control::Meter;
use crate::price::least_price;
use crate::sequence::EventId;
use crate::state::{Droppable, Edit, State};

/// How far a recompute reaches back: dead inputs are recomputed before it, and their dead inputs before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    /// Longest way back; 0: the recompute only, its dead inputs live on instead.
    pub(crate) depth: usize,
    /// About the largest number of runs.
    pub(crate) length: usize,
}

impl Chain {
    /// The recompute itself.
    pub(crate) const NONE: Self = Self { depth: 0, length: 1 };
    /// Enough unless memory is very tight.
    pub(crate) const SHORT: Self = Self { depth: 3, length: 12 };

    /// Enough to begin with where memory is very tight.
    pub(crate) const LONG: Self = Self { depth: 6, length: 48 };

    /// Reaches further.
    pub(crate) fn longer(self) -> Self {
        Self {
            depth: (2 * self.depth).min(64),
            length: (4 * self.length).min(4096),
        }
    }
}

/// How a repair chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepairOptions {
    /// 0: always the worst position and the lowest price; up to 1: prices are lowered at random by up to this share.
    pub(crate) noise: f64,
    /// Gives up once the duration reaches this.
    pub(crate) duration_limit: i64,
    /// Gives up after so many steps.
    pub(crate) max_steps: u64,
    /// The longest chains that are tried.
    pub(crate) chain: Chain,
    /// How many positions without a useful action are tried before giving up.
    pub(crate) tries: usize,
}

impl RepairOptions {
    /// Deterministic choices, no limit on the duration.
    pub(crate) const GREEDY: Self = Self {
        noise: 0.0,
        duration_limit: i64::MAX,
        max_steps: u64::MAX,
        chain: Chain::SHORT,
        tries: 8,
    };
}

/// An action that may lower the excess: run `node` again right before `before`.
#[derive(Clone, Copy)]
struct Candidate {
    /// Optimistic price: no excess can be removed cheaper by this action.
    price: f64,
    node: NodeId,
    before: EventId,
}

/// The best action found for a position.
#[derive(Clone, Copy)]
struct Choice {
    score: f64,
    node: NodeId,
    before: EventId,
    depth: usize,
}

/// Repairs sequences; holds the buffers.
#[derive(Default)]
pub(crate) struct Repair {
    over: Vec<u32>,
    candidates: Vec<Candidate>,
    trial: Vec<Edit>,
}

impl Repair {
    /// Adds recomputes until no position exceeds the budget; changes are appended to `log`. Returns whether it succeeded.
    ///
    /// At the worst position every value that is resident and unused there could be dropped after its last use and recomputed
    /// before its next, or before what its node must not follow. The actions are tried in the order of an optimistic price, duration over the most excess they can
    /// remove, until it reaches the best exact score found, duration over excess removed. An action may also recompute inputs
    /// that are dead by then, up to some depth.
    pub(crate) fn run(
        &mut self,
        state: &mut State<'_>,
        options: RepairOptions,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
        log: &mut Vec<Edit>,
    ) -> bool {
        let least = least_price(state.dag());
        let mut failures = 0;
        let last_step = state.steps.saturating_add(options.max_steps);
        while state.excess() > 0 {
            state.steps += state.sequence().len() as u64 / 256;
            let spent = state.duration() >= options.duration_limit || state.steps >= last_step;
            if spent || meter.is_over(state.steps) || state.is_full() {
                return false;
            }
            let worst = self.find_excess(state);
            let at_worst = failures == 0 && (options.noise <= 0.0 || rng.chance(0.5));
            let position = if at_worst {
                worst
            } else {
                self.over[rng.below(self.over.len())] as usize
            };
            self.collect(state, position, least, options.noise, rng);
            if let Some(choice) = self.choose(state, least, options, rng, meter) {
                let position = state.place_of(choice.before);
                let chain = Chain {
                    depth: choice.depth,
                    ..options.chain
                };
                insert_chain(state, choice.node, position, chain, &mut |_| true, log);
                failures = 0;
            } else {
                failures += 1;
                if failures > options.tries {
                    return false;
                }
            }
        }
        true
    }

    /// Lists the positions above the budget and returns the worst one.
    fn find_excess(&mut self, state: &State<'_>) -> usize {
        self.over.clear();
        let (mut worst, mut most) = (0, i32::MIN);
        for (position, &memory) in state.memory().iter().enumerate() {
            if memory > state.budget() {
                self.over.push(position as u32);
                if memory > most {
                    (worst, most) = (position, memory);
                }
            }
        }
        worst
    }

    /// Lists what could be dropped across a position, by ascending price.
    fn collect(&mut self, state: &State<'_>, position: usize, least: f64, noise: f64, rng: &mut Rng) {
        self.candidates.clear();
        let dag = state.dag();
        for Droppable {
            event,
            node,
            before,
            next,
        } in state.droppable(position)
        {
            let gain = self.most_gain(state, event, next);
            if gain > 0 {
                let price = (dag.again(node) as f64 + least) / gain as f64;
                let price = if noise > 0.0 {
                    price * (1.0 - noise * rng.unit())
                } else {
                    price
                };
                self.candidates.push(Candidate { price, node, before });
            }
        }
        self.candidates.sort_by(|a, b| a.price.total_cmp(&b.price));
    }

    /// The most excess that running the node of `event` again before position `next` can remove by itself.
    fn most_gain(&self, state: &State<'_>, event: EventId, next: usize) -> i64 {
        let dag = state.dag();
        let mut gain = 0;
        for value in dag.values(state.node_of(event)) {
            if state.place_of(state.end_of(event, value)) < next {
                continue;
            }
            let last = state.last_use(value, state.place_of(event), next).unwrap_or(event);
            let from = state.place_of(last) as u32;
            let first = self.over.partition_point(|&p| p <= from);
            for &p in self.over[first..].iter().take_while(|&&p| (p as usize) < next) {
                gain += i64::from(dag.bytes(value).min(state.memory()[p as usize] - state.budget()));
            }
        }
        gain
    }

    /// Tries the candidates and returns the action with the best exact score.
    fn choose(
        &mut self,
        state: &mut State<'_>,
        least: f64,
        options: RepairOptions,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
    ) -> Option<Choice> {
        let (duration, excess) = (state.duration(), state.excess());
        let mut best: Option<Choice> = None;
        for candidate in &self.candidates {
            let Candidate { price, node, before } = *candidate;
            if best.is_some_and(|best| price >= best.score) || meter.is_over(state.steps) {
                break;
            }
            let luck = if options.noise > 0.0 {
                1.0 - options.noise * rng.unit()
            } else {
                1.0
            };
            let mut length = 0;
            for depth in 0..=options.chain.depth {
                let position = state.place_of(before);
                let chain = Chain { depth, ..options.chain };
                insert_chain(state, node, position, chain, &mut |_| true, &mut self.trial);
                let inserted = self.trial.len();
                let removed = excess - state.excess();
                let price = (state.duration() - duration) as f64 + least;
                state.undo_to(&mut self.trial, 0);
                if removed > 0 {
                    let score = price / removed as f64 * luck;
                    if best.is_none_or(|best| score < best.score) {
                        best = Some(Choice {
                            score,
                            node,
                            before,
                            depth,
                        });
                    }
                }
                if inserted == length {
                    break;
                }
                length = inserted;
            }
        }
        best
    }
}

/// Runs `node` again before the event at `position`. Inputs that are dead by then come back too where the chain reaches,
/// `revive` agrees and they may run again; other dead inputs live on to the new run.
pub(crate) fn insert_chain(
    state: &mut State<'_>,
    node: NodeId,
    position: usize,
    chain: Chain,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
) {
    let limit = log.len() + chain.length;
    insert_links(state, node, position, chain.depth, revive, log, limit);
}

/// Returns the number of runs inserted.
fn insert_links(
    state: &mut State<'_>,
    node: NodeId,
    position: usize,
    depth: usize,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
    limit: usize,
) -> usize {
    let mut inserted = 0;
    if depth > 0 {
        let dag = state.dag();
        for &value in dag.needs(node) {
            if log.len() >= limit {
                break;
            }
            let here = position + inserted;
            let Some(serving) = state.serving(value, here) else {
                continue;
            };
            let end = state.place_of(state.end_of(serving, value));
            // Dead, and for longer than since the step before; what this chain made lives on.
            let dead = end + 1 < here && end < position;
            let producer = dag.producer(value);
            let may_run = state.may_run_again(producer) && here <= state.last_place(producer);
            if dead && may_run && revive(producer) {
                inserted += insert_links(state, producer, here, depth - 1, revive, log, limit);
            }
        }
    }
    let event = state.insert(node, position + inserted);
    log.push(Edit::Inserted(event));
    inserted + 1
}
