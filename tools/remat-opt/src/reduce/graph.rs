//! Graphs in their textual form with fewer ops, operands and attributes.

use std::collections::BTreeMap;
use std::ops::Range;

use remat::ir::{
    Dim, Graph, GraphBuilder, OpId, OpKind, OpSpec, Placement, ResultSpec, StorageClass, TensorId, ValueType,
};

use super::{Subject, outside};

/// A graph; numbers are the extents of its tensors and the sizes that it states.
#[derive(Clone)]
pub(crate) struct GraphSubject(pub(crate) Graph);

/// Positions in [`Subject::KINDS`].
const OPS: usize = 0;
const OUTPUTS: usize = 1;
const RESULTS: usize = 2;
const OPERANDS: usize = 3;

impl Subject for GraphSubject {
    const KINDS: &'static [&'static str] = &["ops", "outputs", "results", "operands", "attributes"];

    fn count(&self, kind: usize) -> usize {
        let ops = self.0.ops.iter();
        match kind {
            OPS => ops.len(),
            OUTPUTS => self.0.outputs.len(),
            RESULTS => ops.map(|op| op.results().count()).sum(),
            OPERANDS => runs(&self.0).map(|op| op.reads().count()).sum(),
            _ => ops.map(|op| op.attributes.len()).sum(),
        }
    }

    fn without(&self, kind: usize, parts: Range<usize>) -> Option<Self> {
        let mut graph = self.0.clone();
        let mut at = 0;
        let mut is_out = || {
            at += 1;
            parts.contains(&(at - 1))
        };
        let mut kept: Vec<OpId> = graph.ops.keys().collect();
        match kind {
            OPS => kept = outside(&kept, &parts),
            OUTPUTS => graph.outputs = outside(&graph.outputs, &parts),
            RESULTS => {
                for result in graph.ops.iter_mut().flat_map(|op| &mut op.outputs) {
                    if result.is_some() && is_out() {
                        *result = None;
                    }
                }
            }
            OPERANDS => {
                for op in graph.ops.iter_mut().filter(|op| op.kind.is_run()) {
                    op.inputs.retain(|operand| operand.is_none() || !is_out());
                    op.captures.retain(|_| !is_out());
                }
            }
            _ => {
                for op in &mut graph.ops {
                    op.attributes.retain(|_, _| !is_out());
                }
            }
        }
        let reduced = Self(Rebuild::of(&graph, &kept)?);
        reduced.is_valid().then_some(reduced)
    }

    fn numbers(&mut self) -> Vec<&mut u64> {
        let graph = &mut self.0;
        let shapes = graph.tensors.iter_mut().filter_map(|tensor| match &mut tensor.ty {
            ValueType::Tensor { shape, .. } | ValueType::SparseTensor { shape, .. } => shape.as_mut(),
            _ => None,
        });
        let dims = shapes.flatten().filter_map(|dim| match dim {
            Dim::Known(extent) | Dim::Free { size: extent, .. } => Some(extent),
            Dim::Symbol(_) | Dim::Unknown => None,
        });
        let sizes = graph.storages.iter_mut().filter_map(|storage| storage.bytes.as_mut());
        dims.chain(sizes).collect()
    }

    fn is_valid(&self) -> bool {
        self.0.validate().is_ok()
    }

    fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        Ok(self.0.to_string().into_bytes())
    }
}

fn runs(graph: &Graph) -> impl Iterator<Item = &remat::ir::Op> {
    graph.ops.iter().filter(|op| op.kind.is_run())
}

/// A graph built anew from some of the ops of another.
struct Rebuild<'a> {
    old: &'a Graph,
    new: GraphBuilder,
    tensors: BTreeMap<TensorId, TensorId>,
    ops: BTreeMap<OpId, OpId>,
}

impl<'a> Rebuild<'a> {
    /// `None` where a size does not fit.
    fn of(old: &'a Graph, kept: &[OpId]) -> Option<Graph> {
        let mut rebuild = Self {
            old,
            new: GraphBuilder::new(&old.name),
            tensors: BTreeMap::new(),
            ops: BTreeMap::new(),
        };
        for &op in kept {
            match old.ops[op].kind {
                OpKind::Compute | OpKind::Recompute { .. } => rebuild.run(op)?,
                OpKind::Dealloc | OpKind::PageOut | OpKind::PageIn => rebuild.memory_op(op),
            }
        }
        for &output in &old.outputs {
            let output = rebuild.operand(output)?;
            rebuild.new.output(output);
        }
        Some(rebuild.new.finish())
    }

    fn run(&mut self, id: OpId) -> Option<()> {
        let op = &self.old.ops[id];
        let mut inputs = Vec::with_capacity(op.inputs.len());
        for &input in &op.inputs {
            inputs.push(match input {
                Some(input) => Some(self.operand(input)?),
                None => None,
            });
        }
        let mut captures = Vec::with_capacity(op.captures.len());
        for &capture in &op.captures {
            captures.push(self.operand(capture)?);
        }
        let reads: Vec<TensorId> = inputs.iter().flatten().chain(&captures).copied().collect();
        let results = op.outputs.iter().map(|&result| Some(self.result(result?, &reads)));
        let spec = OpSpec {
            name: op.name.clone(),
            kind: match op.kind {
                OpKind::Recompute { of } => match self.ops.get(&of) {
                    Some(&of) => OpKind::Recompute { of },
                    None => OpKind::Compute,
                },
                kind => kind,
            },
            domain: op.domain.clone(),
            op_type: op.op_type.clone(),
            results: results.collect(),
            inputs,
            captures,
            effects: op.effects,
            attributes: op.attributes.clone(),
            source: op.source,
            bodies: op.bodies.clone(),
            parts: op.parts.clone(),
        };
        let (new, results) = self.new.op(spec).ok()?;
        self.ops.insert(id, new);
        for (&before, &after) in op.outputs.iter().zip(&results) {
            if let Some((before, after)) = before.zip(after) {
                self.tensors.insert(before, after);
                self.size(before, after);
            }
        }
        Some(())
    }

    /// A result as the builder takes it. A view of what the op no longer reads gets memory of its own.
    fn result(&self, tensor: TensorId, reads: &[TensorId]) -> ResultSpec {
        let entry = &self.old.tensors[tensor];
        let storage = &self.old.storages[entry.storage];
        let root = self.tensors.get(&storage.root).copied();
        let base = root.filter(|_| storage.root != tensor).and_then(|root| {
            let graph = self.new.graph();
            let shared = graph.tensors[root].storage;
            reads
                .iter()
                .copied()
                .find(|&read| graph.tensors[read].storage == shared)
        });
        ResultSpec {
            name: entry.name.clone(),
            ty: entry.ty.clone(),
            placement: match base {
                Some(base) => Placement::ViewOf(base),
                None if storage.class == StorageClass::Constant => Placement::Constant,
                None => Placement::New,
            },
        }
    }

    /// Moves and frees of what ops still make; the rest has lost its meaning.
    fn memory_op(&mut self, id: OpId) {
        let op = &self.old.ops[id];
        let moved = op.reads().next().and_then(|tensor| self.tensors.get(&tensor).copied());
        let graph = self.new.graph();
        let is_made = |tensor: &TensorId| {
            let storage = graph.tensors[*tensor].storage;
            graph.storages[storage].class == StorageClass::Intermediate
        };
        let Some(tensor) = moved.filter(is_made) else { return };
        match op.kind {
            OpKind::Dealloc => self.new.dealloc(tensor),
            OpKind::PageOut => self.new.page_out(tensor),
            _ => self.new.page_in(tensor),
        };
    }

    /// What is read in the place of a tensor: itself; what a view that is left out looks at; an input. `None` where its size does not fit.
    fn operand(&mut self, tensor: TensorId) -> Option<TensorId> {
        let mut tensor = tensor;
        while let Some(base) = self.base(tensor) {
            tensor = base;
        }
        if let Some(&known) = self.tensors.get(&tensor) {
            return Some(known);
        }
        let entry = &self.old.tensors[tensor];
        let is_constant = self.old.storages[entry.storage].class == StorageClass::Constant;
        let new = match self.old.values.get(&tensor) {
            Some(elements) => self.new.integers(&entry.name, entry.ty.clone(), elements.clone()),
            None if is_constant => self.new.constant(&entry.name, entry.ty.clone()),
            None => self.new.input(&entry.name, entry.ty.clone()),
        };
        let new = new.ok()?;
        self.tensors.insert(tensor, new);
        self.size(tensor, new);
        Some(new)
    }

    /// For a view that no op has made so far: what its op reads in the same storage.
    fn base(&self, tensor: TensorId) -> Option<TensorId> {
        let entry = &self.old.tensors[tensor];
        if self.tensors.contains_key(&tensor) || !self.old.is_view(tensor) {
            return None;
        }
        let mut reads = self.old.ops[entry.producer?].reads();
        reads.find(|&read| self.old.tensors[read].storage == entry.storage)
    }

    /// The size of a storage that its type does not give.
    fn size(&mut self, before: TensorId, after: TensorId) {
        let storage = &self.old.storages[self.old.tensors[before].storage];
        if let Some(bytes) = storage.bytes.filter(|_| storage.root == before) {
            let storage = self.new.graph().tensors[after].storage;
            self.new.set_bytes(storage, bytes);
        }
    }
}
