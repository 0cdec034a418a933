//! From the document to the graph.

use remat_ir::{Attribute, ElementType, Graph, GraphBuilder, OpId, OpSpec, TensorId, ValueType};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use typed_index_collections::TiVec;

use crate::NodeLinkError;
use crate::document::{Document, Edge, Node};
use crate::number::{NodeKey, unsigned};
use crate::order::Edges;

/// The op type of every node.
pub const OP_TYPE: &str = "node";

/// Name of the attribute, an integer 1, that marks the ops of a backward pass.
pub const BACKWARD: &str = "backward";

const SIZE_KEYS: [&str; 2] = ["out_cost", "cost_ram"];
const TIME_KEYS: [&str; 2] = ["duration", "cost_cpu"];

/// The largest size whose bits can be counted.
const MAX_BYTES: u64 = u64::MAX / 8;

/// A graph read from node-link JSON.
///
/// Op `i` is node `i` of the reference order, its only result is tensor `i` of type `u8[bytes]`, with the same name. Its
/// operands are the results of the nodes it has edges from, in the order of the file, each once. The graph is valid; it has
/// neither inputs nor outputs, because the files do not state any. [`remat_ir::Op::source`] is the position in the file's
/// list of nodes.
///
/// An op is called by its node's `name` if that is a string that no other node has, otherwise by its id; if that gives
/// two ops the same name, all ops are called by their ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeLinkGraph {
    /// The graph.
    pub graph: Graph,
    /// Time of each op, in the unit of the file.
    pub durations: TiVec<OpId, u64>,
    /// Pairs of ops of which the first never runs after the second, as the file lists them.
    pub anti_dependences: Vec<[OpId; 2]>,
}

/// Whether `bytes` look like a node-link graph: an object that mentions nodes and edges. [`read`] may still reject them.
#[must_use]
pub fn is_node_link(bytes: &[u8]) -> bool {
    let mentions = |key: &[u8]| bytes.windows(key.len()).any(|window| window == key);
    bytes.trim_ascii_start().starts_with(b"{")
        && mentions(b"\"nodes\"")
        && (mentions(b"\"links\"") || mentions(b"\"edges\""))
}

/// Reads node-link JSON. Where a node has both keys of a size or a time, the one of Moccasin's files counts.
///
/// # Errors
/// [`NodeLinkError`] if the bytes are not a node-link graph, a number is not whole or does not fit, an id is used twice or
/// not at all, the edges form a cycle, or `graph.order` is not an order of all nodes along the edges.
pub fn read(bytes: &[u8]) -> Result<NodeLinkGraph, NodeLinkError> {
    let document: Document = serde_json::from_slice(bytes)?;
    if !document.directed {
        return Err(NodeLinkError::Undirected);
    }
    let nodes = Nodes::new(&document.nodes)?;
    let edges = nodes.edges(&document.links)?;
    let natural = edges.topological_order().map_err(|cycle| {
        let names = cycle.into_iter().map(|node| nodes.names[node].clone());
        NodeLinkError::Cycle(names.collect())
    })?;
    let order = match &document.graph.order {
        Some(given) => nodes.given_order(given, &edges)?,
        None => natural,
    };
    let anti_dependences = nodes.anti_dependences(&document.graph.anti_dependences, &order)?;
    let name = document.graph.name.as_str().unwrap_or_default();
    let (graph, durations) = nodes.build(name, &document.nodes, &edges, &order)?;
    Ok(NodeLinkGraph {
        graph,
        durations,
        anti_dependences,
    })
}

/// The nodes of a file by position, and what they are called.
struct Nodes {
    positions: Positions,
    names: Vec<String>,
}

/// Where the node of an id stands in the list.
enum Positions {
    /// Ids are the positions.
    Same(usize),
    Listed(FxHashMap<NodeKey, usize>),
}

impl Positions {
    fn new(keys: &[NodeKey]) -> Result<Self, NodeLinkError> {
        let is_position =
            |(i, key): (usize, &NodeKey)| matches!(key, NodeKey::Number(n) if usize::try_from(*n) == Ok(i));
        if keys.iter().enumerate().all(is_position) {
            return Ok(Self::Same(keys.len()));
        }
        let mut listed = FxHashMap::default();
        for (i, key) in keys.iter().enumerate() {
            if listed.insert(key.clone(), i).is_some() {
                return Err(NodeLinkError::DuplicateNode(key.to_string()));
            }
        }
        Ok(Self::Listed(listed))
    }

    fn get(&self, key: &NodeKey) -> Option<usize> {
        match (self, key) {
            (Self::Same(count), NodeKey::Number(n)) => usize::try_from(*n).ok().filter(|n| n < count),
            (Self::Same(_), NodeKey::Text(_)) => None,
            (Self::Listed(listed), key) => listed.get(key).copied(),
        }
    }
}

impl Nodes {
    fn new(list: &[Node]) -> Result<Self, NodeLinkError> {
        let mut keys = Vec::with_capacity(list.len());
        for (i, node) in list.iter().enumerate() {
            let id = node.id.as_ref().or(node.name.as_ref()).ok_or(NodeLinkError::NoId(i))?;
            keys.push(key(id, || format!("node {i} of the list"))?);
        }
        let positions = Positions::new(&keys)?;
        let names = names(list, &keys)?;
        Ok(Self { positions, names })
    }

    fn edges(&self, list: &[Edge]) -> Result<Edges, NodeLinkError> {
        let mut edges = Edges {
            inputs: vec![Vec::new(); self.names.len()],
            users: vec![Vec::new(); self.names.len()],
        };
        for (index, edge) in list.iter().enumerate() {
            let end = |value: &Option<Value>, keys| {
                let value = value.as_ref().ok_or(NodeLinkError::NoEnd { index, keys })?;
                key(value, || format!("edge {index} of the list"))
            };
            let from = end(&edge.source, ["source", "0"])?;
            let to = end(&edge.target, ["target", "1"])?;
            let node = |key: &NodeKey| {
                let dangling = || NodeLinkError::Dangling {
                    index,
                    from: from.json(),
                    to: to.json(),
                    missing: key.json(),
                };
                self.positions.get(key).ok_or_else(dangling)
            };
            let (from, to) = (node(&from)?, node(&to)?);
            if from == to {
                return Err(NodeLinkError::SelfLoop(self.names[from].clone()));
            }
            edges.inputs[to].push(from);
            edges.users[from].push(to);
        }
        keep_first(&mut edges.inputs);
        keep_first(&mut edges.users);
        Ok(edges)
    }

    /// `graph.order`, if it names every node once and no node before one that it reads.
    fn given_order(&self, given: &[Value], edges: &Edges) -> Result<Vec<usize>, NodeLinkError> {
        let mut place = vec![None; self.names.len()];
        let mut order = Vec::with_capacity(given.len());
        for (position, id) in given.iter().enumerate() {
            let node = NodeKey::new(id).and_then(|key| self.positions.get(&key));
            let unknown = || NodeLinkError::OrderUnknown {
                position,
                id: id.to_string(),
            };
            let node = node.ok_or_else(unknown)?;
            if place[node].replace(position).is_some() {
                return Err(NodeLinkError::OrderRepeats(self.names[node].clone()));
            }
            order.push(node);
        }
        if let Some(left_out) = place.iter().position(Option::is_none) {
            return Err(NodeLinkError::OrderIncomplete {
                named: order.len(),
                nodes: place.len(),
                missing: self.names[left_out].clone(),
            });
        }
        for (at, &node) in order.iter().enumerate() {
            let late = |&&input: &&usize| place[input] > Some(at);
            if let Some(&input) = edges.inputs[node].iter().find(late) {
                return Err(NodeLinkError::OrderAgainstEdge {
                    node: self.names[node].clone(),
                    at,
                    input: self.names[input].clone(),
                    input_at: place[input].unwrap_or_default(),
                });
            }
        }
        Ok(order)
    }

    /// The pairs in the ids of the ops, of which op `i` is node `order[i]`.
    fn anti_dependences(&self, pairs: &[[Value; 2]], order: &[usize]) -> Result<Vec<[OpId; 2]>, NodeLinkError> {
        let mut op_of = vec![OpId::new(0); order.len()];
        for (place, &node) in order.iter().enumerate() {
            op_of[node] = OpId::new(place);
        }
        let op = |index: usize, id: &Value| {
            let node = NodeKey::new(id).and_then(|key| self.positions.get(&key));
            let unknown = || NodeLinkError::AntiDependenceUnknown {
                index,
                id: id.to_string(),
            };
            node.map(|node| op_of[node]).ok_or_else(unknown)
        };
        let pair = |(index, [before, after]): (usize, &[Value; 2])| Ok([op(index, before)?, op(index, after)?]);
        pairs.iter().enumerate().map(pair).collect()
    }

    fn build(
        &self,
        name: &str,
        list: &[Node],
        edges: &Edges,
        order: &[usize],
    ) -> Result<(Graph, TiVec<OpId, u64>), NodeLinkError> {
        let mut builder = GraphBuilder::new(name);
        let mut durations = TiVec::with_capacity(order.len());
        let mut results: Vec<Option<TensorId>> = vec![None; list.len()];
        for &at in order {
            let (node, name) = (&list[at], &self.names[at]);
            let (key, bytes) = cost(name, SIZE_KEYS, [&node.out_cost, &node.cost_ram])?;
            let (_, duration) = cost(name, TIME_KEYS, [&node.duration, &node.cost_cpu])?;
            let mut spec = OpSpec::new(name, OP_TYPE).defines(name, ValueType::tensor(ElementType::Uint8, &[bytes]));
            spec.inputs = edges.inputs[at].iter().map(|&input| results[input]).collect();
            spec.source = u32::try_from(at).ok();
            if node.backward == Value::Bool(true) {
                spec.attributes.insert(BACKWARD.to_owned(), Attribute::Int(1));
            }
            let (_, outputs) = builder.op(spec).map_err(|_| NodeLinkError::TooLarge {
                node: name.clone(),
                key,
                bytes,
                limit: MAX_BYTES,
            })?;
            results[at] = outputs[0];
            durations.push(duration);
        }
        Ok((builder.finish(), durations))
    }
}

/// Removes from each list what stands in it before.
fn keep_first(lists: &mut [Vec<usize>]) {
    let mut seen_in = vec![usize::MAX; lists.len()];
    for (at, list) in lists.iter_mut().enumerate() {
        list.retain(|&node| std::mem::replace(&mut seen_in[node], at) != at);
    }
}

/// What nodes are called; see [`NodeLinkGraph`].
fn names(list: &[Node], keys: &[NodeKey]) -> Result<Vec<String>, NodeLinkError> {
    let mut count: FxHashMap<&str, usize> = FxHashMap::default();
    for name in list.iter().filter_map(given_name) {
        *count.entry(name).or_default() += 1;
    }
    let mixed = list.iter().zip(keys).map(|(node, key)| {
        given_name(node)
            .filter(|name| count[name] == 1)
            .map_or_else(|| key.to_string(), str::to_owned)
    });
    let mixed: Vec<String> = mixed.collect();
    if first_repeated(&mixed).is_none() {
        return Ok(mixed);
    }
    let ids: Vec<String> = keys.iter().map(NodeKey::to_string).collect();
    match first_repeated(&ids) {
        None => Ok(ids),
        Some(name) => Err(NodeLinkError::AmbiguousName(name.to_owned())),
    }
}

/// The `name` of a node, if it is a string.
fn given_name(node: &Node) -> Option<&str> {
    node.name.as_ref()?.as_str()
}

fn first_repeated(names: &[String]) -> Option<&str> {
    let mut seen = FxHashSet::default();
    names.iter().map(String::as_str).find(|&name| !seen.insert(name))
}

fn key(value: &Value, place: impl FnOnce() -> String) -> Result<NodeKey, NodeLinkError> {
    NodeKey::new(value).ok_or_else(|| NodeLinkError::BadId {
        place: place(),
        id: value.to_string(),
    })
}

/// The first value that is there, with its key.
fn cost(
    node: &str,
    keys: [&'static str; 2],
    values: [&Option<Value>; 2],
) -> Result<(&'static str, u64), NodeLinkError> {
    let present = keys
        .into_iter()
        .zip(values)
        .find_map(|(key, value)| Some((key, value.as_ref()?)));
    let Some((key, value)) = present else {
        return Err(NodeLinkError::Missing {
            node: node.to_owned(),
            keys,
        });
    };
    let bad = || NodeLinkError::BadNumber {
        node: node.to_owned(),
        key,
        found: value.to_string(),
    };
    Ok((key, unsigned(value).ok_or_else(bad)?))
}
