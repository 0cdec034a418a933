//! The graph itself: ops in reference order, the tensors they define, the storages the tensors live in.

use std::collections::BTreeMap;

use remat_formula::{Formula, intervals};
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use crate::{Attribute, Block, Formulas, NoFormula, OpId, Part, StorageId, TensorId, ValueType};

/// What running an op does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Effects {
    /// Nothing: equal inputs give equal bits, so the op may be recomputed.
    Pure,
    /// Draws random numbers: a second run gives other bits.
    Random,
    /// Reads or writes state outside its operands, or its behaviour is not known.
    Stateful,
    /// Runs subgraphs: its time depends on data.
    ControlFlow,
}

impl Effects {
    /// Whether running the op again gives the same bits at a known price.
    #[must_use]
    pub fn recomputable(self) -> bool {
        self == Self::Pure
    }
}

/// How an op came into the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// An op of the model.
    Compute,
    /// Repeats op `of`, whose results were freed; its own results have the same bits.
    Recompute {
        /// The compute op it repeats.
        of: OpId,
    },
    /// Ends the life of the storage of its only operand.
    Dealloc,
    /// Moves the storage of its only operand to the second memory, where nothing can read it.
    PageOut,
    /// Brings the storage of its only operand back, with all its tensors.
    PageIn,
}

impl OpKind {
    /// Whether the op computes something; all others free or move memory.
    #[must_use]
    pub fn is_run(self) -> bool {
        self.memory_word().is_none()
    }

    /// The keyword of the textual form for what the op does to the storage of its only operand; `None` for ops that compute.
    #[must_use]
    pub fn memory_word(self) -> Option<&'static str> {
        match self {
            Self::Compute | Self::Recompute { .. } => None,
            Self::Dealloc => Some("dealloc"),
            Self::PageOut => Some("page_out"),
            Self::PageIn => Some("page_in"),
        }
    }
}

/// One operation. `domain` and `op_type` are empty if nothing is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    /// Unique name.
    pub name: String,
    /// Compute, recompute, dealloc, page_out or page_in.
    pub kind: OpKind,
    /// Namespace of `op_type`; empty for the ONNX default.
    pub domain: String,
    /// What is computed, such as `Conv`.
    pub op_type: String,
    /// Operands; `None` where an optional operand is left out.
    pub inputs: Vec<Option<TensorId>>,
    /// Outer values that the op's subgraphs read.
    pub captures: Vec<TensorId>,
    /// Results; `None` where an optional result is not asked for.
    pub outputs: Vec<Option<TensorId>>,
    /// What it does besides computing.
    pub effects: Effects,
    /// Attributes by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// Position of the op in the importer's own table, from which the exporter restores what the graph does not hold.
    pub source: Option<u32>,
    /// Its subgraphs, as far as the importer knows them.
    pub bodies: Vec<Body>,
    /// By result: the part of a tensor that it holds after fission; empty for ops that fission did not make.
    pub parts: Vec<Option<Part>>,
}

/// A subgraph of an op: a branch, or what a loop repeats. It is there to tell what the op takes; the file's own stays with the importer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Body {
    /// The attribute that holds it, `then_branch` say.
    pub name: String,
    /// The subgraph. What it reads from outside are inputs and constants under the names they had when the op was imported.
    pub graph: Graph,
    /// How many of the inputs the op gives it, the first ones; all others are read from outside.
    pub formals: usize,
    /// How often one run of the op runs it, where that is known before.
    pub trips: Option<u64>,
}

impl Op {
    /// A `dealloc`, `page_out` or `page_in` of the storage of a tensor with this name.
    #[must_use]
    pub fn on_memory(kind: OpKind, tensor: TensorId, name: &str) -> Self {
        Self {
            name: format!("{} {name}", kind.memory_word().unwrap_or_default()),
            kind,
            domain: String::new(),
            op_type: String::new(),
            inputs: vec![Some(tensor)],
            captures: Vec::new(),
            outputs: Vec::new(),
            effects: Effects::Stateful,
            attributes: BTreeMap::new(),
            source: None,
            bodies: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Every tensor the op reads: operands, then captures, in order; repeated operands are repeated here.
    pub fn reads(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.inputs.iter().flatten().chain(&self.captures).copied()
    }

    /// Every tensor the op defines.
    pub fn results(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.outputs.iter().flatten().copied()
    }
}

/// A value: a graph input, a constant, or a result of an op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// Unique name.
    pub name: String,
    /// Element type and shape.
    pub ty: ValueType,
    /// Where it lives.
    pub storage: StorageId,
    /// The op that defines it; `None` for graph inputs and constants held by the file.
    pub producer: Option<OpId>,
}

/// Who owns the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StorageClass {
    /// The caller: a graph input.
    Input,
    /// The runtime's session: weights, constants.
    Constant,
    /// The run: a result of an op.
    Intermediate,
}

/// Memory that one tensor creates and views of it share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Storage {
    /// The tensor that created it; gives the storage its name.
    pub root: TensorId,
    /// Who owns it.
    pub class: StorageClass,
    /// Size in bytes without alignment; `None` if unknown.
    pub bytes: Option<u64>,
}

/// A data-flow graph in a reference order. See the crate's documentation for the invariants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// Name of the model.
    pub name: String,
    /// Ops in reference order.
    pub ops: TiVec<OpId, Op>,
    /// All values.
    pub tensors: TiVec<TensorId, Tensor>,
    /// All storages.
    pub storages: TiVec<StorageId, Storage>,
    /// Graph inputs, in the order of the signature.
    pub inputs: Vec<TensorId>,
    /// Graph outputs, in the order of the signature; one tensor may stand twice.
    pub outputs: Vec<TensorId>,
    /// Where storages lie in one block of memory, where that is planned.
    pub block: Option<Block>,
    /// Elements, in row-major order, of 64-bit and 32-bit integer constants: bounds of slices, shapes. Those that a pass made are all here; those of a file
    /// stay there, unless they are asked for.
    pub values: BTreeMap<TensorId, Vec<i64>>,
    /// Sizes as formulas, where the graph was imported at sizes of dimensions that the model leaves open; passes that make graphs leave them out.
    pub formulas: Option<Formulas>,
}

impl Graph {
    /// The ops that read each tensor, in reference order, each op once.
    #[must_use]
    pub fn users(&self) -> TiVec<TensorId, SmallVec<[OpId; 4]>> {
        let mut users: TiVec<TensorId, SmallVec<[OpId; 4]>> = TiVec::from(vec![SmallVec::new(); self.tensors.len()]);
        for (id, op) in self.ops.iter_enumerated() {
            for tensor in op.reads() {
                if users[tensor].last() != Some(&id) {
                    users[tensor].push(id);
                }
            }
        }
        users
    }

    /// Whether `tensor` looks into memory that another tensor created.
    #[must_use]
    pub fn is_view(&self, tensor: TensorId) -> bool {
        self.storages[self.tensors[tensor].storage].root != tensor
    }

    /// The bytes of a dense tensor as a formula of the dimensions that the model leaves open, where there is one.
    #[must_use]
    pub fn bytes_formula(&self, tensor: TensorId) -> Option<Formula> {
        self.formulas.as_ref()?.bytes(tensor, &self.tensors[tensor].ty)
    }

    /// The same graph where the open dimensions have these sizes, in the order of [`Formulas::variables`]: types, and sizes of storages.
    ///
    /// # Errors
    /// [`NoFormula`].
    pub fn at(&self, dims: &[u64]) -> Result<Self, NoFormula> {
        let ranges: Vec<(u64, u64)> = dims.iter().map(|&size| (size, size)).collect();
        self.at_most(&ranges)
    }

    /// The same graph with the largest size that each dimension of a tensor has where the open dimensions lie within these ranges, smallest and
    /// largest size, in the order of [`Formulas::variables`]. No run within them has a larger tensor; that one has all of these sizes is not said.
    ///
    /// # Errors
    /// [`NoFormula`].
    pub fn at_most(&self, ranges: &[(u64, u64)]) -> Result<Self, NoFormula> {
        let formulas = self.formulas.as_ref().ok_or(NoFormula::Graph)?;
        let variables = &formulas.variables;
        if ranges.len() != variables.dims().len() {
            return Err(NoFormula::Dims {
                wanted: variables.dims().len(),
                given: ranges.len(),
            });
        }
        let variables = intervals(ranges, variables.derived());
        let mut graph = self.clone();
        for (id, tensor) in graph.tensors.iter_mut_enumerated() {
            let ty = formulas.at_most(id, &tensor.ty, &variables);
            tensor.ty = ty.ok_or_else(|| NoFormula::Tensor(tensor.name.clone()))?;
        }
        for storage in &mut graph.storages {
            let ty = &graph.tensors[storage.root].ty;
            if self.tensors[storage.root].ty != *ty {
                storage.bytes = ty
                    .bytes()
                    .map_err(|_| NoFormula::Tensor(graph.tensors[storage.root].name.clone()))?;
            }
        }
        let is_open = |body: &Body| body.graph.tensors.iter().any(|tensor| tensor.ty.has_free_dims());
        match graph.ops.iter().find(|op| op.bodies.iter().any(is_open)) {
            Some(op) => Err(NoFormula::Body(op.name.clone())),
            None => Ok(graph),
        }
    }

    /// Name of a storage: that of its root.
    #[must_use]
    pub fn storage_name(&self, storage: StorageId) -> &str {
        &self.tensors[self.storages[storage].root].name
    }
}

#[cfg(test)]
mod tests {
    use remat_formula::{OpenDim, Variables};

    use super::*;
    use crate::{Dim, ElementType, GraphBuilder, OpSpec};

    #[test]
    fn a_graph_has_other_sizes_where_each_has_a_formula() {
        let open = |size| ValueType::Tensor {
            element: ElementType::Float32,
            shape: Some(vec![Dim::Free { size, name: None }, Dim::Known(2)]),
        };
        let mut builder = GraphBuilder::new("g");
        let x = builder.input("x", open(5)).unwrap();
        let (_, y) = builder
            .op(OpSpec::new("op", "Relu").reads(x).defines("y", open(5)))
            .unwrap();
        let y = y[0].unwrap();
        let mut graph = builder.finish();
        assert_eq!(graph.at(&[7]), Err(NoFormula::Graph));
        let dim = OpenDim {
            name: "n".to_owned(),
            least: 1,
            most: 99,
        };
        let mut formulas = Formulas {
            variables: Variables::new(vec![dim]),
            given: vec![5],
            shapes: BTreeMap::from([(x, vec![Some(Formula::variable(0)), None])]),
        };
        graph.formulas = Some(formulas.clone());
        assert_eq!(graph.at(&[7]), Err(NoFormula::Tensor("y".to_owned())));
        formulas.shapes.insert(y, vec![Some(Formula::variable(0)), None]);
        graph.formulas = Some(formulas);
        let other = graph.at(&[7]).unwrap();
        assert_eq!(other.tensors[y].ty, open(7));
        assert_eq!(other.storages[other.tensors[y].storage].bytes, Some(7 * 2 * 4));
        assert_eq!(graph.at_most(&[(3, 7)]), Ok(other));
        assert_eq!(graph.at(&[]), Err(NoFormula::Dims { wanted: 1, given: 0 }));
        assert_eq!(graph.at(&[5]), Ok(graph));
    }
}
