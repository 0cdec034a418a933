//! How full memory is while each op of a plan runs, as far as a graph says it: whether what leaves may stay a while.

use remat_ir::{Graph, OpId, OpKind, StorageClass, StorageId};
use rustc_hash::FxHashSet;

/// Bytes of intermediate results while each op runs.
#[derive(Debug)]
pub(crate) struct Occupancy {
    /// By op: what the plan has in memory.
    bytes: Vec<u64>,
    /// The most of it.
    peak: u64,
}

impl Occupancy {
    /// That of a graph; what is moved out leaves at once.
    pub(crate) fn of(graph: &Graph) -> Self {
        let size = |storage: StorageId| match graph.storages[storage].class {
            StorageClass::Intermediate => graph.storages[storage].bytes.unwrap_or(0),
            StorageClass::Input | StorageClass::Constant => 0,
        };
        let mut live: FxHashSet<StorageId> = FxHashSet::default();
        let mut now: u64 = 0;
        let mut bytes = Vec::new();
        for op in &graph.ops {
            let operands = op.inputs.iter().flatten().map(|&tensor| graph.tensors[tensor].storage);
            match op.kind {
                OpKind::Dealloc | OpKind::PageOut => {
                    operands.for_each(|storage| {
                        if live.remove(&storage) {
                            now -= size(storage);
                        }
                    });
                }
                OpKind::PageIn => operands.for_each(|storage| {
                    if live.insert(storage) {
                        now = now.saturating_add(size(storage));
                    }
                }),
                OpKind::Compute | OpKind::Recompute { .. } => op.results().for_each(|result| {
                    let storage = graph.tensors[result].storage;
                    if live.insert(storage) {
                        now = now.saturating_add(size(storage));
                    }
                }),
            }
            bytes.push(now);
        }
        let peak = bytes.iter().copied().max().unwrap_or(0);
        Self { bytes, peak }
    }

    /// Whether storages of these sizes may stay while the op runs. Where a size is not known, they may not.
    pub(crate) fn has_room(&self, op: OpId, mut staying: impl Iterator<Item = Option<u64>>) -> bool {
        let now = self.bytes.get(op.index()).copied().unwrap_or(u64::MAX);
        let sum = staying.try_fold(now, |sum, bytes| sum.checked_add(bytes?));
        sum.is_some_and(|sum| sum <= self.peak)
    }
}
