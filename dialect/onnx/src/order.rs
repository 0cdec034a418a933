//! An order in which every node comes after the nodes it reads from.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The stable topological order: among the nodes that are ready, the lowest index first. A list that is sorted already
/// keeps its order.
///
/// # Errors
/// The nodes on one cycle, each reading from the one before it.
pub(crate) fn stable_order(reads_from: &[Vec<u32>]) -> Result<Vec<u32>, Vec<u32>> {
    let mut waiting: Vec<usize> = reads_from.iter().map(Vec::len).collect();
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); reads_from.len()];
    let count = u32::try_from(reads_from.len()).expect("a model of less than 2 GiB has fewer nodes");
    for (node, sources) in (0..count).zip(reads_from) {
        sources.iter().for_each(|&source| readers[source as usize].push(node));
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0..count)
        .filter(|&node| waiting[node as usize] == 0)
        .map(Reverse)
        .collect();
    let mut order = Vec::with_capacity(reads_from.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &reader in &readers[node as usize] {
            waiting[reader as usize] -= 1;
            if waiting[reader as usize] == 0 {
                ready.push(Reverse(reader));
            }
        }
    }
    match waiting.iter().position(|&sources| sources > 0) {
        None => Ok(order),
        Some(start) => Err(cycle(reads_from, &waiting, start)),
    }
}

/// Walks from a waiting node to a source that is waiting too, until a node comes up again.
fn cycle(reads_from: &[Vec<u32>], waiting: &[usize], start: usize) -> Vec<u32> {
    let mut path: Vec<u32> = Vec::new();
    let mut place = vec![usize::MAX; reads_from.len()];
    let mut node = start as u32;
    while place[node as usize] == usize::MAX {
        place[node as usize] = path.len();
        path.push(node);
        let next = reads_from[node as usize]
            .iter()
            .copied()
            .find(|&source| waiting[source as usize] > 0);
        let Some(next) = next else { break };
        node = next;
    }
    let mut found = path.split_off(place[node as usize]);
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_list_keeps_its_order_and_others_change_as_little_as_possible() {
        assert_eq!(
            stable_order(&[vec![], vec![], vec![1], vec![0, 2]]),
            Ok(vec![0, 1, 2, 3])
        );
        assert_eq!(stable_order(&[vec![3], vec![], vec![1], vec![]]), Ok(vec![1, 2, 3, 0]));
    }

    #[test]
    fn only_the_nodes_on_the_cycle_are_named() {
        // 0 reads from 1, 1 from 2, 2 from 1: node 0 waits, but is on no cycle.
        assert_eq!(stable_order(&[vec![1], vec![2], vec![1]]), Err(vec![2, 1]));
        assert_eq!(stable_order(&[vec![0]]), Err(vec![0]));
    }
}
