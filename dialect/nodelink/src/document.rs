//! The shape of the JSON, both dialects at once.

use serde::Deserialize;
use serde_json::Value;

/// A node-link document.
#[derive(Deserialize)]
pub(crate) struct Document {
    #[serde(default = "yes")]
    pub(crate) directed: bool,
    #[serde(default)]
    pub(crate) graph: Header,
    pub(crate) nodes: Vec<Node>,
    #[serde(alias = "edges")]
    pub(crate) links: Vec<Edge>,
}

/// Attributes of the graph.
#[derive(Default, Deserialize)]
pub(crate) struct Header {
    #[serde(default)]
    pub(crate) name: Value,
    #[serde(default)]
    pub(crate) order: Option<Vec<Value>>,
    /// Pairs of ids.
    #[serde(default)]
    pub(crate) anti_dependences: Vec<[Value; 2]>,
}

/// A node.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: Option<Value>,
    pub(crate) name: Option<Value>,
    pub(crate) out_cost: Option<Value>,
    pub(crate) cost_ram: Option<Value>,
    pub(crate) duration: Option<Value>,
    pub(crate) cost_cpu: Option<Value>,
    #[serde(default)]
    pub(crate) backward: Value,
}

/// An edge from the node that computes to the node that reads.
#[derive(Deserialize)]
pub(crate) struct Edge {
    #[serde(alias = "0")]
    pub(crate) source: Option<Value>,
    #[serde(alias = "1")]
    pub(crate) target: Option<Value>,
}

fn yes() -> bool {
    true
}
