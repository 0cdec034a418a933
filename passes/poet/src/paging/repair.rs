//! Adding items until all limits hold, and dropping those that are not needed.

use web_time::Instant;

use super::candidates::{Addition, Allowed, fillings, gaps};
use super::evaluate::{Evaluator, Figures};
use super::model::Model;
use super::sequence::{Instances, Item, first_runs};
use remat_solve::{Meter, Rng};

/// Counts evaluations against the caller's limits.
pub(super) struct Budgeted<'a, 'm> {
    pub(super) evaluator: Evaluator<'m>,
    pub(super) model: &'m Model<'m>,
    pub(super) meter: Meter<'a>,
    pub(super) steps: u64,
    /// The current part of the search ends here.
    pub(super) until: u64,
    /// And then, if time is limited.
    pub(super) end: Option<Instant>,
    /// Steps at which the clock is read next.
    pub(super) next_look: u64,
}

/// Steps between two looks at the clock.
const LOOK: u64 = 32;

impl Budgeted<'_, '_> {
    pub(super) fn evaluate(&mut self, items: &[Item]) -> Option<Figures> {
        self.steps += 1;
        self.evaluator.evaluate(items)
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.steps >= self.until || self.meter.is_over(self.steps) || self.is_past_end()
    }

    fn is_past_end(&mut self) -> bool {
        let Some(end) = self.end.filter(|_| self.steps >= self.next_look) else {
            return false;
        };
        let is_past = Instant::now() >= end;
        if !is_past {
            self.next_look = self.steps + LOOK;
        }
        is_past
    }
}

/// What a schedule costs beyond memory: the objective, and what exceeds deadline and second memory.
fn price(model: &Model<'_>, figures: &Figures) -> f64 {
    let objective = model.price(super::model::Cost {
        time: figures.time,
        energy: figures.energy,
    });
    let total = objective.max(1) as f64;
    let late = figures.late(model) as f64 / model.problem.deadline.unwrap_or(1).max(1) as f64;
    let spilled = figures.spilled as f64 / model.capacity().unwrap_or(1).max(1) as f64;
    total * (1.0 + 10.0 * late + spilled)
}

/// Adds the items that save most memory for what they cost, place by place, the one with most memory first. `noise` makes the
/// choice random: 0 takes the best. Whether the budget holds in the end.
pub(super) fn repair(
    search: &mut Budgeted<'_, '_>,
    items: &mut Vec<Item>,
    allowed: Allowed,
    noise: f64,
    rng: &mut Rng,
) -> bool {
    let Some(mut figures) = search.evaluate(items) else {
        return false;
    };
    let mut trial = Vec::new();
    while figures.excess > 0 && !search.is_over() {
        let at = figures.peak_at;
        let instances = Instances::of(search.model, items);
        let mut additions: Vec<Addition> = Vec::new();
        for gap in gaps(&instances, at) {
            fillings(search.model, &instances, allowed, gap, &mut |addition| {
                additions.push(addition);
            });
        }
        let before = price(search.model, &figures);
        let mut best: Option<(f64, Figures, Addition)> = None;
        for addition in additions {
            if search.is_over() {
                break;
            }
            addition.apply(items, &mut trial);
            let Some(after) = search.evaluate(&trial) else { continue };
            if after.excess >= figures.excess {
                continue;
            }
            let saved = (figures.excess - after.excess) as f64;
            let paid = (price(search.model, &after) - before).max(0.0) + 1e-9 * before;
            let score = paid / saved * (1.0 + noise * rng.unit());
            if best.as_ref().is_none_or(|(least, ..)| score < *least) {
                best = Some((score, after, addition));
            }
        }
        let Some((_, after, addition)) = best else { return false };
        addition.apply(items, &mut trial);
        std::mem::swap(items, &mut trial);
        figures = after;
    }
    figures.excess == 0
}

/// Drops added items, the last ones first, as long as all limits hold and the objective gets no worse.
pub(super) fn cleanup(search: &mut Budgeted<'_, '_>, items: &mut Vec<Item>) {
    let Some(mut figures) = search.evaluate(items) else {
        return;
    };
    let mut trial = Vec::new();
    loop {
        let before = items.len();
        let first = first_runs(search.model, items);
        for position in (0..items.len()).rev().filter(|&position| !first[position]) {
            if search.is_over() {
                return;
            }
            trial.clear();
            trial.extend_from_slice(&items[..position]);
            trial.extend_from_slice(&items[position + 1..]);
            let Some(after) = search.evaluate(&trial) else { continue };
            let no_worse = after.objective(search.model) <= figures.objective(search.model);
            if after.keeps_limits(search.model) && no_worse {
                std::mem::swap(items, &mut trial);
                figures = after;
            }
        }
        if items.len() == before {
            return;
        }
    }
}
