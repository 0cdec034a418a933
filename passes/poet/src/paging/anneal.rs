//! Simulated annealing over sequences, with prices on what exceeds the limits.

use remat_plan::ValueId;

use super::candidates::Allowed;
use super::evaluate::Figures;
use super::model::Model;
use super::repair::Budgeted;
use super::sequence::{Item, first_runs};
use remat_solve::Rng;

/// Temperatures at the beginning and the end, in prices of an added item.
const HOT: f64 = 1.0;
const COLD: f64 = 0.005;
/// How fast the prices on limits follow, per step.
const PRESSURE: f64 = 1.01;
/// How far items move at most.
const REACH: f64 = 40.0;

/// Prices of a unit over each limit.
struct Prices {
    memory: f64,
    late: f64,
    spilled: f64,
}

/// One round of annealing.
pub(super) struct Round<'r> {
    pub(super) allowed: Allowed,
    pub(super) steps: u64,
    pub(super) rng: &'r mut Rng,
}

impl Round<'_> {
    /// Anneals from a sequence; returns the best one that keeps all limits, if any is met on the way.
    pub(super) fn anneal(&mut self, search: &mut Budgeted<'_, '_>, from: &[Item]) -> Option<(Figures, Vec<Item>)> {
        let model = search.model;
        let mut items = from.to_vec();
        let mut figures = search.evaluate(&items)?;
        let unit = unit(model);
        let mut prices = Prices {
            memory: 8.0 * unit / f64::from(model.dag.largest_change().max(1)),
            late: if model.problem.deadline.is_some() {
                2.0 * late_price(model)
            } else {
                0.0
            },
            spilled: 8.0 * unit / model.capacity().unwrap_or(1).max(1) as f64,
        };
        let mut best: Option<(Figures, Vec<Item>)> = None;
        let mut first = first_runs(model, &items);
        let mut trial = Vec::new();
        let begun = search.steps;
        while search.steps - begun < self.steps && !search.is_over() {
            let progress = (search.steps - begun) as f64 / self.steps as f64;
            let temperature = unit * HOT * (COLD / HOT).powf(progress);
            if !self.propose(model, &items, &first, &mut trial) {
                search.steps += 1;
                continue;
            }
            let Some(after) = search.evaluate(&trial) else { continue };
            let change = prices.of(model, &after) - prices.of(model, &figures);
            if change <= 0.0 || self.rng.unit() < (-change / temperature).exp() {
                std::mem::swap(&mut items, &mut trial);
                first = first_runs(model, &items);
                figures = after;
                let objective = |figures: &Figures| figures.objective(model);
                let better = best
                    .as_ref()
                    .is_none_or(|(best, _)| objective(&figures) < objective(best));
                if better && figures.keeps_limits(model) {
                    best = Some((figures, items.clone()));
                }
            }
            prices.follow(model, &figures);
        }
        best
    }

    /// Makes a changed sequence; `false` if nothing came of it.
    fn propose(&mut self, model: &Model<'_>, items: &[Item], first: &[bool], trial: &mut Vec<Item>) -> bool {
        trial.clear();
        trial.extend_from_slice(items);
        let done = match self.rng.below(10) {
            0..=3 => self.add(model, first, trial),
            4 | 5 => self.remove(first, trial).is_some(),
            6 => self.convert(model, first, trial),
            7 => self.shift(first, trial),
            8 => {
                self.remove(first, trial).is_some() && {
                    let first = first_runs(model, trial);
                    self.add(model, &first, trial)
                }
            }
            _ => {
                self.add(model, first, trial) && {
                    let first = first_runs(model, trial);
                    self.add(model, &first, trial)
                }
            }
        };
        done && trial != items
    }

    /// Something that a run needs comes back or is made again right before it.
    fn add(&mut self, model: &Model<'_>, first: &[bool], trial: &mut Vec<Item>) -> bool {
        let position = self.rng.below(trial.len());
        let Item::Run(node) = trial[position] else { return false };
        let needs = model.dag.needs(node);
        if needs.is_empty() {
            return false;
        }
        let value = needs[self.rng.below(needs.len())];
        let Some(item) = self.bring(model, value) else {
            return false;
        };
        // Added items before the run belong to it: the new one may go in front of them.
        let mut at = position;
        while at > 0 && !first[at - 1] && self.rng.chance(0.5) {
            at -= 1;
        }
        trial.insert(at, item);
        true
    }

    fn bring(&mut self, model: &Model<'_>, value: ValueId) -> Option<Item> {
        let node = model.dag.producer(value);
        let may_run = self.allowed.runs && model.dag.max_computes(node) > 1;
        let may_fetch = self.allowed.pages && model.has_second_memory();
        match (may_run, may_fetch) {
            (false, false) => None,
            (true, false) => Some(Item::Run(node)),
            (false, true) => Some(Item::Fetch(value)),
            (true, true) if self.rng.chance(0.5) => Some(Item::Run(node)),
            (true, true) => Some(Item::Fetch(value)),
        }
    }

    /// A random added item.
    fn pick(&mut self, first: &[bool]) -> Option<usize> {
        let added = first.iter().filter(|&&first| !first).count();
        if added == 0 {
            return None;
        }
        let rank = self.rng.below(added);
        first
            .iter()
            .enumerate()
            .filter(|&(_, &first)| !first)
            .nth(rank)
            .map(|(at, _)| at)
    }

    fn remove(&mut self, first: &[bool], trial: &mut Vec<Item>) -> Option<Item> {
        self.pick(first).map(|at| trial.remove(at))
    }

    /// A fetch becomes a run, and the other way round.
    fn convert(&mut self, model: &Model<'_>, first: &[bool], trial: &mut [Item]) -> bool {
        let Some(at) = self.pick(first) else { return false };
        if !self.allowed.pages || !self.allowed.runs || !model.has_second_memory() {
            return false;
        }
        trial[at] = match trial[at] {
            Item::Fetch(value) => Item::Run(model.dag.producer(value)),
            Item::Run(node) => {
                let values = model.dag.values(node);
                if values.len() == 0 {
                    return false;
                }
                Item::Fetch(model.dag.value(node, self.rng.below(values.len())))
            }
        };
        true
    }

    fn shift(&mut self, first: &[bool], trial: &mut Vec<Item>) -> bool {
        let Some(at) = self.pick(first) else { return false };
        let distance = self.rng.nearby(REACH);
        let item = trial.remove(at);
        let to = if self.rng.chance(0.5) {
            at.saturating_sub(distance)
        } else {
            (at + distance).min(trial.len())
        };
        trial.insert(to, item);
        true
    }
}

impl Prices {
    fn of(&self, model: &Model<'_>, figures: &Figures) -> f64 {
        self.memory * figures.excess as f64
            + self.late * figures.late(model) as f64
            + self.spilled * figures.spilled as f64
            + figures.objective(model) as f64
    }

    /// What exceeds a limit gets more expensive, what keeps it cheaper.
    fn follow(&mut self, model: &Model<'_>, figures: &Figures) {
        let turn = |price: &mut f64, over: bool| {
            *price *= if over { PRESSURE } else { 1.0 / PRESSURE.sqrt() };
            *price = price.clamp(f64::MIN_POSITIVE, 1e30);
        };
        turn(&mut self.memory, figures.excess > 0);
        turn(&mut self.late, figures.late(model) > 0);
        turn(&mut self.spilled, figures.spilled > 0);
    }
}

/// What an added item costs, about: the mean of all that is cheap.
fn unit(model: &Model<'_>) -> f64 {
    let values = model.dag.all_values();
    let cheapest = |value: ValueId| {
        let run = model.price(model.run(model.dag.producer(value)));
        let moves = model
            .price(model.out(value))
            .saturating_add(model.price(model.back(value)));
        if model.has_second_memory() { run.min(moves) } else { run }
    };
    let count = values.len().max(1) as f64;
    (values.map(|value| cheapest(value) as f64).sum::<f64>() / count).max(1.0)
}

/// The price of a nanosecond, where time is a limit.
fn late_price(model: &Model<'_>) -> f64 {
    let total = model.dag.nodes().map(|node| model.run(node));
    let (price, time) = total.fold((0.0, 0.0), |(price, time), cost| {
        (price + model.price(cost) as f64, time + cost.time as f64)
    });
    price / f64::max(time, 1.0)
}
