//! Recomputes are added to a frame, cheapest first, until it is within the budget.

use remat_plan::{NodeId, ValueId};

use super::frame::{Frame, Tools};
use super::timeline::{Edit, Timeline};
use crate::price::least_price;
use crate::repair::Chain;
use crate::sequence::EventId;

/// Slots to both sides of the position under repair at which excess is counted.
const WINDOW: usize = 4_000;
/// Candidates tried for one position.
const MAX_TRIED: usize = 48;

struct Candidate {
    /// Optimistic price, from what the window shows.
    price: f64,
    node: NodeId,
    /// The event in front of which it would be computed again.
    before: EventId,
}

struct Choice {
    score: f64,
    node: NodeId,
    before: EventId,
    depth: usize,
}

/// Repairs frames; holds the buffers.
#[derive(Default)]
pub(super) struct Greedy {
    /// Sums of the excess, and of the positions above the budget, from the start of the window.
    excess: Vec<i64>,
    over: Vec<i64>,
    window_start: usize,
    candidates: Vec<Candidate>,
    trial: Vec<Edit>,
    log: Vec<Edit>,
}

impl Greedy {
    /// Recomputes values across the worst slot of the frame until no slot of it exceeds the budget, or none offers an action.
    pub(super) fn run(
        &mut self,
        timeline: &mut Timeline<'_>,
        frame: &mut Frame,
        chain: Chain,
        tools: &mut Tools<'_, '_>,
    ) {
        let least = least_price(timeline.dag());
        while let Some(slot) = timeline.worst_in(timeline.layout.frame.clone()) {
            timeline.steps += 1 + timeline.layout.frame.len() as u64 / 256;
            if tools.meter.is_over(timeline.steps) || timeline.is_full() {
                return;
            }
            self.look_around(timeline, slot);
            self.collect(timeline, frame, slot, least);
            let Some(choice) = self.choose(timeline, least, chain, tools) else {
                return;
            };
            self.log.clear();
            let chain = Chain {
                depth: choice.depth,
                ..chain
            };
            insert_chain(
                timeline,
                choice.node,
                choice.before,
                chain,
                &mut |_| true,
                &mut self.log,
            );
            frame.recomputes.extend(self.log.iter().filter_map(inserted));
        }
    }

    /// Sums up the excess in the window around a slot.
    fn look_around(&mut self, timeline: &Timeline<'_>, slot: usize) {
        self.window_start = slot.saturating_sub(WINDOW);
        let end = (slot + WINDOW).min(timeline.len());
        self.excess.clear();
        self.over.clear();
        self.excess.push(0);
        self.over.push(0);
        let (mut excess, mut over) = (0, 0);
        for &memory in &timeline.memory()[self.window_start..end] {
            excess += i64::from(memory.max(timeline.budget()) - timeline.budget());
            over += i64::from(memory > timeline.budget());
            self.excess.push(excess);
            self.over.push(over);
        }
    }

    /// The most excess that dropping so many bytes between two slots, both excluded, can remove.
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

    /// Lists what could be dropped across a slot, by ascending optimistic price.
    fn collect(&mut self, timeline: &Timeline<'_>, frame: &Frame, slot: usize, least: f64) {
        self.candidates.clear();
        let inside = (timeline.layout.frame.start..slot)
            .map(|slot| timeline.event_at(slot))
            .filter(|&event| event != EventId::NONE);
        for event in frame.entering.iter().copied().chain(inside) {
            let Some((before, gain)) = self.gain(timeline, event, slot) else {
                continue;
            };
            let node = timeline.node_of(event);
            let price = (timeline.dag().again(node) as f64 + least) / gain as f64;
            self.candidates.push(Candidate { price, node, before });
        }
        let order = |a: &Candidate, b: &Candidate| a.price.total_cmp(&b.price);
        if self.candidates.len() > MAX_TRIED {
            self.candidates.select_nth_unstable_by(MAX_TRIED, order);
            self.candidates.truncate(MAX_TRIED);
        }
        self.candidates.sort_by(|a, b| order(a, b).then(a.node.cmp(&b.node)));
    }

    /// The event in front of which the values of another one that are resident across a slot would be made again, and the most that gains.
    fn gain(&self, timeline: &Timeline<'_>, event: EventId, slot: usize) -> Option<(EventId, i64)> {
        let (dag, node) = (timeline.dag(), timeline.node_of(event));
        let at = timeline.place_of(event);
        let crosses = |value: ValueId| timeline.place_of(timeline.end_of(event, value)) > slot;
        if at >= slot || !dag.values(node).any(crosses) || !timeline.may_run_again(node) {
            return None;
        }
        let crossing = || dag.values(node).filter(|&value| crosses(value));
        let uses = crossing().filter_map(|value| timeline.next_use(value, slot));
        let before = uses.min_by_key(|&user| timeline.place_of(user))?;
        let before = timeline.last_chance(node, before);
        let next = timeline.place_of(before);
        if next <= slot {
            return None;
        }
        let gains = crossing().map(|value| {
            let last = timeline.last_use(value, at, next).unwrap_or(event);
            self.most_gain(timeline.place_of(last), next, dag.bytes(value))
        });
        let gain = gains.sum();
        (gain > 0).then_some((before, gain))
    }

    /// Tries the candidates and returns the action that removes excess at the lowest price.
    fn choose(
        &mut self,
        timeline: &mut Timeline<'_>,
        least: f64,
        longest: Chain,
        tools: &mut Tools<'_, '_>,
    ) -> Option<Choice> {
        let (duration, excess) = (timeline.duration(), timeline.excess());
        let mut best: Option<Choice> = None;
        for &Candidate { price, node, before } in &self.candidates {
            let hopeless = best.as_ref().is_some_and(|best| price >= best.score);
            if hopeless || tools.meter.is_over(timeline.steps) {
                break;
            }
            let mut length = 0;
            // Every depth while it is small, then ever larger steps.
            let depths = std::iter::successors(Some(0), |&depth| Some(depth + 1 + depth / 4));
            for depth in depths.take_while(|&depth| depth <= longest.depth) {
                let chain = Chain { depth, ..longest };
                self.trial.clear();
                insert_chain(timeline, node, before, chain, &mut |_| true, &mut self.trial);
                let inserted = self.trial.len();
                let removed = excess - timeline.excess();
                let score = ((timeline.duration() - duration) as f64 + least) / removed as f64;
                timeline.undo_to(&mut self.trial, 0);
                if removed > 0 && best.as_ref().is_none_or(|best| score < best.score) {
                    best = Some(Choice {
                        score,
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

/// The event that an edit inserted.
pub(super) fn inserted(edit: &Edit) -> Option<EventId> {
    match *edit {
        Edit::Inserted(event) => Some(event),
        Edit::Removed { .. } | Edit::Moved { .. } => None,
    }
}

/// Runs `node` again in front of `before`. Inputs that are dead by then come back too where the chain reaches, `revive` agrees and they
/// may run again; other dead inputs live on to the new run.
pub(super) fn insert_chain(
    timeline: &mut Timeline<'_>,
    node: NodeId,
    before: EventId,
    chain: Chain,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
) {
    let range = log.len()..log.len() + chain.length;
    insert_links(timeline, node, before, chain.depth, revive, log, &range);
}

fn insert_links(
    timeline: &mut Timeline<'_>,
    node: NodeId,
    before: EventId,
    depth: usize,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
    range: &std::ops::Range<usize>,
) {
    if depth > 0 {
        let dag = timeline.dag();
        for &value in dag.needs(node) {
            if log.len() >= range.end {
                break;
            }
            let here = timeline.place_of(before);
            let Some(serving) = timeline.serving(value, here) else {
                continue;
            };
            let fresh = log[range.start..]
                .iter()
                .filter_map(inserted)
                .any(|event| event == serving);
            let dead = !fresh
                && timeline.place_of(timeline.end_of(serving, value)) < here
                && serving_is_gone(timeline, serving, here);
            let producer = dag.producer(value);
            let may_run = timeline.may_run_again(producer) && here <= timeline.last_place(producer);
            if dead && may_run && revive(producer) {
                insert_links(timeline, producer, before, depth - 1, revive, log, range);
            }
        }
    }
    log.push(Edit::Inserted(timeline.insert(node, before)));
}

/// Whether a run is not the one right before a slot.
fn serving_is_gone(timeline: &Timeline<'_>, serving: EventId, here: usize) -> bool {
    timeline.next_event(timeline.place_of(serving) + 1) != timeline.event_at(here)
}
