//! Fused chains that run a second time: rematerialization that tiles can be laid over.

use remat_ir::{Graph, Op, OpId, StorageClass, TensorId};
use rustc_hash::FxHashSet;

use crate::FissionError;
use crate::names::{Names, find};
use crate::transfer::Transfer;
use remat_plan::Again;

/// The graph in which the fused chains of `again` run a second time, one after the other, as far as a later op needs them. A clone holds its
/// tensor whole, as its parts say.
pub(crate) fn repeat(graph: &Graph, again: &[Again]) -> Result<Graph, FissionError> {
    let mut graph = graph.clone();
    for again in again {
        graph = repeat_once(&graph, again)?;
    }
    Ok(graph)
}

/// The same for one fused chain.
pub(crate) fn repeat_once(graph: &Graph, again: &Again) -> Result<Graph, FissionError> {
    let (first, last) = (find(graph, &again.first)?, find(graph, &again.last)?);
    let before = find(graph, &again.before)?;
    for (first, last) in [(first, last), (last, before)] {
        if last < first {
            return Err(FissionError::Backwards {
                first: graph.ops[first].name.clone(),
                last: graph.ops[last].name.clone(),
            });
        }
    }
    let needed = needed(graph, first, last, before);
    let mut names = Names::of(graph);
    let mut transfer = Transfer::new(graph)?;
    for id in graph.ops.keys() {
        if id == before {
            for &id in &needed {
                let op = &graph.ops[id];
                if !op.effects.recomputable() || !op.bodies.is_empty() {
                    return Err(FissionError::RunsOnce(op.name.clone()));
                }
                transfer.clone_whole(id, &mut names)?;
            }
        }
        transfer.copy(id)?;
    }
    Ok(transfer.finish().0)
}

/// The ops of a fused chain, in order, whose results `before` or an op after it reads, or another such op of the fused chain. Views of inputs and
/// constants are there at any time.
fn needed(graph: &Graph, first: OpId, last: OpId, before: OpId) -> Vec<OpId> {
    let mut is_read: FxHashSet<TensorId> = FxHashSet::default();
    for op in graph.ops.iter().skip(before.index()) {
        is_read.extend(op.reads());
    }
    let mut needed = Vec::new();
    for index in (first.index()..=last.index()).rev() {
        let id = OpId::new(index);
        let op = &graph.ops[id];
        if op.results().any(|result| is_read.contains(&result)) && is_made(graph, op) {
            is_read.extend(op.reads());
            needed.push(id);
        }
    }
    needed.reverse();
    needed
}

/// Whether a run makes a result of the op.
fn is_made(graph: &Graph, op: &Op) -> bool {
    let class = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].class;
    op.results().any(|tensor| class(tensor) == StorageClass::Intermediate)
}
