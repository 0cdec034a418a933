//! Series-parallel problems: the order of least peak in which every op runs once.
//!
//! Which op has to stand before which is an order of its own, given by operands and anti-dependences. It is *series-parallel* where it is made of single
//! ops by two rules: of two parts, all of the first stands before all of the second; or the two know nothing of each other. Chains, trees, networks
//! of branches that fork and meet, one in the other, are of that kind; skip connections do not matter, since what they demand follows from the rest.
//! Ops that take no memory and wait for none that do are left out ([`scope`]).
//! [`tree`] finds the parts in linear time, or that there are none.
//!
//! # What is proved
//! Where one reader of a value stands behind all its other readers, that one frees it in every order. If that is so of all values, each op adds or frees
//! a number of bytes that does not depend on the order, and [`segments`] finds the order of least peak. Workspace, several results, results that nobody reads,
//! live-out results and anti-dependences change nothing about it.
//!
//! Where several readers in different branches may be the last of a value, a part of the value is said to be freed by each of them ([`releases`]). No order
//! takes less than that account says, so its least peak is a bound, and the order that has it is a good one. The parts are shifted some
//! times; where the peak of the best order meets the best bound, it is least, too. Otherwise nothing is claimed.
//!
//! All that is about orders in which every op runs once. Recomputes may go below.

mod reduction;
mod releases;
mod scope;
mod segments;
mod tree;

#[cfg(test)]
mod tests;

use remat_plan::{
    Instance, NodeId, OpId, OrderMode, Problem, StorageId, StorageRole, Structure, TensorId, ValueId, lower_sequence,
};
use typed_index_collections::{TiVec, ti_vec};

use self::releases::Releases;
use self::scope::Scope;
use self::segments::merge;
use self::tree::Tree;
use crate::SolveControl;
use crate::measure::measure;

/// How often shares are shifted at most; at least in small problems, in all larger ones so often that it is as much work as in one of so many nodes.
const ROUNDS: usize = 24;
const SMALL: usize = 5_000;

/// An order of the ops of a series-parallel problem in which each runs once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnceOrder {
    /// The scheduled ops.
    pub ops: Vec<OpId>,
    /// The peak of the plan that [`lower_sequence`] makes of it, in bytes.
    pub peak: u64,
    /// No order in which every op runs once has a lower peak, in bytes; absent where nothing is known, because of views.
    pub bound: Option<u64>,
}

impl OnceOrder {
    /// Whether no order in which every op runs once has a lower peak.
    #[must_use]
    pub fn is_least(&self) -> bool {
        self.bound == Some(self.peak)
    }
}

/// An order of low peak in which every op of a valid problem runs once, with a bound; `None` where the problem is not series-parallel, has a second
/// memory, or its order is fixed. The budget plays no part.
///
/// Where the last reader of every value is the same in all orders, the peak is the least one. The time is about linear in the size of the
/// problem; the limits of `control` end the attempts at values of which it is not so.
#[must_use]
pub fn once_order(problem: &Problem, control: &SolveControl<'_>) -> Option<OnceOrder> {
    let structure = Structure::of(problem);
    let instance = Instance::of(problem, &structure);
    let found = found_for(problem, &instance, || control.interruption(0).is_none())?;
    let ops: Vec<OpId> = found.order.iter().map(|&node| instance.op(node)).collect();
    let plan = lower_sequence(problem, &structure, ops.iter().copied());
    let plan = plan.inspect_err(|error| tracing::error!(%error, "an order could not be lowered"));
    Some(OnceOrder {
        peak: measure(problem, &structure, &plan.ok()?).peak,
        bound: is_exact(problem, &structure).then_some(found.bound),
        ops,
    })
}

/// The order for a problem of which this is the instance; `None` as for [`once_order`].
/// `go_on` is asked between attempts.
pub(crate) fn found_for(problem: &Problem, instance: &Instance, go_on: impl FnMut() -> bool) -> Option<Found> {
    if problem.order == OrderMode::Fixed || problem.paging.is_some() {
        return None;
    }
    find(instance, go_on)
}

/// The order of a series-parallel problem where it has a lower peak than the reference order: for a search to begin from.
pub(crate) fn better_order(problem: &Problem, instance: &Instance, control: &SolveControl<'_>) -> Option<Vec<NodeId>> {
    let found = found_for(problem, instance, || control.interruption(0).is_none())?;
    let reference: Vec<NodeId> = instance.nodes().collect();
    (found.peak < peak_of(instance, &reference).0).then_some(found.order)
}

/// Nodes in an order, and what is known of its peak in the account of an instance.
pub(crate) struct Found {
    pub(crate) order: Vec<NodeId>,
    pub(crate) peak: u64,
    /// No order has a lower peak.
    pub(crate) bound: u64,
}

/// The order for an instance, if it is series-parallel.
fn find(instance: &Instance, mut go_on: impl FnMut() -> bool) -> Option<Found> {
    let scope = Scope::of(instance);
    let tree = Tree::of(&scope)?;
    let mut releases = Releases::of(instance, &tree);
    let mut best: Option<Found> = None;
    let rounds = (ROUNDS * SMALL / instance.len().max(1)).clamp(2, ROUNDS);
    for round in 0..rounds {
        let merged = merge(&tree, &releases.demands());
        let bound = u64::try_from(merged.peak).unwrap_or(0);
        let order: Vec<NodeId> = scope.idle().chain(merged.order).collect();
        let (peak, peak_at) = peak_of(instance, &order);
        let place_of = places(&order);
        let best = best.get_or_insert_with(|| Found {
            order: Vec::new(),
            peak: u64::MAX,
            bound: 0,
        });
        best.bound = best.bound.max(bound);
        if peak < best.peak {
            (best.order, best.peak) = (order, peak);
        }
        tracing::trace!(round, bound, peak, segments = merged.looked_at, "series-parallel");
        if releases.are_fixed() || best.peak <= best.bound || !go_on() {
            break;
        }
        if round + 2 == rounds {
            releases.fit(&places(&best.order));
        } else {
            releases.shift(&place_of, peak_at);
        }
    }
    best
}

/// Place of each node in an order.
fn places(order: &[NodeId]) -> TiVec<NodeId, usize> {
    let mut places = ti_vec![0; order.len()];
    for (place, &node) in order.iter().enumerate() {
        places[node] = place;
    }
    places
}

/// The peak of an order in bytes, and where it is.
fn peak_of(instance: &Instance, order: &[NodeId]) -> (u64, usize) {
    let mut unread: TiVec<ValueId, usize> = instance.all_values().map(|value| instance.users(value).len()).collect();
    let (mut memory, mut peak, mut peak_at) = (0, 0, 0);
    for (place, &node) in order.iter().enumerate() {
        let made: u64 = instance.values(node).map(|value| instance.bytes(value)).sum();
        let during = memory + made + instance.kept(node) + instance.workspace(node);
        if during > peak {
            (peak, peak_at) = (during, place);
        }
        memory += made + instance.kept(node);
        let dead = instance.values(node).filter(|&value| instance.users(value).is_empty());
        memory -= dead.map(|value| instance.bytes(value)).sum::<u64>();
        for &value in instance.needs(node) {
            unread[value] -= 1;
            if unread[value] == 0 {
                memory -= instance.bytes(value);
            }
        }
    }
    (peak, peak_at)
}

/// Whether an instance takes no op for larger than it is: lazy views take nothing, and look into one storage only.
pub(crate) fn is_exact(problem: &Problem, structure: &Structure) -> bool {
    let mut views = problem.ops.iter_enumerated().filter(|&(op, _)| structure.is_lazy(op));
    views.all(|(_, view)| {
        let storage = |&tensor: &TensorId| problem.tensors[tensor].storage;
        let counts = |&storage: &StorageId| problem.storages[storage].role != StorageRole::External;
        let mut storages = view.reads.iter().chain(&view.defines).map(storage).filter(counts);
        let first = storages.next();
        view.workspace == 0 && storages.all(|other| Some(other) == first)
    })
}
