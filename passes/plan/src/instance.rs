//! A problem flattened for solving: nodes, values and who uses them.

mod lists;
mod part;

use remat_ir::dense_id;
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use self::lists::Lists;
use crate::{OpId, OrderMode, Problem, StorageId, StorageRole, Structure};

dense_id!(
    /// A node of an [`Instance`]. Ids ascend in the order of the instance.
    NodeId
);
dense_id!(
    /// A value of an [`Instance`]. Ids ascend with those of the nodes that make the values.
    ValueId
);

/// A problem in flat arrays, in one order of first runs: what every solver starts from.
///
/// *Nodes* are the scheduled ops ([`Structure::scheduled`]) in that order. Lazy views are no nodes: lowering runs them on demand.
///
/// *Values* are the transient storages that take memory. A run of a node makes all its [`values`](Self::values), whose ids are
/// consecutive. Other storages need no decision: external ones take nothing, empty ones cost nothing to hold, and kept ones stay
/// from the first run of their node to the end.
///
/// *Anti-dependences* bind nodes: a node never runs after the first run of any of its [`anti_successors`](Self::anti_successors).
/// For first runs that makes these ordinary [`successors`](Self::successors), too.
///
/// *Workspace* is what a run takes on top of its operands and results. It is that of the op or, if that is more, what the largest lazy
/// view that may have to run right before the op takes beyond the results of the op: the view has left its workspace before the
/// results are made.
///
/// Sizes are in bytes. Durations are in the unit of the problem, nanoseconds for models. Solvers that count in other units scale
/// these numbers; they do not flatten the problem again.
#[derive(Clone, Debug)]
pub struct Instance {
    ops: TiVec<NodeId, OpId>,
    node_of: TiVec<OpId, Option<NodeId>>,
    duration: TiVec<NodeId, u64>,
    views_duration: TiVec<NodeId, u64>,
    all_views_duration: u64,
    workspace: TiVec<NodeId, u64>,
    kept: TiVec<NodeId, u64>,
    max_computes: TiVec<NodeId, u32>,
    values: Values,
    needs: Lists<NodeId, ValueId>,
    users: Lists<ValueId, NodeId>,
    predecessors: Lists<NodeId, NodeId>,
    successors: Lists<NodeId, NodeId>,
    anti_predecessors: Lists<NodeId, NodeId>,
    anti_successors: Lists<NodeId, NodeId>,
    order: OrderMode,
}

impl Instance {
    /// A valid problem in reference order. The budget is no part of the result.
    #[must_use]
    pub fn of(problem: &Problem, structure: &Structure) -> Self {
        Self::in_order(problem, structure, structure.scheduled().collect())
    }

    /// A valid problem in the order `ops`: all scheduled ops, each once, none before what it reads or what it must not run before.
    #[must_use]
    pub fn in_order(problem: &Problem, structure: &Structure, ops: Vec<OpId>) -> Self {
        let ops: TiVec<NodeId, OpId> = ops.into();
        let mut node_of: TiVec<OpId, Option<NodeId>> = TiVec::from(vec![None; problem.ops.len()]);
        for (node, &op) in ops.iter_enumerated() {
            node_of[op] = Some(node);
        }
        let kept = |&op: &OpId| {
            let owned = structure.owns(op).iter().map(|&storage| &problem.storages[storage]);
            owned.filter(|s| s.role == StorageRole::LiveOut).map(|s| s.bytes).sum()
        };
        let kept: TiVec<NodeId, u64> = ops.iter().map(kept).collect();
        let values = Values::of(problem, structure, &ops);
        let workspace = ops.iter_enumerated().map(|(node, &op)| {
            let made = values.made(node).map(|value| values.bytes[value]).sum::<u64>() + kept[node];
            let views = structure.views_workspace(op).saturating_sub(made);
            problem.ops[op].workspace.max(views)
        });
        let workspace = workspace.collect();
        let most = problem.max_computes.unwrap_or(u32::MAX);
        let max_computes = |&op: &OpId| match problem.ops[op].recomputable && !structure.is_pinned(op) {
            true => most,
            false => 1,
        };
        let need = |&op: &OpId| structure.needs(op).iter().filter_map(|&s| values.of_storage[s]);
        let needs = Lists::of(ops.iter().map(need));
        let anti_predecessors = anti_predecessors(problem, &node_of, ops.len());
        let predecessors = predecessors(problem, structure, &ops, &node_of, &anti_predecessors);
        let views = problem.ops.iter_enumerated().filter(|&(op, _)| structure.is_lazy(op));
        Self {
            duration: ops.iter().map(|&op| problem.ops[op].duration).collect(),
            views_duration: views_duration(problem, structure, &node_of, ops.len()),
            all_views_duration: views.map(|(_, op)| op.duration).sum(),
            workspace,
            max_computes: ops.iter().map(max_computes).collect(),
            users: needs.inverted(values.bytes.len()),
            successors: predecessors.inverted(ops.len()),
            needs,
            predecessors,
            anti_successors: anti_predecessors.inverted(ops.len()),
            anti_predecessors,
            kept,
            values,
            node_of,
            ops,
            order: problem.order,
        }
    }

    /// Whether first runs have to follow the reference order.
    #[inline]
    #[must_use]
    pub fn order(&self) -> OrderMode {
        self.order
    }

    /// Number of nodes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether there is nothing to schedule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone + use<> {
        (0..self.ops.len()).map(NodeId::new)
    }

    /// Number of values.
    #[inline]
    #[must_use]
    pub fn value_count(&self) -> usize {
        self.values.bytes.len()
    }

    /// All values, in the order of the nodes that make them.
    pub fn all_values(&self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + Clone + use<> {
        (0..self.value_count()).map(ValueId::new)
    }

    /// The op of a node.
    #[inline]
    #[must_use]
    pub fn op(&self, node: NodeId) -> OpId {
        self.ops[node]
    }

    /// The ops of all nodes.
    #[must_use]
    pub fn ops(&self) -> &[OpId] {
        &self.ops.raw
    }

    /// The node of an op; `None` for lazy views.
    #[inline]
    #[must_use]
    pub fn node_of(&self, op: OpId) -> Option<NodeId> {
        self.node_of.get(op).copied().flatten()
    }

    /// Time of a run, without lazy views.
    #[inline]
    #[must_use]
    pub fn duration(&self, node: NodeId) -> u64 {
        self.duration[node]
    }

    /// Time of all lazy views that look into what a node makes, each once: at most this is added when the node runs again.
    #[inline]
    #[must_use]
    pub fn views_duration(&self, node: NodeId) -> u64 {
        self.views_duration[node]
    }

    /// Time of all lazy views of the problem, each once.
    #[inline]
    #[must_use]
    pub fn all_views_duration(&self) -> u64 {
        self.all_views_duration
    }

    /// Bytes that a run takes on top of its operands and results.
    #[inline]
    #[must_use]
    pub fn workspace(&self, node: NodeId) -> u64 {
        self.workspace[node]
    }

    /// Bytes of kept results: every run takes them, the first one for good.
    #[inline]
    #[must_use]
    pub fn kept(&self, node: NodeId) -> u64 {
        self.kept[node]
    }

    /// How often a node may run: once where the op is not recomputable, or where another run would undo a result that others
    /// read ([`Structure::is_pinned`]).
    #[inline]
    #[must_use]
    pub fn max_computes(&self, node: NodeId) -> u32 {
        self.max_computes[node]
    }

    /// The values that a run of a node makes.
    #[inline]
    pub fn values(&self, node: NodeId) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + Clone + use<> {
        self.values.made(node)
    }

    /// The value of this rank among those of a node.
    #[inline]
    #[must_use]
    pub fn value(&self, node: NodeId, rank: usize) -> ValueId {
        ValueId::new(self.values.start[node.index()] as usize + rank)
    }

    /// Position of a value among those of its node.
    #[inline]
    #[must_use]
    pub fn rank(&self, value: ValueId) -> usize {
        (value.0 - self.values.start[self.producer(value).index()]) as usize
    }

    /// Size of a value in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self, value: ValueId) -> u64 {
        self.values.bytes[value]
    }

    /// All sizes that add up in memory: values, workspace, and kept results twice, since a node that runs again holds a duplicate of
    /// them: the figures that a common unit has to suit.
    pub fn sizes(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        let kept = || self.kept.iter();
        let all = self.values.bytes.iter().chain(&self.workspace).chain(kept());
        all.chain(kept()).copied()
    }

    /// The node that makes a value.
    #[inline]
    #[must_use]
    pub fn producer(&self, value: ValueId) -> NodeId {
        self.values.producer[value]
    }

    /// The storage of a value.
    #[inline]
    #[must_use]
    pub fn storage(&self, value: ValueId) -> StorageId {
        self.values.storage[value]
    }

    /// The values that must be resident while a node runs, those behind lazy views included.
    #[inline]
    #[must_use]
    pub fn needs(&self, node: NodeId) -> &[ValueId] {
        self.needs.get(node)
    }

    /// The nodes that need a value, ascending.
    #[inline]
    #[must_use]
    pub fn users(&self, value: ValueId) -> &[NodeId] {
        self.users.get(value)
    }

    /// The nodes after whose first run a node never runs, not even again; ascending.
    #[inline]
    #[must_use]
    pub fn anti_successors(&self, node: NodeId) -> &[NodeId] {
        self.anti_successors.get(node)
    }

    /// The nodes all of whose runs stand before the first run of a node; ascending.
    #[inline]
    #[must_use]
    pub fn anti_predecessors(&self, node: NodeId) -> &[NodeId] {
        self.anti_predecessors.get(node)
    }

    /// Whether a node may run where other nodes `ran` before.
    #[inline]
    #[must_use]
    pub fn may_run_after(&self, node: NodeId, ran: impl Fn(NodeId) -> bool) -> bool {
        !self.anti_successors(node).iter().any(|&other| ran(other))
    }

    /// How often a node may run where no attention is paid to anti-dependences: once where it has
    /// [`anti_successors`](Self::anti_successors), else as [`max_computes`](Self::max_computes) says.
    #[must_use]
    pub fn max_computes_anywhere(&self, node: NodeId) -> u32 {
        if self.anti_successors(node).is_empty() {
            self.max_computes(node)
        } else {
            1
        }
    }

    /// The nodes that define what a node reads, itself or through lazy views, and its [`anti_predecessors`](Self::anti_predecessors),
    /// ascending: its first run stands after theirs.
    #[inline]
    #[must_use]
    pub fn predecessors(&self, node: NodeId) -> &[NodeId] {
        self.predecessors.get(node)
    }

    /// The nodes of which a node is a predecessor, ascending.
    #[inline]
    #[must_use]
    pub fn successors(&self, node: NodeId) -> &[NodeId] {
        self.successors.get(node)
    }
}

/// The values and who makes them.
#[derive(Clone, Debug)]
struct Values {
    /// Per node, and one more: its first value.
    start: Vec<u32>,
    bytes: TiVec<ValueId, u64>,
    producer: TiVec<ValueId, NodeId>,
    storage: TiVec<ValueId, StorageId>,
    of_storage: TiVec<StorageId, Option<ValueId>>,
}

impl Values {
    fn of(problem: &Problem, structure: &Structure, ops: &TiVec<NodeId, OpId>) -> Self {
        let mut values = Self {
            start: vec![0],
            bytes: TiVec::new(),
            producer: TiVec::new(),
            storage: TiVec::new(),
            of_storage: TiVec::from(vec![None; problem.storages.len()]),
        };
        for (node, &op) in ops.iter_enumerated() {
            for &storage in structure.owns(op) {
                let entry = &problem.storages[storage];
                if entry.role == StorageRole::Transient && entry.bytes > 0 {
                    values.of_storage[storage] = Some(values.bytes.push_and_get_key(entry.bytes));
                    values.producer.push(node);
                    values.storage.push(storage);
                }
            }
            values.start.push(values.bytes.next_key().0);
        }
        values
    }

    #[inline]
    fn made(&self, node: NodeId) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + Clone + use<> {
        (self.start[node.index()]..self.start[node.index() + 1]).map(ValueId)
    }
}

/// For each node those that never run after its first run.
fn anti_predecessors(problem: &Problem, node_of: &TiVec<OpId, Option<NodeId>>, nodes: usize) -> Lists<NodeId, NodeId> {
    let mut lists: TiVec<NodeId, Vec<NodeId>> = TiVec::from(vec![Vec::new(); nodes]);
    for pair in &problem.anti_dependences {
        if let (Some(before), Some(after)) = (node_of[pair.before], node_of[pair.after]) {
            lists[after].push(before);
        }
    }
    lists.iter_mut().for_each(|list| list.sort_unstable());
    Lists::of(lists)
}

/// For each node those that define what it reads, itself or through lazy views, and those that never run after it.
fn predecessors(
    problem: &Problem,
    structure: &Structure,
    ops: &TiVec<NodeId, OpId>,
    node_of: &TiVec<OpId, Option<NodeId>>,
    anti_predecessors: &Lists<NodeId, NodeId>,
) -> Lists<NodeId, NodeId> {
    // For each lazy view the nodes that define what it reads.
    let mut views: TiVec<OpId, SmallVec<[NodeId; 1]>> = TiVec::from(vec![SmallVec::new(); problem.ops.len()]);
    let read_by = |op: OpId, views: &TiVec<OpId, SmallVec<[NodeId; 1]>>| {
        let mut read: SmallVec<[NodeId; 4]> = SmallVec::new();
        let tensors = problem.ops[op].reads.iter();
        for producer in tensors.filter_map(|&tensor| problem.tensors[tensor].producer) {
            match node_of[producer] {
                Some(node) => read.push(node),
                None => read.extend_from_slice(&views[producer]),
            }
        }
        read.sort_unstable();
        read.dedup();
        read
    };
    for view in problem.ops.keys().filter(|&op| structure.is_lazy(op)) {
        views[view] = read_by(view, &views).into_iter().collect();
    }
    Lists::of(ops.iter_enumerated().map(|(node, &op)| {
        let mut all = read_by(op, &views);
        all.extend_from_slice(anti_predecessors.get(node));
        all.sort_unstable();
        all.dedup();
        all
    }))
}

/// For each node the time of the lazy views that look into memory it creates.
fn views_duration(
    problem: &Problem,
    structure: &Structure,
    node_of: &TiVec<OpId, Option<NodeId>>,
    nodes: usize,
) -> TiVec<NodeId, u64> {
    let mut sum: TiVec<NodeId, u64> = TiVec::from(vec![0; nodes]);
    for (_, view) in problem.ops.iter_enumerated().filter(|&(op, _)| structure.is_lazy(op)) {
        let storages = view.defines.iter().map(|&tensor| problem.tensors[tensor].storage);
        let creators = storages.filter_map(|storage| problem.tensors[problem.storages[storage].root].producer);
        let mut nodes: SmallVec<[NodeId; 4]> = creators.filter_map(|op| node_of[op]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            sum[node] += view.duration;
        }
    }
    sum
}

/// The greatest common divisor; 0 of nothing and of zeros.
pub fn gcd(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let of_two = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    numbers.into_iter().fold(0, of_two)
}
