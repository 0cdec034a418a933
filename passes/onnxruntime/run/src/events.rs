//! The runtime's profile file: a JSON list, one event per line; those of nodes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Type and true shape of one result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProfiledOutput {
    /// Element type in the words of ONNX, `float` for instance.
    pub element: String,
    /// Dimensions of the run.
    pub shape: Vec<u64>,
}

impl ProfiledOutput {
    /// Bytes of the elements; `None` where they have no fixed size.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        let bits = match self.element.as_str() {
            "double" | "int64" | "uint64" => 64,
            "float" | "int32" | "uint32" => 32,
            "float16" | "bfloat16" | "int16" | "uint16" => 16,
            "bool" | "int8" | "uint8" => 8,
            "int4" | "uint4" => 4,
            _ => return None,
        };
        let elements = self
            .shape
            .iter()
            .try_fold(1u64, |product, &dim| product.checked_mul(dim))?;
        Some(elements.checked_mul(bits)?.div_ceil(8))
    }
}

/// One node of the main graph as it ran. What runs inside of it (the body of a loop) is part of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProfiledNode {
    /// Name of the node; nodes without one are called `OPTYPE_INDEX` by the runtime.
    pub name: String,
    /// The runtime's number of the node. With optimizers off it is the place among the nodes of the file, `Constant` nodes not counted;
    /// nodes that the runtime adds (casts, the bodies of functions) have numbers from the count of the former on.
    pub index: usize,
    /// Operator.
    pub op_type: String,
    /// What executed it, `CPUExecutionProvider` for instance.
    pub provider: String,
    /// Median over the warm runs, in nanoseconds. The runtime's clock counts whole microseconds.
    pub duration_ns: u64,
    /// Tensors among the results, in the order of the node's results; others (sequences) are not stated by the runtime.
    pub outputs: Vec<ProfiledOutput>,
    /// Bytes of all results, as the runtime states them.
    pub output_bytes: u64,
}

/// How the names of the events of nodes end.
const KERNEL: &str = "_kernel_time";

/// One event.
#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    cat: String,
    name: String,
    /// Start in microseconds since profiling began.
    pub(crate) ts: u64,
    /// Duration in microseconds.
    pub(crate) dur: u64,
    #[serde(default)]
    args: Map<String, Value>,
}

/// Reads a profile file.
pub(crate) fn read(text: &str) -> Result<Vec<Event>, String> {
    let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
    let events = lines.filter(|line| line.starts_with('{')).map(|line| {
        let event = serde_json::from_str(line).or_else(|_| serde_json::from_str(&escape_name(line)));
        event.map_err(|error| format!("{error}: {line}"))
    });
    events.collect()
}

/// The runtime writes names as they are; quotes and backslashes in them break the JSON. This escapes what stands between the keys
/// `name` and `args`.
fn escape_name(line: &str) -> String {
    const BEFORE: &str = "\"name\" :\"";
    const AFTER: &str = "\",\"args\" :";
    let name = line.find(BEFORE).map(|at| at + BEFORE.len());
    let Some((start, end)) = name.and_then(|start| Some((start, start + line[start..].rfind(AFTER)?))) else {
        return line.to_owned();
    };
    let name = Value::from(&line[start..end]).to_string();
    format!("{}{name}{}", &line[..start - 1], &line[end + 1..])
}

impl Event {
    /// Whether a node ran.
    pub(crate) fn is_node(&self) -> bool {
        self.cat == "Node" && self.name.ends_with(KERNEL) && self.args.contains_key("op_name")
    }

    /// Whether the model ran.
    pub(crate) fn is_run(&self) -> bool {
        self.cat == "Session" && self.name == "model_run"
    }

    /// Whether the nodes of a graph ran, be it the main one or that of a loop.
    pub(crate) fn is_executor(&self) -> bool {
        self.cat == "Session" && self.name.ends_with("Executor::Execute")
    }

    /// The runtime's number of the node; an impossible one if it is not stated.
    pub(crate) fn node_index(&self) -> usize {
        self.text("node_index")
            .and_then(|text| text.parse().ok())
            .unwrap_or(usize::MAX)
    }

    pub(crate) fn nanoseconds(&self) -> u64 {
        self.dur.saturating_mul(1000)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.args.get(key).and_then(Value::as_str)
    }

    /// The node, given its time.
    pub(crate) fn node(&self, duration_ns: u64) -> Result<ProfiledNode, String> {
        let name = self.name.strip_suffix(KERNEL).unwrap_or(&self.name).to_owned();
        let index = self.node_index();
        if index == usize::MAX {
            return Err(format!("node `{name}` has no `node_index`"));
        }
        Ok(ProfiledNode {
            op_type: self.text("op_name").unwrap_or_default().to_owned(),
            provider: self.text("provider").unwrap_or_default().to_owned(),
            duration_ns,
            outputs: self
                .outputs()
                .ok_or_else(|| format!("node `{name}` has results of an unknown form"))?,
            output_bytes: self.text("output_size").and_then(|text| text.parse().ok()).unwrap_or(0),
            name,
            index,
        })
    }

    /// `[{"float": [2, 3]}, ...]`.
    fn outputs(&self) -> Option<Vec<ProfiledOutput>> {
        let Some(list) = self.args.get("output_type_shape") else {
            return Some(Vec::new());
        };
        let output = |value: &Value| {
            let (element, shape) = value.as_object()?.iter().next()?;
            let shape = shape.as_array()?.iter().map(Value::as_u64);
            Some(ProfiledOutput {
                element: element.clone(),
                shape: shape.collect::<Option<_>>()?,
            })
        };
        list.as_array()?.iter().map(output).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_break_the_json_are_read() {
        let line = r#"{"cat" : "Node","pid" :1,"tid" :1,"dur" :5,"ts" :7,"ph" : "X","name" :"a"b\c_kernel_time","args" : {"op_name" : "Exp","node_index" : "3","output_size" : "8","output_type_shape" : [{"float":[2]}]}},"#;
        let events = read(&format!("[\n{line}\n]\n")).expect("it is read");
        let node = events[0].node(events[0].nanoseconds()).expect("it is a node");
        assert_eq!(
            (node.name.as_str(), node.index, node.duration_ns),
            (r#"a"b\c"#, 3, 5000)
        );
        assert_eq!(node.outputs[0].shape, [2]);
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        assert!(read("[\n{\"cat\" : \"Node\"},\n]\n").is_err());
        assert!(read("[\n{broken\n]\n").is_err());
    }
}
