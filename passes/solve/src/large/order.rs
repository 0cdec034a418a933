//! Orders of low memory, found by list scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dag::Dag;

/// Runs, again and again, the node that adds least to what is resident among those whose inputs are there; of equals the first.
///
/// Time: (nodes + uses) log nodes.
pub(super) fn forward(dag: &Dag) -> Vec<u32> {
    let nodes = dag.len() as u32;
    let mut missing: Vec<u32> = (0..nodes).map(|node| dag.predecessors(node).len() as u32).collect();
    let mut unused: Vec<u32> = (0..dag.value_count() as u32)
        .map(|value| dag.users(value).len() as u32)
        .collect();
    let lasting = |node: u32| {
        let used = dag.values(node).filter(|&value| !dag.users(value).is_empty());
        used.map(|value| i64::from(dag.bytes(value))).sum::<i64>()
    };
    let mut added: Vec<i64> = (0..nodes).map(lasting).collect();
    for node in 0..nodes {
        let alone = dag.needs(node).iter().filter(|&&value| dag.users(value).len() == 1);
        added[node as usize] -= alone.map(|&value| i64::from(dag.bytes(value))).sum::<i64>();
    }
    let ready = (0..nodes).filter(|&node| missing[node as usize] == 0);
    let mut queue: BinaryHeap<_> = ready.map(|node| Reverse((added[node as usize], node))).collect();
    let mut done = vec![false; dag.len()];
    let mut order = Vec::with_capacity(dag.len());
    while let Some(Reverse((key, node))) = queue.pop() {
        if done[node as usize] || key != added[node as usize] {
            continue;
        }
        done[node as usize] = true;
        order.push(node);
        for &value in dag.needs(node) {
            unused[value as usize] -= 1;
            if unused[value as usize] == 1 {
                let Some(&last) = dag.users(value).iter().find(|&&user| !done[user as usize]) else {
                    continue;
                };
                added[last as usize] -= i64::from(dag.bytes(value));
                if missing[last as usize] == 0 {
                    queue.push(Reverse((added[last as usize], last)));
                }
            }
        }
        for &other in dag.successors(node) {
            missing[other as usize] -= 1;
            if missing[other as usize] == 0 {
                queue.push(Reverse((added[other as usize], other)));
            }
        }
    }
    order
}

/// The same from the end: runs last, again and again, the node that leaves least to be resident before it.
pub(super) fn backward(dag: &Dag) -> Vec<u32> {
    let nodes = dag.len() as u32;
    let mut waiting: Vec<u32> = (0..nodes).map(|node| dag.successors(node).len() as u32).collect();
    let mut live: Vec<bool> = vec![false; dag.value_count()];
    let bytes = |value: u32| i64::from(dag.bytes(value));
    let mut added: Vec<i64> = (0..nodes)
        .map(|node| {
            let inputs: i64 = dag.needs(node).iter().map(|&value| bytes(value)).sum();
            let used = dag.values(node).filter(|&value| !dag.users(value).is_empty());
            inputs - used.map(bytes).sum::<i64>()
        })
        .collect();
    let ready = (0..nodes).filter(|&node| waiting[node as usize] == 0);
    let mut queue: BinaryHeap<_> = ready.map(|node| (Reverse(added[node as usize]), node)).collect();
    let mut done = vec![false; dag.len()];
    let mut order = Vec::with_capacity(dag.len());
    while let Some((Reverse(key), node)) = queue.pop() {
        if done[node as usize] || key != added[node as usize] {
            continue;
        }
        done[node as usize] = true;
        order.push(node);
        for &value in dag.needs(node) {
            if !std::mem::replace(&mut live[value as usize], true) {
                for &user in dag.users(value) {
                    added[user as usize] -= bytes(value);
                    if waiting[user as usize] == 0 && !done[user as usize] {
                        queue.push((Reverse(added[user as usize]), user));
                    }
                }
            }
        }
        for &other in dag.predecessors(node) {
            waiting[other as usize] -= 1;
            if waiting[other as usize] == 0 {
                queue.push((Reverse(added[other as usize]), other));
            }
        }
    }
    order.reverse();
    order
}
