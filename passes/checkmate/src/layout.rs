//! Which variable of the program is which. Matrices are triangular: in stage `t` nodes up to `t` may run, and those before it are held.

use remat_plan::NodeId;
use remat_solve::stages::{Node, StageGraph, StageMatrix, Stages};

use remat_ortools::program::Variable;

/// Which variable is which.
pub struct Layout {
    nodes: usize,
    /// Where `R`, `S` and `U` of each stage start; they are consecutive.
    computed: Vec<Variable>,
    held: Vec<Variable>,
    memory: Vec<Variable>,
    /// Where `FREE` of each stage starts; for each node that may run the parents in order.
    freed: Vec<Variable>,
    /// Where what lies in the second memory, what comes back and what is moved out start; empty without second memory.
    pages: Vec<[Variable; 3]>,
    /// For each node, and for one more, how many edges lead to the nodes before it.
    edges_before: Vec<u32>,
}

impl Layout {
    /// The layout before its first stage.
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            computed: Vec::new(),
            held: Vec::new(),
            memory: Vec::new(),
            freed: Vec::new(),
            pages: Vec::new(),
            edges_before: Vec::new(),
        }
    }

    pub(super) fn count_edges(&mut self, graph: &StageGraph) {
        let mut edges = 0;
        self.edges_before.push(edges);
        for node in 0..self.nodes {
            edges += offset(graph.parents(node).len());
            self.edges_before.push(edges);
        }
    }

    /// How many `FREE` there are in a stage of that width.
    pub(super) fn frees(&self, width: usize) -> usize {
        self.edges_before[width] as usize
    }

    /// The variables of the next stage start at `first`: so many `R`, `S` and `FREE`, then `U`.
    pub(super) fn begin_stage(&mut self, first: usize, [computed, held, freed]: [usize; 3]) {
        self.computed.push(offset(first));
        self.held.push(offset(first + computed));
        self.freed.push(offset(first + computed + held));
        self.memory.push(offset(first + computed + held + freed));
    }

    /// The variables of the stage's second memory start at `first`: so many of each kind.
    pub(super) fn begin_pages(&mut self, first: usize, held: usize) {
        self.pages.push([first, first + held, first + 2 * held].map(offset));
    }

    /// Whether a node's results lie in the second memory in a stage.
    #[must_use]
    pub fn second(&self, stage: usize, node: Node) -> Option<Variable> {
        self.page(0, stage, node)
    }

    /// Whether they come back for the next stage.
    #[must_use]
    pub fn back(&self, stage: usize, node: Node) -> Option<Variable> {
        self.page(1, stage, node)
    }

    /// Whether they are moved out for the next stage.
    #[must_use]
    pub fn out(&self, stage: usize, node: Node) -> Option<Variable> {
        self.page(2, stage, node)
    }

    fn page(&self, kind: usize, stage: usize, node: Node) -> Option<Variable> {
        let starts = self.pages.get(stage).filter(|_| node < stage)?;
        Some(starts[kind] + offset(node))
    }

    /// `R`: whether a node runs in a stage.
    #[must_use]
    pub fn computed(&self, stage: usize, node: Node) -> Option<Variable> {
        (node <= stage).then(|| self.computed[stage] + offset(node))
    }

    /// `S`: whether the results of a node are held into a stage.
    #[must_use]
    pub fn held(&self, stage: usize, node: Node) -> Option<Variable> {
        (stage < self.nodes && node < stage).then(|| self.held[stage] + offset(node))
    }

    pub(super) fn memory(&self, stage: usize, node: Node) -> Variable {
        self.memory[stage] + offset(node)
    }

    pub(super) fn freed(&self, stage: usize, node: Node, rank: usize) -> Variable {
        self.freed[stage] + self.edges_before[node] + offset(rank)
    }

    /// The value of an `S` in a solution; `None` where there is no such variable.
    pub(super) fn held_value<T: Copy>(&self, values: &[T], stage: usize, node: Node) -> Option<T> {
        values.get(self.held(stage, node)? as usize).copied()
    }

    /// The runs of a solution in order: `R` completes `S` in the cheapest way.
    pub(super) fn sequence(&self, graph: &StageGraph, values: &[i64]) -> Vec<NodeId> {
        complete(graph, |stage, node| {
            self.held_value(values, stage, node).is_some_and(|value| value != 0)
        })
    }
}

/// The runs of the cheapest `R` for the `S` that `held` describes.
pub(super) fn complete(graph: &StageGraph, held: impl Fn(usize, Node) -> bool) -> Vec<NodeId> {
    let mut retained = StageMatrix::new(graph.len());
    for stage in 0..graph.len() {
        for node in (0..stage).filter(|&node| held(stage, node)) {
            retained.set(stage, node);
        }
    }
    let stages = Stages::complete(graph, retained);
    (0..graph.len())
        .flat_map(|stage| stages.computed().row(stage))
        .map(NodeId::new)
        .collect()
}

pub(super) fn offset(count: usize) -> u32 {
    u32::try_from(count).expect("programs of more than `MAX_TERMS` terms are refused before")
}

/// How `FREE` is tied to `R` and `S`. Both have the same integer solutions, but for frees of what is no longer needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freeing {
    /// Section 4.8 of the paper and its artifact: with `h` the number of reasons not to free, `1 - FREE <= h <= K (1 - FREE)`.
    #[default]
    Hazards,
    /// In each stage, what is freed and what is held on is at most what was held or made; and where a node runs that needs `i`, `i`
    /// was not freed before. The rows of the artifact's linear program, pairs there, summed up: a far stronger relaxation.
    Packed,
}
