//! The nodes whose place in an order matters.

use remat_plan::{Instance, NodeId};
use typed_index_collections::{TiVec, ti_vec};

/// An instance without its *idle* nodes: those that take no memory and wait for no others but such, as constants and views of weights. They run
/// first, which costs nothing, and bind nobody then.
pub(super) struct Scope<'a> {
    pub(super) instance: &'a Instance,
    is_idle: TiVec<NodeId, bool>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(instance: &'a Instance) -> Self {
        let mut is_idle = ti_vec![false; instance.len()];
        for node in instance.nodes() {
            let takes = instance.values(node).len() > 0 || instance.kept(node) > 0 || instance.workspace(node) > 0;
            is_idle[node] = !takes && instance.predecessors(node).iter().all(|&other| is_idle[other]);
        }
        Self { instance, is_idle }
    }

    /// The nodes that run first, in order.
    pub(super) fn idle(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.instance.nodes().filter(|&node| self.is_idle[node])
    }

    /// All other nodes, in order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.instance.nodes().filter(|&node| !self.is_idle[node])
    }

    /// Those of them that a node waits for.
    pub(super) fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.instance.predecessors(node).iter().copied();
        all.filter(|&other| !self.is_idle[other])
    }

    /// Those of them that wait for a node.
    pub(super) fn successors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.instance.successors(node).iter().copied();
        all.filter(|&other| !self.is_idle[other])
    }
}
