//! Recomputes that became superfluous go.

use crate::sequence::EventId;
use crate::state::{Edit, State};

/// Removes recomputes, the most expensive first, while the excess does not grow; changes are appended to `log`.
///
/// Repair adds recomputes one after another; later ones can make earlier ones superfluous.
pub(crate) fn cleanup(state: &mut State<'_>, buffer: &mut Vec<EventId>, log: &mut Vec<Edit>) {
    buffer.clear();
    buffer.extend_from_slice(state.recomputes());
    buffer.sort_by_key(|&event| std::cmp::Reverse(state.dag().again(state.node_of(event))));
    for &event in buffer.iter() {
        let excess = state.excess();
        let edit = state.remove(event);
        if state.excess() <= excess {
            log.push(edit);
        } else if let Edit::Removed { node, position } = edit {
            state.insert(node, position as usize);
        }
    }
}
