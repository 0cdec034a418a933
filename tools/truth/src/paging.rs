//! An exhaustive search over plans with a second memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use remat_plan::{OpId, Problem, StorageId, Structure};

/// The least energy of any plan in fixed order without deadline, by Dijkstra's algorithm over all situations: what is in memory, what is
/// in the second memory, and how far the first runs are. Whatever was moved out once stays there.
///
/// # Panics
/// If there is no second memory.
#[must_use]
pub fn least_energy(problem: &Problem, budget: u64) -> Option<u64> {
    let bytes = |storage: StorageId| problem.storages[storage].bytes;
    let in_memory = |set: u32| -> u64 {
        let resident = problem.storages.keys().filter(|s| set >> s.index() & 1 == 1);
        resident.map(bytes).sum()
    };
    let structure = Structure::of(problem);
    let paging = problem.paging.expect("there is a second memory");
    let mut best: BTreeMap<(u32, u32, usize), u64> = BTreeMap::new();
    let mut queue = BinaryHeap::from([Reverse((0, (0u32, 0u32, 0usize)))]);
    while let Some(Reverse((energy, (resident, copies, next)))) = queue.pop() {
        if next == problem.ops.len() {
            return Some(energy);
        }
        if best.get(&(resident, copies, next)).is_some_and(|&known| known < energy) {
            continue;
        }
        let mut reach = |energy: u64, situation: (u32, u32, usize)| {
            if best.get(&situation).is_none_or(|&known| energy < known) {
                best.insert(situation, energy);
                queue.push(Reverse((energy, situation)));
            }
        };
        for storage in problem.storages.keys() {
            let bit = 1 << storage.index();
            if resident & bit != 0 {
                reach(energy, (resident & !bit, copies, next));
                if copies & bit == 0 {
                    let out = paging.page_out.energy(bytes(storage));
                    reach(energy + out, (resident & !bit, copies | bit, next));
                }
            } else if copies & bit != 0 && in_memory(resident) + bytes(storage) <= budget {
                let back = paging.page_in.energy(bytes(storage));
                reach(energy + back, (resident | bit, copies, next));
            }
        }
        for op in problem.ops.keys().take(next + 1) {
            let mut pairs = problem.anti_dependences.iter();
            if pairs.any(|pair| pair.before == op && pair.after.index() < next) {
                continue;
            }
            let needs = structure.needs(op);
            if needs.iter().any(|s| resident >> s.index() & 1 == 0) {
                continue;
            }
            let made = structure.owns(op);
            let takes = made.iter().map(|&s| bytes(s)).sum::<u64>() + problem.ops[op].workspace;
            if in_memory(resident) + takes > budget {
                continue;
            }
            let set = made.iter().fold(resident, |set, s| set | 1 << s.index());
            let next = next + usize::from(op == OpId::new(next));
            reach(energy + problem.ops[op].energy_pj, (set, copies, next));
        }
    }
    None
}
