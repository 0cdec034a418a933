//! Ops and the values that they make, in flat arrays.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use crate::dense::{Id, Lists, Table, dense_id};

dense_id!(
    /// An op, by its place in an order in which every op stands behind its predecessors.
    NodeId
);
dense_id!(
    /// A value that takes memory until its last reader has run. Ids ascend with those of the nodes that make the values.
    ValueId
);

/// What an op makes, or what is there before any op runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its bytes.
    pub bytes: u64,
    /// The op that makes it; `None` for an input, which is there from the beginning.
    pub producer: Option<u32>,
    /// Whether it takes its bytes to the end, as outputs do; else it is gone once its last reader has run, or its op where nobody reads it.
    pub stays: bool,
}

/// A directed acyclic graph of ops. Ops and values are numbered from 0; weights, which are there whatever runs, are left out.
#[derive(Clone, Copy, Debug)]
pub struct Dag<'a> {
    /// Bytes that each op takes while it runs, on top of what it reads and makes; as many as there are ops.
    pub workspace: &'a [u64],
    /// The values, in any order.
    pub values: &'a [Value],
    /// Which op reads which value, in any order.
    pub reads: &'a [(u32, u32)],
    /// Which op has to run behind which other one for another reason, in any order.
    pub after: &'a [(u32, u32)],
}

/// Why ops have no order, or cannot be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderError {
    /// An op of this number is named, but there are fewer.
    NoOp(u32),
    /// A value of this number is named, but there are fewer.
    NoValue(u32),
    /// This op has to run before itself.
    Circle(u32),
    /// Bytes add up to more than 2^62.
    TooLarge,
    /// There are more than 2^29 ops or values, or more than 2^30 pairs.
    TooMany,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOp(op) => write!(f, "op {op} is named, but there are fewer"),
            Self::NoValue(value) => write!(f, "value {value} is named, but there are fewer"),
            Self::Circle(op) => write!(f, "op {op} has to run before itself"),
            Self::TooLarge => f.write_str("bytes add up to more than 2^62"),
            Self::TooMany => f.write_str("there are more than 2^29 ops or values, or more than 2^30 pairs"),
        }
    }
}

impl core::error::Error for OrderError {}

/// Most ops and values that a graph may have, each.
pub const MOST_OPS: usize = 1 << 29;
/// Most pairs.
const MOST_PAIRS: usize = 1 << 30;

/// A [`Dag`] that was checked. Its nodes are the ops, and before them one that makes the inputs, where there are any.
#[derive(Clone, Debug)]
pub struct Network {
    /// The op of each node; `None` for the inputs.
    ops: Table<NodeId, Option<u32>>,
    workspace: Table<NodeId, u64>,
    kept: Table<NodeId, u64>,
    /// Per node, and one more: its first value.
    first_value: Vec<u32>,
    bytes: Table<ValueId, u64>,
    producer: Table<ValueId, NodeId>,
    needs: Lists<NodeId, ValueId>,
    users: Lists<ValueId, NodeId>,
    predecessors: Lists<NodeId, NodeId>,
    successors: Lists<NodeId, NodeId>,
}

impl Network {
    /// Checks and flattens a graph, in time `n log n`.
    ///
    /// # Errors
    /// [`OrderError`] for the first thing that is wrong.
    pub fn new(dag: &Dag<'_>) -> Result<Self, OrderError> {
        check(dag)?;
        let is_read = flags(dag.values.len(), dag.reads.iter().map(|&(_, value)| value));
        let is_input = |value: usize| {
            let Value { bytes, producer, stays } = dag.values[value];
            producer.is_none() && bytes > 0 && (stays || is_read[value])
        };
        let has_inputs = (0..dag.values.len()).any(is_input);
        let order = topological(dag)?;
        let ops: Table<NodeId, Option<u32>> = has_inputs
            .then_some(None)
            .into_iter()
            .chain(order.iter().map(|&op| Some(op)))
            .collect();
        let mut node_of = vec![NodeId::at(0); order.len()];
        for (node, op) in ops.iter_enumerated() {
            if let Some(op) = *op {
                node_of[op as usize] = node;
            }
        }
        let maker = |value: usize| match dag.values[value].producer {
            Some(op) => Some(node_of[op as usize]),
            None => is_input(value).then_some(NodeId::at(0)),
        };
        let mut network = Self {
            workspace: ops
                .iter()
                .map(|op| op.map_or(0, |op| dag.workspace[op as usize]))
                .collect(),
            kept: Table::filled(0, ops.len()),
            first_value: vec![0; ops.len() + 1],
            bytes: Table::new(),
            producer: Table::new(),
            needs: Lists::of_pairs(core::iter::empty(), ops.len()),
            users: Lists::of_pairs(core::iter::empty(), 0),
            predecessors: Lists::of_pairs(core::iter::empty(), 0),
            successors: Lists::of_pairs(core::iter::empty(), 0),
            ops,
        };
        let value_of = network.take_values(dag, maker);
        let reads = || {
            dag.reads
                .iter()
                .map(|&(op, value)| (node_of[op as usize], value as usize))
        };
        let needs = reads().filter_map(|(node, value)| Some((node, value_of[value]?)));
        network.needs = listed(needs, network.len());
        let makers = reads().filter_map(|(node, value)| Some((node, maker(value)?)));
        let others = dag
            .after
            .iter()
            .map(|&(op, before)| (node_of[op as usize], node_of[before as usize]));
        let inputs = network.nodes().skip(1).filter(|_| has_inputs);
        let inputs = inputs.map(|node| (node, NodeId::at(0)));
        network.predecessors = listed(makers.chain(others).chain(inputs), network.len());
        network.users = inverted(&network.needs, network.bytes.len());
        network.successors = inverted(&network.predecessors, network.len());
        Ok(network)
    }

    /// Takes in the values in the order of their nodes; the id of each, `None` where it needs no decision.
    fn take_values(&mut self, dag: &Dag<'_>, maker: impl Fn(usize) -> Option<NodeId>) -> Vec<Option<ValueId>> {
        let mut value_of = vec![None; dag.values.len()];
        let by_node = Lists::of_pairs(
            (0..dag.values.len()).filter_map(|value| Some((maker(value)?, value))),
            self.len(),
        );
        for node in self.nodes() {
            for &value in &by_node[node] {
                let Value { bytes, stays, .. } = dag.values[value];
                if stays {
                    self.kept[node] += bytes;
                } else if bytes > 0 {
                    value_of[value] = Some(ValueId::at(self.bytes.len()));
                    self.bytes.raw.push(bytes);
                    self.producer.raw.push(node);
                }
            }
            self.first_value[node.position() + 1] = self.bytes.len() as u32;
        }
        value_of
    }

    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// The ops of nodes in an order.
    pub(crate) fn ops(&self, order: &[NodeId]) -> Vec<u32> {
        order.iter().filter_map(|&node| self.ops[node]).collect()
    }

    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + Clone + use<> {
        (0..self.ops.len()).map(NodeId::at)
    }

    pub(crate) fn all_values(&self) -> impl DoubleEndedIterator<Item = ValueId> + ExactSizeIterator + Clone + use<> {
        (0..self.bytes.len()).map(ValueId::at)
    }

    pub(crate) fn workspace(&self, node: NodeId) -> u64 {
        self.workspace[node]
    }

    /// Bytes that a node takes for good.
    pub(crate) fn kept(&self, node: NodeId) -> u64 {
        self.kept[node]
    }

    /// The other values that a node makes.
    pub(crate) fn values(&self, node: NodeId) -> impl ExactSizeIterator<Item = ValueId> + Clone + use<> {
        let at = node.position();
        (self.first_value[at] as usize..self.first_value[at + 1] as usize).map(ValueId::at)
    }

    pub(crate) fn bytes(&self, value: ValueId) -> u64 {
        self.bytes[value]
    }

    pub(crate) fn producer(&self, value: ValueId) -> NodeId {
        self.producer[value]
    }

    /// What has to be there while a node runs, ascending.
    pub(crate) fn needs(&self, node: NodeId) -> &[ValueId] {
        &self.needs[node]
    }

    /// The nodes that need a value, ascending.
    pub(crate) fn users(&self, value: ValueId) -> &[NodeId] {
        &self.users[value]
    }

    /// The nodes that a node waits for, ascending.
    pub(crate) fn predecessors(&self, node: NodeId) -> &[NodeId] {
        &self.predecessors[node]
    }

    /// The nodes that wait for a node, ascending.
    pub(crate) fn successors(&self, node: NodeId) -> &[NodeId] {
        &self.successors[node]
    }

    /// Bytes of what a node makes, workspace included: what it takes on top of what is there.
    pub(crate) fn takes(&self, node: NodeId) -> u64 {
        let made: u64 = self.values(node).map(|value| self.bytes[value]).sum();
        made + self.kept[node] + self.workspace[node]
    }

    /// The most bytes that a single node needs to run: no order has a lower peak.
    pub(crate) fn largest(&self) -> u64 {
        let needed = |node| self.needs(node).iter().map(|&value| self.bytes[value]).sum::<u64>();
        let most = self.nodes().map(|node| needed(node) + self.takes(node)).max();
        most.unwrap_or(0)
    }

    /// The peak of an order of all nodes in bytes, and where it is.
    pub(crate) fn peak_of(&self, order: &[NodeId]) -> (u64, usize) {
        let mut unread: Table<ValueId, usize> = self.all_values().map(|value| self.users(value).len()).collect();
        let (mut memory, mut peak, mut peak_at) = (0, 0, 0);
        for (place, &node) in order.iter().enumerate() {
            let during = memory + self.takes(node);
            if during > peak {
                (peak, peak_at) = (during, place);
            }
            memory = during - self.workspace[node];
            let dead = self.values(node).filter(|&value| self.users(value).is_empty());
            memory -= dead.map(|value| self.bytes[value]).sum::<u64>();
            for &value in self.needs(node) {
                unread[value] -= 1;
                if unread[value] == 0 {
                    memory -= self.bytes[value];
                }
            }
        }
        (peak, peak_at)
    }

    /// The nodes of ops in an order; `None` where it is not one of all ops, each once and behind those that it waits for.
    pub(crate) fn ordered(&self, ops: &[u32]) -> Option<Vec<NodeId>> {
        let mut node_of = vec![None; self.len()];
        for (node, op) in self.ops.iter_enumerated() {
            if let Some(op) = *op {
                node_of[op as usize] = Some(node);
            }
        }
        let inputs = self.nodes().filter(|&node| self.ops[node].is_none());
        let nodes = inputs.map(Some).chain(ops.iter().map(|&op| *node_of.get(op as usize)?));
        let nodes: Vec<NodeId> = nodes.collect::<Option<_>>()?;
        let mut has_run: Table<NodeId, bool> = Table::filled(false, self.len());
        for &node in &nodes {
            let is_ready = self.predecessors(node).iter().all(|&other| has_run[other]);
            if has_run[node] || !is_ready {
                return None;
            }
            has_run[node] = true;
        }
        (nodes.len() == self.len()).then_some(nodes)
    }
}

fn flags(count: usize, set: impl Iterator<Item = u32>) -> Vec<bool> {
    let mut flags = vec![false; count];
    set.for_each(|at| flags[at as usize] = true);
    flags
}

/// The second of each pair by the first, ascending, each once.
fn listed<K: Id, V: Copy + Ord>(pairs: impl Iterator<Item = (K, V)> + Clone, ids: usize) -> Lists<K, V> {
    let mut all = Lists::of_pairs(pairs, ids);
    let ids = (0..ids).map(K::at);
    for id in ids.clone() {
        all[id].sort_unstable();
    }
    let once = |id| {
        let list: &[V] = &all[id];
        let is_new = |&at: &usize| at == 0 || list[at - 1] != list[at];
        (0..list.len()).filter(is_new).map(|at| list[at])
    };
    Lists::of(ids.map(once))
}

fn inverted<K: Id, V: Id>(lists: &Lists<K, V>, ids: usize) -> Lists<V, K> {
    let lists = lists.iter().enumerate();
    let pairs = lists.flat_map(|(at, list)| list.iter().map(move |&value| (value, K::at(at))));
    Lists::of_pairs(pairs, ids)
}

fn check(dag: &Dag<'_>) -> Result<(), OrderError> {
    let pairs = dag.reads.len().saturating_add(dag.after.len());
    if dag.workspace.len() > MOST_OPS || dag.values.len() > MOST_OPS || pairs > MOST_PAIRS {
        return Err(OrderError::TooMany);
    }
    let op = |op: u32| match dag.workspace.get(op as usize) {
        Some(_) => Ok(()),
        None => Err(OrderError::NoOp(op)),
    };
    for &Value { producer, .. } in dag.values {
        producer.map_or(Ok(()), op)?;
    }
    for &(reader, value) in dag.reads {
        op(reader)?;
        if value as usize >= dag.values.len() {
            return Err(OrderError::NoValue(value));
        }
    }
    for &(later, before) in dag.after {
        op(later)?;
        op(before)?;
    }
    let sizes = dag
        .values
        .iter()
        .map(|value| value.bytes)
        .chain(dag.workspace.iter().copied());
    let mut sum = 0u64;
    for bytes in sizes {
        let next = sum.checked_add(bytes).filter(|&next| next < 1 << 62);
        sum = next.ok_or(OrderError::TooLarge)?;
    }
    Ok(())
}

/// The ops, each behind those that it waits for, and as near to the order of their numbers as that allows.
fn topological(dag: &Dag<'_>) -> Result<Vec<u32>, OrderError> {
    let made = |&(op, value): &(u32, u32)| Some((op, dag.values[value as usize].producer?));
    let pairs = || dag.reads.iter().filter_map(made).chain(dag.after.iter().copied());
    let ops = dag.workspace.len();
    let mut waits = vec![0u32; ops];
    pairs().for_each(|(op, _)| waits[op as usize] += 1);
    let mut next = vec![0u32; ops + 1];
    pairs().for_each(|(_, before)| next[before as usize + 1] += 1);
    for at in 0..ops {
        next[at + 1] += next[at];
    }
    let starts = next.clone();
    let mut later = vec![0u32; starts[ops] as usize];
    for (op, before) in pairs() {
        let at = &mut next[before as usize];
        later[*at as usize] = op;
        *at += 1;
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0u32..)
        .zip(&waits)
        .filter(|&(_, &waits)| waits == 0)
        .map(|(op, _)| Reverse(op))
        .collect();
    let mut order = Vec::with_capacity(ops);
    while let Some(Reverse(op)) = ready.pop() {
        order.push(op);
        for &op in &later[starts[op as usize] as usize..starts[op as usize + 1] as usize] {
            waits[op as usize] -= 1;
            if waits[op as usize] == 0 {
                ready.push(Reverse(op));
            }
        }
    }
    if order.len() == ops {
        return Ok(order);
    }
    Err(OrderError::Circle(in_circle(&waits, &pairs().collect::<Vec<_>>())))
}

/// An op of a circle, among those that still wait: going back from one that waits to another comes around.
fn in_circle(waits: &[u32], pairs: &[(u32, u32)]) -> u32 {
    let mut before = vec![0u32; waits.len()];
    for &(op, other) in pairs {
        if waits[other as usize] > 0 {
            before[op as usize] = other;
        }
    }
    let mut op = (0u32..)
        .zip(waits)
        .find(|&(_, &waits)| waits > 0)
        .map_or(0, |(op, _)| op);
    for _ in 0..waits.len() {
        op = before[op as usize];
    }
    op
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: u64, producer: Option<u32>) -> Value {
        Value {
            bytes,
            producer,
            stays: false,
        }
    }

    #[test]
    fn ops_stand_behind_what_they_wait_for_and_inputs_before_all() {
        let values = [value(4, Some(2)), value(8, None), value(5, None), value(0, Some(0))];
        let dag = Dag {
            workspace: &[1, 2, 3],
            values: &values,
            reads: &[(0, 0), (0, 0), (2, 1), (1, 3)],
            after: &[(1, 2)],
        };
        let network = Network::new(&dag).unwrap();
        let nodes: Vec<NodeId> = network.nodes().collect();
        assert_eq!(network.ops(&nodes), [2, 0, 1]);
        assert_eq!(network.len(), 4, "one makes the inputs");
        // Nobody reads the input of 5 bytes.
        assert_eq!((network.takes(nodes[0]), network.takes(nodes[1])), (8, 7));
        assert_eq!(network.needs(nodes[2]).len(), 1, "what is read twice is needed once");
        assert_eq!(network.predecessors(nodes[3]), [nodes[0], nodes[1], nodes[2]]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let fails = |values: &[Value], reads: &[(u32, u32)], after: &[(u32, u32)]| {
            let dag = Dag {
                workspace: &[0, 0, 0],
                values,
                reads,
                after,
            };
            Network::new(&dag).unwrap_err()
        };
        let one = [value(1, Some(1))];
        assert_eq!(fails(&[value(1, Some(3))], &[], &[]), OrderError::NoOp(3));
        assert_eq!(fails(&one, &[(0, 1)], &[]), OrderError::NoValue(1));
        assert_eq!(fails(&one, &[], &[(0, 9)]), OrderError::NoOp(9));
        assert_eq!(fails(&one, &[(1, 0)], &[]), OrderError::Circle(1));
        let circle = fails(&one, &[(2, 0)], &[(1, 2), (0, 1)]);
        assert!(matches!(circle, OrderError::Circle(1 | 2)), "{circle}");
        assert_eq!(fails(&[value(1 << 61, None); 2], &[], &[]), OrderError::TooLarge);
    }
}
