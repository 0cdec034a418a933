//! What is read off a graph once, and what is known of an op by itself.

use remat_ir::{Graph, OpId, TensorId};
use remat_operators::{Split, operator};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use typed_index_collections::TiVec;

use crate::layout::Layout;
use crate::rules::{Reason, split};
use crate::sizes::{Sizes, total};
use crate::streamed::others;
use crate::sums::along;
use crate::{Axis, Exactness};

/// A graph, and what is read off it once.
pub(super) struct Facts<'g> {
    pub(super) graph: &'g Graph,
    pub(super) sizes: Sizes<'g>,
    pub(super) layout: Layout<'g>,
    exactness: Exactness,
    pub(super) readers: TiVec<TensorId, SmallVec<[OpId; 4]>>,
    pub(super) outputs: FxHashSet<TensorId>,
    /// Ops that may run row by row of what they sum up, or find the best of, other than those of which [`along`] knows.
    pub(super) sums_up: FxHashSet<OpId>,
}

impl<'g> Facts<'g> {
    pub(super) fn new(graph: &'g Graph, exactness: Exactness) -> Option<Self> {
        let others = others(graph, exactness).into_iter();
        Some(Self {
            graph,
            sizes: Sizes { graph },
            layout: Layout::of(graph, exactness).ok()?,
            exactness,
            readers: graph.users(),
            outputs: graph.outputs.iter().copied().collect(),
            sums_up: others.flat_map(|other| other.ops().to_vec()).collect(),
        })
    }

    pub(super) fn family(&self, id: OpId) -> Split {
        let op = &self.graph.ops[id];
        operator(&op.domain, &op.op_type).split
    }

    /// Whether an op only moves elements, all of them: they may stay where they are.
    pub(super) fn moves(&self, id: OpId) -> bool {
        let family = self.family(id);
        let op = &self.graph.ops[id];
        matches!(
            family,
            Split::Concat
                | Split::Transpose
                | Split::Reshape
                | Split::Expand
                | Split::Tile
                | Split::DepthToSpace
                | Split::SpaceToDepth
        ) || operator(&op.domain, &op.op_type).is_view()
    }

    /// Whether an op picks elements: what it does not pick may be gone.
    pub(super) fn picks(&self, id: OpId) -> bool {
        matches!(
            self.family(id),
            Split::Slice
                | Split::Divide
                | Split::Gather
                | Split::GatherTuples
                | Split::Elements
                | Split::Pad
                | Split::PadByAttributes
        )
    }

    /// Whether something is claimed of the time before an op first runs: not of what sums up row by row, which may begin with a row, nor of what moves elements.
    pub(super) fn is_asked(&self, id: OpId) -> bool {
        let op = &self.graph.ops[id];
        let sums_up = |axis: &Axis| along(self.graph, id, *axis, self.exactness, |_| true).is_some();
        let sums_up = self.sums_up.contains(&id) || Axis::ALL.iter().any(sums_up);
        let measures = operator(&op.domain, &op.op_type).measures;
        !(measures || sums_up || self.moves(id) || self.picks(id) || self.layout.is_outside(id))
    }

    pub(super) fn dims(&self, tensor: TensorId) -> Vec<u64> {
        self.graph.tensors[tensor].ty.known_shape().unwrap_or_default()
    }

    /// Dimensions of the result of an op.
    pub(super) fn extents(&self, id: OpId) -> Vec<u64> {
        let result = self.graph.ops[id].results().next();
        result.map_or_else(Vec::new, |result| self.dims(result))
    }

    /// Bytes of the results of an op that can only run whole, and does not write over an operand.
    pub(super) fn during(&self, id: OpId) -> u64 {
        let op = &self.graph.ops[id];
        if self.sizes.overwrites(op) || self.may_be_cut(id) {
            return 0;
        }
        total(op.results().map(|result| self.sizes.bytes(result)))
    }

    fn may_be_cut(&self, id: OpId) -> bool {
        let axes = self.extents(id).into_iter().enumerate();
        self.layout.is_divisible(id)
            && axes.filter(|&(_, extent)| extent > 1).any(|(axis, _)| {
                let cut = split(self.graph, id, axis, 0..1).map_err(|not| not.reason);
                matches!(cut, Ok(_) | Err(Reason::Multiple(_) | Reason::Padding))
            })
    }

    /// The ops that an op is made of.
    pub(super) fn before(&self, id: OpId) -> FxHashSet<OpId> {
        let mut found = FxHashSet::default();
        let mut waiting: Vec<OpId> = vec![id];
        while let Some(next) = waiting.pop() {
            for tensor in self.graph.ops[next].reads() {
                let producer = self.graph.tensors[tensor].producer;
                waiting.extend(producer.filter(|&producer| found.insert(producer)));
            }
        }
        found
    }
}
