//! Budgets that are found rather than given: the lowest peak, and the lowest peak within a duration.

use web_time::Instant;

use remat_plan::{NodeId, Problem, StopReason};

use crate::best::Best;
use crate::claim::Call;
use crate::control::Phase;
use crate::descent::Descent;
use crate::repair::RepairOptions;
use crate::search::{Rank, Run};
use crate::small::lowest_peak;
use crate::strategy::{Found, Worker};
use crate::{Outcome, Small, SolveControl, Solver};

/// Share of the limits that goes into the peak; the rest goes into the duration at that peak.
const PEAK_SHARE: f64 = 0.7;

/// The plan of the lowest peak that the search finds among those that take `longest` nanoseconds at most, and of the least duration it finds
/// at that peak. Without `longest`, a plan may take any time. The problem's budget is ignored. On small problems (some 20 ops) both are the best there are.
///
/// There is always a plan: where `longest` is below the time of running every op once, it is the one that does just that.
/// [`Outcome::lowest_peak`] is its peak. Peaks are tried from the reference order's downwards, each with the sequence of the one
/// before as its start, so no looser budget has a better plan among those tried.
#[must_use]
pub fn minimize_peak(problem: &Problem, longest: Option<u64>, control: &SolveControl<'_>) -> Outcome {
    if let Some(solved) = of_small(problem, longest, control) {
        return solved;
    }
    let run = Run::new(problem, control, Rank::Peak);
    let limit = longest.map_or(Some(i64::MAX), |duration| run.dag.scaled_duration(duration));
    let limit = limit.unwrap_or(0).max(run.dag.total_duration());
    let descent = Descent {
        target: 0,
        max_duration: limit,
        announce: true,
        share: PEAK_SHARE,
    };
    let start = run.warm_start();
    let found = run.on_all_threads(|worker| worker.minimize_peak(descent, start.as_deref()));
    run.outcome(&found)
}

/// The same of a small problem: the lowest peak there is, and the least duration at that peak; `None` where that did not come out.
fn of_small(problem: &Problem, longest: Option<u64>, control: &SolveControl<'_>) -> Option<Outcome> {
    let started = Instant::now();
    let once = problem.total_duration();
    let lowest = lowest_peak(problem, longest.map(|longest| longest.max(once)), control)?;
    let (plan, figures) = lowest.best.filter(|_| lowest.is_proved)?;
    let budgeted = Problem {
        budget: Some(figures.peak),
        ..problem.clone()
    };
    let mut quiet = *control;
    quiet.observer = None;
    let shortest = Small.solve(&budgeted, &quiet);
    let steps = lowest.steps + shortest.certificate.steps;
    let (duration, plan) = match (shortest.certificate.objective, shortest.plan) {
        (Some(duration), Some(shortest)) if duration <= figures.duration => (duration, shortest),
        _ => (figures.duration, plan),
    };
    let call = Call {
        started,
        ..Call::new(Small.name(), problem, control)
    };
    call.tell(duration, figures.peak, steps, Phase::Feasibility, &|| {
        Some(plan.clone())
    });
    Some(Outcome {
        // Of the plans of this peak it may be the shortest: the bound is one on all plans.
        certificate: call.found(duration, StopReason::Converged, steps),
        plan: Some(plan),
        lowest_peak: Some(figures.peak),
        lowest_plan: None,
        parts: Vec::new(),
    })
}

impl Worker<'_> {
    fn minimize_peak(&mut self, descent: Descent, start: Option<&[NodeId]>) -> Found {
        let (least, sequence) = self.least_peak(u64::MAX);
        let descent = Descent {
            target: self.dag.scaled_up(least.bytes),
            ..descent
        };
        // On large graphs starts with a budget below every peak, so that what is far from it counts when a start is chosen.
        let budget = if self.is_large { descent.target } else { i32::MAX };
        self.load_start(budget, start);
        if self.state.duration() > descent.max_duration {
            self.load_start(budget, None);
        }
        let takes_any_time = descent.max_duration == i64::MAX;
        let at_least = sequence
            .filter(|_| takes_any_time && self.dag.is_free())
            .and_then(|sequence| self.at_peak(descent.target, &sequence));
        let lowest = if let Some(lowest) = at_least {
            lowest
        } else if takes_any_time && !self.is_large {
            self.sink(descent)
        } else {
            self.descend(descent, Phase::Feasibility)
        };
        self.state.set_budget(lowest.peak);
        self.best = Some(lowest);
        self.improve();
        self.found()
    }

    /// What remains of a sequence that keeps within a budget, if it does, without its superfluous recomputes; else the state stays.
    pub(crate) fn at_peak(&mut self, budget: i32, sequence: &[NodeId]) -> Option<Best> {
        let before = self.state.nodes();
        self.state.set_budget(budget);
        self.state.load(sequence);
        if !self.restore(RepairOptions::GREEDY) {
            self.state.load(&before);
            return None;
        }
        let best = Best::of(&self.state);
        self.improved(&best, Phase::Feasibility);
        Some(best)
    }
}
