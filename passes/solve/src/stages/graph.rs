//! The problem as stage form sees it: one node for each scheduled op.

use remat_plan::{Instance, NodeId, OpId, Problem, StorageId, StorageRole, Structure};
use thiserror::Error;

/// Position of an op among the scheduled ops, in reference order. It is a number, not an id, because stages have the same ones: node `t`
/// runs first in stage `t`, and matrices are indexed by both. [`StageGraph::op`] says which op it is.
pub type Node = usize;

/// The largest number of stages: a pair of matrices then takes 100 MB.
pub const MAX_STAGES: usize = 20_000;

/// There are more ops than matrices are built for.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the problem has {nodes} ops to schedule; matrices of stages are built for {MAX_STAGES} at most")]
pub struct TooManyStages {
    /// Scheduled ops of the problem.
    pub nodes: usize,
}

/// A problem in reference order, as the Checkmate paper sees it: a node is computed or not, and held as a whole.
///
/// Nodes are the scheduled ops ([`Structure::scheduled`]). There is an edge from `u` to `v` where `v` needs a transient storage
/// that `u` creates, through lazy views too. What is beyond the paper is taken in like this: graph outputs stay from the first
/// run on and take no edge; a node that may not run again is [permanent](Self::is_permanent); workspace counts while its node
/// runs.
#[derive(Clone, Debug)]
pub struct StageGraph {
    instance: Instance,
    bytes: Vec<u64>,
    edges: Edges,
}

/// Who needs whose results.
#[derive(Clone, Debug)]
struct Edges {
    parents: Vec<Vec<Node>>,
    children: Vec<Vec<Node>>,
    /// Whether any result is needed, kept ones included.
    read: Vec<bool>,
}

impl Edges {
    /// Empty results count: a node that needs one has to find it computed.
    fn of(problem: &Problem, structure: &Structure, instance: &Instance) -> Self {
        let count = instance.len();
        let mut edges = Self {
            parents: Vec::with_capacity(count),
            children: vec![Vec::new(); count],
            read: vec![false; count],
        };
        let creator = |storage: StorageId| {
            let root = problem.tensors[problem.storages[storage].root].producer;
            root.and_then(|op| instance.node_of(op)).map(NodeId::index)
        };
        for (node, &op) in instance.ops().iter().enumerate() {
            let mut own: Vec<Node> = Vec::new();
            for &storage in structure.needs(op) {
                let Some(made) = creator(storage).filter(|&made| made != node) else {
                    continue;
                };
                edges.read[made] = true;
                if problem.storages[storage].role == StorageRole::Transient {
                    own.push(made);
                }
            }
            own.sort_unstable();
            own.dedup();
            for &parent in &own {
                edges.children[parent].push(node);
            }
            edges.parents.push(own);
        }
        edges
    }
}

impl StageGraph {
    /// Reads a valid problem.
    ///
    /// # Errors
    /// [`TooManyStages`] if it has more than [`MAX_STAGES`] ops to schedule.
    pub fn of(problem: &Problem, structure: &Structure) -> Result<Self, TooManyStages> {
        let nodes = structure.scheduled().count();
        if nodes > MAX_STAGES {
            return Err(TooManyStages { nodes });
        }
        let instance = Instance::of(problem, structure);
        let bytes = |node| instance.values(node).map(|value| instance.bytes(value)).sum();
        Ok(Self {
            bytes: instance.nodes().map(bytes).collect(),
            edges: Edges::of(problem, structure, &instance),
            instance,
        })
    }

    /// Number of nodes, which is the number of stages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.instance.len()
    }

    /// Whether there is nothing to schedule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.instance.is_empty()
    }

    /// The op a node stands for.
    #[must_use]
    pub fn op(&self, node: Node) -> OpId {
        self.instance.op(NodeId::new(node))
    }

    /// Time of one run.
    #[must_use]
    pub fn duration(&self, node: Node) -> u64 {
        self.instance.duration(NodeId::new(node))
    }

    /// Bytes of the transient results, which a run makes and which may be freed.
    #[must_use]
    pub fn bytes(&self, node: Node) -> u64 {
        self.bytes[node]
    }

    /// Bytes of the results that stay from the first run to the end.
    #[must_use]
    pub fn kept(&self, node: Node) -> u64 {
        self.instance.kept(NodeId::new(node))
    }

    /// Bytes that a run takes on top of operands and results.
    #[must_use]
    pub fn workspace(&self, node: Node) -> u64 {
        self.instance.workspace(NodeId::new(node))
    }

    /// Whether the node may run once only, so that its results are held in every stage after it.
    #[must_use]
    pub fn is_permanent(&self, node: Node) -> bool {
        self.instance.max_computes(NodeId::new(node)) == 1
    }

    /// The last stage in which a node may run, where there is a limit: the own one of the first node that it must not follow.
    #[must_use]
    pub fn last_stage(&self, node: Node) -> Option<Node> {
        let others = self.instance.anti_successors(NodeId::new(node));
        others.first().map(|other| other.index())
    }

    /// Whether any node needs a result of this one, kept or transient.
    #[must_use]
    pub fn is_read(&self, node: Node) -> bool {
        self.edges.read[node]
    }

    /// The nodes whose transient results this one needs, ascending.
    #[must_use]
    pub fn parents(&self, node: Node) -> &[Node] {
        &self.edges.parents[node]
    }

    /// The nodes that need a transient result of this one, ascending.
    #[must_use]
    pub fn children(&self, node: Node) -> &[Node] {
        &self.edges.children[node]
    }
}
