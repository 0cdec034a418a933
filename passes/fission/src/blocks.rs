//! Rows of images that are put back into blocks of channels, so that what reads them has the bits of the whole.
//!
//! ONNX Runtime's `Slice`, and its `Concat` along any axis but that of channels, know no blocks: rows that one of them makes are in none, though the image
//! that they are rows of is. An addition then no longer becomes part of the convolution before it, and is rounded otherwise. A pool of single elements
//! gives the greatest of each, which is what it reads, and the runtime puts its operand into blocks. It changes one number: minus infinity, to the least
//! number that is finite (`core/mlas/lib/snchwc.cpp`).

use std::ops::Range;
use std::rc::Rc;

use remat_ir::{Op, OpId, TensorId};
use remat_operators::Blocked;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::forms::blocked;

/// The axis of channels.
pub(crate) const CHANNELS: usize = 1;

/// Channels of which every machine's blocks are full.
const FULL: u64 = 16;

/// What a writer knows of blocks.
#[derive(Default)]
pub(crate) struct Blocks {
    /// Ops of the old graph whose form is another one where what they read is in no blocks.
    needed_by: Rc<FxHashSet<OpId>>,
    /// Tensors of the new graph that are in no blocks, whatever those are in that they are parts of.
    outside: FxHashSet<TensorId>,
    /// Of these, what is back in blocks.
    back: FxHashMap<TensorId, TensorId>,
}

impl Blocks {
    pub(crate) fn new(needed_by: &Rc<FxHashSet<OpId>>) -> Self {
        Self {
            needed_by: Rc::clone(needed_by),
            ..Self::default()
        }
    }

    /// From here on everything is put back into blocks anew.
    pub(crate) fn begin_tile(&mut self) {
        self.back.clear();
    }

    pub(crate) fn has_left(&self, tensor: TensorId) -> bool {
        self.outside.contains(&tensor)
    }

    /// Notes that a tensor was sliced, or joined along another axis than that of channels.
    pub(crate) fn leave(&mut self, tensor: TensorId) {
        if !self.needed_by.is_empty() {
            self.outside.insert(tensor);
        }
    }

    /// Notes what of the results of an op is outside of blocks because something that it reads is.
    pub(crate) fn follow(&mut self, op: &Op, operands: &[Option<TensorId>], results: &[Option<TensorId>]) {
        let enters = matches!(
            blocked(op),
            Blocked::Convolution { .. } | Blocked::Pool { global: false, .. }
        );
        let mut operands = operands.iter().flatten();
        if !enters && operands.any(|&operand| self.has_left(operand)) {
            for &result in results.iter().flatten() {
                self.leave(result);
            }
        }
    }

    /// Whether the form of an op is another one where what it reads is in no blocks.
    pub(crate) fn are_needed_by(&self, op: OpId) -> bool {
        self.needed_by.contains(&op)
    }

    /// Whether a tensor that holds this box is in no blocks, and may be put into some.
    pub(crate) fn may_return(&self, tensor: TensorId, ranges: &[Range<u64>]) -> bool {
        let is_full = ranges.len() == 4 && (ranges[CHANNELS].end - ranges[CHANNELS].start).is_multiple_of(FULL);
        is_full && self.has_left(tensor)
    }

    /// A tensor back in blocks, if it was put there.
    pub(crate) fn returned(&self, tensor: TensorId) -> Option<TensorId> {
        self.back.get(&tensor).copied()
    }

    pub(crate) fn note_return(&mut self, tensor: TensorId, back: TensorId) {
        self.back.insert(tensor, back);
    }
}
