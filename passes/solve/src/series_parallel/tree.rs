//! Series-parallel orders: how they are recognized, and what they are made of.

use petgraph::unionfind::UnionFind;
use remat_plan::{Instance, NodeId};
use rustc_hash::FxHashMap;
use typed_index_collections::{TiVec, ti_vec};

use super::reduction::immediate;

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

/// The nodes of an instance as parts in series and in parallel.
///
/// Parts stand behind those that they are made of; the last one is the whole.
#[derive(Debug)]
pub(super) struct Tree {
    parts: Vec<Part>,
    /// Place of each node where parts in parallel stand one after the other.
    forth: TiVec<NodeId, u32>,
    /// The same where the second of them stands first.
    back: TiVec<NodeId, u32>,
}

impl Tree {
    /// The parts of an instance with nodes; `None` where the order that its predecessors leave is not series-parallel.
    ///
    /// Takes time about linear in nodes and predecessors. Nodes are edges here, and each vertex is a place where every node that ends there is followed at
    /// once by every node that begins there: the order is series-parallel just if there are such places, and edges in series and in parallel,
    /// replaced by one, end in one edge.
    ///
    /// Source: J. Valdes, R. E. Tarjan, E. L. Lawler, *The Recognition of Series Parallel Digraphs*, SIAM J. Comput. 11(2), 1982, theorems 1 and 2.
    pub(super) fn of(instance: &Instance) -> Option<Self> {
        let vertices = Vertices::of(instance)?;
        let parts = Reduction::run(&vertices)?;
        let mut tree = Self {
            forth: ti_vec![0; instance.len()],
            back: ti_vec![0; instance.len()],
            parts,
        };
        tree.number();
        // Whatever has to stand before a node does, through those that it follows at once.
        let is_kept = |node| {
            let mut all = instance.predecessors(node).iter();
            all.all(|&other| tree.precedes(other, node))
        };
        instance.nodes().all(is_kept).then_some(tree)
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
        nodes.sort_unstable_by_key(|&node| std::cmp::Reverse(self.forth[node]));
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
    begin: TiVec<NodeId, usize>,
    end: TiVec<NodeId, usize>,
    /// Numbers of vertices are below that.
    count: usize,
    /// Where the nodes without predecessors begin.
    source: usize,
    /// Where the nodes without successors end.
    sink: usize,
}

impl Vertices {
    /// `None` where some nodes that end at one place are followed at once by different nodes.
    fn of(instance: &Instance) -> Option<Self> {
        let nodes = instance.len();
        let pairs = immediate(instance);
        let (source, sink, count) = (2 * nodes, 2 * nodes + 1, 2 * nodes + 2);
        let (begin, end) = (|node: NodeId| 2 * node.index(), |node: NodeId| 2 * node.index() + 1);
        let mut places: UnionFind<usize> = UnionFind::new(count);
        for &(node, next) in &pairs {
            places.union(end(node), begin(next));
        }
        for node in instance.nodes() {
            if instance.predecessors(node).is_empty() {
                places.union(begin(node), source);
            }
            if instance.successors(node).is_empty() {
                places.union(end(node), sink);
            }
        }
        let places = places.into_labeling();
        let vertices = Self {
            begin: instance.nodes().map(|node| places[begin(node)]).collect(),
            end: instance.nodes().map(|node| places[end(node)]).collect(),
            count,
            source: places[source],
            sink: places[sink],
        };
        vertices.are_complete(&pairs).then_some(vertices)
    }

    /// Whether every node that ends at a place is followed at once by every node that begins there.
    fn are_complete(&self, pairs: &[(NodeId, NodeId)]) -> bool {
        let (mut ending, mut beginning, mut found) =
            (vec![0u64; self.count], vec![0u64; self.count], vec![0u64; self.count]);
        self.end.iter().for_each(|&place| ending[place] += 1);
        self.begin.iter().for_each(|&place| beginning[place] += 1);
        pairs.iter().for_each(|&(node, _)| found[self.end[node]] += 1);
        (0..self.count).all(|place| ending[place] * beginning[place] == found[place])
    }
}

/// Parts as edges between vertices, while they are replaced.
struct Reduction {
    parts: Vec<Part>,
    /// Per part: where it begins and ends.
    ends: Vec<(usize, usize)>,
    /// The part that is there between two vertices.
    between: FxHashMap<(usize, usize), PartId>,
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

impl Reduction {
    /// The parts, if all nodes together are one.
    fn run(vertices: &Vertices) -> Option<Vec<Part>> {
        let mut reduction = Self {
            parts: Vec::with_capacity(2 * vertices.begin.len()),
            ends: Vec::with_capacity(2 * vertices.begin.len()),
            between: FxHashMap::default(),
            entering: vec![Incident::default(); vertices.count],
            leaving: vec![Incident::default(); vertices.count],
            candidates: Vec::new(),
        };
        for (node, &begin) in vertices.begin.iter_enumerated() {
            reduction.add(Part::Node(node), begin, vertices.end[node]);
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
        let is_one = reduction.between.len() == 1 && reduction.between.contains_key(&(vertices.source, vertices.sink));
        is_one.then_some(reduction.parts)
    }

    /// Adds a part; if there is one between the same vertices, the two become one.
    fn add(&mut self, part: Part, begin: usize, end: usize) {
        let added = self.push(part, begin, end);
        let Some(&other) = self.between.get(&(begin, end)) else {
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
        self.between.insert((begin, end), part);
        self.leaving[begin].add(part);
        self.entering[end].add(part);
    }

    fn remove(&mut self, part: PartId) {
        let (begin, end) = self.ends[part as usize];
        self.between.remove(&(begin, end));
        self.leaving[begin].remove(part);
        self.entering[end].remove(part);
    }
}
