//! What ONNX Runtime did with a model, as `tests/data/facts.py` writes it.

use std::collections::{BTreeMap, HashMap};

use remat_cost::{Device, analytic, no_bodies};
use remat_ir::{
    Attribute, ElementType, Graph, GraphBuilder, OpKind, OpSpec, Placement, ResultSpec, TensorId, ValueType,
};
use remat_onnxruntime_sim::{NodeIndex, Program};
use serde::Deserialize;

/// Name, element type, dimensions.
type Typed = (String, String, Vec<u64>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Int(i64),
    Ints(Vec<i64>),
    Text(String),
}

#[derive(Deserialize)]
struct Node {
    name: String,
    op: String,
    #[serde(default)]
    domain: String,
    #[serde(rename = "in")]
    inputs: Vec<String>,
    #[serde(rename = "out")]
    outputs: Vec<Option<Typed>>,
    #[serde(default)]
    captures: Vec<String>,
    #[serde(default)]
    attributes: BTreeMap<String, Number>,
}

/// Heap peaks of the first run, arena off.
#[derive(Deserialize)]
pub(crate) struct Heap {
    pub(crate) reuse: u64,
    pub(crate) no_reuse: u64,
}

#[derive(Deserialize)]
pub(crate) struct Facts {
    inputs: Vec<Typed>,
    initializers: Vec<Typed>,
    outputs: Vec<String>,
    nodes: Vec<Node>,
    /// Whether the nodes stand at their places in the given file, so that the order can be simulated.
    pub(crate) placed: bool,
    run: Vec<usize>,
    pub(crate) heap: Heap,
    /// Heap peaks of the first and of a later run, arena and pattern on.
    pub(crate) arena: [u64; 2],
}

impl Facts {
    /// The order in which the runtime ran the nodes.
    pub(crate) fn run(&self) -> Vec<NodeIndex> {
        self.run.iter().map(|&index| NodeIndex::new(index)).collect()
    }

    /// The program, with workspace by the tables of `remat-cost`.
    pub(crate) fn program(&self) -> Program {
        let graph = self.graph();
        let profile = analytic(&graph, &Device::default(), no_bodies);
        Program::from_graph(&graph, &|_, op| profile.ops[op].workspace_bytes)
    }

    fn graph(&self) -> Graph {
        let mut builder = GraphBuilder::new("facts");
        let mut known: HashMap<&str, TensorId> = HashMap::new();
        for value in &self.inputs {
            known.insert(&value.0, builder.input(&value.0, ty(value)).unwrap());
        }
        for value in &self.initializers {
            known.insert(&value.0, builder.constant(&value.0, ty(value)).unwrap());
        }
        // The file's order need not be topological, the graph's must be; ids of ops are those of the file all the same.
        let outputs: Vec<&Typed> = self.nodes.iter().flat_map(|n| n.outputs.iter().flatten()).collect();
        let first = builder.graph().tensors.len();
        known.extend(
            outputs
                .iter()
                .enumerate()
                .map(|(i, o)| (o.0.as_str(), TensorId::new(first + i))),
        );
        for node in &self.nodes {
            let mut spec = OpSpec::new(&node.name, &node.op);
            spec.domain.clone_from(&node.domain);
            spec.inputs = node
                .inputs
                .iter()
                .map(|name| known.get(name.as_str()).copied())
                .collect();
            spec.captures = node
                .captures
                .iter()
                .filter_map(|name| known.get(name.as_str()).copied())
                .collect();
            spec.kind = OpKind::Compute;
            spec.attributes = node
                .attributes
                .iter()
                .map(|(name, value)| (name.clone(), attribute(value)))
                .collect();
            let result = |value: &Typed| ResultSpec {
                name: value.0.clone(),
                ty: ty(value),
                placement: Placement::New,
            };
            spec.results = node.outputs.iter().map(|o| o.as_ref().map(result)).collect();
            builder.op(spec).unwrap();
        }
        for name in &self.outputs {
            builder.output(known[name.as_str()]);
        }
        builder.finish()
    }
}

fn attribute(value: &Number) -> Attribute {
    match value {
        Number::Int(value) => Attribute::Int(*value),
        Number::Ints(values) => Attribute::Ints(values.clone()),
        Number::Text(text) => Attribute::String(text.clone().into_bytes()),
    }
}

fn ty((_, element, dims): &Typed) -> ValueType {
    let element = match element.as_str() {
        "float" => ElementType::Float32,
        "double" => ElementType::Float64,
        "float16" => ElementType::Float16,
        "int64" => ElementType::Int64,
        "int32" => ElementType::Int32,
        "int8" => ElementType::Int8,
        "uint8" => ElementType::Uint8,
        "bool" => ElementType::Bool,
        other => panic!("element type `{other}` is not in the table of this test"),
    };
    ValueType::tensor(element, dims)
}
