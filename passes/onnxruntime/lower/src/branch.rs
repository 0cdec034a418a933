//! A model inside a branch, so that the runtime takes no block for the results of later runs.
//!
//! With the memory pattern on, ONNX Runtime records what the first run takes, and each later run holds one block for all of it, from begin to end;
//! graph outputs come on top. For a training step, whose outputs come as its activations go, that is nearly twice the load. No setting that a
//! file can carry turns the pattern off, but a subgraph that captures something other than a tensor has none (`ResolveMemoryPatternFlag` and
//! the constructor of the execution frame):
//!
//! ```text
//! graph (x) -> y                     graph (x) -> y
//!   h = Conv(x, w)                     yes = Not(Cast(zero of x))
//!   y = Relu(h)                        mark = SequenceConstruct(yes)
//!                                      y = If(yes)
//!                                        then: h = Conv(x, w);  y' = Relu(h);  SequenceLength(mark)
//!                                        else: never runs
//! ```
//!
//! The condition is always true, and known at run time only, else the runtime would dissolve the node. Outputs of the branch have no stated shape: the
//! branch makes them when they come, in the memory of the graph outputs, without a copy. Those whose shape the runtime infers all the same it makes before
//! the branch runs, so a file whose shapes are static does not belong inside a branch.
//!
//! The runtime keeps the weights of a branch twice: with the node, whose attribute the branch is, and for the runs. So they stay outside, but for small
//! ones, from which shapes follow, and for those of nodes that it may give another layout if it knows them (measured with 1.31.1: a network of 81 MB of
//! weights takes 253 MB with all of them inside, 163 MB with none).

use remat_ir::{ElementType as E, ValueType};
use remat_onnx::Marks;
use remat_onnx::proto::attribute_proto::AttributeType;
use remat_onnx::proto::{
    AttributeProto, GraphProto, Message, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, tensor_proto,
    type_proto,
};
use remat_operators::Blocked;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::build::{constant, int, node, row, tensor};
use crate::names::Names;
use crate::zeros::Zeros;

/// What the node is called, with a number where the model has that name.
pub(crate) const NAME: &str = "remat_branch";
/// The first opset with sequences.
const OLDEST_OPSET: i64 = 11;

/// Weights below this size stand inside of the branch.
const SMALL: u64 = 1 << 10;

/// How a model is put inside a branch.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// Nodes of the graph but for the last one.
    outside: Vec<NodeProto>,
    /// The value that is always true.
    condition: String,
    /// A node of the branch that reads something other than a tensor.
    reader: NodeProto,
    /// The shape of nothing.
    nothing: String,
    /// What each graph output is called inside the branch, and inside the one that never runs.
    names: FxHashMap<String, (String, String)>,
    /// Name of the node.
    name: String,
    /// Weights that stand inside of it.
    inside: FxHashSet<String>,
    /// What these take once more.
    doubled_bytes: u64,
}

impl Branch {
    /// `None` where a model cannot be put inside a branch: for want of an input that serves or of sequences, or because of outputs that are no
    /// tensors, that no node makes, or that are listed twice.
    pub(crate) fn new<'t>(
        graph: &GraphProto,
        opset: i64,
        type_of: impl Fn(&str) -> Option<&'t ValueType>,
        names: &mut Names,
    ) -> Option<Self> {
        if opset < OLDEST_OPSET {
            return None;
        }
        let made: FxHashSet<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
        let serves = |output: &ValueInfoProto| element(output).is_some() && made.contains(&output.name);
        let named: FxHashSet<&String> = graph.output.iter().map(|output| &output.name).collect();
        let is_one_each = named.len() == graph.output.len() && !named.is_empty();
        if !is_one_each || !graph.output.iter().all(serves) {
            return None;
        }
        let mut zeros = Zeros::new(graph, opset, type_of)?;
        let zero = zeros.vector(1, names);
        let (no, condition, mark) = (
            names.fresh("remat_no"),
            names.fresh("remat_yes"),
            names.fresh("remat_mark"),
        );
        let (nothing, length) = (names.fresh("remat_nothing"), names.fresh("remat_mark_length"));
        let mut outside = zeros.into_nodes();
        let to = int("to", i64::from(tensor_proto::DataType::BOOL as i32));
        outside.push(node("Cast", &[&zero], &no, vec![to]));
        outside.push(node("Not", &[&no], &condition, Vec::new()));
        outside.push(node("SequenceConstruct", &[&condition], &mark, Vec::new()));
        outside.push(constant(&[0], &nothing));
        let mut inner = |name: &str| {
            let inside = names.fresh(&format!("{name}__inside"));
            (inside, names.fresh(&format!("{name}__never")))
        };
        let outputs = graph.output.iter().map(|output| &output.name);
        let may_be_laid_out = graph.node.iter().filter(|node| row(node).blocked != Blocked::Never);
        let decisive: FxHashSet<&String> = may_be_laid_out.flat_map(|node| &node.input).collect();
        let inside = graph.initializer.iter().map(|weight| (weight, weight.compute_size()));
        let inside = inside.filter(|&(weight, bytes)| bytes < SMALL || decisive.contains(&weight.name));
        let (inside, bytes): (_, Vec<u64>) = inside.map(|(weight, bytes)| (weight.name.clone(), bytes)).unzip();
        Some(Self {
            inside,
            doubled_bytes: bytes.into_iter().sum(),
            outside,
            condition,
            reader: node("SequenceLength", &[&mark], &length, Vec::new()),
            nothing,
            names: outputs.map(|name| (name.clone(), inner(name))).collect(),
            name: names.fresh(NAME),
        })
    }

    /// Bytes that weights take once more.
    pub(crate) fn doubled_bytes(&self) -> u64 {
        self.doubled_bytes
    }

    /// The model inside the branch.
    pub(crate) fn around(&self, mut model: ModelProto) -> ModelProto {
        let outer = model.graph.mut_or_insert_default();
        let inputs: FxHashSet<&str> = outer.input.iter().map(|input| input.name.as_str()).collect();
        let given = std::mem::take(&mut outer.initializer);
        // The caller may give another value for inputs.
        let (inside, outside) = given
            .into_iter()
            .partition(|weight| self.inside.contains(&weight.name) && !inputs.contains(weight.name.as_str()));
        let mut nodes = std::mem::take(&mut outer.node);
        nodes.iter_mut().for_each(|node| self.rename(node));
        nodes.push(self.reader.clone());
        let mut value_info = std::mem::take(&mut outer.value_info);
        value_info.retain(|value| !self.names.contains_key(&value.name));
        let outputs = outer.output.iter().filter_map(|output| {
            let (inside, never) = self.names.get(&output.name)?;
            let element = element(output)?;
            Some((output, inside, never, element, zero(element)?))
        });
        let mut then = GraphProto {
            name: format!("{}_then", self.name),
            node: nodes,
            initializer: inside,
            sparse_initializer: std::mem::take(&mut outer.sparse_initializer),
            quantization_annotation: std::mem::take(&mut outer.quantization_annotation),
            value_info,
            ..GraphProto::default()
        };
        let mut otherwise = GraphProto {
            name: format!("{}_else", self.name),
            ..GraphProto::default()
        };
        let mut results = Vec::new();
        for (output, inside, never, element, zero) in outputs {
            then.output.push(without_shape(inside, element));
            otherwise.output.push(without_shape(never, element));
            let of_type = vec![tensor(TensorProto {
                dims: vec![1],
                data_type: element,
                raw_data: zero,
                ..TensorProto::default()
            })];
            otherwise
                .node
                .push(node("ConstantOfShape", &[&self.nothing], never, of_type));
            results.push(output.name.clone());
        }
        outer.initializer = outside;
        outer.node.clone_from(&self.outside);
        outer.node.push(NodeProto {
            name: self.name.clone(),
            op_type: "If".to_owned(),
            input: vec![self.condition.clone()],
            output: results,
            attribute: vec![branch("then_branch", then), branch("else_branch", otherwise)],
            ..NodeProto::default()
        });
        Marks::state(&mut model);
        model
    }

    /// Gives graph outputs the names that they have inside.
    fn rename(&self, node: &mut NodeProto) {
        for name in node.input.iter_mut().chain(&mut node.output) {
            if let Some((inside, _)) = self.names.get(name) {
                name.clone_from(inside);
            }
        }
        for attribute in &mut node.attribute {
            for graph in attribute.g.as_mut().into_iter().chain(&mut attribute.graphs) {
                graph.node.iter_mut().for_each(|node| self.rename(node));
                for output in &mut graph.output {
                    if let Some((inside, _)) = self.names.get(&output.name) {
                        output.name.clone_from(inside);
                    }
                }
            }
        }
    }
}

/// The type of the elements of an output that a node can make without an operand; `None` for other outputs.
fn element(output: &ValueInfoProto) -> Option<i32> {
    match output.type_.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => zero(tensor.elem_type).map(|_| tensor.elem_type),
        _ => None,
    }
}

/// The bytes of a zero of a type that the runtime's ConstantOfShape makes; `None` for others.
fn zero(element: i32) -> Option<Vec<u8>> {
    let element = remat_onnx::element_type(element).ok()??;
    let is_made = matches!(
        element,
        E::Bool
            | E::Int8
            | E::Uint8
            | E::Int16
            | E::Uint16
            | E::Float16
            | E::Int32
            | E::Uint32
            | E::Float32
            | E::Int64
            | E::Uint64
            | E::Float64
    );
    let bytes = usize::try_from(element.bits() / 8).ok()?;
    is_made.then(|| vec![0; bytes])
}

fn without_shape(name: &str, element: i32) -> ValueInfoProto {
    let tensor = type_proto::Tensor {
        elem_type: element,
        ..type_proto::Tensor::default()
    };
    let ty = TypeProto {
        value: Some(type_proto::Value::TensorType(tensor)),
        ..TypeProto::default()
    };
    ValueInfoProto {
        name: name.to_owned(),
        type_: Some(ty).into(),
        ..ValueInfoProto::default()
    }
}

fn branch(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        type_: AttributeType::GRAPH.into(),
        g: Some(graph).into(),
        ..AttributeProto::default()
    }
}
