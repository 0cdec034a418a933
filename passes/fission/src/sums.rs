//! Sums over the axis that tiles cut: each tile sums its rows up, and what they give is put together.

use std::ops::Range;

use remat_ir::{Attribute, Graph, Op, OpId, OpSpec, Part, Placement, ResultSpec, TensorId};
use remat_operators::{Combine, STREAMED_DOMAIN, Split, operator};
use remat_plan::Axis;

use crate::course::Run;
use crate::pieces::Writer;
use crate::rules::{Cut, Need, Site, reduced_axes};
use crate::{Exactness, FissionError};

/// How an op sums up along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    combine: Combine,
    /// The axis of operand 0.
    axis: usize,
    /// The axis of operand 1, of a product.
    other: Option<usize>,
    /// Rows of it.
    pub(crate) extent: u64,
}

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
    let keeps_bits = matches!(row.combine, Combine::Maximum | Combine::Minimum);
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
            let inner = rank.checked_sub(2)?;
            // Rows of the inner dimension of operand 0 are columns: its own axis is another one, unless it was transposed.
            let is_turned = !is_inside(data) || is_transposed(graph, data);
            if !is_turned || axis.of_rank(rank) != Some(inner) || !(is_inside(data) || is_inside(right)) {
                return None;
            }
            (extents.len().checked_sub(1)?, Some(inner))
        }
        Split::Sum | Split::Maximum => {
            let site = Site::of_all(graph, op)?;
            let own = axis.of_rank(extents.len())?;
            (reduced_axes(&site).ok()?.contains(&own).then_some(own)?, None)
        }
        _ => (axis.of_rank(extents.len()).filter(|&own| own > 1)?, None),
    };
    let is_fixed = op.reads().all(|tensor| !graph.tensors[tensor].ty.has_free_dims());
    Some(Sum {
        combine: row.combine,
        axis: own,
        other,
        extent: *extents.get(own)?,
    })
    .filter(|_| is_fixed)
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

/// What tiles found of a result so far.
#[derive(Clone, Debug)]
pub(crate) struct Summed {
    combine: Combine,
    /// The tensors of the new graph.
    parts: Vec<TensorId>,
    /// How many elements each is of, of a channel for statistics.
    counts: Vec<i64>,
    /// What all of them are of.
    over: Option<Part>,
}

impl Writer<'_> {
    /// The sum over the rows of a tile.
    pub(crate) fn sum_up(&mut self, run: &Run, sum: Sum, tile: usize) -> Result<(), FissionError> {
        let graph = self.transfer.graph;
        let op = &graph.ops[run.op];
        let (Some(result), Some(Some(data))) = (op.results().next(), op.inputs.first()) else {
            return Err(FissionError::RunsOnce(op.name.clone()));
        };
        let inputs = self.operands(run)?;
        let over = self.full(*data, sum.axis, &run.rows);
        let count = count(graph, op, sum, &over);
        let part = Part {
            is_sum: true,
            ..self.part(*data, over)
        };
        let name = self.names.op(format!("{}_tile{tile}", op.name));
        let mut spec = self.transfer.spec(run.op, name, inputs);
        spec.results = vec![Some(ResultSpec {
            name: self.names.tensor(format!("{}_tile{tile}", graph.tensors[result].name)),
            ty: graph.tensors[result].ty.clone(),
            placement: Placement::New,
        })];
        spec.parts = vec![Some(part.clone())];
        let made = self.transfer.add(run.op, spec)?.into_iter().flatten();
        let summed = self.sums.entry(result).or_insert_with(|| Summed {
            combine: sum.combine,
            parts: Vec::new(),
            counts: Vec::new(),
            over: None,
        });
        summed.parts.extend(made);
        summed.counts.push(count);
        let own = part.ranges.get(sum.axis).map_or(0, |rows| rows.end);
        match &mut summed.over {
            Some(over) => over.ranges[sum.axis].end = own,
            None => summed.over = Some(part),
        }
        Ok(())
    }

    /// Puts what tiles found of a result together, if they found anything of it.
    pub(crate) fn put_together(&mut self, result: TensorId) -> Result<Option<TensorId>, FissionError> {
        let Some(summed) = self.sums.remove(&result) else {
            return Ok(None);
        };
        let graph = self.transfer.graph;
        let tensor = &graph.tensors[result];
        let (domain, op_type) = match summed.combine {
            Combine::Moments => (STREAMED_DOMAIN, "CombineMoments"),
            Combine::Mean => (STREAMED_DOMAIN, "CombineMeans"),
            Combine::Maximum => ("", "Max"),
            Combine::Minimum => ("", "Min"),
            Combine::Sum | Combine::Never => ("", "Sum"),
        };
        let mut spec = OpSpec::new(self.names.op(tensor.name.clone()), op_type);
        spec.domain = domain.to_owned();
        spec.inputs = summed.parts.into_iter().map(Some).collect();
        if domain == STREAMED_DOMAIN {
            spec.attributes
                .insert("counts".to_owned(), Attribute::Ints(summed.counts));
        }
        spec.results = vec![Some(ResultSpec {
            name: tensor.name.clone(),
            ty: tensor.ty.clone(),
            placement: Placement::New,
        })];
        let dims = tensor.ty.known_shape().unwrap_or_default();
        let whole = Part::whole(self.transfer.tensor_of(result), &dims);
        spec.parts = vec![if summed.combine == Combine::Moments {
            summed.over
        } else {
            Some(whole)
        }];
        let made = self.transfer.add(self.at, spec)?.into_iter().flatten().next();
        self.transfer.whole[result] = made;
        if let Some(made) = made {
            self.transfer.name_whole(result, made);
        }
        Ok(made)
    }
}

/// Elements of a box of operand 0 that go into one element of the result; of statistics those of a channel.
fn count(graph: &Graph, op: &Op, sum: Sum, over: &[Range<u64>]) -> i64 {
    let row = operator(&op.domain, &op.op_type);
    let axes = match row.split {
        Split::Sum | Split::Maximum => Site::of_all(graph, op).and_then(|site| reduced_axes(&site).ok()),
        Split::MatMul => Some(vec![sum.axis]),
        _ => Some((2..over.len()).collect()),
    };
    let extents = axes
        .into_iter()
        .flatten()
        .map(|axis| over.get(axis).map_or(1, |rows| rows.end - rows.start));
    i64::try_from(extents.product::<u64>()).unwrap_or(i64::MAX)
}
