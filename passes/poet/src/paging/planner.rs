//! The transfer planner: when values come back, where transfers overlap runs.
//!
//! What comes back does so right before its first use, unless that use would have to wait: then its transfer begins earlier, at
//! the latest place that saves all the waiting that can be saved, as far as memory allows. One that meets another on the bus gets out of
//! its way by the same rule. What leaves does so right after its last use, which [`remat_plan::lower_events`] sees to.

use web_time::Instant;

use remat_plan::{Plan, Problem, Structure};

use super::evaluate::{Evaluator, Figures};
use super::model::Model;
use super::sequence::{Item, lower, raise};
use super::simulate::simulate;

/// How many places before its first use a transfer is tried at.
const REACH: usize = 96;
/// How often all transfers are placed anew; each time the bus is free elsewhere.
const ROUNDS: usize = 3;

/// The plan with its transfers placed: same runs, same transfers, same energy, never longer, and within the same limits. A plan
/// whose first runs do not keep the reference order, or that runs views in other places than lowering does, may come back as it
/// is, as does one for a problem without DMA.
#[must_use]
pub fn place_transfers(problem: &Problem, plan: Plan) -> Plan {
    let structure = Structure::of(problem);
    let model = Model::of(problem, &structure);
    if !model.is_dma() {
        return plan;
    }
    let Some(mut items) = raise(&model, &plan) else {
        return plan;
    };
    place(&model, &mut items, None);
    let Ok(placed) = lower(&model, &items) else { return plan };
    let (before, after) = (
        simulate(problem, &structure, &plan),
        simulate(problem, &structure, &placed),
    );
    let fits = problem
        .budget
        .is_none_or(|budget| after.peak <= budget.max(before.peak));
    let holds = after.second_peak <= before.second_peak.max(model.capacity().unwrap_or(u64::MAX));
    if fits && holds && after.energy <= before.energy && after.time < before.time {
        placed
    } else {
        plan
    }
}

/// Places the transfers of a sequence, until time is up; it keeps all limits if it did before.
pub(super) fn place(model: &Model<'_>, items: &mut Vec<Item>, until: Option<Instant>) {
    let mut evaluator = Evaluator::with_clock(model);
    let Some(mut figures) = evaluator.evaluate(items) else {
        return;
    };
    let mut trial = Vec::new();
    for _ in 0..ROUNDS {
        let before = figures.time;
        for position in (0..items.len()).rev() {
            if until.is_some_and(|until| Instant::now() >= until) {
                return;
            }
            if matches!(items[position], Item::Fetch(_)) {
                figures = place_one(&mut evaluator, items, position, figures, &mut trial);
            }
        }
        if figures.time == before {
            return;
        }
    }
}

/// Moves the fetch at a position to the best place before its first use.
fn place_one(
    evaluator: &mut Evaluator<'_>,
    items: &mut Vec<Item>,
    position: usize,
    figures: Figures,
    trial: &mut Vec<Item>,
) -> Figures {
    let mut best: Option<(Figures, usize)> = None;
    let mut is_better = |after: Figures, to: usize| {
        let limit = best.map_or(figures, |(best, _)| best);
        let keeps =
            after.excess <= figures.excess && after.spilled <= figures.spilled && after.energy <= figures.energy;
        if keeps && after.time < limit.time {
            best = Some((after, to));
        }
        // Further away there is only more in memory.
        after.excess <= figures.excess
    };
    trial.clear();
    trial.extend_from_slice(items);
    for at in (position.saturating_sub(REACH)..position).rev() {
        trial.swap(at, at + 1);
        match evaluator.evaluate(trial) {
            Some(after) if is_better(after, at) => {}
            _ => break,
        }
    }
    let Some((after, to)) = best else { return figures };
    let item = items.remove(position);
    items.insert(to, item);
    after
}
