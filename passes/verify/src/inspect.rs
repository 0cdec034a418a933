//! What is in memory at one step, for people who ask why a peak is where it is.

use remat_plan::{Plan, Problem, Step, StorageId};

use crate::memory::{Location, Memory};

/// The storages that count during a step of a valid plan, with their bytes, in the order of their ids; a storage that the step
/// makes a duplicate of stands twice. With the workspace of the op, the bytes add up to [`crate::StepTrace::during`]. Behind the
/// last step: what is left at the end.
///
/// Storages that DMA moves count from their step on, as if transfers took no time.
///
/// For a plan that [`crate::replay`] rejects, the answer follows the same rules of going on, without their messages.
#[must_use]
pub fn resident_at(problem: &Problem, plan: &Plan, step: usize) -> Vec<(StorageId, u64)> {
    let mut memory = Memory::new(problem);
    for &earlier in plan.steps.iter().take(step) {
        advance(problem, &mut memory, earlier);
    }
    let mut storages: Vec<StorageId> = memory.resident().collect();
    match plan.steps.get(step) {
        Some(&(Step::Compute(op) | Step::Recompute(op))) if op.index() < problem.ops.len() => {
            storages.extend(Memory::creates(problem, op));
        }
        Some(&Step::PageIn(storage)) if is_at(problem, &memory, storage, Location::PagedOut) => storages.push(storage),
        _ => {}
    }
    storages.sort_unstable();
    storages.iter().map(|&id| (id, problem.storages[id].bytes)).collect()
}

fn advance(problem: &Problem, memory: &mut Memory<'_>, step: Step) {
    let (storage, from, to) = match step {
        Step::Compute(op) | Step::Recompute(op) => {
            if op.index() < problem.ops.len() {
                memory.run(op);
            }
            return;
        }
        Step::Free(storage) => (storage, Location::Resident, Location::Absent),
        Step::PageOut(storage) => (storage, Location::Resident, Location::PagedOut),
        Step::PageIn(storage) => (storage, Location::PagedOut, Location::Resident),
    };
    if is_at(problem, memory, storage, from) && problem.storages[storage].role == remat_plan::StorageRole::Transient {
        memory.relocate(storage, to);
    }
}

fn is_at(problem: &Problem, memory: &Memory<'_>, storage: StorageId, location: Location) -> bool {
    storage.index() < problem.storages.len() && memory.location(storage) == location
}
