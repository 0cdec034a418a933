//! Drops runs that nobody profits from.

use typed_index_collections::TiVec;

use crate::{OpId, Problem, StorageId, StorageRole, Structure};

/// The runs of `sequence` that are of use, in their order.
///
/// A run is of no use if its op runs elsewhere in the sequence too and nobody reads what it makes before that is made again. A
/// search that must follow the reference order leaves such runs behind: an op runs in its place, its result is freed unread,
/// and the run that counts comes later. Dropping the first one delays the op, so the result follows the reference order no
/// longer; it takes no more memory at any step and less time.
///
/// `sequence` must be a schedule of the scheduled ops, as [`crate::lower_sequence`] takes it. Linear.
#[must_use]
pub fn prune_sequence(problem: &Problem, structure: &Structure, sequence: &[OpId]) -> Vec<OpId> {
    let mut first: TiVec<OpId, Option<usize>> = TiVec::from(vec![None; problem.ops.len()]);
    for (position, &op) in sequence.iter().enumerate() {
        first[op].get_or_insert(position);
    }
    // Backwards: which storages somebody later reads, and which ops run later.
    let mut awaited: TiVec<StorageId, bool> = TiVec::from(vec![false; problem.storages.len()]);
    let mut runs_later: TiVec<OpId, bool> = TiVec::from(vec![false; problem.ops.len()]);
    let mut useful = vec![false; sequence.len()];
    for (position, &op) in sequence.iter().enumerate().rev() {
        let is_transient = |storage: &&StorageId| problem.storages[**storage].role == StorageRole::Transient;
        let transient = || structure.owns(op).iter().filter(is_transient);
        // Whatever stays for good is made by the first run, and every op runs at least once.
        let owns_more = structure.owns(op).len() > transient().count();
        let must_run = first[op] == Some(position) && (owns_more || !runs_later[op]);
        if !must_run && !transient().any(|&storage| awaited[storage]) {
            continue;
        }
        useful[position] = true;
        runs_later[op] = true;
        for &storage in transient() {
            awaited[storage] = false;
        }
        for &storage in structure.needs(op) {
            awaited[storage] = true;
        }
    }
    sequence
        .iter()
        .zip(useful)
        .filter(|&(_, useful)| useful)
        .map(|(&op, _)| op)
        .collect()
}
