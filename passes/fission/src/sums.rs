//! Sums over the axis that tiles cut: each tile sums its rows up, and what they give is put together.

use std::ops::Range;

use remat_ir::{Attribute, ElementType, Graph, Op, OpId, OpSpec, Part, Placement, ResultSpec, TensorId, ValueType};
use remat_operators::{Combine, Split, operator};
use remat_plan::Axis;

use crate::Exactness;
use crate::rules::{Cut, Need, Site, reduced_axes};

/// How an op sums up along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    pub(crate) combine: Combine,
    /// The axis of operand 0.
    pub(crate) axis: usize,
    /// The axis of operand 1, of a product.
    other: Option<usize>,
    /// Rows of it.
    pub(crate) extent: u64,
    /// How many of them a tile has at least.
    pub(crate) least: u64,
}

/// The attribute that says at which row the best are looked for first.
pub(crate) const FROM: &str = "from";

/// How op `id` sums up along the axis of this kind of its operand, if parts of the sum may be put together. `is_inside` says which operands the
/// fused chain makes.
pub(crate) fn along(
    graph: &Graph,
    id: OpId,
    axis: Axis,
    exactness: Exactness,
    is_inside: impl Fn(TensorId) -> bool,
) -> Option<Sum> {
    let op = &graph.ops[id];
    let row = operator(&op.domain, &op.op_type);
    let keeps_bits = matches!(row.combine, Combine::Maximum | Combine::Minimum | Combine::Best);
    let is_permitted = match exactness {
        Exactness::Exact { .. } => keeps_bits,
        Exactness::WholeSums => false,
        Exactness::Close => row.combine != Combine::Never,
    };
    if !is_permitted || op.results().count() != 1 {
        return None;
    }
    let operand = |place: usize| op.inputs.get(place).copied().flatten();
    let dims = |tensor: TensorId| graph.tensors[tensor].ty.known_shape();
    let data = operand(0)?;
    let extents = dims(data)?;
    let (own, other) = match row.split {
        Split::MatMul => {
            let right = operand(1)?;
            let rank = dims(right)?.len();
            let is_set = |name: &str| op.attributes.get(name).and_then(Attribute::as_int).unwrap_or(0) != 0;
            if is_set("transBatchA") || is_set("transBatchB") {
                return None;
            }
            let own = extents.len().checked_sub(if is_set("transA") { 2 } else { 1 })?;
            let inner = rank.checked_sub(if is_set("transB") { 1 } else { 2 })?;
            // The inner dimension of operand 0 is its columns, unless it is or was transposed.
            let is_cut = |tensor: TensorId, at: usize, rank: usize| {
                !is_inside(tensor) || axis.of_rank(rank) == Some(at) || is_transposed(graph, tensor)
            };
            let is_along = is_cut(data, own, extents.len()) && is_cut(right, inner, rank);
            if !is_along || !(is_inside(data) || is_inside(right)) {
                return None;
            }
            (own, Some(inner))
        }
        Split::CombineAlong => {
            let own = axis.of_rank(extents.len())?;
            let stated = op.attributes.get("axis").and_then(Attribute::as_int);
            let inner = operand(1).map(|right| dims(right)?.len().checked_sub(2));
            let is_own = stated.is_some_and(|stated| usize::try_from(stated) == Ok(own));
            (
                is_own.then_some(own)?,
                inner.map_or(Some(None), |inner| inner.map(Some))?,
            )
        }
        Split::Sum | Split::Maximum => {
            let site = Site::of_all(graph, op)?;
            // A vector has one axis only.
            let own = axis.of_rank(extents.len()).or((extents.len() == 1).then_some(0))?;
            (reduced_axes(&site).ok()?.contains(&own).then_some(own)?, None)
        }
        _ => (axis.of_rank(extents.len()).filter(|&own| own > 1)?, None),
    };
    // Nothing that is summed over is left open: tiles are weighed by their elements.
    let is_free = |tensor: TensorId, axis: usize| graph.tensors[tensor].ty.is_free(axis);
    let summed = summed(graph, op, own, extents.len());
    let is_fixed = !summed.into_iter().any(|axis| is_free(data, axis))
        && !operand(1)
            .zip(other)
            .is_some_and(|(right, inner)| is_free(right, inner));
    let is_float = matches!(
        graph.tensors[data].ty.element(),
        Some(ElementType::Float16 | ElementType::Bfloat16 | ElementType::Float32)
    );
    Some(Sum {
        combine: row.combine,
        axis: own,
        other,
        extent: *extents.get(own)?,
        least: match row.combine {
            Combine::Best => u64::try_from(op.attributes.get("count")?.as_int()?).ok()?,
            _ => 1,
        },
    })
    .filter(|_| is_fixed && (is_float || row.combine == Combine::Best))
}

fn is_transposed(graph: &Graph, tensor: TensorId) -> bool {
    let producer = graph.tensors[tensor].producer.map(|producer| &graph.ops[producer]);
    producer.is_some_and(|op| operator(&op.domain, &op.op_type).split == Split::Transpose)
}

impl Sum {
    /// What rows of the axis need.
    pub(crate) fn cut(self, graph: &Graph, id: OpId, rows: &Range<u64>) -> Cut {
        let cut = Cut {
            needs: vec![Need::Whole; graph.ops[id].inputs.len()],
            ..Cut::default()
        };
        let cut = cut.with(0, self.axis, rows.clone());
        match self.other {
            Some(axis) => cut.with(1, axis, rows.clone()),
            None => cut,
        }
    }
}

/// The axes of operand 0, of `rank`, that an op sums over which sums along `own`.
fn summed(graph: &Graph, op: &Op, own: usize, rank: usize) -> Vec<usize> {
    match operator(&op.domain, &op.op_type).split {
        Split::Sum | Split::Maximum => {
            let reduced = Site::of_all(graph, op).and_then(|site| reduced_axes(&site).ok());
            reduced.unwrap_or_default()
        }
        Split::MatMul | Split::CombineAlong => vec![own],
        _ => (2..rank).collect(),
    }
}

/// Elements of a box of operand 0 that go into one element of the result; of statistics those of a channel.
pub(crate) fn count(graph: &Graph, op: &Op, sum: Sum, over: &[Range<u64>]) -> i64 {
    let axes = summed(graph, op, sum.axis, over.len()).into_iter();
    let extents = axes.map(|axis| over.get(axis).map_or(1, |rows| rows.end - rows.start));
    i64::try_from(extents.product::<u64>()).unwrap_or(i64::MAX)
}

/// What tiles found of a result so far.
#[derive(Clone, Debug)]
pub(crate) struct Summed {
    pub(crate) combine: Combine,
    /// The tensors of the new graph.
    pub(crate) parts: Vec<TensorId>,
    /// How many elements each is of, of a channel for statistics.
    pub(crate) counts: Vec<i64>,
    /// What all of them are of.
    pub(crate) over: Option<Part>,
}

impl Summed {
    /// The op that puts them together, by the names of the op and of its result, which has the type `ty` as that of `of`, the op that finds them.
    pub(crate) fn put_together(
        self,
        [name, result]: [String; 2],
        (of, ty): (&Op, ValueType),
        part: Option<Part>,
    ) -> Option<OpSpec> {
        let (domain, op_type) = self.combine.operator()?;
        let mut spec = OpSpec::new(name, op_type);
        spec.domain = domain.to_owned();
        spec.inputs = self.parts.into_iter().map(Some).collect();
        if matches!(self.combine, Combine::Mean | Combine::Moments) {
            spec.attributes
                .insert("counts".to_owned(), Attribute::Ints(self.counts));
        }
        if self.combine == Combine::Best {
            spec.attributes.clone_from(&of.attributes);
            spec.attributes.remove(FROM);
        }
        spec.results = vec![Some(ResultSpec {
            name: result,
            ty,
            placement: Placement::New,
        })];
        spec.parts = vec![part];
        Some(spec)
    }
}
