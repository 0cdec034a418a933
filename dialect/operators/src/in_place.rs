//! Results that ONNX Runtime's kernels write over an operand.
//!
//! The runtime decides that when it loads a model: a kernel that may (`overwrites` in the table of operators) takes the memory of its
//! operand if the op is the last to read it and both look alike. A plan that runs ops again decides anew who is the last. Where one op
//! alone reads an operand, it is the last in every plan; then its result is a tensor in the storage of the operand, as a view is, and
//! nothing else has to be said of it:
//!
//! - every tensor of the storage so far has one reader, reads it once, and is no graph output;
//! - the result is no graph output (the caller's memory is its own), and somebody reads it;
//! - both are dense tensors of one known shape, with elements of one size;
//! - every other operand belongs to the caller or the session: a result in a storage stays computable while the storage is there;
//! - the op is pure and has no other result.
//!
//! Nothing is lost by that: to hold the operand instead of the result takes the same bytes. What is not said is that an op which is not
//! the only reader may turn out to be the last.

use remat_ir::{Graph, Op, StorageClass, StorageId, TensorId, ValueType};
use typed_index_collections::TiVec;

use crate::operator;

/// Puts results that ONNX Runtime's kernels write over an operand, in whatever order ops run, in the storage of that operand: where the op is
/// the only reader of it, reads nothing else that a run makes, and has one result of the same shape and width of elements.
pub fn share_overwritten(graph: &mut Graph) {
    let mut reads: TiVec<TensorId, u32> = TiVec::from(vec![0; graph.tensors.len()]);
    for tensor in graph.ops.iter().flat_map(reads_of) {
        reads[tensor] += 1;
    }
    let mut is_output: TiVec<TensorId, bool> = TiVec::from(vec![false; graph.tensors.len()]);
    for &output in &graph.outputs {
        is_output[output] = true;
    }
    // Whether every tensor of a storage has one reader.
    let mut is_chain: TiVec<StorageId, bool> = TiVec::from(vec![true; graph.storages.len()]);
    for (id, tensor) in graph.tensors.iter_enumerated() {
        is_chain[tensor.storage] &= reads[id] == 1 && !is_output[id];
    }
    // The storage that each one became part of: the operand's, which an earlier op settled.
    let mut part_of: TiVec<StorageId, StorageId> = graph.storages.keys().collect();
    for id in graph.ops.keys() {
        let Some((operand, result)) = overwritten(graph, &graph.ops[id]) else {
            continue;
        };
        let storage = root(&part_of, graph.tensors[operand].storage);
        let is_read = reads[result] > 0 && !is_output[result];
        if !is_chain[storage] || !is_read {
            continue;
        }
        let old = graph.tensors[result].storage;
        is_chain[storage] = is_chain[old];
        part_of[old] = storage;
    }
    for tensor in &mut graph.tensors {
        tensor.storage = root(&part_of, tensor.storage);
    }
    drop_unused_storages(graph);
}

/// The storage that a storage is part of in the end.
fn root(part_of: &TiVec<StorageId, StorageId>, mut storage: StorageId) -> StorageId {
    while part_of[storage] != storage {
        storage = part_of[storage];
    }
    storage
}

/// Everything an op reads, repetitions kept.
fn reads_of(op: &Op) -> impl Iterator<Item = TensorId> + '_ {
    op.inputs.iter().flatten().chain(&op.captures).copied()
}

/// The operand and the result of an op whose kernel may write one over the other, as far as the op itself says.
#[must_use]
pub fn overwritten(graph: &Graph, op: &Op) -> Option<(TensorId, TensorId)> {
    let element = |place: usize| graph.tensors[op.inputs.get(place).copied().flatten()?].ty.element();
    let place = operator(&op.domain, &op.op_type).overwrites_of(element)?;
    let operand = op.inputs.get(place).copied().flatten()?;
    let mut results = op.outputs.iter().flatten().copied();
    let result = results.next().filter(|_| results.next().is_none())?;
    let class = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].class;
    let others = reads_of(op).filter(|&tensor| tensor != operand);
    let is_alone = others.map(class).all(|class| class != StorageClass::Intermediate);
    let owns_result = !graph.is_view(result) && class(result) == StorageClass::Intermediate;
    let fits = op.effects.recomputable()
        && op.captures.is_empty()
        && class(operand) == StorageClass::Intermediate
        && is_alone
        && owns_result;
    let (from, to) = (&graph.tensors[operand].ty, &graph.tensors[result].ty);
    (fits && look_alike(from, to)).then_some((operand, result))
}

/// Whether two values are dense tensors of one known shape, with elements of one size.
fn look_alike(from: &ValueType, to: &ValueType) -> bool {
    let look = |ty: &ValueType| Some((ty.known_shape()?, ty.element()?.bits().div_ceil(8)));
    look(from).is_some_and(|from| Some(from) == look(to))
}

/// Takes out storages without tensors; the others are numbered anew, in their order.
fn drop_unused_storages(graph: &mut Graph) {
    let mut is_used: TiVec<StorageId, bool> = TiVec::from(vec![false; graph.storages.len()]);
    for tensor in &graph.tensors {
        is_used[tensor.storage] = true;
    }
    let mut next = 0;
    let number = |&used: &bool| {
        let id = StorageId::new(next);
        next += usize::from(used);
        id
    };
    let new: TiVec<StorageId, StorageId> = is_used.iter().map(number).collect();
    for tensor in &mut graph.tensors {
        tensor.storage = new[tensor.storage];
    }
    let mut used = is_used.iter();
    graph.storages.retain(|_| used.next().is_some_and(|&used| used));
}
