//! The graph as the runtime sees it: what it knows at load apart from what is true at run time.

use remat_ir::{Dim, ElementType};
use typed_index_collections::TiVec;

use crate::{NodeIndex, ValueId};

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its name, for messages.
    pub name: String,
    /// Namespace of `op_type`; empty for the ONNX default.
    pub domain: String,
    /// What is computed, `Conv` say.
    pub op_type: String,
    /// Operands; `None` where an optional operand is left out.
    pub inputs: Vec<Option<ValueId>>,
    /// Outer values that the node's subgraphs read.
    pub captures: Vec<ValueId>,
    /// Results; `None` where an optional result is not asked for.
    pub outputs: Vec<Option<ValueId>>,
    /// Bytes the kernel holds while it runs, on top of operands and results. Where it runs subgraphs that are known, they say what it takes.
    pub workspace: u64,
    /// The subgraphs that it runs, where they are known.
    pub control: Option<Control>,
}

impl Node {
    /// Everything the node reads: operands, then captures, repetitions kept.
    pub fn reads(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.inputs.iter().flatten().chain(&self.captures).copied()
    }

    /// Everything the node defines.
    pub fn results(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.outputs.iter().flatten().copied()
    }
}

/// A subgraph of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Body {
    /// The attribute that holds it.
    pub name: String,
    /// What it runs. Values from outside are inputs and initializers of it.
    pub program: Program,
    /// How many operands it has.
    pub formals: usize,
    /// How often it runs, where that is known.
    pub trips: Option<u64>,
    /// Whether its nodes run by priority, not in the default order.
    pub by_priority: bool,
}

/// How a node runs its subgraphs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Control {
    /// One of them.
    If(Vec<Body>),
    /// The same again and again.
    Loop(Body),
    /// The same for every slice of operands.
    Scan {
        /// The subgraph.
        body: Body,
        /// How many operands are sliced, the last ones.
        scanned: usize,
        /// Operands that are sliced along an axis other than the first, by their place in the node.
        turned_operands: Vec<usize>,
        /// Results that are put together along an axis other than the first.
        turned_results: Vec<usize>,
    },
}

impl Control {
    /// The subgraphs.
    pub fn bodies_mut(&mut self) -> &mut [Body] {
        match self {
            Self::If(bodies) => bodies,
            Self::Loop(body) | Self::Scan { body, .. } => std::slice::from_mut(body),
        }
    }
}

/// Who owns the memory of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueClass {
    /// The caller: a graph input.
    Input,
    /// The session: a weight, a constant.
    Initializer,
    /// The run: a result of a node.
    Intermediate,
}

/// What sort of value it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// A dense tensor.
    Tensor,
    /// A tensor or sequence that may be absent.
    Optional,
    /// A sequence, a map, a sparse tensor, or nothing is known.
    Other,
}

/// What the runtime knows of a shape when it loads the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Not even the rank.
    Hidden,
    /// The rank, and dimensions as numbers, names, or not at all.
    Known(Vec<Dim>),
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its name.
    pub name: String,
    /// Who owns its memory.
    pub class: ValueClass,
    /// What sort of value it is.
    pub kind: ValueKind,
    /// Type of its elements, where it has elements.
    pub element: Option<ElementType>,
    /// Bytes it takes when the model runs; `None` if nobody knows, and then it counts as nothing.
    pub bytes: Option<u64>,
    /// What the runtime knows of its shape at load.
    pub visible: Shape,
}

/// A graph, ready to be simulated.
///
/// Every value is defined by at most one node, values that no node defines are [`ValueClass::Input`] or
/// [`ValueClass::Initializer`], and nodes read no value that depends on them. The order of the nodes is that of the file
/// and need not be topological.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Nodes in the order of the file.
    pub nodes: TiVec<NodeIndex, Node>,
    /// All values.
    pub values: TiVec<ValueId, Value>,
    /// Graph outputs.
    pub outputs: Vec<ValueId>,
}

impl Program {
    /// Hides the shapes of all results of nodes: what a runtime is left with where every shape passes through a value that
    /// is known only when the model runs.
    pub fn make_shapes_dynamic(&mut self) {
        for value in &mut self.values {
            if value.class == ValueClass::Intermediate {
                value.visible = Shape::Hidden;
            }
        }
    }

    /// Lets the nodes of subgraphs run by priority: [`priority_order`](crate::priority_order()) is that of the main graph.
    pub fn run_bodies_by_priority(&mut self) {
        for body in self
            .nodes
            .iter_mut()
            .filter_map(|node| node.control.as_mut())
            .flat_map(Control::bodies_mut)
        {
            body.by_priority = true;
            body.program.run_bodies_by_priority();
        }
    }

    /// The node that defines each value.
    #[must_use]
    pub fn producers(&self) -> TiVec<ValueId, Option<NodeIndex>> {
        let mut producers = TiVec::from(vec![None; self.values.len()]);
        for (index, node) in self.nodes.iter_enumerated() {
            for value in node.results() {
                producers[value] = Some(index);
            }
        }
        producers
    }
}
