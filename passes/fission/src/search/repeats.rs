//! Fused chains that a graph has again and again.
//!
//! Networks repeat blocks, and tiles that help in one block help in all that are equal to it. Ops are alike if they are of one kind and their operands
//! and results have the same types; chains are equal if their ops are alike one by one and read each other alike.

use std::hash::{Hash, Hasher};

use remat_ir::{Graph, Op, OpId, StorageClass};
use rustc_hash::FxHasher;
use typed_index_collections::TiVec;

use crate::course::Span;

/// By op: a number that those have which are alike.
pub(super) struct Repeats(TiVec<OpId, u64>);

impl Repeats {
    pub(super) fn of(graph: &Graph) -> Self {
        let kind = |op: &Op| {
            let mut hasher = FxHasher::default();
            (&op.domain, &op.op_type, op.inputs.len()).hash(&mut hasher);
            for tensor in op.reads().chain(op.results()) {
                let tensor = &graph.tensors[tensor];
                (
                    &tensor.ty,
                    graph.storages[tensor.storage].class == StorageClass::Constant,
                )
                    .hash(&mut hasher);
            }
            hasher.finish()
        };
        Self(graph.ops.iter().map(kind).collect())
    }

    /// The same tiles of all chains that are equal to that of `span`, in order and without overlaps; `span` is one of them.
    pub(super) fn equal_to(&self, graph: &Graph, span: Span) -> Vec<Span> {
        let length = span.last.index() + 1 - span.first.index();
        let own = &self.0.raw[span.first.index()..=span.last.index()];
        let mut found: Vec<Span> = Vec::new();
        let mut next = 0;
        for (first, kinds) in self.0.raw.windows(length).enumerate() {
            let is_own = first == span.first.index();
            let is_apart = first >= span.first.index() + length || first + length <= span.first.index();
            if first < next || !(is_own || is_apart && kinds == own && is_tied_alike(graph, span, first)) {
                continue;
            }
            found.push(Span {
                first: OpId::new(first),
                last: OpId::new(first + length - 1),
                ..span
            });
            next = first + length;
        }
        found
    }
}

/// Whether the ops from place `first` on read each other as those of the chain do.
fn is_tied_alike(graph: &Graph, span: Span, first: usize) -> bool {
    let tie = |op: usize, from: usize, place: usize| {
        let producer = graph.tensors[graph.ops[OpId::new(op)].inputs.get(place).copied().flatten()?].producer?;
        producer.index().checked_sub(from)
    };
    let own = span.first.index();
    let length = span.last.index() + 1 - own;
    (0..length).all(|step| {
        let operands = graph.ops[OpId::new(own + step)].inputs.len();
        (0..operands).all(|place| tie(own + step, own, place) == tie(first + step, first, place))
    })
}
