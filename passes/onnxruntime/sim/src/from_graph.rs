//! From the graph of the passes to a program.

use remat_ir::{Graph, OpId, StorageClass, Tensor, ValueType};
use typed_index_collections::TiVec;

use crate::ValueId;
use crate::program::{Node, Program, Shape, Value, ValueClass, ValueKind};

impl Program {
    /// The program of `graph` for a runtime that sees every shape the graph knows. `workspace` gives the bytes that the
    /// kernel of an op holds while it runs.
    ///
    /// Ids of values are those of the tensors. Ops that only make constants are left out, as the runtime turns `Constant`
    /// nodes into weights at load, and so are `dealloc` ops, which have no counterpart in a file. Nodes keep the order of
    /// the ops, which is that of the file where the file is sorted.
    #[must_use]
    pub fn from_graph(graph: &Graph, mut workspace: impl FnMut(OpId) -> u64) -> Self {
        let values = graph.tensors.iter().map(|tensor| value(graph, tensor));
        let mut program = Self {
            values: values.collect(),
            outputs: graph.outputs.iter().map(|&t| ValueId::new(t.index())).collect(),
            nodes: TiVec::new(),
        };
        let id = |t: remat_ir::TensorId| ValueId::new(t.index());
        for (op_id, op) in graph.ops.iter_enumerated() {
            if !op.kind.is_run() || makes_constants(&program, op.results().map(id)) {
                continue;
            }
            program.nodes.push(Node {
                name: op.name.clone(),
                domain: op.domain.clone(),
                op_type: op.op_type.clone(),
                inputs: op.inputs.iter().map(|t| t.map(id)).collect(),
                captures: op.captures.iter().map(|&t| id(t)).collect(),
                outputs: op.outputs.iter().map(|t| t.map(id)).collect(),
                workspace: workspace(op_id),
            });
        }
        program
    }
}

fn makes_constants(program: &Program, results: impl Iterator<Item = ValueId>) -> bool {
    let mut results = results.peekable();
    results.peek().is_some() && results.all(|v| program.values[v].class == ValueClass::Initializer)
}

fn value(graph: &Graph, tensor: &Tensor) -> Value {
    let storage = &graph.storages[tensor.storage];
    let root = &graph.tensors[storage.root];
    // A view of a weight is a result of the run all the same; only what an op makes for good belongs to the session.
    let class = match storage.class {
        StorageClass::Input if tensor.producer.is_none() => ValueClass::Input,
        StorageClass::Constant if tensor.producer.is_none() || root.name == tensor.name => ValueClass::Initializer,
        StorageClass::Input | StorageClass::Constant | StorageClass::Intermediate => ValueClass::Intermediate,
    };
    let (kind, visible) = match &tensor.ty {
        ValueType::Tensor { shape, .. } => (ValueKind::Tensor, shape.clone().map_or(Shape::Hidden, Shape::Known)),
        ValueType::Optional(inner) => (ValueKind::Optional, optional_shape(inner)),
        ValueType::SparseTensor { .. } | ValueType::Sequence(_) | ValueType::Map { .. } | ValueType::Unknown => {
            (ValueKind::Other, Shape::Hidden)
        }
    };
    let stated = || (root.name == tensor.name).then_some(storage.bytes).flatten();
    Value {
        name: tensor.name.clone(),
        class,
        kind,
        element: tensor.ty.element(),
        bytes: tensor.ty.bytes().ok().flatten().or_else(stated),
        visible,
    }
}

fn optional_shape(inner: &ValueType) -> Shape {
    match inner {
        ValueType::Tensor { shape: Some(dims), .. } => Shape::Known(dims.clone()),
        _ => Shape::Hidden,
    }
}
