//! Builds graphs op by op, so that ids, storages and producers always agree.

use std::collections::BTreeMap;

use crate::{
    Attribute, Body, Effects, Graph, Op, OpId, OpKind, Part, SizeError, Storage, StorageClass, StorageId, Tensor,
    TensorId, ValueType,
};

/// Where a result lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In memory of its own.
    New,
    /// In the storage of this tensor, which its op reads.
    ViewOf(TensorId),
    /// In memory of the session: the op is evaluated once, when the model is loaded.
    Constant,
}

/// One result of an op to be added.
#[derive(Clone, Debug)]
pub struct ResultSpec {
    /// Unique name.
    pub name: String,
    /// Element type and shape.
    pub ty: ValueType,
    /// Where it lives.
    pub placement: Placement,
}

/// An op to be added; the fields are those of [`Op`].
#[derive(Clone, Debug)]
pub struct OpSpec {
    /// Unique name.
    pub name: String,
    /// Compute or recompute.
    pub kind: OpKind,
    /// Namespace of `op_type`.
    pub domain: String,
    /// What is computed.
    pub op_type: String,
    /// Operands.
    pub inputs: Vec<Option<TensorId>>,
    /// Outer values read by subgraphs.
    pub captures: Vec<TensorId>,
    /// Results.
    pub results: Vec<Option<ResultSpec>>,
    /// What it does besides computing.
    pub effects: Effects,
    /// Attributes by name.
    pub attributes: BTreeMap<String, Attribute>,
    /// Position in the importer's table.
    pub source: Option<u32>,
    /// Its subgraphs.
    pub bodies: Vec<Body>,
    /// By result: the part of a tensor that it holds after fission.
    pub parts: Vec<Option<Part>>,
}

impl OpSpec {
    /// A pure compute op of the default domain without operands or results.
    #[must_use]
    pub fn new(name: impl Into<String>, op_type: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: OpKind::Compute,
            domain: String::new(),
            op_type: op_type.into(),
            inputs: Vec::new(),
            captures: Vec::new(),
            results: Vec::new(),
            effects: Effects::Pure,
            attributes: BTreeMap::new(),
            source: None,
            bodies: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Adds an operand.
    #[must_use]
    pub fn reads(mut self, tensor: TensorId) -> Self {
        self.inputs.push(Some(tensor));
        self
    }

    /// Adds a result in memory of its own.
    #[must_use]
    pub fn defines(mut self, name: impl Into<String>, ty: ValueType) -> Self {
        self.results.push(Some(ResultSpec {
            name: name.into(),
            ty,
            placement: Placement::New,
        }));
        self
    }

    /// Adds a result that looks into the memory of `base`.
    #[must_use]
    pub fn views(mut self, name: impl Into<String>, ty: ValueType, base: TensorId) -> Self {
        self.results.push(Some(ResultSpec {
            name: name.into(),
            ty,
            placement: Placement::ViewOf(base),
        }));
        self
    }

    /// States what the op does besides computing.
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Self {
        self.effects = effects;
        self
    }
}

/// Builds a [`Graph`]. Ops are added in reference order.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
}

impl GraphBuilder {
    /// An empty graph of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            graph: Graph {
                name: name.into(),
                ..Graph::default()
            },
        }
    }

    /// Adds a graph input.
    ///
    /// # Errors
    /// [`SizeError`] if its size overflows.
    pub fn input(&mut self, name: impl Into<String>, ty: ValueType) -> Result<TensorId, SizeError> {
        let tensor = self.source(name, ty, StorageClass::Input)?;
        self.graph.inputs.push(tensor);
        Ok(tensor)
    }

    /// Adds a constant that the model file holds.
    ///
    /// # Errors
    /// [`SizeError`] if its size overflows.
    pub fn constant(&mut self, name: impl Into<String>, ty: ValueType) -> Result<TensorId, SizeError> {
        self.source(name, ty, StorageClass::Constant)
    }

    /// Adds a constant whose elements the graph states, in row-major order.
    ///
    /// # Errors
    /// [`SizeError`] if its size overflows.
    pub fn integers(
        &mut self,
        name: impl Into<String>,
        ty: ValueType,
        elements: Vec<i64>,
    ) -> Result<TensorId, SizeError> {
        let tensor = self.source(name, ty, StorageClass::Constant)?;
        self.graph.values.insert(tensor, elements);
        Ok(tensor)
    }

    /// Adds an op after all others; returns its id and the ids of its results.
    ///
    /// # Errors
    /// [`SizeError`] if the size of a result overflows.
    pub fn op(&mut self, spec: OpSpec) -> Result<(OpId, Vec<Option<TensorId>>), SizeError> {
        let id = self.graph.ops.next_key();
        let mut outputs = Vec::with_capacity(spec.results.len());
        for result in spec.results {
            let Some(ResultSpec { name, ty, placement }) = result else {
                outputs.push(None);
                continue;
            };
            let tensor = self.graph.tensors.next_key();
            let storage = match placement {
                Placement::New => self.storage(tensor, &ty, StorageClass::Intermediate)?,
                Placement::Constant => self.storage(tensor, &ty, StorageClass::Constant)?,
                Placement::ViewOf(base) => self.graph.tensors[base].storage,
            };
            self.graph.tensors.push(Tensor {
                name,
                ty,
                storage,
                producer: Some(id),
            });
            outputs.push(Some(tensor));
        }
        self.graph.ops.push(Op {
            name: spec.name,
            kind: spec.kind,
            domain: spec.domain,
            op_type: spec.op_type,
            inputs: spec.inputs,
            captures: spec.captures,
            outputs: outputs.clone(),
            effects: spec.effects,
            attributes: spec.attributes,
            source: spec.source,
            bodies: spec.bodies,
            parts: spec.parts,
        });
        Ok((id, outputs))
    }

    /// Adds a `dealloc` op for the storage that `tensor` roots.
    pub fn dealloc(&mut self, tensor: TensorId) -> OpId {
        self.memory_op(OpKind::Dealloc, tensor)
    }

    /// Adds a `page_out` op for the storage that `tensor` lives in.
    pub fn page_out(&mut self, tensor: TensorId) -> OpId {
        self.memory_op(OpKind::PageOut, tensor)
    }

    /// Adds a `page_in` op for the storage that `tensor` lives in.
    pub fn page_in(&mut self, tensor: TensorId) -> OpId {
        self.memory_op(OpKind::PageIn, tensor)
    }

    /// Adds what [`Op::on_memory`] makes.
    pub(crate) fn memory_op(&mut self, kind: OpKind, tensor: TensorId) -> OpId {
        let op = Op::on_memory(kind, tensor, &self.graph.tensors[tensor].name);
        self.graph.ops.push_and_get_key(op)
    }

    /// Names a graph output.
    pub fn output(&mut self, tensor: TensorId) {
        self.graph.outputs.push(tensor);
    }

    /// States the size of a storage whose type leaves it open.
    pub fn set_bytes(&mut self, storage: StorageId, bytes: u64) {
        self.graph.storages[storage].bytes = Some(bytes);
    }

    /// The graph as built so far.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The finished graph; [`Graph::validate`] tells whether it keeps the invariants.
    #[must_use]
    pub fn finish(self) -> Graph {
        self.graph
    }

    fn source(&mut self, name: impl Into<String>, ty: ValueType, class: StorageClass) -> Result<TensorId, SizeError> {
        let tensor = self.graph.tensors.next_key();
        let storage = self.storage(tensor, &ty, class)?;
        self.graph.tensors.push(Tensor {
            name: name.into(),
            ty,
            storage,
            producer: None,
        });
        Ok(tensor)
    }

    fn storage(&mut self, root: TensorId, ty: &ValueType, class: StorageClass) -> Result<StorageId, SizeError> {
        let bytes = ty.bytes()?;
        Ok(self.graph.storages.push_and_get_key(Storage { root, class, bytes }))
    }
}
