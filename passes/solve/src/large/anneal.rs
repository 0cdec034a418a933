//! Simulated annealing within a frame, with a price on excess memory that adapts.

use super::frame::{Frame, Tools};
use super::greedy::{insert_chain, inserted};
use super::timeline::{Edit, Timeline};
use crate::Rng;
use crate::anneal::Schedule;
use crate::dag::Dag;
use crate::price::{Price, Units};
use crate::repair::Chain;
use crate::sequence::EventId;

/// Share of the first temperature that is the last one where memory alone counts, as a divisor: short durations do not matter there.
const MELTED: f64 = 300.0;

/// What an annealing is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// To bring the excess down to this; over as soon as it is.
    Excess(i64),
    /// The least duration without excess, or one that is short enough; starts without excess.
    Duration(i64),
}

/// The temperatures of an annealing, and what it tries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cooling {
    /// Temperature at the beginning, in mean durations.
    pub(crate) hot: f64,
    /// Temperature at the end, in short durations.
    pub(crate) cold: f64,
    /// In free order, the share of proposals that move a first run.
    pub(crate) moves: f64,
}

impl Cooling {
    /// From a good sequence to better ones nearby.
    pub(crate) const NEAR: Self = Self {
        hot: 0.05,
        cold: 0.01,
        moves: 0.5,
    };
}

/// Annealing of frames: minimises `duration + price * excess`. See [`crate::anneal`].
pub(super) struct Annealing {
    units: Units,
    cold: f64,
    schedule: Schedule,
    chain: Chain,
    /// Of an excess, where it adapts; kept from frame to frame.
    price: Price,
    /// The share of proposals that move a first run.
    reorder: f64,
    trial: Vec<Edit>,
    log: Vec<Edit>,
}

impl Annealing {
    /// An annealing with temperatures and price fitting the problem.
    pub(super) fn new(dag: &Dag, cooling: Cooling) -> Self {
        let units = Units::of(dag);
        let schedule = Schedule {
            hot: cooling.hot,
            ..Schedule::NEAR
        };
        Self {
            units,
            cold: cooling.cold * units.short,
            schedule,
            chain: Chain::SHORT,
            price: Price::new(units, schedule.excess),
            reorder: cooling.moves,
            trial: Vec::new(),
            log: Vec::new(),
        }
    }

    /// From now on anneals like this, with chains up to this.
    pub(super) fn set(&mut self, schedule: Schedule, chain: Chain) {
        (self.schedule, self.chain) = (schedule, chain);
        self.price.reset(self.units, schedule.excess);
    }

    /// Anneals the frame for so many steps. The timeline is not worse after than before.
    pub(super) fn run(
        &mut self,
        timeline: &mut Timeline<'_>,
        frame: &mut Frame,
        aim: Aim,
        steps: u64,
        tools: &mut Tools<'_, '_>,
    ) {
        let (allowed, goal) = match aim {
            Aim::Excess(excess) => (excess, None),
            Aim::Duration(goal) => (0, Some(goal)),
        };
        let rank = |timeline: &Timeline<'_>| (timeline.excess().max(allowed), timeline.duration());
        let mut best = rank(timeline);
        self.log.clear();
        if let Aim::Excess(_) = aim {
            self.set(self.schedule, self.chain);
        }
        let begin = timeline.steps;
        while timeline.steps - begin < steps {
            let within = timeline.excess() <= allowed;
            let reached = within && goal.is_none_or(|goal| timeline.duration() <= goal);
            if reached || tools.meter.is_over(timeline.steps) {
                break;
            }
            let progress = (timeline.steps - begin) as f64 / steps as f64;
            if self.step(timeline, frame, allowed, progress, tools.rng) && rank(timeline) < best {
                best = rank(timeline);
                self.log.clear();
            }
        }
        timeline.undo_to(&mut self.log, 0);
    }

    /// One move. Returns whether the timeline changed.
    fn step(
        &mut self,
        timeline: &mut Timeline<'_>,
        frame: &mut Frame,
        allowed: i64,
        progress: f64,
        rng: &mut Rng,
    ) -> bool {
        if self.schedule.adapts {
            self.price.adapt(progress);
        }
        let (duration, excess) = (timeline.duration(), timeline.excess());
        self.trial.clear();
        timeline.steps += 1;
        if timeline.layout.frame.is_empty() {
            return false;
        }
        if timeline.dag().is_free() && rng.chance(self.reorder) {
            reorder(timeline, &mut self.trial, rng);
        } else {
            propose(timeline, frame, self.chain, &mut self.trial, rng);
        }
        if self.trial.is_empty() {
            return false;
        }
        let change = (timeline.duration() - duration) as f64 + self.price.value * (timeline.excess() - excess) as f64;
        let hot = self.schedule.hot * self.units.duration;
        let cold = if self.schedule.adapts { self.cold } else { hot / MELTED };
        let temperature = hot * (cold / hot).powf(progress);
        let accepted = change <= 0.0 || rng.chance((-change / temperature).exp());
        if accepted {
            frame.recomputes.extend(self.trial.iter().filter_map(inserted));
            self.log.append(&mut self.trial);
        } else {
            timeline.undo_to(&mut self.trial, 0);
        }
        self.price.count(timeline.excess() > allowed);
        accepted
    }
}

/// Makes a random change of recomputes; it is appended to `log`. No change where the draw offers none.
pub(crate) fn propose(
    timeline: &mut Timeline<'_>,
    frame: &mut Frame,
    chain: Chain,
    log: &mut Vec<Edit>,
    rng: &mut Rng,
) {
    let draw = rng.unit();
    let event = if draw < 0.45 {
        None
    } else {
        frame.some_recompute(timeline, rng)
    };
    let Some(event) = event else {
        add(timeline, frame, chain, log, rng);
        return;
    };
    if draw < 0.72 {
        drop(timeline, event, log, rng);
    } else if draw < 0.86 {
        log.push(timeline.remove(event));
        add(timeline, frame, chain, log, rng);
    } else {
        shift(timeline, event, log, rng);
    }
}

/// A slot of the frame that holds an event: one above the budget if there is any, be it the only one.
fn some_slot(timeline: &mut Timeline<'_>, rng: &mut Rng) -> Option<usize> {
    let frame = timeline.layout.frame.clone();
    let mut any = None;
    for _ in 0..8 {
        let slot = frame.start + rng.below(frame.len());
        if timeline.memory()[slot] > timeline.budget() {
            return Some(slot);
        }
        if timeline.event_at(slot) != EventId::NONE {
            any = Some(slot);
        }
    }
    if timeline.excess() == 0 {
        return any;
    }
    let from = frame.start + rng.below(frame.len());
    let mut over = timeline.next_excess(from).filter(|&slot| slot < frame.end);
    if over.is_none() {
        over = timeline.next_excess(frame.start).filter(|&slot| slot < frame.end);
    }
    over.or(any)
}

/// Recomputes a value that is resident and unused at a slot above the budget, or anywhere if there is none.
fn add(timeline: &mut Timeline<'_>, frame: &Frame, chain: Chain, log: &mut Vec<Edit>, rng: &mut Rng) {
    if timeline.is_full() {
        return;
    }
    let Some(slot) = some_slot(timeline, rng) else {
        return;
    };
    let dag = timeline.dag();
    let inside = slot - timeline.layout.frame.start;
    for attempt in 0..16 {
        let event = match attempt % 3 {
            0 if !frame.entering.is_empty() => frame.entering[rng.below(frame.entering.len())],
            1 => timeline.event_at(slot - rng.below(inside + 1)),
            _ => timeline.event_at(
                slot.saturating_sub(rng.nearby(inside as f64))
                    .max(timeline.layout.frame.start),
            ),
        };
        if event == EventId::NONE
            || timeline.place_of(event) >= slot
            || !timeline.may_run_again(timeline.node_of(event))
        {
            continue;
        }
        let node = timeline.node_of(event);
        let values = dag.values(node);
        if values.len() == 0 {
            continue;
        }
        let value = dag.value(node, rng.below(values.len()));
        // Entries of the list may have been removed: then their ends mean nothing.
        let present = timeline.runs(node).contains(&event);
        if !present || timeline.place_of(timeline.end_of(event, value)) <= slot {
            continue;
        }
        let Some(next) = timeline
            .next_use(value, slot)
            .map(|next| timeline.last_chance(node, next))
            .filter(|&next| timeline.place_of(next) > slot)
        else {
            continue;
        };
        let revival = [1.0, 0.5, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0][rng.below(8)];
        let chain = if revival > 0.0 { chain } else { Chain::NONE };
        insert_chain(timeline, node, next, chain, &mut |_| rng.chance(revival), log);
        return;
    }
}

/// Removes a recompute, sometimes with the recomputes of its inputs that nothing else needs.
fn drop(timeline: &mut Timeline<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let (dag, node) = (timeline.dag(), timeline.node_of(event));
    let slot = timeline.place_of(event);
    log.push(timeline.remove(event));
    if !rng.chance(0.3) {
        return;
    }
    for &value in dag.needs(node) {
        let Some(serving) = timeline.serving(value, slot) else {
            continue;
        };
        let mut values = dag.values(dag.producer(value));
        let unused = values.all(|value| timeline.end_of(serving, value) == serving);
        if unused && timeline.is_recompute(serving) {
            log.push(timeline.remove(serving));
        }
    }
}

/// Moves a recompute between its neighbouring runs.
fn shift(timeline: &mut Timeline<'_>, event: EventId, log: &mut Vec<Edit>, rng: &mut Rng) {
    let node = timeline.node_of(event);
    let slot = timeline.place_of(event);
    let runs = timeline.runs(node);
    let Some(index) = runs.iter().position(|&run| run == event) else {
        return;
    };
    let first = timeline.place_of(runs[index - 1]) + 1;
    let last = runs
        .get(index + 1)
        .map_or(timeline.len(), |&run| timeline.place_of(run));
    let values = timeline.dag().values(node);
    if values.len() == 0 {
        return;
    }
    let value = timeline.dag().value(node, rng.below(values.len()));
    let goal = match rng.below(3) {
        0 => timeline
            .last_use(value, first, slot)
            .map(|event| timeline.place_of(event)),
        1 => timeline.next_use(value, slot + 1).and_then(|first| {
            let first = timeline.place_of(first);
            if rng.chance(0.5) {
                return Some(first);
            }
            timeline
                .next_use(value, first + 1)
                .map(|second| timeline.place_of(second))
        }),
        _ => {
            let distance = rng.nearby(80.0);
            Some(if rng.chance(0.5) {
                slot.saturating_sub(distance)
            } else {
                slot + distance
            })
        }
    };
    let Some(goal) = goal.filter(|&goal| goal >= first && goal < last) else {
        return;
    };
    let before = timeline.next_event(goal);
    // The run after is as good a place as any, the end of the sequence is none.
    if before == EventId::NONE || before == event || timeline.place_of(before) > timeline.last_place(node) {
        return;
    }
    log.push(timeline.remove(event));
    log.push(Edit::Inserted(timeline.insert(node, before)));
}

/// Moves a first run across a slot above the budget, or anywhere near if there is none.
fn reorder(timeline: &mut Timeline<'_>, log: &mut Vec<Edit>, rng: &mut Rng) {
    let Some(centre) = some_slot(timeline, rng) else {
        return;
    };
    let reach = timeline.layout.frame.len() as f64 / 4.0;
    for _ in 0..8 {
        let distance = rng.nearby(reach);
        let slot = if rng.chance(0.5) {
            centre.saturating_sub(distance)
        } else {
            centre + distance
        };
        if slot >= timeline.len() {
            continue;
        }
        let event = timeline.event_at(slot);
        if event == EventId::NONE || !timeline.is_first(event) {
            continue;
        }
        let (after, before) = timeline.freedom(event);
        // Its last place is right before the second limit; the end of the sequence is none.
        let goal = match rng.below(4) {
            0 => before,
            1 => after + 1,
            _ => {
                let distance = rng.nearby(reach);
                if slot < centre {
                    centre + distance
                } else {
                    centre.saturating_sub(distance)
                }
            }
        };
        let next = timeline.next_event(goal.clamp(after + 1, before).min(timeline.len() - 1));
        if next == EventId::NONE || next == event || timeline.place_of(next) > before {
            continue;
        }
        if timeline.next_event(timeline.place_of(event) + 1) == EventId::NONE {
            continue;
        }
        log.push(timeline.relocate(event, next));
        return;
    }
}
