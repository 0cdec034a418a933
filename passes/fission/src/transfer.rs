//! Ops of one graph written to another.

use remat_ir::{
    Graph, GraphBuilder, Op, OpId, OpKind, OpSpec, Part, Placement, ResultSpec, StorageClass, TensorId, ValueType,
};
use remat_operators::{Sharing, operator};
use typed_index_collections::TiVec;

use crate::FissionError;
use crate::names::Names;
use crate::rules::{NotSplit, Reason};

/// A graph that is being written, from the ops of another one.
pub(crate) struct Transfer<'g> {
    pub(crate) graph: &'g Graph,
    builder: GraphBuilder,
    /// By tensor of the old graph: where it is whole now.
    pub(crate) whole: TiVec<TensorId, Option<TensorId>>,
    /// By tensor of the old graph: the tensor that has its name.
    named: TiVec<TensorId, Option<TensorId>>,
    /// By op of the new graph: the op of the old one that it is, is a part of, or is there for.
    origin: TiVec<OpId, OpId>,
}

impl<'g> Transfer<'g> {
    /// Inputs and constants, and no op yet.
    pub(crate) fn new(graph: &'g Graph) -> Result<Self, FissionError> {
        let mut transfer = Self::empty(graph);
        for &input in &graph.inputs {
            transfer.source(input)?;
        }
        for (id, tensor) in graph.tensors.iter_enumerated() {
            if tensor.producer.is_none() && transfer.whole[id].is_none() {
                transfer.source(id)?;
            }
        }
        Ok(transfer)
    }

    /// Neither inputs nor constants.
    pub(crate) fn empty(graph: &'g Graph) -> Self {
        let none: TiVec<TensorId, Option<TensorId>> = TiVec::from(vec![None; graph.tensors.len()]);
        Self {
            graph,
            builder: GraphBuilder::new(graph.name.clone()),
            named: none.clone(),
            whole: none,
            origin: TiVec::new(),
        }
    }

    /// Adds a tensor that no op makes.
    pub(crate) fn source(&mut self, tensor: TensorId) -> Result<(), FissionError> {
        let entry = &self.graph.tensors[tensor];
        let (name, ty) = (entry.name.clone(), entry.ty.clone());
        let is_input = self.graph.storages[entry.storage].class == StorageClass::Input;
        let new = match self.graph.values.get(&tensor) {
            _ if is_input && self.graph.inputs.contains(&tensor) => self.builder.input(name, ty)?,
            Some(values) => self.builder.integers(name, ty, values.clone())?,
            None => self.builder.constant(name, ty)?,
        };
        self.name_whole(tensor, new);
        self.state_bytes(tensor);
        Ok(())
    }

    /// Adds an input that is none of the old graph.
    pub(crate) fn input(&mut self, ty: ValueType) -> Result<TensorId, FissionError> {
        Ok(self.builder.input(String::new(), ty)?)
    }

    /// States the size of a tensor whose type leaves it open, as in the old graph.
    pub(crate) fn state_bytes(&mut self, tensor: TensorId) {
        let storage = self.graph.tensors[tensor].storage;
        let entry = &self.graph.storages[storage];
        if let (Some(new), Some(bytes)) = (self.whole[tensor], entry.bytes)
            && entry.root == tensor
        {
            let storage = self.builder.graph().tensors[new].storage;
            if self.builder.graph().storages[storage].bytes.is_none() {
                self.builder.set_bytes(storage, bytes);
            }
        }
    }

    /// The part of a tensor of the untiled graph that `tensor` holds, if it is one.
    pub(crate) fn part_of(&self, tensor: TensorId) -> Option<&'g Part> {
        let graph = self.graph;
        let op = &graph.ops[graph.tensors[tensor].producer?];
        let place = op.outputs.iter().position(|&output| output == Some(tensor))?;
        op.parts.get(place)?.as_ref()
    }

    /// The name of the tensor of the untiled graph that `tensor` is or holds.
    pub(crate) fn tensor_of(&self, tensor: TensorId) -> &'g str {
        let name = self.graph.tensors[tensor].name.as_str();
        self.part_of(tensor).map_or(name, |part| part.of.as_str())
    }

    /// Who owns the memory of a tensor of the new graph.
    pub(crate) fn class(&self, new: TensorId) -> StorageClass {
        let graph = self.builder.graph();
        graph.storages[graph.tensors[new].storage].class
    }

    pub(crate) fn integers(
        &mut self,
        name: String,
        ty: ValueType,
        elements: Vec<i64>,
    ) -> Result<TensorId, FissionError> {
        Ok(self.builder.integers(name, ty, elements)?)
    }

    /// Adds an op of the new graph that is there for op `origin` of the old one.
    pub(crate) fn add(&mut self, origin: OpId, spec: OpSpec) -> Result<Vec<Option<TensorId>>, FissionError> {
        let (_, results) = self.builder.op(spec)?;
        self.origin.push(origin);
        Ok(results)
    }

    /// How many ops the new graph has so far.
    pub(crate) fn ops(&self) -> usize {
        self.origin.len()
    }

    /// An op without results that is what `id` is, with these operands and this name.
    pub(crate) fn spec(&self, id: OpId, name: String, inputs: Vec<Option<TensorId>>) -> OpSpec {
        let op = &self.graph.ops[id];
        OpSpec {
            name,
            kind: OpKind::Compute,
            domain: op.domain.clone(),
            op_type: op.op_type.clone(),
            inputs,
            captures: op.captures.iter().filter_map(|&capture| self.whole[capture]).collect(),
            results: Vec::new(),
            effects: op.effects,
            attributes: op.attributes.clone(),
            source: op.source,
            bodies: op.bodies.clone(),
            parts: op.parts.clone(),
        }
    }

    /// Where a result of an op with these operands lies: views look into an operand, as the table of operators says, constants belong to
    /// the session, all others have memory of their own. That kernels write over operands is not said.
    pub(crate) fn placement(&self, op: &Op, result: TensorId, inputs: &[Option<TensorId>]) -> Placement {
        let graph = self.graph;
        let storage = graph.tensors[result].storage;
        if graph.storages[storage].root == result {
            return match graph.storages[storage].class {
                StorageClass::Constant => Placement::Constant,
                StorageClass::Input | StorageClass::Intermediate => Placement::New,
            };
        }
        let row = operator(&op.domain, &op.op_type);
        let shares = row.shares != Sharing::Nothing || row.overwrites.is_none();
        let base = op.inputs.iter().zip(inputs).find(|(operand, _)| {
            let operand = operand.map(|operand| graph.tensors[operand].storage);
            operand == Some(storage)
        });
        match base {
            Some((_, &Some(base))) if shares => Placement::ViewOf(base),
            _ => Placement::New,
        }
    }

    /// The tensors of the new graph that hold the operands of an op whole.
    pub(crate) fn operands(&self, op: &Op) -> Vec<Option<TensorId>> {
        op.inputs.iter().map(|input| self.whole[(*input)?]).collect()
    }

    /// Op `id` as it is.
    pub(crate) fn copy(&mut self, id: OpId) -> Result<(), FissionError> {
        self.copy_of(id, self.operands(&self.graph.ops[id]))
    }

    /// Op `id` as it is, of these operands.
    pub(crate) fn copy_of(&mut self, id: OpId, inputs: Vec<Option<TensorId>>) -> Result<(), FissionError> {
        let op = &self.graph.ops[id];
        let results = self.write(id, (op.name.clone(), inputs), str::to_owned, None)?;
        for (&old, new) in op.outputs.iter().zip(results) {
            if let (Some(old), Some(new)) = (old, new) {
                self.whole[old] = Some(new);
                self.named[old] = Some(new);
                self.state_bytes(old);
            }
        }
        Ok(())
    }

    /// Op `id` a second time; what is written from now on reads its new results.
    pub(crate) fn clone_whole(&mut self, id: OpId, names: &mut Names) -> Result<(), FissionError> {
        let op = &self.graph.ops[id];
        let part = |(place, &output): (usize, &Option<TensorId>)| {
            let Some(output) = output else { return Ok(None) };
            if let Some(Some(part)) = op.parts.get(place) {
                return Ok(Some(part.clone()));
            }
            let dims = self.graph.tensors[output].ty.known_shape().ok_or_else(|| NotSplit {
                op: op.name.clone(),
                op_type: op.op_type.clone(),
                axis: 0,
                reason: Reason::Shapes,
            })?;
            Ok(Some(Part::whole(self.tensor_of(output), &dims)))
        };
        let parts = op
            .outputs
            .iter()
            .enumerate()
            .map(part)
            .collect::<Result<Vec<_>, NotSplit>>()?;
        let name = names.op(format_args!("{}_again", op.name));
        let again = |name: &str| names.tensor(format_args!("{name}_again"));
        let inputs = self.operands(op);
        let results = self.write(id, (name, inputs), again, Some(parts))?;
        for (&old, new) in op.outputs.iter().zip(results) {
            if let (Some(old), Some(new)) = (old, new) {
                self.whole[old] = Some(new);
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        id: OpId,
        (name, inputs): (String, Vec<Option<TensorId>>),
        mut rename: impl FnMut(&str) -> String,
        parts: Option<Vec<Option<Part>>>,
    ) -> Result<Vec<Option<TensorId>>, FissionError> {
        let op = &self.graph.ops[id];
        if op.kind != OpKind::Compute {
            return Err(FissionError::Planned(op.name.clone()));
        }
        let result = |&output: &Option<TensorId>| {
            let output = output?;
            let tensor = &self.graph.tensors[output];
            Some(ResultSpec {
                name: rename(&tensor.name),
                ty: tensor.ty.clone(),
                placement: self.placement(op, output, &inputs),
            })
        };
        let results = op.outputs.iter().map(result).collect();
        let mut spec = self.spec(id, name, inputs);
        spec.results = results;
        if let Some(parts) = parts {
            spec.parts = parts;
        }
        self.add(id, spec)
    }

    /// Notes that a tensor of the new graph is one of the old under its own name.
    pub(crate) fn name_whole(&mut self, old: TensorId, new: TensorId) {
        self.whole[old] = Some(new);
        self.named[old] = Some(new);
    }

    /// The tensor that has the name of `old`.
    pub(crate) fn named(&self, old: TensorId) -> Option<TensorId> {
        self.named[old]
    }

    /// The same without outputs.
    pub(crate) fn finish_stretch(self) -> (Graph, TiVec<OpId, OpId>) {
        (self.builder.finish(), self.origin)
    }

    /// The new graph, and for each of its ops the op of the old one that it comes from.
    pub(crate) fn finish(mut self) -> (Graph, TiVec<OpId, OpId>) {
        for &output in &self.graph.outputs {
            if let Some(output) = self.named[output] {
                self.builder.output(output);
            }
        }
        let mut graph = self.builder.finish();
        // Those of constants that nodes make.
        for (&old, values) in &self.graph.values {
            if let Some(new) = self.named[old] {
                graph.values.entry(new).or_insert_with(|| values.clone());
            }
        }
        (graph, self.origin)
    }
}
