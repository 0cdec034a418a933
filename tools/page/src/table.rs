//! What is computed again and what moves, one row each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use remat_plan::{OpId, Plan, Problem, Step, StorageId};

use crate::names::Names;

/// An op that runs more than once.
pub(crate) struct Recomputed<'a> {
    /// The op.
    pub(crate) op: &'a str,
    /// The tensors it makes again.
    pub(crate) tensors: Vec<&'a str>,
    /// Bytes of their storages.
    pub(crate) bytes: u64,
    /// How often it runs again.
    pub(crate) times: u64,
    /// Time that this adds, in the unit of the problem.
    pub(crate) duration: u64,
}

/// Ops that run again, those that make the most bytes first.
pub(crate) fn recomputed<'a>(problem: &'a Problem, plan: &Plan, names: &Names<'a>) -> Vec<Recomputed<'a>> {
    let mut times: BTreeMap<OpId, u64> = BTreeMap::new();
    for step in &plan.steps {
        if let Step::Recompute(op) = *step {
            *times.entry(op).or_default() += 1;
        }
    }
    let mut rows: Vec<Recomputed<'a>> = times
        .into_iter()
        .map(|(id, times)| {
            let op = &problem.ops[id];
            let storages = || {
                let tensors = op
                    .defines
                    .iter()
                    .map(|&tensor| (tensor, problem.tensors[tensor].storage));
                let made = tensors.filter(|&(tensor, storage)| problem.storages[storage].root == tensor);
                made.map(|(_, storage)| storage)
            };
            let bytes = storages().map(|storage| problem.storages[storage].bytes);
            Recomputed {
                op: names.op(problem, id).name,
                tensors: storages().map(|storage| names.tensor(problem, storage).name).collect(),
                bytes: bytes.fold(0, u64::saturating_add),
                times,
                duration: op.duration.saturating_mul(times),
            }
        })
        .collect();
    rows.sort_by_key(|row| Reverse(row.bytes));
    rows
}

/// A storage that moves to the second memory.
pub(crate) struct Moved<'a> {
    /// The tensor it was made for.
    pub(crate) tensor: &'a str,
    /// Its bytes.
    pub(crate) bytes: u64,
    /// How often it leaves.
    pub(crate) out: u64,
    /// How often it comes back.
    pub(crate) back: u64,
}

/// Storages that move, the largest first.
pub(crate) fn moved<'a>(problem: &'a Problem, plan: &Plan, names: &Names<'a>) -> Vec<Moved<'a>> {
    let mut times: BTreeMap<StorageId, (u64, u64)> = BTreeMap::new();
    for step in &plan.steps {
        match *step {
            Step::PageOut(storage) => times.entry(storage).or_default().0 += 1,
            Step::PageIn(storage) => times.entry(storage).or_default().1 += 1,
            Step::Compute(_) | Step::Recompute(_) | Step::Free(_) => {}
        }
    }
    let mut rows: Vec<Moved<'a>> = times
        .into_iter()
        .map(|(storage, (out, back))| Moved {
            tensor: names.tensor(problem, storage).name,
            bytes: problem.storages[storage].bytes,
            out,
            back,
        })
        .collect();
    rows.sort_by_key(|row| Reverse(row.bytes));
    rows
}
