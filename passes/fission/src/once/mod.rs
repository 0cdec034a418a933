//! A number of bytes that no tiling along one axis takes less than that computes no element twice.
//!
//! Before an op runs for the first time, along whatever axis, all ops have run that every part of its result is made of all of (`wanted`), and none has whose
//! every element is made of its result (`descent`). Of the others some ran, or ran in part: whichever did, what lies between those that ran and those that did not is
//! there, and the least of it is a minimum cut (`cut`).
//!
//! The bound holds for every order of ops and tiles, and for every kernel. Rows that tiles compute again, and ops that run again, may go below it.

mod consumers;
mod cut;
mod descent;
mod facts;
mod wanted;

use std::cmp::Reverse;

use remat_ir::{Graph, OpId, TensorId};
use typed_index_collections::TiVec;

use self::consumers::Consumers;
use self::facts::Facts;
use crate::Exactness;
use crate::streamed::in_two_passes;

/// Graphs of more ops get no such bound: each op is held against all before it.
const MOST_OPS: usize = 5_000;
/// Ops before whose first run it is asked what is there, those before which it may be most, times the ops of the graph that are looked through for each.
const MOST_STEPS: usize = 200_000;

/// What every tiling takes that computes no element twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundOnce {
    /// Bytes.
    pub bytes: u64,
    /// Name of the op before whose first run they are there.
    pub op: String,
    /// Names of the tensors that are there in the case of the fewest bytes, the largest first, and their bytes.
    pub held: Vec<(String, u64)>,
}

/// The least that a graph tiled along one axis takes at its peak if nothing is computed twice: bytes of results of ops, without workspace and without what
/// belongs to the caller and the session. `None` where nothing must be there whole, and for graphs of more than 5,000 ops.
#[must_use]
pub fn bound_once(graph: &Graph, exactness: Exactness) -> Option<BoundOnce> {
    if graph.ops.len() > MOST_OPS {
        return None;
    }
    let streamed = in_two_passes(graph, exactness);
    let graph = streamed.as_ref().unwrap_or(graph);
    let facts = Facts::new(graph, exactness)?;
    let consumers = graph.tensors.keys().map(|tensor| facts.consumers_of(tensor));
    let consumers: TiVec<TensorId, Consumers> = consumers.collect();
    let asked = graph.ops.keys().filter(|&id| facts.is_asked(id));
    let mut asked: Vec<(u64, OpId)> = asked.map(|id| (facts.most(id, &consumers), id)).collect();
    asked.sort_unstable_by_key(|&(most, id)| (Reverse(most), id));
    let mut best: Option<(u64, OpId, Vec<TensorId>)> = None;
    for (most, id) in asked.into_iter().take(MOST_STEPS / graph.ops.len().max(1)) {
        let known = best.as_ref().map_or(0, |(bytes, ..)| *bytes);
        if most <= known {
            break;
        }
        let (bytes, held) = facts.least(id, &consumers);
        if bytes > known {
            best = Some((bytes, id, held));
        }
    }
    let (bytes, op, held) = best?;
    let named = |tensor: TensorId| (graph.tensors[tensor].name.clone(), facts.sizes.bytes(tensor));
    let mut held: Vec<(String, u64)> = held.into_iter().map(named).collect();
    held.sort_by_cached_key(|(name, bytes)| (Reverse(*bytes), name.clone()));
    let op = graph.ops[op].name.clone();
    Some(BoundOnce { bytes, op, held })
}
