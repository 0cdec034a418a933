//! List scheduling: an order of low peak without recomputes, one node after another by priority.

use remat_plan::{
    Instance, NodeId, OrderMode, Plan, Problem, Status, StopReason, Structure, ValueId, baseline, lower_sequence,
};
use typed_index_collections::TiVec;

use remat_solve::{Call, Figures, Outcome, Phase, SolveControl, Solver, measure, once_order};

/// Ops of the largest problem on which all priorities together are quick.
const QUICK: usize = 1_000;

/// List scheduling in free order: of the nodes whose operands are there, the one of the best [priority](Priority) runs next.
///
/// Every op runs once. Of the orders of all priorities, that of [`once_order`] and the reference order, the shortest plan within the budget is the answer, of several the
/// one of the lowest peak. In fixed order there is the reference order only. Uses one thread, no seed, no warm start; a step is an order.
///
/// Source: J. R. Goodman, W.-C. Hsu, *Code Scheduling and Register Allocation in Large Basic Blocks*, ICS 1988, section 3: where registers are
/// short, what frees most of them goes first.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListScheduler;

/// What decides between nodes that may run next; of equals the one that became ready last runs, then the first in reference order.
#[derive(Clone, Copy, Debug)]
enum Priority {
    /// The one that adds the fewest bytes to what stays resident.
    Growth,
    /// The one with the lowest peak while it runs, then the one that adds the fewest bytes.
    Peak,
    /// The one that became ready last: depth first.
    Depth,
}

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
                Way::List(priority) => {
                    let order = Ready::new(&instance).order(priority, &|| control.interruption(steps));
                    order.map(|order| order.into_iter().map(|node| instance.op(node)).collect())
                }
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

/// The nodes that may run next, while an order is made.
struct Ready<'a> {
    instance: &'a Instance,
    /// Nodes that may run, in the order in which they became ready.
    nodes: Vec<NodeId>,
    /// How many predecessors of a node have not run.
    waits: TiVec<NodeId, usize>,
    /// How many users of a value have not run.
    unread: TiVec<ValueId, usize>,
}

impl<'a> Ready<'a> {
    fn new(instance: &'a Instance) -> Self {
        let waits: TiVec<NodeId, usize> = instance.nodes().map(|node| instance.predecessors(node).len()).collect();
        // The last of equals runs first, which is to be the first in reference order.
        let nodes = instance.nodes().rev().filter(|&node| waits[node] == 0).collect();
        let unread = instance.all_values().map(|value| instance.users(value).len()).collect();
        Self {
            instance,
            nodes,
            waits,
            unread,
        }
    }

    /// Every node once, each after its predecessors; or why it was interrupted.
    fn order(
        mut self,
        priority: Priority,
        interruption: &dyn Fn() -> Option<StopReason>,
    ) -> Result<Vec<NodeId>, StopReason> {
        let mut order = Vec::with_capacity(self.instance.len());
        while let Some(place) = self.next(priority) {
            if order.len().is_multiple_of(256)
                && let Some(reason) = interruption()
            {
                return Err(reason);
            }
            let node = self.nodes.remove(place);
            order.push(node);
            for &value in self.instance.needs(node) {
                self.unread[value] -= 1;
            }
            for &successor in self.instance.successors(node).iter().rev() {
                self.waits[successor] -= 1;
                if self.waits[successor] == 0 {
                    self.nodes.push(successor);
                }
            }
        }
        Ok(order)
    }

    /// Position of the node to run next.
    fn next(&self, priority: Priority) -> Option<usize> {
        let instance = self.instance;
        let made = |node| {
            instance
                .values(node)
                .map(|value| i128::from(instance.bytes(value)))
                .sum::<i128>()
        };
        let key = |node: NodeId| match priority {
            Priority::Growth => (self.growth(node), 0),
            Priority::Peak => {
                let besides = i128::from(instance.workspace(node)) + i128::from(instance.kept(node));
                (made(node) + besides, self.growth(node))
            }
            Priority::Depth => (0, 0),
        };
        let places = (0..self.nodes.len()).rev();
        places.min_by_key(|&place| key(self.nodes[place]))
    }

    /// Bytes that running a node adds to what stays resident; negative where it frees more.
    fn growth(&self, node: NodeId) -> i128 {
        let instance = self.instance;
        let bytes = |value: ValueId| i128::from(instance.bytes(value));
        let is_read = |&value: &ValueId| !instance.users(value).is_empty();
        let made: i128 = instance.values(node).filter(is_read).map(bytes).sum();
        let is_last = |&value: &ValueId| self.unread[value] == 1;
        let freed: i128 = instance.needs(node).iter().copied().filter(is_last).map(bytes).sum();
        i128::from(instance.kept(node)) + made - freed
    }
}
