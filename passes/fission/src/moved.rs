//! Ops that run earlier than the reference order has them: what reads a large tensor last may as well run beside what reads it before.

use remat_ir::{Graph, OpId, TensorId};

use crate::FissionError;
use crate::names::find;
use crate::transfer::Transfer;
use remat_plan::Moved;

/// The graph with these ops at other places, one move after the other.
pub(crate) fn moved(graph: Graph, moved: &[Moved]) -> Result<Graph, FissionError> {
    moved.iter().try_fold(graph, |graph, one| move_one(&graph, one))
}

/// The graph with one op at another place.
pub(crate) fn move_one(graph: &Graph, moved: &Moved) -> Result<Graph, FissionError> {
    let (op, before) = (find(graph, &moved.op)?, find(graph, &moved.before)?);
    if !may_move(graph, op, before) {
        return Err(FissionError::NotMoved {
            op: moved.op.clone(),
            before: moved.before.clone(),
        });
    }
    let mut transfer = Transfer::new(graph)?;
    for id in graph.ops.keys().filter(|&id| id != op) {
        if id == before {
            transfer.copy(op)?;
        }
        transfer.copy(id)?;
    }
    Ok(transfer.finish().0)
}

/// Whether an op may stand right before an earlier one: all that it reads is there, and it has no effect.
pub(crate) fn may_move(graph: &Graph, op: OpId, before: OpId) -> bool {
    let entry = &graph.ops[op];
    let is_there = |tensor: TensorId| graph.tensors[tensor].producer.is_none_or(|producer| producer < before);
    before < op && entry.effects.recomputable() && entry.bodies.is_empty() && entry.reads().all(is_there)
}
