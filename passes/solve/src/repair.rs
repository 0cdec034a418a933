//! Recomputes are added until the budget holds: greedy by the price of a byte of excess.

use std::ops::Range;

use remat_plan::{NodeId, ValueId};

use crate::Rng;
use crate::control::Meter;
use crate::price::least_price;
use crate::sequence::{Edit, EventId, Sequence};

/// Excess is counted in the frame and so many places to both sides of it.
const AROUND: usize = 4_000;
/// So many places without a useful action are tried before giving up.
const TRIES: usize = 8;
/// Actions tried for one place.
const MAX_TRIED: usize = 48;

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
    /// 0: always the worst place and the lowest price; up to 1: prices are lowered at random by up to this share.
    pub(crate) noise: f64,
    /// Gives up once the duration reaches this.
    pub(crate) duration_limit: i64,
    /// Gives up after so many steps.
    pub(crate) max_steps: u64,
    /// The longest chains that are tried.
    pub(crate) chain: Chain,
}

impl RepairOptions {
    /// Deterministic choices, no limit on the duration.
    pub(crate) const GREEDY: Self = Self {
        noise: 0.0,
        duration_limit: i64::MAX,
        max_steps: u64::MAX,
        chain: Chain::SHORT,
    };
}

/// An action that may lower the excess: run `node` again right before `before`.
#[derive(Clone, Copy)]
struct Action {
    /// Duration over the excess that it removes; before it was tried, over the most that it can remove by itself.
    price: f64,
    node: NodeId,
    before: EventId,
    /// How far its chain reaches back.
    depth: usize,
}

/// A place above the budget.
#[derive(Clone, Copy)]
struct Over {
    place: usize,
    /// Sum of the excess of those before it.
    before: i64,
}

/// Repairs sequences; holds the buffers.
#[derive(Default)]
pub(crate) struct Repair {
    /// The places above the budget, and one behind the last.
    over: Vec<Over>,
    candidates: Vec<Action>,
    trial: Vec<Edit>,
}

impl Repair {
    /// Adds recomputes until no place of the frame exceeds the budget; changes are appended to `log`. Returns whether it succeeded.
    ///
    /// At the worst place every value that is resident and unused there could be dropped after its last use and recomputed
    /// before its next, or before what its node must not follow. The actions are tried in the order of an optimistic price, duration over
    /// the most excess they can remove, until it reaches the best exact score found, duration over excess removed. An action may also
    /// recompute inputs that are dead by then, up to some depth.
    pub(crate) fn run(
        &mut self,
        sequence: &mut Sequence<'_>,
        options: RepairOptions,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
        log: &mut Vec<Edit>,
    ) -> bool {
        let least = least_price(sequence.dag());
        let mut failures = 0;
        let last_step = sequence.steps.saturating_add(options.max_steps);
        loop {
            let places = self.look_around(sequence);
            if places.is_empty() {
                return true;
            }
            sequence.steps += sequence.frame().len() as u64 / 256;
            let spent = sequence.duration() >= options.duration_limit || sequence.steps >= last_step;
            if spent || meter.is_over(sequence.steps) || sequence.is_full() {
                return false;
            }
            let at_worst = failures == 0 && (options.noise <= 0.0 || rng.chance(0.5));
            let place = if at_worst {
                self.worst(sequence, places)
            } else {
                self.over[places.start + rng.below(places.len())].place
            };
            self.collect(sequence, place, least, options.noise, rng);
            if let Some(choice) = self.choose(sequence, least, options, rng, meter) {
                let chain = Chain {
                    depth: choice.depth,
                    ..options.chain
                };
                insert_chain(sequence, choice.node, choice.before, chain, &mut |_| true, log);
                failures = 0;
            } else {
                failures += 1;
                if failures > TRIES {
                    return false;
                }
            }
        }
    }

    /// Lists the places above the budget in the frame and around it; returns which of them are in the frame.
    fn look_around(&mut self, sequence: &Sequence<'_>) -> Range<usize> {
        let frame = sequence.frame();
        let start = frame.start.saturating_sub(AROUND);
        let end = (frame.end + AROUND).min(sequence.len());
        self.over.clear();
        let mut before = 0;
        for (place, &memory) in (start..end).zip(&sequence.memory()[start..end]) {
            if memory > sequence.budget() {
                self.over.push(Over { place, before });
                before += sequence.over(memory);
            }
        }
        let places = self.first_from(frame.start)..self.first_from(frame.end);
        let place = usize::MAX;
        self.over.push(Over { place, before });
        places
    }

    /// The first of the places above the budget at or behind one.
    fn first_from(&self, place: usize) -> usize {
        self.over.partition_point(|over| over.place < place)
    }

    /// The first of those that exceed the budget most.
    fn worst(&self, sequence: &Sequence<'_>, places: Range<usize>) -> usize {
        let all = self.over[places].iter().map(|over| over.place).rev();
        all.max_by_key(|&place| sequence.memory()[place]).unwrap_or(0)
    }

    /// Lists what could be dropped across a place, by ascending price.
    fn collect(&mut self, sequence: &Sequence<'_>, place: usize, least: f64, noise: f64, rng: &mut Rng) {
        self.candidates.clear();
        let inside = (sequence.frame().start..place).map(|at| sequence.event_at(at));
        let inside = inside.filter(|&event| event != EventId::NONE);
        let entering = sequence.entering().iter().copied();
        for event in entering.filter(|&event| sequence.is_present(event)).chain(inside) {
            let Some((before, gain)) = self.gain(sequence, event, place) else {
                continue;
            };
            let node = sequence.node_of(event);
            let luck = if noise > 0.0 { 1.0 - noise * rng.unit() } else { 1.0 };
            let price = (sequence.dag().again(node) as f64 + least) / gain as f64 * luck;
            let depth = 0;
            self.candidates.push(Action {
                price,
                node,
                before,
                depth,
            });
        }
        let order = |a: &Action, b: &Action| a.price.total_cmp(&b.price).then(a.node.cmp(&b.node));
        if self.candidates.len() > MAX_TRIED {
            self.candidates.select_nth_unstable_by(MAX_TRIED, order);
            self.candidates.truncate(MAX_TRIED);
        }
        self.candidates.sort_unstable_by(order);
    }

    /// The event in front of which the values of another one that are resident and unused across a place would be made again, and the most
    /// excess that this can remove by itself.
    fn gain(&self, sequence: &Sequence<'_>, event: EventId, place: usize) -> Option<(EventId, i64)> {
        let (dag, node) = (sequence.dag(), sequence.node_of(event));
        let crosses = |&value: &ValueId| sequence.place_of(sequence.end_of(event, value)) > place;
        if !dag.values(node).any(|value| crosses(&value)) || !sequence.may_run_again(node) {
            return None;
        }
        let crossing = || dag.values(node).filter(crosses);
        let uses = crossing().filter_map(|value| sequence.next_use(value, place));
        let before = uses.min_by_key(|&user| sequence.place_of(user))?;
        let before = sequence.last_chance(node, before);
        let next = sequence.place_of(before);
        if next <= place {
            return None;
        }
        let gains = crossing().map(|value| {
            let last = sequence
                .last_use(value, sequence.place_of(event), next)
                .unwrap_or(event);
            self.most_gain(sequence.place_of(last), next, dag.bytes(value))
        });
        Some((before, gains.sum())).filter(|&(_, gain)| gain > 0)
    }

    /// The most excess that dropping so many bytes between two places, both excluded, can remove.
    fn most_gain(&self, after: usize, before: usize, bytes: i32) -> i64 {
        let (from, to) = (self.first_from(after + 1), self.first_from(before));
        if from >= to {
            return 0;
        }
        let excess = self.over[to].before - self.over[from].before;
        excess.min(i64::from((to - from) as u32) * i64::from(bytes))
    }

    /// Tries the candidates and returns the action with the best exact score.
    fn choose(
        &mut self,
        sequence: &mut Sequence<'_>,
        least: f64,
        options: RepairOptions,
        rng: &mut Rng,
        meter: &mut Meter<'_>,
    ) -> Option<Action> {
        let (duration, excess) = (sequence.duration(), sequence.excess());
        let mut best: Option<Action> = None;
        for &Action {
            price, node, before, ..
        } in &self.candidates
        {
            if best.is_some_and(|best| price >= best.price) || meter.is_over(sequence.steps) {
                break;
            }
            let luck = if options.noise > 0.0 {
                1.0 - options.noise * rng.unit()
            } else {
                1.0
            };
            let mut length = 0;
            // Every depth while it is small, then ever larger steps.
            let depths = std::iter::successors(Some(0), |&depth| Some(depth + 1 + depth / 4));
            for depth in depths.take_while(|&depth| depth <= options.chain.depth) {
                let chain = Chain { depth, ..options.chain };
                insert_chain(sequence, node, before, chain, &mut |_| true, &mut self.trial);
                let inserted = self.trial.len();
                let removed = excess - sequence.excess();
                let price = ((sequence.duration() - duration) as f64 + least) / removed as f64 * luck;
                sequence.undo_to(&mut self.trial, 0);
                if removed > 0 && best.is_none_or(|best| price < best.price) {
                    best = Some(Action {
                        price,
                        node,
                        before,
                        depth,
                    });
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

/// Runs `node` again in front of `before`. Inputs that are dead by then come back too where the chain reaches, `revive` agrees and they
/// may run again; other dead inputs live on to the new run.
pub(crate) fn insert_chain(
    sequence: &mut Sequence<'_>,
    node: NodeId,
    before: EventId,
    chain: Chain,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
) {
    let range = log.len()..log.len() + chain.length;
    insert_links(sequence, node, before, chain.depth, revive, log, &range);
}

fn insert_links(
    sequence: &mut Sequence<'_>,
    node: NodeId,
    before: EventId,
    depth: usize,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
    range: &Range<usize>,
) {
    if depth > 0 {
        let dag = sequence.dag();
        for &value in dag.needs(node) {
            if log.len() >= range.end {
                break;
            }
            let here = sequence.place_of(before);
            let Some(serving) = sequence.serving(value, here) else {
                continue;
            };
            let end = sequence.place_of(sequence.end_of(serving, value));
            // Dead, and for longer than since the step before; what this chain made lives on.
            let dead = match log.get(range.start) {
                Some(&Edit::Inserted(first)) => end < sequence.place_of(first),
                _ => end < here && sequence.next_event(end + 1) != before,
            };
            let producer = dag.producer(value);
            let may_run = sequence.may_run_again(producer) && here <= sequence.last_place(producer);
            if dead && may_run && revive(producer) {
                insert_links(sequence, producer, before, depth - 1, revive, log, range);
            }
        }
    }
    log.push(Edit::Inserted(sequence.insert(node, before)));
}
