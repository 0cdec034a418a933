//! Series-parallel orders: how they are recognized, and what they are made of.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::classes::Classes;
use super::reduction::immediate;
use super::scope::Scope;
use crate::dense::{Id, Table};
use crate::hash::Map;
use crate::order::network::NodeId;

/// A part of an order, by its place among the parts of a [`Tree`].
pub(super) type PartId = u32;

/// What a part is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// One node.
    Node(NodeId),
    /// All of the first part before all of the second.
    Series(PartId, PartId),
    /// Two parts, none of whose nodes depend on each other.
    Parallel(PartId, PartId),
}

/// The nodes of a scope as parts in series and in parallel.
///
/// Parts stand behind those that they are made of; the last one, if there is one, is the whole.
#[derive(Debug)]
pub(super) struct Tree {
    parts: Vec<Part>,
    /// Place of each node where parts in parallel stand one after the other.
    forth: Table<NodeId, u32>,
    /// The same where the second of them stands first.
    back: Table<NodeId, u32>,
}

impl Tree {
    /// The parts of a scope; `None` where the order that its predecessors leave is not series-parallel.
    ///
    /// Takes time about linear in nodes and predecessors. Nodes are edges here, and each vertex is a place where every node that ends there is followed at
    /// once by every node that begins there: the order is series-parallel just if there are such places, and edges in series and in parallel,
    /// replaced by one, end in one edge.
    ///
    /// Source: J. Valdes, R. E. Tarjan, E. L. Lawler, *The Recognition of Series Parallel Digraphs*, SIAM J. Comput. 11(2), 1982, theorems 1 and 2.
    pub(super) fn of(scope: &Scope<'_>) -> Option<Self> {
        let nodes = scope.network.len();
        let vertices = Vertices::of(scope)?;
        let parts = Reduction::run(&vertices)?;
        let mut tree = Self {
            forth: Table::filled(0, nodes),
            back: Table::filled(0, nodes),
            parts,
        };
        tree.number();
        // Whatever has to stand before a node does, through those that it follows at once.
        let is_kept = |node| {
            let mut all = scope.predecessors(node);
            all.all(|other| tree.precedes(other, node))
        };
        scope.nodes().all(is_kept).then_some(tree)
    }

    /// The parts, each behind those that it is made of.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether one node stands before another in every order.
    pub(super) fn precedes(&self, node: NodeId, other: NodeId) -> bool {
        self.forth[node] < self.forth[other] && self.back[node] < self.back[other]
    }

    /// Those of some nodes that stand before none of the others in every order.
    pub(super) fn last_of(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable_by_key(|&node| Reverse(self.forth[node]));
        let mut furthest = None;
        nodes.retain(|&node| {
            let is_last = furthest < Some(self.back[node]);
            furthest = furthest.max(Some(self.back[node]));
            is_last
        });
        nodes
    }

    /// Two orders of the nodes that agree on two nodes just where one has to stand before the other.
    fn number(&mut self) {
        let Some(whole) = self.parts.len().checked_sub(1) else {
            return;
        };
        for (places, is_forth) in [(&mut self.forth, true), (&mut self.back, false)] {
            let mut place = 0;
            let mut stack = vec![whole as PartId];
            while let Some(part) = stack.pop() {
                match self.parts[part as usize] {
                    Part::Node(node) => {
                        places[node] = place;
                        place += 1;
                    }
                    Part::Parallel(first, second) if !is_forth => stack.extend([first, second]),
                    Part::Series(first, second) | Part::Parallel(first, second) => stack.extend([second, first]),
                }
            }
        }
    }
}

/// Where nodes begin and end.
struct Vertices {
    /// Each node, with where it begins and where it ends.
    nodes: Vec<(NodeId, usize, usize)>,
    /// Numbers of vertices are below that.
    count: usize,
    /// Where the nodes without predecessors begin.
    source: usize,
    /// Where the nodes without successors end.
    sink: usize,
}

impl Vertices {
    /// `None` where some nodes that end at one place are followed at once by different nodes.
    fn of(scope: &Scope<'_>) -> Option<Self> {
        let nodes = scope.network.len();
        let pairs = immediate(scope);
        let (source, sink, count) = (2 * nodes, 2 * nodes + 1, 2 * nodes + 2);
        let (begin, end) = (
            |node: NodeId| 2 * node.position(),
            |node: NodeId| 2 * node.position() + 1,
        );
        let mut places = Classes::new(count);
        for &(node, next) in &pairs {
            places.unite(end(node), begin(next));
        }
        for node in scope.nodes() {
            if scope.predecessors(node).next().is_none() {
                places.unite(begin(node), source);
            }
            if scope.successors(node).next().is_none() {
                places.unite(end(node), sink);
            }
        }
        let places = places.into_labels();
        let nodes = scope.nodes().map(|node| (node, places[begin(node)], places[end(node)]));
        let vertices = Self {
            nodes: nodes.collect(),
            count,
            source: places[source],
            sink: places[sink],
        };
        let followed = pairs.iter().map(|&(node, _)| places[end(node)]);
        vertices.are_complete(followed).then_some(vertices)
    }

    /// Whether every node that ends at a place is followed at once by every node that begins there; for each pair of nodes that follow each
    /// other at once, `followed` is the place between them.
    fn are_complete(&self, followed: impl Iterator<Item = usize>) -> bool {
        let (mut ending, mut beginning, mut found) =
            (vec![0u64; self.count], vec![0u64; self.count], vec![0u64; self.count]);
        for &(_, begin, end) in &self.nodes {
            beginning[begin] += 1;
            ending[end] += 1;
        }
        followed.for_each(|place| found[place] += 1);
        (0..self.count).all(|place| ending[place] * beginning[place] == found[place])
    }
}

/// Parts as edges between vertices, while they are replaced.
struct Reduction {
    parts: Vec<Part>,
    /// Per part: where it begins and ends.
    ends: Vec<(usize, usize)>,
    /// The part that is there between two vertices.
    between: Map<(u32, u32), PartId>,
    entering: Vec<Incident>,
    leaving: Vec<Incident>,
    /// Vertices that may be within a series.
    candidates: Vec<usize>,
}

/// The parts that enter or leave a vertex.
#[derive(Clone, Copy, Default)]
struct Incident {
    count: u32,
    /// Exclusive or of their numbers: the number where there is one part.
    all: PartId,
}

impl Incident {
    fn add(&mut self, part: PartId) {
        self.count += 1;
        self.all ^= part;
    }

    fn remove(&mut self, part: PartId) {
        self.count -= 1;
        self.all ^= part;
    }

    fn only(self) -> Option<PartId> {
        (self.count == 1).then_some(self.all)
    }
}

/// Vertices are fewer than 2^31.
fn key(begin: usize, end: usize) -> (u32, u32) {
    (begin as u32, end as u32)
}

impl Reduction {
    /// The parts, if all nodes together are one or there are no nodes.
    fn run(vertices: &Vertices) -> Option<Vec<Part>> {
        if vertices.nodes.is_empty() {
            return Some(Vec::new());
        }
        let mut reduction = Self {
            parts: Vec::with_capacity(2 * vertices.nodes.len()),
            ends: Vec::with_capacity(2 * vertices.nodes.len()),
            between: Map::default(),
            entering: vec![Incident::default(); vertices.count],
            leaving: vec![Incident::default(); vertices.count],
            candidates: Vec::new(),
        };
        for &(node, begin, end) in &vertices.nodes {
            reduction.add(Part::Node(node), begin, end);
        }
        reduction.candidates.extend(0..vertices.count);
        while let Some(vertex) = reduction.candidates.pop() {
            let (entering, leaving) = (reduction.entering[vertex].only(), reduction.leaving[vertex].only());
            if let (Some(first), Some(second)) = (entering, leaving) {
                let (begin, end) = (reduction.ends[first as usize].0, reduction.ends[second as usize].1);
                reduction.remove(first);
                reduction.remove(second);
                reduction.add(Part::Series(first, second), begin, end);
            }
        }
        let is_one =
            reduction.between.len() == 1 && reduction.between.get(key(vertices.source, vertices.sink)).is_some();
        is_one.then_some(reduction.parts)
    }

    /// Adds a part; if there is one between the same vertices, the two become one.
    fn add(&mut self, part: Part, begin: usize, end: usize) {
        let added = self.push(part, begin, end);
        let Some(other) = self.between.get(key(begin, end)) else {
            self.put(added);
            return;
        };
        self.remove(other);
        let both = self.push(Part::Parallel(other, added), begin, end);
        self.put(both);
        self.candidates.extend([begin, end]);
    }

    fn push(&mut self, part: Part, begin: usize, end: usize) -> PartId {
        self.parts.push(part);
        self.ends.push((begin, end));
        (self.parts.len() - 1) as PartId
    }

    fn put(&mut self, part: PartId) {
        let (begin, end) = self.ends[part as usize];
        self.between.insert(key(begin, end), part);
        self.leaving[begin].add(part);
        self.entering[end].add(part);
    }

    fn remove(&mut self, part: PartId) {
        let (begin, end) = self.ends[part as usize];
        self.between.remove(key(begin, end));
        self.leaving[begin].remove(part);
        self.entering[end].remove(part);
    }
}
