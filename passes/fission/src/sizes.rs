//! Bytes of what ops make.

use remat_ir::{Graph, Op, StorageClass, StorageId, TensorId};
use remat_operators::operator;

/// No more than a number can say.
pub(crate) fn total(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// Those of a graph.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'g> {
    pub(crate) graph: &'g Graph,
}

impl Sizes<'_> {
    /// Bytes of a storage, if an op makes what lies in it.
    pub(crate) fn storage(&self, storage: StorageId) -> u64 {
        let entry = &self.graph.storages[storage];
        let is_made = entry.class == StorageClass::Intermediate && self.graph.tensors[entry.root].producer.is_some();
        entry.bytes.filter(|_| is_made).unwrap_or(0)
    }

    /// Bytes of what a run makes, of the storage that a tensor lies in.
    pub(crate) fn bytes(&self, tensor: TensorId) -> u64 {
        self.storage(self.graph.tensors[tensor].storage)
    }

    /// Whether the result may be written over an operand.
    pub(crate) fn overwrites(&self, op: &Op) -> bool {
        let element = |place: usize| {
            self.graph.tensors[op.inputs.get(place).copied().flatten()?]
                .ty
                .element()
        };
        operator(&op.domain, &op.op_type).overwrites_of(element).is_some()
    }
}
