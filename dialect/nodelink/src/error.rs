//! Why a file is not a graph.

use remat_files::shown;
use thiserror::Error;

/// How many nodes of a cycle a message names.
const SHOWN: usize = 8;

/// Why bytes could not be read as a node-link graph; nodes are called by their names.
#[derive(Debug, Error)]
pub enum NodeLinkError {
    /// The bytes are not JSON, or not the shape of a node-link graph.
    #[error("not a node-link graph: {0}")]
    Json(#[from] serde_json::Error),
    /// Edges have no direction.
    #[error("the graph is undirected: data flow needs directed edges")]
    Undirected,
    /// A node has neither `id` nor `name`.
    #[error("node {0} of the list has neither `id` nor `name`")]
    NoId(usize),
    /// A node's id is neither an integer nor a string.
    #[error("{place}: id `{id}` is neither an integer nor a string", place = shown(.place), id = shown(.id))]
    BadId {
        /// The node or the edge.
        place: String,
        /// What was found in the place of an id.
        id: String,
    },
    /// Two nodes have one id.
    #[error("node id `{}` is given twice", shown(.0))]
    DuplicateNode(String),
    /// A number and a string are the same id in text.
    #[error("two nodes are called `{}`: once as a number, once as a string", shown(.0))]
    AmbiguousName(String),
    /// A node lacks its size or its time.
    #[error("node `{node}` has neither `{keys}`", keys = .keys.join("` nor `"), node = shown(.node))]
    Missing {
        /// The node.
        node: String,
        /// The keys of which one is needed.
        keys: [&'static str; 2],
    },
    /// A size or time is not a whole number that fits 64 bits.
    #[error("`{key}` of node `{node}` is {found}, expected a whole number from 0 to 2^64 - 1", node = shown(.node), found = shown(.found))]
    BadNumber {
        /// The node.
        node: String,
        /// What is wrong.
        key: &'static str,
        /// The value found.
        found: String,
    },
    /// A size in bytes has no number of bits.
    #[error("`{key}` of node `{node}` is {bytes} bytes, the limit is {limit} bytes", node = shown(.node))]
    TooLarge {
        /// The node.
        node: String,
        /// What is wrong.
        key: &'static str,
        /// The value found.
        bytes: u64,
        /// The largest size of a tensor.
        limit: u64,
    },
    /// An edge lacks one of its ends.
    #[error("edge {index} of the list has neither `{keys}`", keys = .keys.join("` nor `"))]
    NoEnd {
        /// Position in the list.
        index: usize,
        /// The keys of which one is needed.
        keys: [&'static str; 2],
    },
    /// An edge leads to or from a node that is not in the list of nodes; ids are written as in the file.
    #[error("edge {index} of the list joins `{from}` and `{to}`, but there is no node `{missing}`", from = shown(.from), to = shown(.to), missing = shown(.missing))]
    Dangling {
        /// Position in the list.
        index: usize,
        /// Source of the edge.
        from: String,
        /// Target of the edge.
        to: String,
        /// The end that is missing.
        missing: String,
    },
    /// A node reads its own result.
    #[error("node `{}` has an edge to itself", shown(.0))]
    SelfLoop(String),
    /// There is no order; the nodes are one cycle, in the direction of its edges.
    #[error("the graph has a cycle of {} nodes: {}", .0.len(), around(.0))]
    Cycle(Vec<String>),
    /// `graph.order` names a node that does not exist.
    #[error("position {position} of `graph.order` names `{id}`, which is not a node", id = shown(.id))]
    OrderUnknown {
        /// Position in the order.
        position: usize,
        /// What stands there.
        id: String,
    },
    /// `graph.anti_dependences` names a node that is not there.
    #[error("anti-dependence {index} names `{id}`, which is not a node", id = shown(.id))]
    AntiDependenceUnknown {
        /// Position in the list.
        index: usize,
        /// What stands there.
        id: String,
    },
    /// `graph.order` names a node twice.
    #[error("`graph.order` names node `{}` twice", shown(.0))]
    OrderRepeats(String),
    /// `graph.order` leaves out a node.
    #[error("`graph.order` names {named} of {nodes} nodes: node `{missing}` is left out", missing = shown(.missing))]
    OrderIncomplete {
        /// Nodes in the order.
        named: usize,
        /// Nodes in the graph.
        nodes: usize,
        /// The first one that is left out.
        missing: String,
    },
    /// `graph.order` runs a node before another whose result it reads.
    #[error("`graph.order` runs node `{node}` at position {at} before `{input}` at position {input_at}, which it reads", node = shown(.node), input = shown(.input))]
    OrderAgainstEdge {
        /// The node that reads.
        node: String,
        /// Where it stands.
        at: usize,
        /// The node it reads from.
        input: String,
        /// Where that stands.
        input_at: usize,
    },
}

fn around(cycle: &[String]) -> String {
    let mut text = String::new();
    for name in cycle.iter().take(SHOWN) {
        text.push('`');
        text.push_str(&shown(name).to_string());
        text.push_str("` -> ");
    }
    match cycle {
        [first, ..] if cycle.len() <= SHOWN => text + "`" + &shown(first).to_string() + "`",
        _ => text + "…",
    }
}
