//! What solvers need to know of a problem beyond its tables: which ops own memory, and which storages an op needs.

use smallvec::SmallVec;
use typed_index_collections::TiVec;

use crate::{OpId, Problem, StorageId, StorageRole, TensorId};

/// Derived facts about a [`Problem`].
///
/// A *lazy view* is a pure op that creates no memory, looks into memory that counts, and has a reader (a Reshape in the middle of
/// a network). Solvers do not schedule lazy views: [`crate::lower_sequence`] runs them on demand right before a reader needs
/// them. All other ops are *scheduled*, those that have a part in an anti-dependence among them: when they run matters.
#[derive(Clone, Debug)]
pub struct Structure {
    lazy: TiVec<OpId, bool>,
    owns: TiVec<OpId, SmallVec<[StorageId; 1]>>,
    needs: TiVec<OpId, SmallVec<[StorageId; 4]>>,
    views_workspace: TiVec<OpId, u64>,
    pinned: TiVec<OpId, bool>,
}

impl Structure {
    /// Analyses a valid problem; linear in its size, but for long chains of views.
    #[must_use]
    pub fn of(problem: &Problem) -> Self {
        let lazy = lazy_views(problem);
        let owns = problem.ops.iter_enumerated().map(|(id, op)| {
            op.defines
                .iter()
                .map(|&t| problem.tensors[t].storage)
                .filter(|&s| creator(problem, s) == Some(id))
                .collect()
        });
        let owns: TiVec<OpId, SmallVec<[StorageId; 1]>> = owns.collect();
        let mut needs: TiVec<OpId, SmallVec<[StorageId; 4]>> = TiVec::with_capacity(problem.ops.len());
        for op in &problem.ops {
            let mut need: SmallVec<[StorageId; 4]> = SmallVec::new();
            for &tensor in &op.reads {
                let storage = problem.tensors[tensor].storage;
                if problem.storages[storage].role != StorageRole::External {
                    need.push(storage);
                }
                if let Some(view) = problem.tensors[tensor].producer.filter(|&p| lazy[p]) {
                    need.extend_from_slice(&needs[view]);
                }
            }
            need.sort_unstable();
            need.dedup();
            needs.push(need);
        }
        let views_workspace = views_workspace(problem, &lazy);
        let pinned = pinned(problem, &lazy);
        Self {
            lazy,
            owns,
            needs,
            views_workspace,
            pinned,
        }
    }

    /// Whether the op is a view that lowering runs on demand.
    #[must_use]
    pub fn is_lazy(&self, op: OpId) -> bool {
        self.lazy[op]
    }

    /// The storages that running the op creates, external ones included.
    #[must_use]
    pub fn owns(&self, op: OpId) -> &[StorageId] {
        &self.owns[op]
    }

    /// The counted storages that must be resident while the op runs: those of its operands and, through lazy views, those
    /// that the views need. Ascending, without repetition.
    #[must_use]
    pub fn needs(&self, op: OpId) -> &[StorageId] {
        &self.needs[op]
    }

    /// The largest workspace of a lazy view that may have to run right before the op.
    #[must_use]
    pub fn views_workspace(&self, op: OpId) -> u64 {
        self.views_workspace[op]
    }

    /// Whether the op's memory holds a result of another scheduled op that somebody reads: running the op again would undo that
    /// result, and it does not come back on demand as that of a lazy view does.
    #[must_use]
    pub fn is_pinned(&self, op: OpId) -> bool {
        self.pinned[op]
    }

    /// The ops a solver schedules, in reference order.
    pub fn scheduled(&self) -> impl Iterator<Item = OpId> + '_ {
        self.lazy
            .iter_enumerated()
            .filter(|&(_, &lazy)| !lazy)
            .map(|(id, _)| id)
    }
}

/// The op that creates a storage.
fn creator(problem: &Problem, storage: StorageId) -> Option<OpId> {
    problem.tensors[problem.storages[storage].root].producer
}

fn lazy_views(problem: &Problem) -> TiVec<OpId, bool> {
    let mut read: TiVec<TensorId, bool> = TiVec::from(vec![false; problem.tensors.len()]);
    for op in &problem.ops {
        for &tensor in &op.reads {
            read[tensor] = true;
        }
    }
    let mut bound: TiVec<OpId, bool> = TiVec::from(vec![false; problem.ops.len()]);
    for pair in &problem.anti_dependences {
        (bound[pair.before], bound[pair.after]) = (true, true);
    }
    let is_lazy = |(id, op): (OpId, &crate::ProblemOp)| {
        op.recomputable
            && !bound[id]
            && op.defines.iter().any(|&t| read[t])
            && op.defines.iter().all(|&t| {
                let storage = problem.tensors[t].storage;
                problem.storages[storage].role != StorageRole::External && creator(problem, storage) != Some(id)
            })
    };
    problem.ops.iter_enumerated().map(is_lazy).collect()
}

fn views_workspace(problem: &Problem, lazy: &TiVec<OpId, bool>) -> TiVec<OpId, u64> {
    let mut most: TiVec<OpId, u64> = TiVec::with_capacity(problem.ops.len());
    for op in &problem.ops {
        let producers = op.reads.iter().filter_map(|&t| problem.tensors[t].producer);
        let here = producers
            .filter(|&p| lazy[p])
            .map(|p| problem.ops[p].workspace.max(most[p]))
            .max();
        most.push(here.unwrap_or(0));
    }
    most
}

fn pinned(problem: &Problem, lazy: &TiVec<OpId, bool>) -> TiVec<OpId, bool> {
    let mut pinned: TiVec<OpId, bool> = TiVec::from(vec![false; problem.ops.len()]);
    let mut read: TiVec<TensorId, bool> = TiVec::from(vec![false; problem.tensors.len()]);
    for &tensor in problem.ops.iter().flat_map(|op| &op.reads) {
        read[tensor] = true;
    }
    for (id, tensor) in problem.tensors.iter_enumerated() {
        let storage = &problem.storages[tensor.storage];
        let (Some(producer), Some(creator)) = (tensor.producer, creator(problem, tensor.storage)) else {
            continue;
        };
        let lives_on = storage.role == StorageRole::Transient && read[id];
        if lives_on && producer != creator && !lazy[producer] {
            pinned[creator] = true;
        }
    }
    pinned
}
