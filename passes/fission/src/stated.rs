//! Shapes that ops compute, as constants.
//!
//! Exporters ask for the dimensions of a tensor right before they reshape another one. `Shape` would need all of that tensor in one piece, for a few
//! numbers that are known: those that are open are the operand's, or what is left.

use std::borrow::Cow;

use remat_ir::{Attribute, Dim, Effects, ElementType, Graph, Op, OpId, Part, ResultSpec, TensorId, ValueType};
use remat_operators::{Split, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::FissionError;
use crate::names::Names;
use crate::transfer::Transfer;

/// The place of the shape among the operands of a reshape.
const SHAPE: usize = 1;

/// The graph in which every reshape that can reads its shape as a constant, without the ops that computed it.
pub(crate) fn stated(graph: &Graph) -> Result<Cow<'_, Graph>, FissionError> {
    let shapes = graph
        .ops
        .iter_enumerated()
        .filter_map(|(id, op)| Some((id, shape(graph, op)?)));
    let shapes: FxHashMap<OpId, Vec<i64>> = shapes.collect();
    if shapes.is_empty() {
        return Ok(Cow::Borrowed(graph));
    }
    let gone = left_out(graph, |reader, tensor| {
        let op = &graph.ops[reader];
        let reads = op.reads().filter(|&read| read == tensor).count();
        shapes.contains_key(&reader) && op.inputs[SHAPE] == Some(tensor) && reads == 1
    });
    let mut names = Names::of(graph);
    let mut transfer = Transfer::new(graph)?;
    let mut constants: FxHashMap<&[i64], TensorId> = FxHashMap::default();
    for (id, op) in graph.ops.iter_enumerated().filter(|(id, _)| !gone.contains(id)) {
        let (Some(shape), Some(result)) = (shapes.get(&id), op.results().next()) else {
            transfer.copy(id)?;
            continue;
        };
        let constant = match constants.get(shape.as_slice()) {
            Some(&known) => known,
            None => {
                let ty = ValueType::tensor(ElementType::Int64, &[shape.len() as u64]);
                let name = names.tensor(format!("{}_shape", op.name));
                let made = transfer.integers(name, ty, shape.clone())?;
                *constants.entry(shape).or_insert(made)
            }
        };
        let mut inputs = transfer.operands(op);
        inputs[SHAPE] = Some(constant);
        let tensor = &graph.tensors[result];
        let mut spec = transfer.spec(id, op.name.clone(), inputs);
        if let Some(zeros) = spec.attributes.get_mut("allowzero") {
            *zeros = Attribute::Int(0);
        }
        let dims = tensor.ty.known_shape().unwrap_or_default();
        spec.parts = vec![Some(Part::whole(tensor.name.clone(), &dims))];
        spec.results = vec![Some(ResultSpec {
            name: tensor.name.clone(),
            ty: tensor.ty.clone(),
            placement: transfer.placement(op, result, &spec.inputs),
        })];
        let made = transfer.add(id, spec)?.into_iter().flatten().next();
        if let Some(made) = made {
            transfer.name_whole(result, made);
            transfer.state_bytes(result);
        }
    }
    Ok(Cow::Owned(transfer.finish().0))
}

/// The shape to state for a reshape whose own one is computed: an open dimension is that of the operand in its place, or one of them what is left.
fn shape(graph: &Graph, op: &Op) -> Option<Vec<i64>> {
    let row = operator(&op.domain, &op.op_type);
    let (&[Some(data), Some(own)], &[Some(result)]) = (&op.inputs[..], &op.outputs[..]) else {
        return None;
    };
    let is_computed = graph.tensors[own].producer.is_some() && !graph.values.contains_key(&own);
    if !op.domain.is_empty()
        || row.split != Split::Reshape
        || row.shape_operand != Some(SHAPE)
        || !is_computed
        || !op.parts.is_empty()
    {
        return None;
    }
    let (from, to) = (graph.tensors[data].ty.dims(), &graph.tensors[result].ty);
    to.known_shape()?;
    let mut left = Some(-1);
    let stated = to.dims().iter().enumerate().map(|(axis, dim)| match dim {
        Dim::Free { name: Some(_), .. } if from.get(axis) == Some(dim) => Some(0),
        Dim::Free { .. } => left.take(),
        dim => i64::try_from(dim.size()?).ok().filter(|&size| size > 0),
    });
    stated.collect()
}

/// Ops that make integers for nothing but ops that are left out, or read them no more.
fn left_out(graph: &Graph, reads_no_more: impl Fn(OpId, TensorId) -> bool) -> FxHashSet<OpId> {
    let (readers, mut gone) = (graph.users(), FxHashSet::default());
    for (id, op) in graph.ops.iter_enumerated().rev() {
        let is_unread = |result: TensorId| {
            let is_gone = |reader: &OpId| gone.contains(reader) || reads_no_more(*reader, result);
            graph.tensors[result].ty.element() == Some(ElementType::Int64)
                && !graph.outputs.contains(&result)
                && readers[result].iter().all(is_gone)
        };
        let was_read = op.results().any(|result| !readers[result].is_empty());
        if op.effects == Effects::Pure && was_read && op.results().all(is_unread) {
            gone.insert(id);
        }
    }
    gone
}
