//! List scheduling: an order of low peak without recomputes, one node after another by priority.

use remat_plan::{
    Instance, NodeId, OpId, OrderMode, Plan, Problem, Status, StopReason, Structure, baseline, lower_sequence,
};
use remat_planner::order::{Network, Priority, list};
use remat_solve::{Call, Figures, Outcome, Phase, SolveControl, Solver, measure, network, once_order};

/// Ops of the largest problem on which all priorities together are quick.
const QUICK: usize = 1_000;

/// List scheduling in free order: of the nodes whose operands are there, the one of the best [`Priority`] runs next.
///
/// Every op runs once. Of the orders of all priorities, that of [`once_order`] and the reference order, the shortest plan within the budget is the answer, of several the
/// one of the lowest peak. In fixed order there is the reference order only. Uses one thread, no seed, no warm start; a step is an order.
///
/// Source: J. R. Goodman, W.-C. Hsu, *Code Scheduling and Register Allocation in Large Basic Blocks*, ICS 1988, section 3: where registers are
/// short, what frees most of them goes first.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListScheduler;

/// How an order is made.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By list scheduling.
    List(Priority),
    /// Where the problem is series-parallel, from its parts.
    SeriesParallel,
}

impl Solver for ListScheduler {
    fn name(&self) -> &'static str {
        "list:peak"
    }

    fn describe(&self) -> &'static str {
        "list scheduling: an order of low peak without recomputes, where the order is free"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let structure = Structure::of(problem);
        let call = Call::new(self.name(), problem, control);
        if problem.check(&structure).is_err() {
            return Outcome::new(None, call.not_found(Status::Infeasible, StopReason::Proved, 0), None);
        }
        let figured = |plan: Plan| (measure(problem, &structure, &plan), plan);
        let mut best = figured(baseline(problem));
        let (mut stop, mut steps) = (StopReason::Converged, 0);
        let instance = Instance::of(problem, &structure);
        let network = network(&instance).ok();
        let ways: &[_] = if instance.order() == OrderMode::Free {
            &[
                Way::List(Priority::Growth),
                Way::List(Priority::Peak),
                Way::List(Priority::Depth),
                Way::SeriesParallel,
            ]
        } else {
            &[]
        };
        for &way in ways {
            if let Some(reason) = control.interruption(steps) {
                stop = reason;
                break;
            }
            let order = match way {
                Way::List(priority) => listed(&instance, network.as_ref(), priority, &|| control.interruption(steps)),
                Way::SeriesParallel => {
                    let found = once_order(problem, control);
                    Ok(found.map_or_else(Vec::new, |found| found.ops))
                }
            };
            let order = match order {
                Ok(order) if order.is_empty() => continue,
                Ok(order) => order,
                Err(reason) => {
                    stop = reason;
                    break;
                }
            };
            steps += 1;
            match lower_sequence(problem, &structure, order) {
                Ok(plan) => {
                    let found = figured(plan);
                    if rank(problem, &found.0) < rank(problem, &best.0) {
                        best = found;
                    }
                }
                Err(error) => tracing::error!(%error, ?way, "an order could not be lowered"),
            }
        }
        let (figures, plan) = best;
        let lowest_peak = Some(figures.peak);
        if problem.budget.is_some_and(|budget| figures.peak > budget) {
            return Outcome::new(None, call.not_found(Status::Unknown, stop, steps), lowest_peak);
        }
        call.tell(figures.duration, figures.peak, steps, Phase::Greedy, &|| {
            Some(plan.clone())
        });
        Outcome::new(Some(plan), call.found(figures.duration, stop, steps), lowest_peak)
    }

    fn is_quick(&self, problem: &Problem) -> bool {
        problem.ops.len() <= QUICK
    }
}

/// Bytes above the budget, then time, then peak: views may make one order longer than another.
fn rank(problem: &Problem, figures: &Figures) -> (u64, u64, u64) {
    let above = problem.budget.map_or(0, |budget| figures.peak.saturating_sub(budget));
    (above, figures.duration, figures.peak)
}

/// Every op once, each after its predecessors, nothing where they cannot be counted; or why it was interrupted.
fn listed(
    instance: &Instance,
    network: Option<&Network>,
    priority: Priority,
    interruption: &dyn Fn() -> Option<StopReason>,
) -> Result<Vec<OpId>, StopReason> {
    let Some(network) = network else { return Ok(Vec::new()) };
    let mut reason = None;
    let mut go_on = || {
        reason = interruption();
        reason.is_none()
    };
    let order = list(network, priority, &mut go_on);
    match (order, reason) {
        (None, Some(reason)) => Err(reason),
        (order, _) => {
            let ops = order.unwrap_or_default();
            Ok(ops.iter().map(|&op| instance.op(NodeId::new(op as usize))).collect())
        }
    }
}
