//! Node-link graphs with fewer nodes and links. Keys that this program does not know stay.

use std::ops::Range;

use serde_json::Value;

use super::{Subject, outside};

/// A networkx graph in JSON, with its numbers apart, since JSON has no place for them that could be lent out.
#[derive(Clone)]
pub(crate) struct NodeLinkSubject {
    document: Value,
    numbers: Vec<u64>,
}

/// Position in [`Subject::KINDS`].
const NODES: usize = 0;
/// Attributes of nodes whose values are sizes or times.
const COSTS: [&str; 4] = ["out_cost", "cost_ram", "duration", "cost_cpu"];

impl NodeLinkSubject {
    /// A document with a list of nodes.
    pub(crate) fn new(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut subject = Self {
            document: serde_json::from_slice(bytes)?,
            numbers: Vec::new(),
        };
        subject.read_numbers();
        Ok(subject)
    }

    /// The key of the list of links.
    fn links(&self) -> &'static str {
        if self.document.get("links").is_some() {
            "links"
        } else {
            "edges"
        }
    }

    fn list(&self, key: &str) -> &[Value] {
        self.document
            .get(key)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    fn read_numbers(&mut self) {
        let costs = self.document.get_mut("nodes").into_iter().flat_map(costs);
        self.numbers = costs.map(|cost| cost.as_u64().unwrap_or(0)).collect();
    }

    /// The document with the numbers as they are now.
    fn written(&self) -> Value {
        let mut document = self.document.clone();
        let costs = document.get_mut("nodes").into_iter().flat_map(costs);
        for (cost, &number) in costs.zip(&self.numbers) {
            *cost = number.into();
        }
        document
    }
}

/// The sizes and times of all nodes that are whole numbers.
fn costs(nodes: &mut Value) -> impl Iterator<Item = &mut Value> {
    let nodes = nodes.as_array_mut().into_iter().flatten();
    let members = nodes.filter_map(Value::as_object_mut).flatten();
    members.filter_map(|(key, value)| (COSTS.contains(&key.as_str()) && value.is_u64()).then_some(value))
}

/// What links and the order call a node.
fn ids(node: &Value) -> impl Iterator<Item = &Value> {
    [node.get("id"), node.get("name")].into_iter().flatten()
}

impl Subject for NodeLinkSubject {
    const KINDS: &'static [&'static str] = &["nodes", "links"];

    fn count(&self, kind: usize) -> usize {
        self.list(if kind == NODES { "nodes" } else { self.links() }).len()
    }

    fn without(&self, kind: usize, parts: Range<usize>) -> Option<Self> {
        let links = self.links();
        let mut document = self.written();
        if kind == NODES {
            let nodes = document["nodes"].as_array().cloned().unwrap_or_default();
            let kept = outside(&nodes, &parts);
            let gone: Vec<&Value> = nodes[parts].iter().flat_map(ids).collect();
            let is_gone = |id: &Value| gone.contains(&id);
            if let Some(list) = document.get_mut(links).and_then(Value::as_array_mut) {
                let ends = |link: &Value| {
                    ["source", "target", "0", "1"]
                        .iter()
                        .any(|end| link.get(end).is_some_and(is_gone))
                };
                list.retain(|link| !ends(link));
            }
            if let Some(order) = document.pointer_mut("/graph/order").and_then(Value::as_array_mut) {
                order.retain(|id| !is_gone(id));
            }
            document["nodes"] = Value::Array(kept);
        } else {
            document[links] = Value::Array(outside(self.list(links), &parts));
        }
        let mut reduced = Self {
            document,
            numbers: Vec::new(),
        };
        reduced.read_numbers();
        Some(reduced)
    }

    fn numbers(&mut self) -> Vec<&mut u64> {
        self.numbers.iter_mut().collect()
    }

    fn is_valid(&self) -> bool {
        true
    }

    fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        Ok(format!("{:#}\n", self.written()).into_bytes())
    }
}
