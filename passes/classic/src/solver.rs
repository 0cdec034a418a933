//! A strategy as a solver: the cheapest of its plans that meets the budget.

use remat_plan::{Problem, Status, StopReason, Structure};

use super::curve::explore;
use super::{Candidates, Point, Strategy, Walk};
use remat_solve::{Call, Outcome, Phase, SolveControl, Solver};

/// A classic strategy under a name.
///
/// Returns the cheapest of the strategy's plans that meets the budget, of several the one with the lowest peak; without one the
/// lowest peak of any. Claims no more than a bound that every plan keeps: the time of running each op once. Refuses
/// ([`StopReason::Refused`]) what the strategy cannot be tried on, and says why in an event. Uses one thread, no seed, no warm
/// start.
#[derive(Clone, Copy, Debug)]
pub struct Classic {
    name: &'static str,
    describe: &'static str,
    strategy: Strategy,
}

static ALL: [Classic; 8] = {
    use Candidates::{All, ArticulationPoints};
    [
        Classic {
            name: "checkpoint:all",
            describe: "training steps: every forward result is a checkpoint",
            strategy: Strategy::All(All),
        },
        Classic {
            name: "checkpoint:all-ap",
            describe: "training steps: every articulation point of the forward pass is a checkpoint",
            strategy: Strategy::All(ArticulationPoints),
        },
        Classic {
            name: "checkpoint:last",
            describe: "only the last result is retained, all else is recomputed",
            strategy: Strategy::Last,
        },
        Classic {
            name: "chen:sqrt",
            describe: "training steps: Chen's sqrt(n) checkpoints among all forward results",
            strategy: Strategy::ChenSqrt(All),
        },
        Classic {
            name: "chen:sqrt-ap",
            describe: "training steps: Chen's sqrt(n) checkpoints among the articulation points",
            strategy: Strategy::ChenSqrt(ArticulationPoints),
        },
        Classic {
            name: "chen:greedy",
            describe: "training steps: Chen's greedy segments among all forward results, best of a sweep",
            strategy: Strategy::ChenGreedy(All, Walk::Reference),
        },
        Classic {
            name: "chen:greedy-ap",
            describe: "training steps: Chen's greedy segments among the articulation points, best of a sweep",
            strategy: Strategy::ChenGreedy(ArticulationPoints, Walk::Reference),
        },
        Classic {
            name: "griewank",
            describe: "training steps whose forward pass is a chain: Griewank's binomial checkpointing",
            strategy: Strategy::Griewank,
        },
    ]
};

/// Ops of the largest problem on which a sweep over hundreds of plans is quick.
const QUICK: usize = 500;

impl Solver for Classic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> &'static str {
        self.describe
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let call = Call::new(self.name, problem, control);
        let structure = Structure::of(problem);
        if problem.check(&structure).is_err() {
            return Self::outcome(&call, None, &Trace::stopped(StopReason::Proved), Status::Infeasible);
        }
        let mut best: Option<Point> = None;
        let mut trace = Trace::default();
        let explored = explore(problem, &structure, self.strategy, |point| {
            trace.steps += 1;
            trace.lowest_peak = Some(trace.lowest_peak.map_or(point.peak, |lowest| lowest.min(point.peak)));
            let meets = problem.budget.is_none_or(|budget| point.peak <= budget);
            let rank = |point: &Point| (point.duration, point.peak);
            if meets && best.as_ref().is_none_or(|best| rank(&point) < rank(best)) {
                report(&call, &point, trace.steps);
                best = Some(point);
            }
            trace.stop = control.interruption(trace.steps);
            trace.stop.is_none()
        });
        if let Err(refusal) = explored {
            tracing::info!(%refusal, solver = self.name, "refused");
            trace.stop = Some(StopReason::Refused);
        }
        Self::outcome(&call, best, &trace, Status::Unknown)
    }

    fn is_quick(&self, problem: &Problem) -> bool {
        problem.ops.len() <= QUICK
    }
}

/// How the strategy went.
#[derive(Default)]
struct Trace {
    steps: u64,
    lowest_peak: Option<u64>,
    stop: Option<StopReason>,
}

impl Trace {
    fn stopped(reason: StopReason) -> Self {
        Self {
            stop: Some(reason),
            ..Self::default()
        }
    }
}

fn report(call: &Call<'_>, point: &Point, steps: u64) {
    tracing::debug!(
        objective = point.duration,
        peak = point.peak,
        solver = call.solver,
        "improved"
    );
    let plan = || Some(point.plan.clone());
    call.tell(point.duration, point.peak, steps, Phase::Greedy, &plan);
}

impl Classic {
    /// All of them.
    pub const ALL: &'static [Self] = &ALL;

    /// The strategy.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// `status` is that of an outcome without a plan.
    fn outcome(call: &Call<'_>, best: Option<Point>, trace: &Trace, status: Status) -> Outcome {
        let stop = trace.stop.unwrap_or(StopReason::Converged);
        let certificate = match &best {
            Some(point) => call.found(point.duration, stop, trace.steps),
            None => call.not_found(status, stop, trace.steps),
        };
        let lowest_peak = best.as_ref().map(|point| point.peak).or(trace.lowest_peak);
        Outcome::new(best.map(|point| point.plan), certificate, lowest_peak)
    }
}
