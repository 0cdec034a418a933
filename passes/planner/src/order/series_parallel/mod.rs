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

mod classes;
mod reduction;
mod releases;
mod scope;
mod segments;
mod tree;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::releases::Releases;
use self::scope::Scope;
use self::segments::merge;
use self::tree::Tree;
use crate::dense::Table;
use crate::order::network::{Network, NodeId};

/// How often shares are shifted at most; at least in small problems, in all larger ones so often that it is as much work as in one of so many nodes.
const ROUNDS: usize = 24;
const SMALL: usize = 5_000;

/// An order of the ops of a series-parallel network, and what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The ops.
    pub ops: Vec<u32>,
    /// Its peak, in bytes.
    pub peak: u64,
    /// No order has a lower peak, in bytes.
    pub bound: u64,
}

/// An order of low peak, with a bound; `None` where the network is not series-parallel. `go_on` is asked between attempts to better it.
///
/// Where the last reader of every value is the same in all orders, the peak is the least one. The time is about linear in the size of the
/// network.
#[must_use]
pub fn series_parallel(network: &Network, go_on: &mut dyn FnMut() -> bool) -> Option<Found> {
    let found = find(network, go_on)?;
    Some(Found {
        ops: network.ops(&found.order),
        peak: found.peak,
        bound: found.bound,
    })
}

/// Nodes in an order, and what is known of its peak.
pub(crate) struct Ordered {
    pub(crate) order: Vec<NodeId>,
    pub(crate) peak: u64,
    /// No order has a lower peak.
    pub(crate) bound: u64,
}

/// The order of a network, if it is series-parallel.
pub(crate) fn find(network: &Network, mut go_on: impl FnMut() -> bool) -> Option<Ordered> {
    let scope = Scope::of(network);
    let tree = Tree::of(&scope)?;
    let mut releases = Releases::of(network, &tree);
    let mut best: Option<Ordered> = None;
    let rounds = (ROUNDS * SMALL / network.len().max(1)).clamp(2, ROUNDS);
    for round in 0..rounds {
        let merged = merge(&tree, &releases.demands());
        let bound = u64::try_from(merged.peak).unwrap_or(0);
        let order: Vec<NodeId> = scope.idle().chain(merged.order).collect();
        let (peak, peak_at) = network.peak_of(&order);
        let place_of = places(&order);
        let best = best.get_or_insert_with(|| Ordered {
            order: Vec::new(),
            peak: u64::MAX,
            bound: 0,
        });
        best.bound = best.bound.max(bound);
        if peak < best.peak {
            (best.order, best.peak) = (order, peak);
        }
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
fn places(order: &[NodeId]) -> Table<NodeId, usize> {
    let mut places = Table::filled(0, order.len());
    for (place, &node) in order.iter().enumerate() {
        places[node] = place;
    }
    places
}
