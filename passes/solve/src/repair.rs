//! Recomputes are added until the budget holds: greedy by the price of a byte of excess.

use remat_plan::NodeId;

use crate::chain::{Chain, insert_chain};
use crate::frame::Tools;
use crate::price::least_price;
use crate::rng::Rng;
use crate::sequence::{Edit, EventId, Sequence};

/// Places to both sides of the worst one at which excess is counted.
const REACH: usize = 4_000;
/// Places above the budget whose excess is looked at one by one; of more, the sums are.
const MAX_SINGLE: usize = 256;

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
    /// How many places without a useful action are tried before giving up.
    pub(crate) tries: usize,
    /// How many actions are tried for one place.
    pub(crate) actions: usize,
}

impl RepairOptions {
    /// Deterministic choices, no limit on the duration.
    pub(crate) const GREEDY: Self = Self {
        noise: 0.0,
        duration_limit: i64::MAX,
        max_steps: u64::MAX,
        chain: Chain::SHORT,
        tries: 8,
        actions: usize::MAX,
    };

    /// The factor of a price.
    fn luck(self, rng: &mut Rng) -> f64 {
        if self.noise > 0.0 {
            1.0 - self.noise * rng.unit()
        } else {
            1.0
        }
    }
}

/// An action that may lower the excess: run `node` again right before `before`.
#[derive(Clone, Copy)]
struct Candidate {
    /// Optimistic price: no excess can be removed cheaper by this action.
    price: f64,
    node: NodeId,
    before: EventId,
}

/// The best action found for a place.
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
    /// The places above the budget within reach of the worst one of the frame, and the sums of the excess before each and after the last.
    over: Vec<u32>,
    sums: Vec<i64>,
    candidates: Vec<Candidate>,
    trial: Vec<Edit>,
}

impl Repair {
    /// Adds recomputes until no place of the frame exceeds the budget; changes are appended to `log`. `entering` are the runs before the
    /// frame whose values are resident at its beginning. Returns whether it succeeded.
    ///
    /// At the worst place every value that is resident and unused there could be dropped after its last use and recomputed
    /// before its next. The actions are tried in the order of an optimistic price, duration over the most excess they can
    /// remove, until it reaches the best exact score found, duration over excess removed. An action may also recompute inputs
    /// that are dead by then, up to some depth.
    pub(crate) fn run(
        &mut self,
        sequence: &mut Sequence<'_>,
        entering: &[EventId],
        options: RepairOptions,
        tools: &mut Tools<'_, '_>,
        log: &mut Vec<Edit>,
    ) -> bool {
        let least = least_price(sequence.dag());
        let mut failures = 0;
        let last_step = sequence.steps.saturating_add(options.max_steps);
        while sequence.excess() > 0 {
            let Some(worst) = sequence.worst() else {
                return true;
            };
            sequence.steps += sequence.frame.len() as u64 / 256;
            let spent = sequence.duration() >= options.duration_limit || sequence.steps >= last_step;
            if spent || tools.meter.is_over(sequence.steps) || sequence.is_full() {
                return false;
            }
            self.look_around(sequence, worst);
            let at_worst = failures == 0 && (options.noise <= 0.0 || tools.rng.chance(0.5));
            let place = if at_worst {
                worst
            } else {
                self.over[tools.rng.below(self.over.len())] as usize
            };
            self.collect(sequence, entering, place, least, options, tools.rng);
            if let Some(choice) = self.choose(sequence, least, options, tools) {
                let chain = Chain {
                    depth: choice.depth,
                    ..options.chain
                };
                insert_chain(sequence, choice.node, choice.before, chain, &mut |_| true, log);
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

    /// Lists the places above the budget around the worst one.
    fn look_around(&mut self, sequence: &Sequence<'_>, worst: usize) {
        self.over.clear();
        self.sums.clear();
        let (start, end) = (worst.saturating_sub(REACH), sequence.len().min(worst + REACH));
        let mut sum = 0;
        for (place, &memory) in (start..).zip(&sequence.memory()[start..end]) {
            if memory > sequence.budget() {
                self.over.push(place as u32);
                self.sums.push(sum);
                sum += i64::from(memory - sequence.budget());
            }
        }
        self.sums.push(sum);
    }

    /// Lists what could be dropped across a place, by ascending price.
    fn collect(
        &mut self,
        sequence: &Sequence<'_>,
        entering: &[EventId],
        place: usize,
        least: f64,
        options: RepairOptions,
        rng: &mut Rng,
    ) {
        self.candidates.clear();
        let dag = sequence.dag();
        let inside = (sequence.frame.start..place).map(|place| sequence.event_at(place));
        let present = |&event: &EventId| event != EventId::NONE;
        for event in entering.iter().copied().chain(inside).filter(present) {
            let node = sequence.node_of(event);
            for value in dag.values(node) {
                if sequence.place_of(sequence.end_of(event, value)) <= place || !sequence.may_run_again(node) {
                    continue;
                }
                let Some(before) = sequence.next_use(value, place) else {
                    continue;
                };
                let next = sequence.place_of(before);
                let gain = if next == place {
                    0
                } else {
                    self.most_gain(sequence, event, next)
                };
                if gain > 0 {
                    let luck = options.luck(rng);
                    let price = (dag.again(node) as f64 + least) / gain as f64 * luck;
                    self.candidates.push(Candidate { price, node, before });
                }
            }
        }
        let order = |a: &Candidate, b: &Candidate| a.price.total_cmp(&b.price);
        if self.candidates.len() > options.actions {
            self.candidates.select_nth_unstable_by(options.actions, order);
            self.candidates.truncate(options.actions);
        }
        self.candidates.sort_by(|a, b| order(a, b).then(a.node.cmp(&b.node)));
    }

    /// The most excess that running the node of `event` again before place `next` can remove by itself.
    fn most_gain(&self, sequence: &Sequence<'_>, event: EventId, next: usize) -> i64 {
        let dag = sequence.dag();
        let mut gain = 0;
        for value in dag.values(sequence.node_of(event)) {
            if sequence.place_of(sequence.end_of(event, value)) < next {
                continue;
            }
            let last = sequence
                .last_use(value, sequence.place_of(event), next)
                .unwrap_or(event);
            let from = sequence.place_of(last);
            let first = self.over.partition_point(|&place| place as usize <= from);
            let after = self.over.partition_point(|&place| (place as usize) < next).max(first);
            let bytes = i64::from(dag.bytes(value));
            gain += if after - first > MAX_SINGLE {
                (self.sums[after] - self.sums[first]).min(i64::from((after - first) as u32) * bytes)
            } else {
                let single = self.sums[first..=after].windows(2).map(|pair| pair[1] - pair[0]);
                single.map(|excess| excess.min(bytes)).sum()
            };
        }
        gain
    }

    /// Tries the candidates and returns the action with the best exact score.
    fn choose(
        &mut self,
        sequence: &mut Sequence<'_>,
        least: f64,
        options: RepairOptions,
        tools: &mut Tools<'_, '_>,
    ) -> Option<Choice> {
        let (duration, excess) = (sequence.duration(), sequence.excess());
        let mut best: Option<Choice> = None;
        for candidate in &self.candidates {
            let Candidate { price, node, before } = *candidate;
            if best.is_some_and(|best| price >= best.score) || tools.meter.is_over(sequence.steps) {
                break;
            }
            let luck = options.luck(tools.rng);
            let mut length = 0;
            // Every depth while it is small, then ever larger steps.
            let depths = std::iter::successors(Some(0), |&depth| Some(depth + 1 + depth / 4));
            for depth in depths.take_while(|&depth| depth <= options.chain.depth) {
                let chain = Chain { depth, ..options.chain };
                insert_chain(sequence, node, before, chain, &mut |_| true, &mut self.trial);
                let inserted = self.trial.len();
                let removed = excess - sequence.excess();
                let price = (sequence.duration() - duration) as f64 + least;
                sequence.undo_to(&mut self.trial, 0);
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
