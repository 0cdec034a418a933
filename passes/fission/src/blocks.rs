//! Which tensors of a tiled graph are outside of blocks of channels.

use std::rc::Rc;

use remat_ir::{Graph, OpId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::forms::Forms;

/// What a writer knows of blocks.
#[derive(Default)]
pub(crate) struct Blocks {
    /// Ops of the old graph whose form is another one where what they read is in no blocks.
    pub(crate) needed_by: Rc<FxHashSet<OpId>>,
    /// Tensors of the new graph that are in no blocks, whatever those are in that they are parts of.
    outside: FxHashSet<TensorId>,
    /// Of these, what is back in blocks.
    pub(crate) back: FxHashMap<TensorId, TensorId>,
}

impl Blocks {
    pub(crate) fn new(needed_by: &Rc<FxHashSet<OpId>>) -> Self {
        Self {
            needed_by: Rc::clone(needed_by),
            ..Self::default()
        }
    }

    /// The ops of a graph whose form is another one where what they read is in no blocks.
    pub(crate) fn needed_by(graph: &Graph) -> FxHashSet<OpId> {
        Forms::of(graph).map_or_else(FxHashSet::default, |forms| forms.needing_blocks())
    }

    /// From here on everything is put back into blocks anew.
    pub(crate) fn begin_tile(&mut self) {
        self.back.clear();
    }

    pub(crate) fn is_outside(&self, tensor: TensorId) -> bool {
        self.outside.contains(&tensor)
    }

    /// Notes that a tensor was sliced, or joined along another axis than that of channels.
    pub(crate) fn leave(&mut self, tensor: TensorId) {
        if !self.needed_by.is_empty() {
            self.outside.insert(tensor);
        }
    }
}
