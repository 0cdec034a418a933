//! A problem as a program that DTR can execute.

use remat_plan::{OpId, Problem, StorageId, StorageRole, Structure, TensorId};
use typed_index_collections::TiVec;

use crate::trace::{Event, Trace, TraceOp};

/// The scheduled ops of a problem as a trace, and which op of the problem each op of the trace stands for.
///
/// Arguments are whole storages, so that lazy views need no ops of their own. The program lets go of a storage after its last use in
/// the reference order. A storage expires when no op that reads it, and may run again for the sake of others, can be needed any
/// more.
pub(super) fn trace_of(problem: &Problem, structure: &Structure) -> (Trace, Vec<OpId>) {
    let ops: Vec<OpId> = structure.scheduled().collect();
    let mut trace = Trace::default();
    let mut root_of: TiVec<StorageId, Option<TensorId>> = TiVec::from(vec![None; problem.storages.len()]);
    let ends = Ends::of(problem, structure, &ops);
    for (position, &op) in ops.iter().enumerate() {
        let entry = &problem.ops[op];
        let arguments = structure.needs(op).iter().filter_map(|&storage| root_of[storage]);
        let mut called = TraceOp::new(entry.name.clone(), entry.duration, arguments.collect());
        let owned = || counted(problem, structure.owns(op));
        let made: u64 = owned().map(|storage| problem.storages[storage].bytes).sum();
        called.workspace = entry.workspace.max(structure.views_workspace(op).saturating_sub(made));
        called.most_runs = most_runs(problem, structure, op);
        let results: Vec<_> = owned().map(|storage| (problem.storages[storage].bytes, None)).collect();
        let results = trace.call(called, &results);
        for (storage, root) in owned().zip(results) {
            root_of[storage] = Some(root);
            let kept = problem.storages[storage].role == StorageRole::Kept;
            trace.storages[trace.tensors[root].storage].stays = kept;
        }
        let transient = |&storage: &StorageId| problem.storages[storage].role == StorageRole::Transient;
        for root in ends.released[position]
            .iter()
            .copied()
            .filter(transient)
            .filter_map(|storage| root_of[storage])
        {
            trace.events.push(Event::Release(root));
        }
        for root in ends.expired[position]
            .iter()
            .copied()
            .filter(transient)
            .filter_map(|storage| root_of[storage])
        {
            trace.events.push(Event::Expire(trace.tensors[root].storage));
        }
    }
    (trace, ops)
}

/// The storages that take memory.
fn counted<'a>(problem: &'a Problem, storages: &'a [StorageId]) -> impl Iterator<Item = StorageId> + 'a {
    let counts = |&storage: &StorageId| problem.storages[storage].role != StorageRole::External;
    storages.iter().copied().filter(counts)
}

/// How often the op may run.
fn most_runs(problem: &Problem, structure: &Structure, op: OpId) -> u32 {
    if !problem.ops[op].recomputable || structure.is_pinned(op) {
        return 1;
    }
    problem.max_computes.unwrap_or(u32::MAX)
}

/// After which op of the program storages are let go, and after which they expire.
struct Ends {
    released: Vec<Vec<StorageId>>,
    expired: Vec<Vec<StorageId>>,
}

impl Ends {
    fn of(problem: &Problem, structure: &Structure, ops: &[OpId]) -> Self {
        let mut last_use: TiVec<StorageId, usize> = TiVec::from(vec![0; problem.storages.len()]);
        for (position, &op) in ops.iter().enumerate() {
            for &storage in structure.needs(op).iter().chain(structure.owns(op)) {
                last_use[storage] = position;
            }
        }
        let mut end = last_use.clone();
        for (position, &op) in ops.iter().enumerate().rev() {
            let mut needed = position;
            if most_runs(problem, structure, op) > 1 {
                needed = structure
                    .owns(op)
                    .iter()
                    .map(|&storage| end[storage])
                    .fold(needed, usize::max);
            }
            for &storage in structure.needs(op) {
                end[storage] = end[storage].max(needed);
            }
        }
        let by_position = |positions: &TiVec<StorageId, usize>| {
            let mut storages = vec![Vec::new(); ops.len()];
            for &op in ops {
                for storage in counted(problem, structure.owns(op)) {
                    storages[positions[storage]].push(storage);
                }
            }
            storages
        };
        Self {
            released: by_position(&last_use),
            expired: by_position(&end),
        }
    }
}
