//! Orders of low memory, found by list scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use remat_plan::{NodeId, ValueId};
use typed_index_collections::{TiVec, ti_vec};

use crate::dag::Dag;

/// Runs, again and again, the node that adds least to what is resident among those whose inputs are there; of equals the first.
///
/// Time: (nodes + uses) log nodes.
pub(super) fn forward(dag: &Dag) -> Vec<NodeId> {
    let mut missing: TiVec<NodeId, usize> = dag.nodes().map(|node| dag.predecessors(node).len()).collect();
    let mut unused: TiVec<ValueId, usize> = dag.all_values().map(|value| dag.users(value).len()).collect();
    let lasting = |node: NodeId| {
        let used = dag.values(node).filter(|&value| !dag.users(value).is_empty());
        used.map(|value| i64::from(dag.bytes(value))).sum::<i64>()
    };
    let mut added: TiVec<NodeId, i64> = dag.nodes().map(lasting).collect();
    for node in dag.nodes() {
        let alone = dag.needs(node).iter().filter(|&&value| dag.users(value).len() == 1);
        added[node] -= alone.map(|&value| i64::from(dag.bytes(value))).sum::<i64>();
    }
    let ready = dag.nodes().filter(|&node| missing[node] == 0);
    let mut queue: BinaryHeap<_> = ready.map(|node| Reverse((added[node], node))).collect();
    let mut done: TiVec<NodeId, bool> = ti_vec![false; dag.len()];
    let mut order = Vec::with_capacity(dag.len());
    while let Some(Reverse((key, node))) = queue.pop() {
        if done[node] || key != added[node] {
            continue;
        }
        done[node] = true;
        order.push(node);
        for &value in dag.needs(node) {
            unused[value] -= 1;
            if unused[value] == 1 {
                let Some(&last) = dag.users(value).iter().find(|&&user| !done[user]) else {
                    continue;
                };
                added[last] -= i64::from(dag.bytes(value));
                if missing[last] == 0 {
                    queue.push(Reverse((added[last], last)));
                }
            }
        }
        for &other in dag.successors(node) {
            missing[other] -= 1;
            if missing[other] == 0 {
                queue.push(Reverse((added[other], other)));
            }
        }
    }
    order
}

/// The same from the end: runs last, again and again, the node that leaves least to be resident before it.
pub(super) fn backward(dag: &Dag) -> Vec<NodeId> {
    let mut waiting: TiVec<NodeId, usize> = dag.nodes().map(|node| dag.successors(node).len()).collect();
    let mut live: TiVec<ValueId, bool> = ti_vec![false; dag.value_count()];
    let bytes = |value: ValueId| i64::from(dag.bytes(value));
    let mut added: TiVec<NodeId, i64> = dag
        .nodes()
        .map(|node| {
            let inputs: i64 = dag.needs(node).iter().map(|&value| bytes(value)).sum();
            let used = dag.values(node).filter(|&value| !dag.users(value).is_empty());
            inputs - used.map(bytes).sum::<i64>()
        })
        .collect();
    let ready = dag.nodes().filter(|&node| waiting[node] == 0);
    let mut queue: BinaryHeap<_> = ready.map(|node| (Reverse(added[node]), node)).collect();
    let mut done: TiVec<NodeId, bool> = ti_vec![false; dag.len()];
    let mut order = Vec::with_capacity(dag.len());
    while let Some((Reverse(key), node)) = queue.pop() {
        if done[node] || key != added[node] {
            continue;
        }
        done[node] = true;
        order.push(node);
        for &value in dag.needs(node) {
            if !std::mem::replace(&mut live[value], true) {
                for &user in dag.users(value) {
                    added[user] -= bytes(value);
                    if waiting[user] == 0 && !done[user] {
                        queue.push((Reverse(added[user]), user));
                    }
                }
            }
        }
        for &other in dag.predecessors(node) {
            waiting[other] -= 1;
            if waiting[other] == 0 {
                queue.push((Reverse(added[other]), other));
            }
        }
    }
    order.reverse();
    order
}
