//! Costs of ops, each worked out once.

use std::hash::{Hash, Hasher};

use remat_cost::{BodyBytes, Device, analytic_cost};
use remat_ir::{Attribute, Graph, OpId, StorageClass};
use rustc_hash::{FxHashMap, FxHasher};

/// Costs by what an op is a part of, and its shapes.
pub(super) struct Costs<'a> {
    pub(super) device: &'a Device,
    bodies: BodyBytes,
    /// Bytes that the runtime keeps for an op, whether it runs or not.
    pub(super) op_bytes: u64,
    known: FxHashMap<u64, Cost>,
}

/// What a run of an op costs: nanoseconds and bytes.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) time: u64,
    pub(super) workspace: u64,
}

impl<'a> Costs<'a> {
    pub(super) fn new(device: &'a Device, bodies: BodyBytes, op_bytes: u64) -> Self {
        Self {
            device,
            bodies,
            op_bytes,
            known: FxHashMap::default(),
        }
    }

    pub(super) fn of(&mut self, graph: &Graph, id: OpId) -> Cost {
        let op = &graph.ops[id];
        let mut hasher = FxHasher::default();
        let pads = op.attributes.get("pads").and_then(Attribute::as_ints);
        let axis = op.attributes.get("axis").and_then(Attribute::as_int);
        (&op.domain, &op.op_type, op.source, pads, axis).hash(&mut hasher);
        if op.source.is_none() && op.parts.is_empty() {
            op.name.hash(&mut hasher);
        }
        for tensor in op.inputs.iter().copied().chain(op.results().map(Some)) {
            let tensor = tensor.map(|tensor| &graph.tensors[tensor]);
            let is_made = tensor.map(|tensor| graph.storages[tensor.storage].class == StorageClass::Intermediate);
            (tensor.map(|tensor| &tensor.ty), is_made).hash(&mut hasher);
        }
        let key = hasher.finish();
        let (device, bodies) = (self.device, self.bodies);
        *self.known.entry(key).or_insert_with(|| {
            let cost = analytic_cost(graph, id, device, bodies);
            Cost {
                time: cost.duration_ns,
                workspace: cost.workspace_bytes,
            }
        })
    }
}
