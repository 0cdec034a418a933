//! What a walk pays: temperatures in durations of the problem, and a price on excess memory that adapts.

use crate::dag::Dag;

/// Looks at the share of states above the budget come after so many proposals.
const ADAPT_EVERY: u32 = 256;
/// Factor by which the price of excess changes then.
const ADAPT_BY: f64 = 1.02;
/// The share of states above the budget that is steered towards, at the beginning and at the end.
const OVER_BUDGET: (f64, f64) = (0.7, 0.4);

/// Recomputing what takes no time has this price too, so that long chains of free recomputes are not preferred.
pub(crate) fn least_price(dag: &Dag) -> f64 {
    (dag.total_duration() as f64 / dag.len().max(1) as f64 * 1e-3).max(1e-9)
}

/// The units in which schedules are given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    /// The mean duration of the nodes that take time.
    pub(crate) duration: f64,
    /// A short one: the lower quartile, where that is not far below the mean.
    pub(crate) short: f64,
    /// The mean size of the values.
    pub(crate) bytes: f64,
}

impl Units {
    pub(crate) fn of(dag: &Dag) -> Self {
        let mut durations: Vec<i64> = dag.nodes().map(|node| dag.duration(node)).filter(|&d| d > 0).collect();
        durations.sort_unstable();
        let mean = (durations.iter().sum::<i64>() as f64 / durations.len().max(1) as f64).max(1e-9);
        let lower_quartile = durations.get(durations.len() / 4).copied().unwrap_or(0) as f64;
        let values = dag.value_count();
        let bytes: f64 = dag.all_values().map(|value| f64::from(dag.bytes(value))).sum();
        Self {
            duration: mean,
            short: lower_quartile.clamp(0.02 * mean, mean),
            bytes: (bytes / values.max(1) as f64).max(1.0),
        }
    }
}

/// The price of excess. It rises while more states than wished are above the budget and falls otherwise, so that the walk stays at the
/// border of what is allowed, where the short sequences are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// Of one unit of excess, in units of duration.
    pub(crate) value: f64,
    proposals: u32,
    over_budget: u32,
}

impl Price {
    /// A price at which so many mean sizes of excess cost as much as one mean duration.
    pub(crate) fn new(units: Units, excess: f64) -> Self {
        Self {
            value: units.duration / (excess * units.bytes),
            proposals: 0,
            over_budget: 0,
        }
    }

    /// Counts a state that was proposed.
    pub(crate) fn count(&mut self, is_over_budget: bool) {
        self.over_budget += u32::from(is_over_budget);
    }

    /// Before a proposal: adapts where it is time to; `progress` in `[0, 1]` is the share of the walk that is over.
    pub(crate) fn adapt(&mut self, progress: f64) {
        self.proposals += 1;
        if self.proposals < ADAPT_EVERY {
            return;
        }
        let share = f64::from(self.over_budget) / f64::from(self.proposals);
        let wish = OVER_BUDGET.0 + (OVER_BUDGET.1 - OVER_BUDGET.0) * progress;
        if share > wish {
            self.value *= ADAPT_BY;
        } else {
            self.value /= ADAPT_BY;
        }
        (self.proposals, self.over_budget) = (0, 0);
    }
}
