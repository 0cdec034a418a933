//! Budgets that are found rather than given: the lowest peak, and the lowest peak within a duration.

use remat_plan::{NodeId, Problem};

use crate::control::Phase;
use crate::descent::Descent;
use crate::search::{Rank, Run};
use crate::strategy::{Found, Worker};
use crate::{Outcome, SolveControl};

/// Share of the limits that goes into the peak; the rest goes into the duration at that peak.
const PEAK_SHARE: f64 = 0.7;

/// The plan of the lowest peak that the search finds among those that take `longest` nanoseconds at most, and of the least duration it finds
/// at that peak. Without `longest`, a plan may take any time. The problem's budget is ignored.
///
/// There is always a plan: where `longest` is below the time of running every op once, it is the one that does just that.
/// [`Outcome::lowest_peak`] is its peak. Peaks are tried from the reference order's downwards, each with the sequence of the one
/// before as its start, so no looser budget has a better plan among those tried.
#[must_use]
pub fn minimize_peak(problem: &Problem, longest: Option<u64>, control: &SolveControl<'_>) -> Outcome {
    let run = Run::new(problem, control, Rank::Peak);
    let limit = longest.map_or(Some(i64::MAX), |duration| run.dag.scaled_duration(duration));
    let limit = limit.unwrap_or(0).max(run.dag.total_duration());
    let descent = Descent {
        target: run.dag.floor(),
        max_duration: limit,
        announce: true,
        share: PEAK_SHARE,
        last_step: u64::MAX,
    };
    let start = run.warm_start();
    let found = run.on_all_threads(|worker| worker.minimize_peak(descent, start.as_deref()));
    run.outcome(&found)
}

impl Worker<'_> {
    pub(crate) fn minimize_peak(&mut self, descent: Descent, start: Option<&[NodeId]>) -> Found {
        // A budget below every peak, so that what is far from it counts when an order is chosen.
        self.sequence.set_budget(descent.target);
        if let Some(start) = start {
            self.sequence.load(start);
            if self.sequence.duration() > descent.max_duration {
                self.sequence.load_reference();
            }
        }
        if self.is_large {
            self.load_list_orders();
            let lowest = self.descend(descent, Phase::Feasibility);
            self.sequence.set_budget(lowest.peak);
            self.sequence.load(&lowest.sequence);
            self.best = Some(lowest);
            self.improve_by_segments(self.goal, u64::MAX);
            return self.found();
        }
        let descent = Descent {
            target: self.floor().max(descent.target),
            ..descent
        };
        let any_order = self.dag.is_free() && descent.max_duration == i64::MAX;
        let lowest = if any_order {
            self.sink(descent)
        } else {
            self.descend(descent, Phase::Feasibility)
        };
        self.sequence.set_budget(lowest.peak);
        self.best = Some(lowest);
        if self.dag.is_free() {
            self.improve_in_any_order();
        } else {
            self.improve(1.0);
        }
        self.found()
    }
}
