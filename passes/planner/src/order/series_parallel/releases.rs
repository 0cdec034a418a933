//! Which reader of a value frees it.

use alloc::vec::Vec;

use super::segments::Demand;
use super::tree::Tree;
use crate::dense::Table;
use crate::order::network::{Network, NodeId, ValueId};

/// How many bytes of each value count as freed by each of its readers, all together those of the value.
///
/// Where one reader comes after all others in every order, it frees the value. Where several may be the last, each of these frees a *share*: then
/// an order takes no more memory in this account than it does, since a value is held until all of them have run.
pub(super) struct Releases<'a> {
    network: &'a Network,
    /// What each node frees for sure.
    fixed: Table<NodeId, u64>,
    shared: Vec<Shared>,
}

/// A value that several readers may be the last to read.
struct Shared {
    value: ValueId,
    /// The readers, each with its share in bytes.
    shares: Vec<(NodeId, u64)>,
}

impl<'a> Releases<'a> {
    /// Readers that may be the last have equal shares.
    pub(super) fn of(network: &'a Network, tree: &Tree) -> Self {
        let mut fixed = Table::filled(0, network.len());
        let mut shared = Vec::new();
        for value in network.all_values() {
            let bytes = network.bytes(value);
            match tree.last_of(network.users(value))[..] {
                [] => {}
                [reader] => fixed[reader] += bytes,
                ref readers => {
                    let mut shares: Vec<_> = readers.iter().map(|&reader| (reader, 0)).collect();
                    divide(&mut shares, bytes);
                    shared.push(Shared { value, shares });
                }
            }
        }
        Self { network, fixed, shared }
    }

    /// Whether the last reader of every value is the same in all orders: then an order takes just what this account says.
    pub(super) fn are_fixed(&self) -> bool {
        self.shared.is_empty()
    }

    /// What each node takes.
    pub(super) fn demands(&self) -> Table<NodeId, Demand> {
        let network = self.network;
        let mut freed = self.fixed.clone();
        for &(reader, bytes) in self.shared.iter().flat_map(|shared| &shared.shares) {
            freed[reader] += bytes;
        }
        let demand = |node| {
            let bytes = |value| i128::from(network.bytes(value));
            let is_read = |&value: &ValueId| !network.users(value).is_empty();
            let kept = i128::from(network.kept(node));
            let made: i128 = network.values(node).map(bytes).sum();
            let stays: i128 = network.values(node).filter(is_read).map(bytes).sum();
            Demand {
                peak: made + kept + i128::from(network.workspace(node)),
                net: stays + kept - i128::from(freed[node]),
            }
        };
        network.nodes().map(demand).collect()
    }

    /// Moves shares to where they count more. At the place of the peak, half of what readers are said to have freed of values with readers to come
    /// goes to those readers.
    pub(super) fn shift(&mut self, place_of: &Table<NodeId, usize>, peak_at: usize) {
        for shared in &mut self.shared {
            let has_run = |reader: NodeId| place_of[reader] < peak_at;
            let to_come = shared.shares.iter().filter(|share| !has_run(share.0)).count();
            let is_there = has_run(self.network.producer(shared.value));
            if !is_there || to_come == 0 || to_come == shared.shares.len() {
                continue;
            }
            let (mut done, mut coming): (Vec<_>, Vec<_>) =
                shared.shares.drain(..).partition(|&(reader, _)| has_run(reader));
            let mut moved = 0;
            for (_, bytes) in &mut done {
                let half = bytes.div_ceil(2);
                *bytes -= half;
                moved += half;
            }
            divide(&mut coming, moved);
            shared.shares.extend(done.into_iter().chain(coming));
        }
    }

    /// Each value is freed by the reader that is the last in an order.
    pub(super) fn fit(&mut self, place_of: &Table<NodeId, usize>) {
        for shared in &mut self.shared {
            let bytes = self.network.bytes(shared.value);
            let last = shared.shares.iter().map(|share| place_of[share.0]).max();
            for (reader, share) in &mut shared.shares {
                *share = if Some(place_of[*reader]) == last { bytes } else { 0 };
            }
        }
    }
}

/// Adds bytes to shares, evenly but for remainders.
fn divide(shares: &mut [(NodeId, u64)], bytes: u64) {
    let count = shares.len() as u64;
    for (rank, (_, share)) in (0..).zip(shares) {
        *share += bytes / count + u64::from(rank < bytes % count);
    }
}
