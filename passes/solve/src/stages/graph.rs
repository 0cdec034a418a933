//! The problem as stage form sees it: one node for each scheduled op.

use remat_plan::{OpId, Problem, StorageRole, Structure};
use thiserror::Error;

/// Position of an op among the scheduled ops, in reference order.
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
    ops: Vec<OpId>,
    duration: Vec<u64>,
    bytes: Vec<u64>,
    kept: Vec<u64>,
    workspace: Vec<u64>,
    permanent: Vec<bool>,
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
    fn of(problem: &Problem, structure: &Structure, ops: &[OpId]) -> Self {
        let mut creator: Vec<Option<Node>> = vec![None; problem.storages.len()];
        for (node, &op) in ops.iter().enumerate() {
            for &storage in structure.owns(op) {
                creator[storage.index()] = Some(node);
            }
        }
        let mut edges = Self {
            parents: Vec::with_capacity(ops.len()),
            children: vec![Vec::new(); ops.len()],
            read: vec![false; ops.len()],
        };
        for (node, &op) in ops.iter().enumerate() {
            let mut own: Vec<Node> = Vec::new();
            for &storage in structure.needs(op) {
                let Some(made) = creator[storage.index()].filter(|&made| made != node) else {
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
        let ops: Vec<OpId> = structure.scheduled().collect();
        if ops.len() > MAX_STAGES {
            return Err(TooManyStages { nodes: ops.len() });
        }
        let size = |role: StorageRole| -> Vec<u64> {
            let owned = |op: &OpId| structure.owns(*op).iter().map(|&s| &problem.storages[s]);
            let bytes = |op| owned(op).filter(|s| s.role == role).map(|s| s.bytes).sum();
            ops.iter().map(bytes).collect()
        };
        let (bytes, kept) = (size(StorageRole::Transient), size(StorageRole::Kept));
        let may_repeat = |op: OpId| {
            problem.ops[op].recomputable && !structure.is_pinned(op) && problem.max_computes.is_none_or(|most| most > 1)
        };
        let workspace = |(node, &op): (usize, &OpId)| {
            let views = structure.views_workspace(op).saturating_sub(bytes[node] + kept[node]);
            problem.ops[op].workspace.max(views)
        };
        Ok(Self {
            duration: ops.iter().map(|&op| problem.ops[op].duration).collect(),
            workspace: ops.iter().enumerate().map(workspace).collect(),
            permanent: ops.iter().map(|&op| !may_repeat(op)).collect(),
            edges: Edges::of(problem, structure, &ops),
            ops,
            bytes,
            kept,
        })
    }

    /// Number of nodes, which is the number of stages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there is nothing to schedule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The op a node stands for.
    #[must_use]
    pub fn op(&self, node: Node) -> OpId {
        self.ops[node]
    }

    /// Time of one run.
    #[must_use]
    pub fn duration(&self, node: Node) -> u64 {
        self.duration[node]
    }

    /// Bytes of the transient results, which a run makes and which may be given up.
    #[must_use]
    pub fn bytes(&self, node: Node) -> u64 {
        self.bytes[node]
    }

    /// Bytes of the results that stay from the first run to the end.
    #[must_use]
    pub fn kept(&self, node: Node) -> u64 {
        self.kept[node]
    }

    /// Bytes that a run takes on top of operands and results.
    #[must_use]
    pub fn workspace(&self, node: Node) -> u64 {
        self.workspace[node]
    }

    /// Whether the node may run once only, so that its results are held in every stage after it.
    #[must_use]
    pub fn is_permanent(&self, node: Node) -> bool {
        self.permanent[node]
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
