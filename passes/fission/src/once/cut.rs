//! What is there right before an op first runs, at the least.

use petgraph::Direction;
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::EdgeRef;
use remat_ir::{OpId, TensorId};
use typed_index_collections::TiVec;

use super::consumers::Consumers;
use super::facts::Facts;

/// More than all tensors together.
const ENDLESS: u64 = u64::MAX / 4;

impl Facts<'_> {
    /// No less than what is claimed of an op: what ops before it make for others.
    pub(super) fn most(&self, id: OpId, consumers: &TiVec<TensorId, Consumers>) -> u64 {
        let before = self.before(id);
        let made = before.iter().flat_map(|&op| self.graph.ops[op].results());
        let is_held = |tensor: &TensorId| {
            let consumers = &consumers[*tensor];
            consumers.is_given || consumers.all().any(|reader| !before.contains(&reader))
        };
        let held = made.filter(is_held).map(|tensor| self.sizes.bytes(tensor));
        held.fold(self.during(id), u64::saturating_add)
    }

    /// The least bytes that are there right before an op first runs, or while it runs if it can only run whole, and of which tensors.
    ///
    /// Each op ran by a share: those that must have run wholly, those that cannot have begun not at all. Of a tensor at least the share is there by which
    /// its op ran further than an op that needs it. A share above which ops count as run, taken at random, cuts the graph; what lies on cuts is on average
    /// no more than what is there, and the least cut no more than that.
    pub(super) fn least(&self, id: OpId, consumers: &TiVec<TensorId, Consumers>) -> (u64, Vec<TensorId>) {
        let mut unbegun = self.later(id);
        unbegun.insert(id);
        let mut network: DiGraph<(), u64> = DiGraph::new();
        let (source, sink) = (network.add_node(()), network.add_node(()));
        let nodes: TiVec<OpId, NodeIndex> = self.graph.ops.keys().map(|_| network.add_node(())).collect();
        let whole = self.whole_before(id);
        for (op, entry) in self.graph.ops.iter_enumerated() {
            if entry.results().any(|result| whole.contains(&result)) {
                network.add_edge(source, nodes[op], ENDLESS);
            }
            if unbegun.contains(&op) {
                network.add_edge(nodes[op], sink, ENDLESS);
            }
        }
        let mut gates = Vec::new();
        for (tensor, consumers) in consumers.iter_enumerated() {
            let is_needed = consumers.is_given || consumers.at_last.iter().any(|reader| unbegun.contains(reader));
            let Some(producer) = self.graph.tensors[tensor].producer else {
                continue;
            };
            if consumers.by_share.is_empty() && !is_needed {
                continue;
            }
            let gate = network.add_node(());
            gates.push((
                tensor,
                network.add_edge(nodes[producer], gate, self.sizes.bytes(tensor)),
            ));
            for &reader in &consumers.by_share {
                network.add_edge(gate, nodes[reader], ENDLESS);
            }
            if is_needed {
                network.add_edge(gate, sink, ENDLESS);
            }
        }
        let (bytes, flows) = dinics(&network, source, sink);
        let near = near(&network, &flows, source);
        let is_cut = |edge: EdgeIndex| {
            let ends = network.edge_endpoints(edge);
            ends.is_some_and(|(from, to)| near[from.index()] && !near[to.index()])
        };
        let cut = gates.into_iter().filter(|&(_, edge)| is_cut(edge));
        let mut held: Vec<TensorId> = cut.map(|(tensor, _)| tensor).collect();
        let during = self.during(id);
        if during > 0 {
            held.extend(self.graph.ops[id].results());
        }
        (bytes.saturating_add(during), held)
    }
}

/// By node: whether it is reached with what the flow leaves of the edges, and so on the near side of a least cut.
fn near(network: &DiGraph<(), u64>, flows: &[u64], source: NodeIndex) -> Vec<bool> {
    let mut near = vec![false; network.node_count()];
    let mut waiting = vec![source];
    near[source.index()] = true;
    while let Some(next) = waiting.pop() {
        let flow = |edge: EdgeIndex| flows.get(edge.index()).copied().unwrap_or(0);
        let on = network.edges(next).filter(|edge| flow(edge.id()) < *edge.weight());
        let back = network
            .edges_directed(next, Direction::Incoming)
            .filter(|edge| flow(edge.id()) > 0);
        for node in on.map(|edge| edge.target()).chain(back.map(|edge| edge.source())) {
            if !std::mem::replace(&mut near[node.index()], true) {
                waiting.push(node);
            }
        }
    }
    near
}
