//! What running every op once takes: the baseline that a plan file claims.

use remat_plan::{OpId, Problem, StorageId, StorageRole};
use typed_index_collections::TiVec;

use crate::memory::Memory;

/// Peaks in bytes of running every op once in the order of the problem, each storage freed after its last use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Baselines {
    /// Views run right before their first reader.
    pub(crate) on_demand: u64,
    /// Views run at their place.
    pub(crate) in_place: u64,
}

impl Baselines {
    /// Both ways to run views; `None` if a sum does not fit 64 bits.
    pub(crate) fn of(problem: &Problem) -> Option<Self> {
        Some(Self {
            on_demand: peak(problem, &with_views_on_demand(problem))?,
            in_place: peak(problem, &problem.ops.keys().collect::<Vec<_>>())?,
        })
    }

    /// Whether a claim is one of the two.
    pub(crate) fn include(self, claimed: u64) -> bool {
        claimed == self.on_demand || claimed == self.in_place
    }
}

/// Peak in bytes of these runs.
fn peak(problem: &Problem, runs: &[OpId]) -> Option<u64> {
    let mut last_use: TiVec<StorageId, Option<usize>> = TiVec::from(vec![None; problem.storages.len()]);
    for (position, &op) in runs.iter().enumerate() {
        let read = problem.ops[op]
            .reads
            .iter()
            .map(|&tensor| problem.tensors[tensor].storage);
        for storage in Memory::creates(problem, op).chain(read) {
            last_use[storage] = Some(position);
        }
    }
    // A storage leaves only once it was created, which caller and session do for theirs.
    let mut created: TiVec<StorageId, bool> = TiVec::from(vec![false; problem.storages.len()]);
    let (mut live, mut peak) = (0u64, 0u64);
    for (position, &op) in runs.iter().enumerate() {
        let mut leaving = 0u64;
        for storage in Memory::creates(problem, op) {
            live = live.checked_add(problem.storages[storage].bytes)?;
            created[storage] = true;
        }
        peak = peak.max(live.checked_add(problem.ops[op].workspace)?);
        let read = problem.ops[op]
            .reads
            .iter()
            .map(|&tensor| problem.tensors[tensor].storage);
        for storage in Memory::creates(problem, op).chain(read) {
            let entry = &problem.storages[storage];
            let is_done = entry.role == StorageRole::Transient && last_use[storage] == Some(position);
            if is_done && std::mem::take(&mut created[storage]) {
                leaving = leaving.saturating_add(entry.bytes);
            }
        }
        live = live.saturating_sub(leaving);
    }
    Some(peak)
}

/// All ops, each view right before the first op that reads it.
fn with_views_on_demand(problem: &Problem) -> Vec<OpId> {
    let is_view = views(problem);
    let mut begun: TiVec<OpId, bool> = TiVec::from(vec![false; problem.ops.len()]);
    let mut runs = Vec::with_capacity(problem.ops.len());
    // Ops with the operands that were not looked at yet. Chains of views may be long, so the stack is explicit.
    let mut open = Vec::new();
    for op in problem.ops.keys().filter(|&op| !is_view[op]) {
        open.push((op, problem.ops[op].reads.iter()));
        while let Some((op, operands)) = open.last_mut() {
            let Some(&operand) = operands.next() else {
                runs.push(*op);
                open.pop();
                continue;
            };
            if let Some(view) = problem.tensors[operand].producer.filter(|&view| is_view[view])
                && !std::mem::replace(&mut begun[view], true)
            {
                open.push((view, problem.ops[view].reads.iter()));
            }
        }
    }
    runs
}

/// Which ops are views that somebody reads, into memory that counts, and may run at any time.
fn views(problem: &Problem) -> TiVec<OpId, bool> {
    let mut is_read = vec![false; problem.tensors.len()];
    for &tensor in problem.ops.iter().flat_map(|op| &op.reads) {
        is_read[usize::from(tensor)] = true;
    }
    let mut is_bound: TiVec<OpId, bool> = TiVec::from(vec![false; problem.ops.len()]);
    for pair in &problem.anti_dependences {
        is_bound[pair.before] = true;
        is_bound[pair.after] = true;
    }
    let is_view = |(id, op): (OpId, &remat_plan::ProblemOp)| {
        let looks_into_others = op.defines.iter().all(|&result| {
            let storage = &problem.storages[problem.tensors[result].storage];
            storage.role != StorageRole::External && problem.tensors[storage.root].producer != Some(id)
        });
        let is_wanted = op.defines.iter().any(|&result| is_read[usize::from(result)]);
        op.recomputable && !is_bound[id] && is_wanted && looks_into_others
    };
    problem.ops.iter_enumerated().map(is_view).collect()
}
