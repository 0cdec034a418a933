//! In which order the runtime runs the nodes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::TiVec;

use crate::kernels::row;
use crate::{NodeIndex, Program};

/// The nodes whose results each node reads, ascending, each once.
fn sources(program: &Program) -> TiVec<NodeIndex, Vec<NodeIndex>> {
    let producers = program.producers();
    let of = |node: &crate::Node| {
        let mut sources: Vec<NodeIndex> = node.reads().filter_map(|value| producers[value]).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    };
    program.nodes.iter().map(of).collect()
}

/// `ExecutionOrder::DEFAULT`: a depth-first search against the edges that starts at the nodes nobody reads and lists a node
/// once everything it reads is listed. Among those nodes, and among the sources of a node, the one that stands last in the
/// file comes first.
///
/// Every node stands in the result once, after the nodes it reads from (given that the graph has no cycle).
#[must_use]
pub fn default_order(program: &Program) -> Vec<NodeIndex> {
    let sources = sources(program);
    let numbers: Vec<Vec<usize>> = sources
        .iter()
        .map(|sources| sources.iter().map(|&source| source.into()).collect())
        .collect();
    depth_first(&numbers).into_iter().map(NodeIndex::from).collect()
}

/// The same for nodes of which it is known from which others each reads: ascending, each once.
#[must_use]
pub fn depth_first(sources: &[Vec<usize>]) -> Vec<usize> {
    let mut is_read = vec![false; sources.len()];
    sources.iter().flatten().for_each(|&source| is_read[source] = true);
    let mut visited = vec![false; sources.len()];
    let mut order = Vec::with_capacity(sources.len());
    // The flag says that everything the node reads was dealt with.
    let leaves = (0..sources.len()).filter(|&node| !is_read[node]);
    let mut stack: Vec<(usize, bool)> = leaves.map(|node| (node, false)).collect();
    while let Some((node, done)) = stack.pop() {
        if done {
            order.push(node);
        } else if !visited[node] {
            visited[node] = true;
            stack.push((node, true));
            stack.extend(sources[node].iter().filter(|&&s| !visited[s]).map(|&s| (s, false)));
        }
    }
    order
}

/// `ExecutionOrder::PRIORITY_BASED`: always the ready node that stands first in the file, but Shape and Size before all
/// others.
///
/// Every node stands in the result once, after the nodes it reads from (given that the graph has no cycle).
#[must_use]
pub fn priority_order(program: &Program) -> Vec<NodeIndex> {
    let sources = sources(program);
    let mut readers: TiVec<NodeIndex, Vec<NodeIndex>> = TiVec::from(vec![Vec::new(); sources.len()]);
    let mut waits_for: TiVec<NodeIndex, usize> = sources.iter().map(Vec::len).collect();
    for (node, sources) in sources.iter_enumerated() {
        for &source in sources {
            readers[source].push(node);
        }
    }
    let key = |node: NodeIndex| {
        let urgent = row(&program.nodes[node]).runs_first;
        Reverse((!urgent, node))
    };
    let mut ready: BinaryHeap<_> = sources.keys().filter(|&node| waits_for[node] == 0).map(key).collect();
    let mut order = Vec::with_capacity(sources.len());
    while let Some(Reverse((_, node))) = ready.pop() {
        order.push(node);
        for &reader in &readers[node] {
            waits_for[reader] -= 1;
            if waits_for[reader] == 0 {
                ready.push(key(reader));
            }
        }
    }
    order
}
