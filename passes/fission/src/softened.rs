//! A softmax over the axis that tiles cut, in two passes, and what it weighs in one.
//!
//! The first pass keeps of what lies along the axis the maximum and the sum of the exponentials of what differs from it, which tiles find for their
//! rows and put together; the second one divides exponentials by that sum. Where a softmax only weighs the rows of a second tensor, as in attention,
//! one pass does: the product of the exponentials and that tensor is a sum over rows, too, and is divided in the end.

use remat_ir::{Attribute, Dim, ElementType, Graph, OpId, OpSpec, Part, Placement, ResultSpec, TensorId, ValueType};
use remat_operators::{Combine, EXPONENTIALS, SOFTEN, STREAMED_DOMAIN, Split, WEIGH, WEIGHED, operator};

use crate::FissionError;
use crate::names::Names;
use crate::rules::{Site, softened_axes};
use crate::transfer::Transfer;

/// A softmax, and the product that it is the left operand of, if nobody else reads it.
#[derive(Clone, Debug)]
pub(crate) struct Softened {
    /// In order; the last one makes the result.
    pub(crate) ops: Vec<OpId>,
    operand: TensorId,
    /// What is weighed.
    weighed: Option<TensorId>,
    result: TensorId,
    axis: usize,
    is_logarithm: bool,
    /// Dimensions of the operand.
    dims: Vec<u64>,
}

/// Those of a graph.
pub(crate) fn softened(graph: &Graph) -> Vec<Softened> {
    let readers = graph.users();
    let lone_reader = |tensor: TensorId| match readers[tensor][..] {
        [reader] if !graph.outputs.contains(&tensor) => Some(reader),
        _ => None,
    };
    let found = |id: OpId| {
        let mut softened = softmax(graph, id)?;
        let product = lone_reader(softened.result).and_then(|next| product(graph, &softened, next));
        if let Some((next, weighed, result)) = product {
            softened.ops.push(next);
            (softened.weighed, softened.result) = (Some(weighed), result);
        }
        Some(softened)
    };
    graph.ops.keys().filter_map(found).collect()
}

/// The names of those whose operands have at least so many bytes, and more rows along the axis than other tiles could cut across it.
pub(crate) fn worthwhile(graph: &Graph, bytes: u64) -> Vec<String> {
    let is_large = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].bytes.unwrap_or(0) >= bytes;
    let found = softened(graph).into_iter();
    let found = found.filter(|softened| is_large(softened.operand) && softened.is_long());
    found.map(|softened| graph.ops[softened.last()].name.clone()).collect()
}

/// Whether a tensor has more along an axis than across it.
pub(crate) fn is_long(dims: &[u64], axis: usize) -> bool {
    let others = dims.iter().enumerate().filter(|&(other, _)| other != axis);
    dims[axis] > others.map(|(_, &dim)| dim).fold(1, u64::saturating_mul)
}

fn softmax(graph: &Graph, id: OpId) -> Option<Softened> {
    let op = &graph.ops[id];
    let split = operator(&op.domain, &op.op_type).split;
    let (&[Some(operand)], &[Some(result)]) = (&op.inputs[..], &op.outputs[..]) else {
        return None;
    };
    let ty = &graph.tensors[operand].ty;
    let axes = softened_axes(&Site::of_all(graph, op)?).ok()?;
    let is_understood = matches!(split, Split::Softmax | Split::LogSoftmax)
        && axes.len() == 1
        && matches!(ty.element(), Some(ElementType::Float32 | ElementType::Float16))
        && !ty.is_free(axes.start);
    Some(Softened {
        ops: vec![id],
        operand,
        weighed: None,
        result,
        axis: axes.start,
        is_logarithm: split == Split::LogSoftmax,
        dims: ty.known_shape()?,
    })
    .filter(|_| is_understood)
}

/// The product of a softmax along its last axis and stacks of matrices, with these and the result.
fn product(graph: &Graph, softened: &Softened, id: OpId) -> Option<(OpId, TensorId, TensorId)> {
    let op = &graph.ops[id];
    let (&[Some(left), Some(right)], &[Some(result)]) = (&op.inputs[..], &op.outputs[..]) else {
        return None;
    };
    let [left_type, right_type, result_type] = [left, right, result].map(|tensor| &graph.tensors[tensor].ty);
    let are_known = [right_type, result_type]
        .iter()
        .all(|ty| ty.known_shape().is_some_and(|dims| dims.len() > 1));
    let are_matrices = are_known
        && !right_type.dims().iter().rev().take(2).any(Dim::is_free)
        && are_stacked(left_type.dims(), right_type.dims());
    let row = operator(&op.domain, &op.op_type);
    let is_product = row.split == Split::MatMul && row.combine == Combine::Sum && op.attributes.is_empty();
    let weighs = (left, right) == (softened.result, right) && left != right && !softened.is_logarithm;
    let is_last = softened.axis > 0 && softened.axis + 1 == softened.dims.len();
    (is_product && are_matrices && weighs && is_last).then_some((id, right, result))
}

/// Whether stacks of matrices are the same ones, or one matrix for all, at every size of what is left open.
fn are_stacked(left: &[Dim], right: &[Dim]) -> bool {
    let mut stacks = left.iter().rev().zip(right.iter().rev()).skip(2);
    stacks.all(|pair| match pair {
        (Dim::Known(_), Dim::Known(_)) | (Dim::Known(1), _) | (_, Dim::Known(1)) => true,
        (left, right) => left == right && !matches!(left, Dim::Free { name: None, .. }),
    })
}

impl Softened {
    pub(crate) fn last(&self) -> OpId {
        self.ops.last().copied().unwrap_or(OpId::new(0))
    }

    /// Bytes that are there all the time while tiles run.
    pub(crate) fn kept(&self, graph: &Graph) -> u64 {
        let kept = self
            .weighed
            .and(graph.storages[graph.tensors[self.result].storage].bytes);
        kept.unwrap_or(0)
    }

    /// Whether more stands along the axis than across it; of a product, in each of its matrices.
    fn is_long(&self) -> bool {
        match self.weighed {
            Some(_) => self.dims[self.axis] > self.dims[self.axis - 1],
            None => is_long(&self.dims, self.axis),
        }
    }

    /// Writes both passes instead of the last op.
    pub(crate) fn write(&self, transfer: &mut Transfer<'_>, names: &mut Names) -> Result<(), FissionError> {
        let graph = transfer.graph;
        let (own, result) = (&graph.ops[self.last()].name, &graph.tensors[self.result]);
        let missing = || FissionError::NotStreamed(own.clone());
        let operand = transfer.whole[self.operand].ok_or_else(missing)?;
        let weighed = self.weighed.map(|weighed| transfer.whole[weighed].ok_or_else(missing));
        let result_dims = result.ty.known_shape().ok_or_else(missing)?;
        let axis = Attribute::Int(i64::try_from(self.axis).unwrap_or(i64::MAX));

        let mut kept = graph.tensors[self.operand].ty.dims().to_vec();
        kept[self.axis] = Dim::Known(1);
        kept.push(Dim::Known(2));
        if let (Some(_), [stacks @ .., _], Some(columns)) = (self.weighed, result.ty.dims(), result_dims.last()) {
            kept = [stacks, &[Dim::Known(columns.saturating_add(2))]].concat();
        }
        let name = names.op(format!("{own}_exponentials"));
        let mut spec = OpSpec::new(name.clone(), if weighed.is_some() { WEIGH } else { EXPONENTIALS });
        spec.domain = STREAMED_DOMAIN.to_owned();
        spec.inputs = vec![Some(operand)];
        spec.inputs.extend(weighed.transpose()?.map(Some));
        spec.attributes.insert("axis".to_owned(), axis.clone());
        spec.parts = vec![Some(Part {
            is_sum: true,
            ..Part::whole(graph.tensors[self.operand].name.clone(), &self.dims)
        })];
        spec.results = vec![Some(ResultSpec {
            name: names.tensor(name),
            ty: ValueType::Tensor {
                element: ElementType::Float32,
                shape: Some(kept),
            },
            placement: Placement::New,
        })];
        let kept = transfer.add(self.last(), spec)?.into_iter().flatten().next();

        let mut spec = OpSpec::new(own.clone(), if self.weighed.is_some() { WEIGHED } else { SOFTEN });
        spec.domain = STREAMED_DOMAIN.to_owned();
        spec.inputs = vec![kept];
        if self.weighed.is_none() {
            spec.inputs.insert(0, Some(operand));
            let log = Attribute::Int(i64::from(self.is_logarithm));
            spec.attributes
                .extend([("axis".to_owned(), axis), ("log".to_owned(), log)]);
        }
        spec.parts = vec![Some(Part::whole(result.name.clone(), &result_dims))];
        spec.results = vec![Some(ResultSpec {
            name: result.name.clone(),
            ty: result.ty.clone(),
            placement: Placement::New,
        })];
        let made = transfer.add(self.last(), spec)?.into_iter().flatten().next();
        transfer.name_whole(self.result, made.ok_or_else(missing)?);
        Ok(())
    }
}
