//! A number of bytes that no tiling along one axis takes less than; grids may.
//!
//! What runs anywhere in a tiled graph is an op whole or rows of it. While an op runs whole, everything that it reads and makes is there, and
//! what it reads was made whole by its op or joined from pieces, which takes it twice. While rows of an op run, at least the fewest rows are
//! there that the rules permit, along the axis where that takes least, with the rows of operands that they need, and operands that are needed
//! whole. The bound is the largest of these figures, each op in the cheaper of its two ways. Other ops' results that are alive at the same time,
//! and workspace, are left out: the bound holds for every order, every recomputing, and every kernel.
//!
//! Where sums may be split, an op that sums up needs its result and a row of what it sums up, and normalizations run in two passes. A softmax in two
//! passes is taken to need nothing, and a product with one its result. An op that finds the best of rows needs its result where bits stay, too.

use std::ops::Range;

use remat_ir::{Graph, Op, OpId, StorageId, TensorId};
use remat_operators::{Split, operator};
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

use crate::exact::keeps_bits;
use crate::layout::Layout;
use crate::rules::{Cut, Need, split};
use crate::sizes::{Sizes, total};
use crate::streamed::{in_two_passes, others};
use crate::sums::along;
use crate::{Axis, Exactness};

/// The most rows for which it is asked whether they have the bits of the whole; more rows than that are taken to have them.
const MOST_ROWS: u64 = 1_024;

/// What every tiling takes, and the op that needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Bytes.
    pub bytes: u64,
    /// Name of the op.
    pub op: String,
}

/// The least that a graph tiled along one axis can take at its peak, whatever its fused chains, order and recomputed ops: bytes of results of ops, without workspace
/// and without what belongs to the caller and the session. `None` where no op makes anything of known size.
#[must_use]
pub fn bound(graph: &Graph, exactness: Exactness) -> Option<Bound> {
    let streamed = in_two_passes(graph, exactness);
    let graph = streamed.as_ref().unwrap_or(graph);
    let layout = Layout::of(graph, exactness).ok()?;
    let sizes = Sizes { graph };
    // By op that runs in two passes: what it needs.
    let others = others(graph, exactness);
    let of_ops = others.iter().flat_map(|other| {
        let kept = |&op: &OpId| if op == other.last() { other.kept(graph) } else { 0 };
        other.ops().iter().map(move |op| (*op, kept(op)))
    });
    let in_two: FxHashMap<OpId, u64> = of_ops.collect();
    // By op: bytes that are there while, or before, it runs whole.
    let mut whole: TiVec<OpId, u64> = TiVec::with_capacity(graph.ops.len());
    let mut best: Option<(u64, OpId)> = None;
    for (id, op) in graph.ops.iter_enumerated() {
        let operands = op.reads().map(|tensor| sizes.held(tensor, &whole));
        let held = operands.max().unwrap_or(0);
        whole.push(sizes.together(op).max(held));
        let mut least = whole[id];
        if layout.is_divisible(id) && !layout.is_outside(id) {
            least = least.min(sizes.in_rows(id, &whole, exactness));
            least = least.min(sizes.summed_up(id, exactness));
            least = in_two.get(&id).map_or(least, |&kept| least.min(kept));
        }
        if op.results().any(|result| graph.outputs.contains(&result)) {
            let joined = total(op.results().map(|result| sizes.bytes(result).saturating_mul(2)));
            least = least.max(whole[id].min(joined));
        }
        // What measures a shape looks at no element.
        let measures = operator(&op.domain, &op.op_type).measures;
        if !measures && best.is_none_or(|(bytes, _)| least > bytes) {
            best = Some((least, id));
        }
    }
    let (bytes, op) = best.filter(|&(bytes, _)| bytes > 0)?;
    let op = graph.ops[op].name.clone();
    Some(Bound { bytes, op })
}

impl Sizes<'_> {
    /// The least bytes that are there at once until a tensor is there whole: its op ran whole, or it was joined.
    fn held(&self, tensor: TensorId, whole: &TiVec<OpId, u64>) -> u64 {
        let producer = self.graph.tensors[tensor].producer;
        let made = producer.and_then(|producer| whole.get(producer));
        made.map_or(0, |&made| made.min(self.bytes(tensor).saturating_mul(2)))
    }

    /// Bytes of all that an op reads and makes; a result that may be written over an operand takes nothing.
    fn together(&self, op: &Op) -> u64 {
        let graph = self.graph;
        let mut storages: FxHashMap<StorageId, u64> = FxHashMap::default();
        for tensor in op.reads().chain(op.results()) {
            let storage = graph.tensors[tensor].storage;
            storages.insert(storage, self.storage(storage));
        }
        let all = total(storages.into_values());
        let results = total(op.results().map(|result| self.bytes(result)));
        let saved = if self.overwrites(op) { results } else { 0 };
        all.saturating_sub(saved)
    }

    /// The least bytes with which an op sums up row by row: its result, and a row of what it sums up.
    fn summed_up(&self, id: OpId, exactness: Exactness) -> u64 {
        let op = &self.graph.ops[id];
        let results = total(op.results().map(|result| self.bytes(result)));
        let along = |&axis: &Axis| {
            let sum = along(self.graph, id, axis, exactness, |_| true)?;
            let data = op.inputs.first().copied().flatten()?;
            Some(results.saturating_add(self.share(data, sum.axis, &(0..1))))
        };
        Axis::ALL.iter().filter_map(along).min().unwrap_or(u64::MAX)
    }

    /// The least bytes with which rows of an op run.
    fn in_rows(&self, id: OpId, whole: &TiVec<OpId, u64>, exactness: Exactness) -> u64 {
        let op = &self.graph.ops[id];
        let dims = op
            .results()
            .next()
            .and_then(|first| self.graph.tensors[first].ty.known_shape());
        let axes = dims.iter().flatten().enumerate();
        axes.filter_map(|(axis, &extent)| self.along(id, axis, extent, whole, exactness))
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The same along one axis of so many rows: at its ends, where windows reach over the edge, and in its middle.
    fn along(&self, id: OpId, axis: usize, extent: u64, whole: &TiVec<OpId, u64>, exactness: Exactness) -> Option<u64> {
        // What more threads permit depends on where rows stand; what one thread forbids is forbidden.
        let weakest = match exactness {
            Exactness::Exact { blocks, .. } => Exactness::Exact { threads: 1, blocks },
            other => other,
        };
        for count in 1..extent.min(MOST_ROWS) {
            let starts = [0, extent - count, (extent - count) / 2];
            let permitted = starts.iter().filter_map(|&start| {
                let rows = start..start + count;
                let cut = split(self.graph, id, axis, rows.clone()).ok()?;
                let is_exact = count + 1 == MOST_ROWS || keeps_bits(self.graph, id, axis, &rows, weakest);
                is_exact.then(|| self.of_rows(id, axis, &rows, &cut, whole))
            });
            if let Some(least) = permitted.min() {
                return Some(least);
            }
        }
        None
    }

    fn of_rows(&self, id: OpId, axis: usize, rows: &Range<u64>, cut: &Cut, whole: &TiVec<OpId, u64>) -> u64 {
        let op = &self.graph.ops[id];
        let made = total(op.results().map(|result| self.share(result, axis, rows)));
        // Which rows an op gathers depends on its indices.
        let family = operator(&op.domain, &op.op_type).split;
        let is_gathered = matches!(family, Split::Gather | Split::GatherTuples);
        let (mut read, mut held) = (0u64, 0);
        for (operand, need) in op.inputs.iter().zip(&cut.needs) {
            let Some(operand) = *operand else { continue };
            match need {
                Need::Whole => {
                    read = read.saturating_add(self.bytes(operand));
                    held = held.max(self.held(operand, whole));
                }
                Need::Rows { .. } if is_gathered => {}
                Need::Rows { axis, rows } => read = read.saturating_add(self.share(operand, *axis, rows)),
            }
        }
        let shares = self.overwrites(op) || operator(&op.domain, &op.op_type).is_view();
        let together = if shares {
            read.max(made)
        } else {
            read.saturating_add(made)
        };
        together.max(held)
    }

    /// Bytes of rows of a tensor.
    fn share(&self, tensor: TensorId, axis: usize, rows: &Range<u64>) -> u64 {
        let dims = self.graph.tensors[tensor].ty.known_shape();
        let extent = dims.and_then(|dims| dims.get(axis).copied()).unwrap_or(1).max(1);
        let bytes = u128::from(self.bytes(tensor)) * u128::from(rows.end - rows.start) / u128::from(extent);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
