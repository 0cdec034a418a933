//! A problem as a program that DTR can execute.

use remat_plan::{Instance, NodeId, OpId, Problem, StorageId, StorageRole, Structure, TensorId};
use typed_index_collections::TiVec;

use crate::trace::{Event, Trace, TraceOp};

/// The scheduled ops of a problem as a trace, and which op of the problem each op of the trace stands for.
///
/// Arguments are whole storages, so that lazy views need no ops of their own. The program lets go of a storage after its last use in
/// the reference order. A storage expires when no op that reads it, and may run again for the sake of others, can be needed any
/// more. Ops that must not run after others run once.
pub(super) fn trace_of(problem: &Problem, structure: &Structure) -> (Trace, Vec<OpId>) {
    let instance = Instance::of(problem, structure);
    let mut trace = Trace::default();
    let mut root_of: TiVec<StorageId, Option<TensorId>> = TiVec::from(vec![None; problem.storages.len()]);
    let ends = Ends::of(problem, structure, &instance);
    for node in instance.nodes() {
        let op = instance.op(node);
        let arguments = structure.needs(op).iter().filter_map(|&storage| root_of[storage]);
        let mut called = TraceOp::new(
            problem.ops[op].name.clone(),
            instance.duration(node),
            arguments.collect(),
        );
        let owned = || counted(problem, structure.owns(op));
        called.workspace = instance.workspace(node);
        called.most_runs = instance.max_computes_anywhere(node);
        let results: Vec<_> = owned().map(|storage| (problem.storages[storage].bytes, None)).collect();
        let results = trace.call(called, &results);
        for (storage, root) in owned().zip(results) {
            root_of[storage] = Some(root);
            let kept = problem.storages[storage].role == StorageRole::LiveOut;
            trace.storages[trace.tensors[root].storage].stays = kept;
        }
        let transient = |&storage: &StorageId| problem.storages[storage].role == StorageRole::Transient;
        let roots = |storages: &[StorageId]| -> Vec<TensorId> {
            let storages = storages.iter().copied().filter(transient);
            storages.filter_map(|storage| root_of[storage]).collect()
        };
        let released = roots(&ends.released[node]).into_iter().map(Event::Release);
        trace.events.extend(released);
        for root in roots(&ends.expired[node]) {
            trace.events.push(Event::Expire(trace.tensors[root].storage));
        }
    }
    (trace, instance.ops().to_vec())
}

/// The storages that take memory.
fn counted<'a>(problem: &'a Problem, storages: &'a [StorageId]) -> impl Iterator<Item = StorageId> + 'a {
    let counts = |&storage: &StorageId| problem.storages[storage].role != StorageRole::External;
    storages.iter().copied().filter(counts)
}

/// After which op of the program storages are let go, and after which they expire.
struct Ends {
    released: TiVec<NodeId, Vec<StorageId>>,
    expired: TiVec<NodeId, Vec<StorageId>>,
}

impl Ends {
    fn of(problem: &Problem, structure: &Structure, instance: &Instance) -> Self {
        let needs = |node: NodeId| structure.needs(instance.op(node));
        let owns = |node: NodeId| structure.owns(instance.op(node));
        let mut last_use: TiVec<StorageId, NodeId> = TiVec::from(vec![NodeId::new(0); problem.storages.len()]);
        for node in instance.nodes() {
            for &storage in needs(node).iter().chain(owns(node)) {
                last_use[storage] = node;
            }
        }
        let mut end = last_use.clone();
        for node in instance.nodes().rev() {
            let mut needed = node;
            if instance.max_computes_anywhere(node) > 1 {
                needed = owns(node).iter().map(|&storage| end[storage]).fold(needed, NodeId::max);
            }
            for &storage in needs(node) {
                end[storage] = end[storage].max(needed);
            }
        }
        let by_node = |nodes: &TiVec<StorageId, NodeId>| {
            let mut storages: TiVec<NodeId, Vec<StorageId>> = TiVec::from(vec![Vec::new(); instance.len()]);
            for node in instance.nodes() {
                for storage in counted(problem, owns(node)) {
                    storages[nodes[storage]].push(storage);
                }
            }
            storages
        };
        Self {
            released: by_node(&last_use),
            expired: by_node(&end),
        }
    }
}
