//! The least peak of any plan, from below.
//!
//! Consider a plan and a moment at which the results `S` are resident. Each was made at some time and is resident since. Let `v` be the op
//! whose run made the youngest of them. Right before that run the rest of `S` and the operands of `v` were resident, and during it the
//! results and the workspace of `v` were there besides. With `P = (S - results(v)) + operands(v)` the least peak of all plans
//! that ever have `S` resident is therefore at least
//!
//! ```text
//! B({}) = 0        B(S) = min over v that makes a part of S of max( bytes(P) + local(v), B(P) )
//! ```
//!
//! `P` comes before `S` in the order of multisets over a topological order (N. Dershowitz, Z. Manna, *Proving Termination with Multiset
//! Orderings*, CACM 22(8), 1979): a result gives way to earlier ones. So there is no circle, with recomputes of any number. Read
//! forwards, a way from `S` back to the empty set is a sequence of runs: where nothing is live-out and every op may run as often as it
//! likes, the most that `B` says of the operands of any op is the least peak itself, since memory may be emptied between two ops.
//! This is the one-shot-free pebble game (R. Sethi, *Complete Register Allocation Problems*, SIAM J. Comput. 4(3), 1975) with weights; deciding it
//! is PSPACE-complete (J. R. Gilbert, T. Lengauer, R. E. Tarjan, SIAM J. Comput. 9(3), 1980), so there is a limit on the effort.
//!
//! Live-out results are resident from the first run of their op on. They belong to `S` like others, but are made by first runs only,
//! before which nothing can be resident that depends on that run; the same holds of ops that may run once only. Whatever must have run
//! before the results in `S` could be made has left its live-out results behind. In fixed order these are all ops that stand
//! before.
//!
//! Where no op may run again and the problem is series-parallel, the least peak of all orders is a bound, too ([`series_parallel`]).
//!
//! `B` is monotone: more results need no less. So a set that cannot be reached within a budget rules out all sets that contain it.
//! [`decide`] searches depth first and learns from every failure the smallest such set it can derive.

mod decide;
mod graph;
mod nogoods;
mod reasons;

use remat_plan::{BoundCovers, Instance, NodeId, OpId, OrderMode, Problem, Structure, ValueId};

use self::decide::{Decider, Verdict};
use self::graph::Graph;
use crate::SolveControl;
use crate::dag::MAX_RUNS_PER_NODE;
use crate::series_parallel;
use crate::small::lowest_peak;

/// Number of ops from which on only single ops are looked at.
const LARGE: usize = 2_000;
/// Sets that are looked at for one op before the next one has its turn, at first; each round four times as many.
const FIRST_ROUND: u64 = 256;
/// What is spent on all sets, in units of about 0.1 microseconds: less than a second.
const EFFORT: u64 = 4_000_000;
/// The first step upwards from a bound that was proved, as a divisor; the smallest one.
const STEPS: (u64, u64) = (64, 1_024);

/// A peak that no plan undercuts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeastPeak {
    /// In bytes.
    pub bytes: u64,
    /// The op that cannot be run with less, where it is one op.
    pub op: Option<OpId>,
    /// Whether it is what orders take in which every op runs once, because no op may run again.
    pub is_of_orders: bool,
    /// The plans it speaks about.
    pub covers: BoundCovers,
    /// Whether each op by itself can be run within `bytes`, its operands included, starting from nothing. Then, if no result is
    /// live-out, no op has an anti-dependence and every op may run any number of times in any order, a plan has this peak.
    pub is_tight: bool,
}

/// A peak in bytes that no plan of a valid problem undercuts, in its order and with any number of recomputes; its budget plays no part.
///
/// The best bound found within the limits of `control` and an effort of about a second: exact on many graphs of some hundred ops. Above
/// 2,000 ops it is what one op needs. The result depends on the deadline only where that is near.
///
/// Source: the weighted pebble game backwards (see Sethi 1975, *Complete Register Allocation Problems*), with learning from failures.
#[must_use]
pub fn least_peak(problem: &Problem, control: &SolveControl<'_>) -> LeastPeak {
    let structure = Structure::of(problem);
    let instance = Instance::of(problem, &structure);
    let mut steps = 0;
    let found = bound(problem, &structure, &instance, u64::MAX, || {
        steps += 1;
        control.interruption(steps).is_none()
    });
    let mut least = found.0;
    // Small problems are solved: what is found there is the least peak itself, limits on computes and live-out results included.
    let solved = lowest_peak(problem, None, control).map_or(0, |lowest| lowest.at_least);
    if solved > least.bytes {
        (least.bytes, least.op) = (solved, None);
    }
    least
}

/// [`least_peak`], of which no more is asked once it is above `enough`, and a sequence of runs that has it, where one is known.
/// `go_on` is asked before each set; once it says no, the bound is what was found so far.
pub(crate) fn bound(
    problem: &Problem,
    structure: &Structure,
    instance: &Instance,
    enough: u64,
    mut go_on: impl FnMut() -> bool,
) -> (LeastPeak, Option<Vec<NodeId>>) {
    let mut least = of_single_ops(problem, structure, instance);
    if let Some(bytes) = of_orders(problem, structure, instance, &mut go_on).filter(|&bytes| bytes > least.bytes) {
        (least.bytes, least.op, least.is_of_orders) = (bytes, None, true);
    }
    if instance.len() > LARGE || problem.paging.is_some() {
        return (least, None);
    }
    let graph = Graph::of(problem, structure, instance);
    let mut climb = Climb {
        decider: Decider::new(&graph, EFFORT),
        least: &mut least,
        enough,
        go_on: &mut go_on,
    };
    climb.run(&graph, instance);
    let is_free =
        problem.order == OrderMode::Free && problem.max_computes.is_none() && problem.anti_dependences.is_empty();
    // A view of several storages needs the others to run, which the graph does not demand.
    let is_known = graph.is_unrestricted() && series_parallel::is_exact(problem, structure);
    let is_plan = climb.least.is_tight && is_free && is_known;
    let sequence = climb.sequence(&graph, instance).filter(|_| is_plan);
    (least, sequence)
}

/// The larger of what one op needs and of all live-out results.
fn of_single_ops(problem: &Problem, structure: &Structure, instance: &Instance) -> LeastPeak {
    let most = problem.bottleneck(structure);
    let live_out = match problem.paging {
        None => instance.nodes().map(|node| instance.kept(node)).sum::<u64>(),
        Some(_) => 0,
    };
    let bytes = most.map_or(0, |most| most.bytes);
    LeastPeak {
        bytes: bytes.max(live_out),
        op: most.filter(|most| most.bytes >= live_out).map(|most| most.op),
        is_of_orders: false,
        covers: match problem.order {
            OrderMode::Fixed => BoundCovers::FixedOrder,
            OrderMode::Free => BoundCovers::AllPlans,
        },
        is_tight: false,
    }
}

/// What every order takes, where no op that creates memory may run again and the problem is series-parallel.
fn of_orders(
    problem: &Problem,
    structure: &Structure,
    instance: &Instance,
    go_on: &mut impl FnMut() -> bool,
) -> Option<u64> {
    let runs_once = |&op: &OpId| !problem.ops[op].recomputable || structure.owns(op).is_empty();
    let is_once = problem.max_computes == Some(1) || instance.ops().iter().all(runs_once);
    if !is_once || !series_parallel::is_exact(problem, structure) {
        return None;
    }
    series_parallel::least_of_orders(problem, instance, go_on)
}

/// Raises the bound until every op can be run within it.
struct Climb<'a, 'g, F> {
    decider: Decider<'g>,
    least: &'a mut LeastPeak,
    enough: u64,
    go_on: &'a mut F,
}

/// Something that every plan reaches.
struct Goal {
    /// What is resident then.
    set: graph::Set,
    op: Option<OpId>,
    /// A budget within which it can be reached.
    within: u64,
}

impl<F: FnMut() -> bool> Climb<'_, '_, F> {
    fn run(&mut self, graph: &Graph, instance: &Instance) {
        let all = Goal {
            set: graph.without_implied(graph.live_out()),
            op: None,
            within: u64::MAX,
        };
        let nodes = instance.nodes().map(|node| Goal {
            set: graph.needs(node.index()).into(),
            op: Some(instance.op(node)),
            within: u64::MAX,
        });
        // Late ops need what early ones need, and more.
        let mut goals: Vec<Goal> = std::iter::once(all).chain(nodes.rev()).collect();
        let mut round = FIRST_ROUND;
        while !goals.is_empty() && !self.is_over() {
            goals.retain_mut(|goal| !self.settle(goal, round));
            round = round.saturating_mul(4);
        }
        self.least.is_tight = goals.is_empty() && self.least.bytes <= self.enough;
    }

    /// All ops that nobody depends on by what takes memory, one after the other, each from nothing.
    fn sequence(&self, graph: &Graph, instance: &Instance) -> Option<Vec<NodeId>> {
        let most = instance.len() * MAX_RUNS_PER_NODE;
        let mut sequence: Vec<NodeId> = Vec::new();
        let mut ran = vec![false; instance.len()];
        let is_last = |node: NodeId| {
            let counts = |&value: &ValueId| instance.users(value).is_empty();
            instance.successors(node).is_empty() || instance.values(node).all(|value| counts(&value))
        };
        for node in instance.nodes().filter(|&node| is_last(node)) {
            let way = self.decider.way(&graph.needs(node.index()).into(), most)?;
            for next in way.into_iter().map(NodeId::new).chain([node]) {
                // A result without bytes is no part of the sets: its op stands before, among those that leave nothing behind that takes memory.
                if !instance.predecessors(next).iter().all(|other| ran[other.index()]) {
                    return None;
                }
                ran[next.index()] = true;
                sequence.push(next);
            }
        }
        (sequence.len() <= most).then_some(sequence)
    }

    fn is_over(&mut self) -> bool {
        self.least.bytes > self.enough || self.decider.is_exhausted() || !(self.go_on)()
    }

    /// Whether the goal can be reached within the bound, which is raised until it can. Gives up after so many sets without success.
    fn settle(&mut self, goal: &mut Goal, round: u64) -> bool {
        let mut step = 0;
        while goal.within > self.least.bytes {
            if self.is_over() {
                return false;
            }
            let low = self.least.bytes;
            let budget = low.saturating_add(step).min(goal.within - 1);
            match self.decider.decide(&goal.set, budget, round, self.go_on) {
                Verdict::Holds => {
                    goal.within = budget;
                    step /= 2;
                }
                Verdict::Needs(bytes) => {
                    (self.least.bytes, self.least.op) = (bytes, goal.op);
                    self.least.is_of_orders = false;
                    step = step.saturating_mul(2).max(low / STEPS.0);
                }
                Verdict::Open if step > 0 => step = if step / 4 < low / STEPS.1 { 0 } else { step / 4 },
                Verdict::Open => return false,
            }
        }
        true
    }
}
