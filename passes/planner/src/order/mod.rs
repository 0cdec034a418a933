//! The order of ops that takes the least memory, where every op runs once.
//!
//! [`order`] takes a [`Network`] and returns an [`Order`] with a bound that no order undercuts. One file holds one method; the best order
//! of all of them is the answer:
//!
//! 0. `network`: the graph in flat arrays;
//! 1. `list`: list scheduling by three priorities, and the order in which the ops were given;
//! 2. `series_parallel`: where the graph is made in series and in parallel, an order that is often the best one, in about linear time;
//! 3. `states`: where the bound is not met, a search through the sets of ops that may have run: through a few of each size, then through
//!    all, which ends with the best order on graphs of some dozens of ops that wait for each other in no simple way, and of hundreds that
//!    meet in bottlenecks.
//!
//! Nothing is recomputed and nothing runs in place; a graph too large and too irregular for proofs has the largest single op as bound.

mod list;
mod network;
mod series_parallel;
mod states;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

pub use self::list::{Priority, list};
pub use self::network::{Dag, MOST_OPS, Network, OrderError, Value};
pub use self::series_parallel::{Found, series_parallel};

use self::network::NodeId;
use crate::limits::{Limits, Meter};

/// List scheduling of so many nodes is quick, so it takes place whatever the limits.
const QUICK: usize = 2_000;
/// How many sets of each size are gone on from.
const WIDTHS: [usize; 4] = [1, 8, 64, 512];

/// An order of ops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The numbers of the ops, each once and behind those that it waits for.
    pub ops: Vec<u32>,
    /// The most bytes that are there at one time, in this order.
    pub peak: u64,
    /// No order has a lower peak; where it is the peak, this order is the best one.
    pub bound: u64,
    /// What the search for it took.
    pub tries: u64,
}

/// An order of low peak, whatever the limits; a try is a set of ops, or a part of one in large graphs. The order is never worse than that of
/// the ops' numbers, if these are one.
#[must_use]
pub fn order(network: &Network, limits: &mut dyn Limits) -> Order {
    let mut meter = Meter::new(limits);
    let given: Vec<NodeId> = network.nodes().collect();
    let mut best = (network.peak_of(&given).0, given);
    let mut bound = network.largest();
    let consider = |best: &mut (u64, Vec<NodeId>), order: Option<Vec<NodeId>>| {
        if let Some(order) = order {
            let peak = network.peak_of(&order).0;
            if peak < best.0 {
                *best = (peak, order);
            }
        }
    };
    if let Some(found) = series_parallel::find(network, || !meter.is_over()) {
        bound = bound.max(found.bound);
        consider(&mut best, Some(found.order));
    }
    for priority in Priority::ALL {
        if best.0 > bound {
            let mut go_on = || network.len() <= QUICK || !meter.is_over();
            consider(&mut best, list::listed(network, priority, &mut go_on));
        }
    }
    for width in WIDTHS {
        if best.0 > bound && !meter.is_over() {
            let found = states::beam(network, bound, best.0, width, &mut meter);
            consider(&mut best, found);
        }
    }
    if best.0 > bound && !meter.is_over() {
        let searched = states::search(network, bound, best.0, &mut meter);
        bound = searched.bound;
        consider(&mut best, searched.order);
    }
    Order {
        ops: network.ops(&best.1),
        peak: best.0,
        bound,
        tries: meter.tries(),
    }
}

/// The most bytes that are there at one time where the ops of a network run in this order; `None` where it is no order of them.
#[must_use]
pub fn peak(network: &Network, ops: &[u32]) -> Option<u64> {
    Some(network.peak_of(&network.ordered(ops)?).0)
}
