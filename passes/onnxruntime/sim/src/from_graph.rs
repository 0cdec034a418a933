//! From the graph of the passes to a program.

use remat_ir::{Attribute, Graph, OpId, StorageClass, Tensor, TensorId, ValueType};
use typed_index_collections::TiVec;

use crate::ValueId;
use crate::program::{Body, Control, Node, Program, Shape, Value, ValueClass, ValueKind};

impl Program {
    /// The program of `graph` for a runtime that sees every shape the graph knows. `workspace` gives the bytes that the
    /// kernel of an op holds while it runs, an op of `graph` or of a subgraph; it is not asked for ops whose subgraphs are known.
    ///
    /// Ids of values are those of the tensors. Ops that only make constants are left out, as the runtime turns `Constant`
    /// nodes into weights at load, and so are `dealloc` ops, which have no counterpart in a file. Nodes keep the order of
    /// the ops, which is that of the file where the file is sorted.
    #[must_use]
    pub fn from_graph(graph: &Graph, workspace: &dyn Fn(&Graph, OpId) -> u64) -> Self {
        let values = graph.tensors.iter().map(|tensor| value(graph, tensor));
        let mut program = Self {
            values: values.collect(),
            outputs: graph.outputs.iter().map(|&t| ValueId::new(t.index())).collect(),
            nodes: TiVec::new(),
        };
        let id = |t: TensorId| ValueId::new(t.index());
        for (op_id, op) in graph.ops.iter_enumerated() {
            if !op.kind.is_run() || makes_constants(&program, op.results().map(id)) {
                continue;
            }
            program.nodes.push(node(graph, op_id, id, workspace));
        }
        program
    }

    /// The program of one op alone, whose results nobody reads.
    pub(crate) fn of_op(graph: &Graph, op: OpId, workspace: &dyn Fn(&Graph, OpId) -> u64) -> Self {
        let entry = &graph.ops[op];
        let mut tensors: Vec<TensorId> = entry.reads().chain(entry.results()).collect();
        tensors.sort_unstable();
        tensors.dedup();
        let id = |tensor| ValueId::new(tensors.partition_point(|&other| other < tensor));
        let one = node(graph, op, id, workspace);
        Self {
            values: tensors
                .iter()
                .map(|&tensor| value(graph, &graph.tensors[tensor]))
                .collect(),
            outputs: Vec::new(),
            nodes: std::iter::once(one).collect(),
        }
    }
}

impl Control {
    /// How an op of `graph` runs its subgraphs; `None` where it runs none or they are not known. `workspace` is as for
    /// [`Program::from_graph`].
    fn of(graph: &Graph, op: OpId, workspace: &dyn Fn(&Graph, OpId) -> u64) -> Option<Self> {
        let op = &graph.ops[op];
        if !op.domain.is_empty() {
            return None;
        }
        let mut bodies = op.bodies.iter().map(|body| Body {
            name: body.name.clone(),
            program: Program::from_graph(&body.graph, workspace),
            formals: body.formals,
            trips: body.trips,
            by_priority: false,
        });
        let axes = |name: &str| op.attributes.get(name).and_then(Attribute::as_ints).unwrap_or_default();
        let turned = |name: &str, before: usize| {
            let axes = axes(name).iter().enumerate();
            axes.filter(|&(_, &axis)| axis != 0)
                .map(|(at, _)| before + at)
                .collect()
        };
        match op.op_type.as_str() {
            "If" => {
                let branches: Vec<Body> = bodies.collect();
                (!branches.is_empty()).then_some(Self::If(branches))
            }
            "Loop" => Some(Self::Loop(bodies.next()?)),
            "Scan" => {
                let body = bodies.next()?;
                let scanned = op.attributes.get("num_scan_inputs").and_then(Attribute::as_int)?;
                let scanned = usize::try_from(scanned).ok()?;
                let states = body.formals.checked_sub(scanned)?;
                Some(Self::Scan {
                    body,
                    scanned,
                    turned_operands: turned("scan_input_axes", states),
                    turned_results: turned("scan_output_axes", states),
                })
            }
            _ => None,
        }
    }
}

fn node(graph: &Graph, id: OpId, value: impl Fn(TensorId) -> ValueId, workspace: &dyn Fn(&Graph, OpId) -> u64) -> Node {
    let op = &graph.ops[id];
    let control = Control::of(graph, id, workspace);
    Node {
        name: op.name.clone(),
        domain: op.domain.clone(),
        op_type: op.op_type.clone(),
        inputs: op.inputs.iter().map(|t| t.map(&value)).collect(),
        captures: op.captures.iter().map(|&t| value(t)).collect(),
        outputs: op.outputs.iter().map(|t| t.map(&value)).collect(),
        workspace: if control.is_none() { workspace(graph, id) } else { 0 },
        control,
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
