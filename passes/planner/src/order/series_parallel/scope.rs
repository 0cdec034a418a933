//! The nodes whose place in an order matters.

use crate::dense::Table;
use crate::order::network::{Network, NodeId};

/// A network without its *idle* nodes: those that take no memory and wait for no others but such, as constants and views of weights. They run
/// first, which costs nothing, and bind nobody then.
pub(super) struct Scope<'a> {
    pub(super) network: &'a Network,
    is_idle: Table<NodeId, bool>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(network: &'a Network) -> Self {
        let mut is_idle = Table::filled(false, network.len());
        for node in network.nodes() {
            let takes = network.values(node).len() > 0 || network.kept(node) > 0 || network.workspace(node) > 0;
            is_idle[node] = !takes && network.predecessors(node).iter().all(|&other| is_idle[other]);
        }
        Self { network, is_idle }
    }

    /// The nodes that run first, in order.
    pub(super) fn idle(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.network.nodes().filter(|&node| self.is_idle[node])
    }

    /// All other nodes, in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.network.nodes().filter(|&node| !self.is_idle[node])
    }

    /// Those of them that a node waits for.
    pub(super) fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.network.predecessors(node).iter().copied();
        all.filter(|&other| !self.is_idle[other])
    }

    /// Those of them that wait for a node.
    pub(super) fn successors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.network.successors(node).iter().copied();
        all.filter(|&other| !self.is_idle[other])
    }
}
