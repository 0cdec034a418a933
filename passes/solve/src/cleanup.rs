//! Recomputes that became superfluous go.

use crate::sequence::{Edit, EventId, Sequence};

/// Removes recomputes, the most expensive first, while the excess does not grow; changes are appended to `log`.
///
/// Repair adds recomputes one after another; later ones can make earlier ones superfluous.
pub(crate) fn cleanup(sequence: &mut Sequence<'_>, buffer: &mut Vec<EventId>, log: &mut Vec<Edit>) {
    buffer.clear();
    buffer.extend_from_slice(sequence.recomputes());
    buffer.sort_by_key(|&event| std::cmp::Reverse(sequence.dag().again(sequence.node_of(event))));
    for &event in buffer.iter() {
        let (excess, entries) = (sequence.excess(), log.len());
        let edit = sequence.remove(event);
        log.push(edit);
        if sequence.excess() > excess {
            sequence.undo_to(log, entries);
        }
    }
}
