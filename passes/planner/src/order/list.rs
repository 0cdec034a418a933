//! List scheduling: one node after another by priority.

use alloc::vec::Vec;

use crate::dense::Table;
use crate::order::network::{Network, NodeId, ValueId};

/// What decides between nodes that may run next; of equals the one that became ready last runs, then the first in the order of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// The one that adds the fewest bytes to what stays resident.
    Growth,
    /// The one with the lowest peak while it runs, then the one that adds the fewest bytes.
    Peak,
    /// The one that became ready last: depth first.
    Depth,
}

impl Priority {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Growth, Self::Peak, Self::Depth];
}

/// So often somebody is asked whether to go on.
const INTERVAL: usize = 256;

/// The ops in the order that list scheduling gives them: of those whose predecessors have run, the one of the best priority is next. `None` where
/// `go_on`, which is asked now and then, says no.
///
/// Source: J. R. Goodman, W.-C. Hsu, *Code Scheduling and Register Allocation in Large Basic Blocks*, ICS 1988, section 3: where registers are
/// short, what frees most of them goes first.
#[must_use]
pub fn list(network: &Network, priority: Priority, go_on: &mut dyn FnMut() -> bool) -> Option<Vec<u32>> {
    Some(network.ops(&listed(network, priority, go_on)?))
}

pub(crate) fn listed(network: &Network, priority: Priority, go_on: &mut dyn FnMut() -> bool) -> Option<Vec<NodeId>> {
    let mut ready = Ready::new(network);
    let mut order = Vec::with_capacity(network.len());
    while let Some(place) = ready.next(priority) {
        if order.len().is_multiple_of(INTERVAL) && !go_on() {
            return None;
        }
        order.push(ready.run(place));
    }
    Some(order)
}

/// The nodes that may run next, while an order is made.
struct Ready<'a> {
    network: &'a Network,
    /// Nodes that may run, in the order in which they became ready.
    nodes: Vec<NodeId>,
    /// How many predecessors of a node have not run.
    waits: Table<NodeId, usize>,
    /// How many users of a value have not run.
    unread: Table<ValueId, usize>,
}

impl<'a> Ready<'a> {
    fn new(network: &'a Network) -> Self {
        let waits: Table<NodeId, usize> = network.nodes().map(|node| network.predecessors(node).len()).collect();
        // The last of equals runs first, which is to be the first in the order of the network.
        let nodes = network.nodes().rev().filter(|&node| waits[node] == 0).collect();
        let unread = network.all_values().map(|value| network.users(value).len()).collect();
        Self {
            network,
            nodes,
            waits,
            unread,
        }
    }

    /// Runs the node at a place.
    fn run(&mut self, place: usize) -> NodeId {
        let node = self.nodes.remove(place);
        for &value in self.network.needs(node) {
            self.unread[value] -= 1;
        }
        for &successor in self.network.successors(node).iter().rev() {
            self.waits[successor] -= 1;
            if self.waits[successor] == 0 {
                self.nodes.push(successor);
            }
        }
        node
    }

    /// Place of the node to run next.
    fn next(&self, priority: Priority) -> Option<usize> {
        let key = |node: NodeId| match priority {
            Priority::Growth => (self.growth(node), 0),
            Priority::Peak => (i128::from(self.network.takes(node)), self.growth(node)),
            Priority::Depth => (0, 0),
        };
        let places = (0..self.nodes.len()).rev();
        places.min_by_key(|&place| key(self.nodes[place]))
    }

    /// Bytes that running a node adds to what stays resident; negative where it frees more.
    fn growth(&self, node: NodeId) -> i128 {
        let network = self.network;
        let bytes = |value: ValueId| i128::from(network.bytes(value));
        let is_read = |&value: &ValueId| !network.users(value).is_empty();
        let made: i128 = network.values(node).filter(is_read).map(bytes).sum();
        let is_last = |&value: &ValueId| self.unread[value] == 1;
        let freed: i128 = network.needs(node).iter().copied().filter(is_last).map(bytes).sum();
        i128::from(network.kept(node)) + made - freed
    }
}
