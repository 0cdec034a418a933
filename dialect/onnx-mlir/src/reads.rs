//! Which reads get an optimization barrier for IREE.
//!
//! IREE merges equal ops and fuses producers into their readers, however far apart they stand. Both undo a plan: a padded copy made
//! for the forward pass stays alive for the backward pass that pads the same tensor, and an op that runs early in the plan runs
//! late, with its operands alive until then. So a read that comes long after the value was made or last read gets an optimization barrier, which
//! keeps ops before and after it apart. Close reads get none: ops that run close together may still be fused.

use remat_ir::{Graph, Op, OpKind, TensorId};
use rustc_hash::FxHashMap;

use crate::emit::Value;

/// A read more than this many ops after the previous one gets an optimization barrier. Fewer cost fusions, and with them memory, on a plain MLP; on U-Nets all
/// numbers from 3 to 40 serve alike (`docs/mlir/iree.md`).
const FAR: usize = 20;

/// The reads so far.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    position: usize,
    /// When a tensor was made or last read.
    touched: FxHashMap<TensorId, usize>,
    /// The value of a tensor since its last barrier.
    current: FxHashMap<TensorId, Value>,
}

impl Reads {
    /// Whether a plan speaks out of `graph`: something runs again, or not in the order of the file.
    pub(crate) fn has_plan(graph: &Graph) -> bool {
        let sources = graph
            .ops
            .iter()
            .filter(|op| op.kind == OpKind::Compute)
            .map(|op| op.source);
        graph.ops.iter().any(|op| matches!(op.kind, OpKind::Recompute { .. })) || !sources.is_sorted()
    }

    /// Goes on to `op`, after whose operands nothing is read before its results are made.
    pub(crate) fn step(&mut self, op: &Op) {
        self.position += 1;
        for result in op.results() {
            self.touched.insert(result, self.position);
        }
    }

    /// Whether `tensor` was made or read last long ago. Inputs of the graph are near until they are read first.
    pub(crate) fn is_far(&mut self, tensor: TensorId) -> bool {
        let last = self.touched.insert(tensor, self.position);
        last.is_some_and(|last| self.position - last > FAR)
    }

    /// From here on, `value` stands for `tensor`.
    pub(crate) fn passed_barrier(&mut self, tensor: TensorId, value: Value) {
        self.current.insert(tensor, value);
    }

    /// The value of `tensor` after its last barrier, if it has one.
    pub(crate) fn current(&self, tensor: TensorId) -> Option<&Value> {
        self.current.get(&tensor)
    }
}
