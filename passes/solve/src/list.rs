//! List scheduling: an order of low peak without recomputes, one node after another by priority.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use remat_plan::{
    Instance, NodeId, OrderMode, Plan, Problem, Status, StopReason, Structure, ValueId, baseline, lower_sequence,
};
use typed_index_collections::{TiVec, ti_vec};

use crate::claim::Call;
use crate::classic::interruption;
use crate::measure::{Figures, measure};
use crate::{Outcome, Phase, SolveControl, Solver};

/// Ops of the largest problem on which all priorities together are quick.
const QUICK: usize = 1_000;

/// List scheduling in free order: of the nodes whose operands are there, the one of the best [priority](Priority) runs next.
///
/// Every op runs once. Of the orders of all priorities and the reference order, the shortest plan within the budget is the answer, of several the
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

impl Solver for ListScheduler {
    fn name(&self) -> &'static str {
        "list:peak"
    }

    fn describe(&self) -> &'static str {
        "list scheduling: an order of low peak without recomputes, where the order is free"
    }

    fn solve(&self, problem: &Problem, control: &SolveControl<'_>) -> Outcome {
        let structure = Structure::of(problem);
        let call = Call {
            problem,
            control,
            solver: self.name(),
            threads: 1,
            bound: problem.total_duration(),
            started: Instant::now(),
        };
        if problem.check(&structure).is_err() {
            return Outcome {
                parts: Vec::new(),
                plan: None,
                certificate: call.not_found(Status::Infeasible, StopReason::Proved, 0),
                lowest_peak: None,
            };
        }
        let figured = |plan: Plan| (measure(problem, &structure, &plan), plan);
        let mut best = figured(baseline(problem));
        let (mut stop, mut steps) = (StopReason::Converged, 0);
        let instance = Instance::of(problem, &structure);
        let priorities: &[_] = if instance.order() == OrderMode::Free {
            &[Priority::Growth, Priority::Peak, Priority::Depth]
        } else {
            &[]
        };
        'priorities: for &priority in priorities {
            let mut order = Vec::with_capacity(instance.len());
            for node in Ready::new(&instance, priority) {
                if order.len().is_multiple_of(256)
                    && let Some(reason) = interruption(control, steps)
                {
                    stop = reason;
                    break 'priorities;
                }
                order.push(node);
            }
            steps += 1;
            let ops = order.into_iter().map(|node| instance.op(node));
            match lower_sequence(problem, &structure, ops) {
                Ok(plan) => {
                    let found = figured(plan);
                    if rank(problem, &found.0) < rank(problem, &best.0) {
                        best = found;
                    }
                }
                Err(error) => tracing::error!(%error, ?priority, "an order could not be lowered"),
            }
        }
        let (figures, plan) = best;
        let lowest_peak = Some(figures.peak);
        if problem.budget.is_some_and(|budget| figures.peak > budget) {
            return Outcome {
                parts: Vec::new(),
                plan: None,
                certificate: call.not_found(Status::Unknown, stop, steps),
                lowest_peak,
            };
        }
        call.tell(figures.duration, figures.peak, steps, Phase::Greedy, &|| {
            Some(plan.clone())
        });
        Outcome {
            parts: Vec::new(),
            certificate: call.found(figures.duration, stop, steps),
            plan: Some(plan),
            lowest_peak,
        }
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

/// An order that runs, again and again, what adds least to what is resident.
pub(crate) fn forward(instance: &Instance) -> Vec<NodeId> {
    Ready::new(instance, Priority::Growth).collect()
}

/// The bytes by which nodes are ranked; the fewer the better.
type Key = (i128, i128);

/// The nodes that may run next, while an order is made: iterates over all nodes, each after its predecessors.
///
/// Time: (nodes + uses) log nodes.
struct Ready<'a> {
    instance: &'a Instance,
    priority: Priority,
    /// Nodes that may run, with the number of the turn in which they became ready. Of a node whose key fell the entry before is still
    /// there.
    queue: BinaryHeap<Reverse<(Key, Reverse<usize>, NodeId)>>,
    /// Per node the turn in which it became ready.
    turn: TiVec<NodeId, Option<usize>>,
    turns: usize,
    done: TiVec<NodeId, bool>,
    /// How many predecessors of a node have not run.
    waits: TiVec<NodeId, usize>,
    /// How many users of a value have not run.
    unread: TiVec<ValueId, usize>,
}

impl<'a> Ready<'a> {
    fn new(instance: &'a Instance, priority: Priority) -> Self {
        let mut ready = Self {
            instance,
            priority,
            queue: BinaryHeap::new(),
            turn: ti_vec![None; instance.len()],
            turns: 0,
            done: ti_vec![false; instance.len()],
            waits: instance.nodes().map(|node| instance.predecessors(node).len()).collect(),
            unread: instance.all_values().map(|value| instance.users(value).len()).collect(),
        };
        // The last of equals runs first, which is to be the first in reference order.
        for node in instance.nodes().rev() {
            if ready.waits[node] == 0 {
                ready.add(node);
            }
        }
        ready
    }

    fn add(&mut self, node: NodeId) {
        self.turn[node] = Some(self.turns);
        self.queue.push(Reverse((self.key(node), Reverse(self.turns), node)));
        self.turns += 1;
    }

    fn key(&self, node: NodeId) -> Key {
        let instance = self.instance;
        match self.priority {
            Priority::Growth => (self.growth(node), 0),
            Priority::Peak => {
                let made = instance.values(node).map(|value| i128::from(instance.bytes(value)));
                let besides = i128::from(instance.workspace(node)) + i128::from(instance.kept(node));
                (made.sum::<i128>() + besides, self.growth(node))
            }
            Priority::Depth => (0, 0),
        }
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

impl Iterator for Ready<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let instance = self.instance;
        let node = loop {
            let Reverse((key, _, node)) = self.queue.pop()?;
            if !self.done[node] && key == self.key(node) {
                break node;
            }
        };
        self.done[node] = true;
        for &value in instance.needs(node) {
            self.unread[value] -= 1;
            if self.unread[value] == 1
                && let Some(&last) = instance.users(value).iter().find(|&&user| !self.done[user])
                && let Some(turn) = self.turn[last]
            {
                self.queue.push(Reverse((self.key(last), Reverse(turn), last)));
            }
        }
        for &successor in instance.successors(node).iter().rev() {
            self.waits[successor] -= 1;
            if self.waits[successor] == 0 {
                self.add(successor);
            }
        }
        Some(node)
    }
}

/// An order made from the end: runs last, again and again, the node that leaves least to be resident before it.
pub(crate) fn backward(instance: &Instance) -> Vec<NodeId> {
    let mut waiting: TiVec<NodeId, usize> = instance.nodes().map(|node| instance.successors(node).len()).collect();
    let mut live: TiVec<ValueId, bool> = ti_vec![false; instance.value_count()];
    let bytes = |value: ValueId| i128::from(instance.bytes(value));
    let mut added: TiVec<NodeId, i128> = instance
        .nodes()
        .map(|node| {
            let inputs: i128 = instance.needs(node).iter().map(|&value| bytes(value)).sum();
            let used = instance.values(node).filter(|&value| !instance.users(value).is_empty());
            inputs - used.map(bytes).sum::<i128>()
        })
        .collect();
    let ready = instance.nodes().filter(|&node| waiting[node] == 0);
    let mut queue: BinaryHeap<_> = ready.map(|node| (Reverse(added[node]), node)).collect();
    let mut done: TiVec<NodeId, bool> = ti_vec![false; instance.len()];
    let mut order = Vec::with_capacity(instance.len());
    while let Some((Reverse(key), node)) = queue.pop() {
        if done[node] || key != added[node] {
            continue;
        }
        done[node] = true;
        order.push(node);
        for &value in instance.needs(node) {
            if !std::mem::replace(&mut live[value], true) {
                for &user in instance.users(value) {
                    added[user] -= bytes(value);
                    if waiting[user] == 0 && !done[user] {
                        queue.push((Reverse(added[user]), user));
                    }
                }
            }
        }
        for &other in instance.predecessors(node) {
            waiting[other] -= 1;
            if waiting[other] == 0 {
                queue.push((Reverse(added[other]), other));
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use remat_testing::random::{Features, problems};

    #[test]
    fn list_scheduling_keeps_to_the_graph_and_takes_the_cheap_branch_first() {
        // A large value and a small one are made of one input each, and used together: the large one is made last.
        let ops: &[(u64, u64, &[usize])] = &[(1, 9, &[]), (1, 1, &[]), (1, 9, &[0]), (1, 1, &[1]), (1, 1, &[2, 3])];
        let mut problem = remat_testing::net::paper(ops);
        problem.order = OrderMode::Free;
        let instance = Instance::of(&problem, &Structure::of(&problem));
        assert_eq!(forward(&instance), [1, 3, 0, 2, 4].map(NodeId::new));
        assert_eq!(backward(&instance).len(), 5);
    }

    proptest! {
        #[test]
        fn list_scheduling_keeps_to_the_graph(mut problem in problems(1..25, Features::ALL)) {
            problem.order = OrderMode::Free;
            let instance = Instance::of(&problem, &Structure::of(&problem));
            for order in [forward(&instance), backward(&instance)] {
                let mut ran: TiVec<NodeId, bool> = ti_vec![false; instance.len()];
                for node in order {
                    prop_assert!(instance.predecessors(node).iter().all(|&other| ran[other]));
                    prop_assert!(!std::mem::replace(&mut ran[node], true));
                }
                prop_assert!(ran.into_iter().all(|ran| ran));
            }
        }
    }
}
