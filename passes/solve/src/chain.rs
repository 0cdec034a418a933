//! A recompute, and the recomputes of its dead inputs before it.

use std::ops::Range;

use remat_plan::NodeId;

use crate::sequence::{Edit, EventId, Sequence};

/// How far a recompute reaches back: dead inputs are recomputed before it, and their dead inputs before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    /// Longest way back; 0: the recompute only, its dead inputs live on instead.
    pub(crate) depth: usize,
    /// About the largest number of runs.
    pub(crate) length: usize,
}

impl Chain {
    /// The recompute itself.
    pub(crate) const NONE: Self = Self { depth: 0, length: 1 };
    /// Enough unless memory is very tight.
    pub(crate) const SHORT: Self = Self { depth: 3, length: 12 };
    /// Enough to begin with where memory is very tight.
    pub(crate) const LONG: Self = Self { depth: 6, length: 48 };

    /// Reaches further.
    pub(crate) fn longer(self) -> Self {
        Self {
            depth: (2 * self.depth).min(64),
            length: (4 * self.length).min(4096),
        }
    }
}

/// Runs `node` again in front of `before`; the changes are appended to `log`. Inputs that are dead by then come back too where the chain
/// reaches, `revive` agrees and they may run again; other dead inputs live on to the new run.
pub(crate) fn insert_chain(
    sequence: &mut Sequence<'_>,
    node: NodeId,
    before: EventId,
    chain: Chain,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
) {
    let entries = log.len()..log.len() + chain.length;
    insert_links(sequence, node, before, chain.depth, revive, log, &entries);
}

/// `entries` is where the chain begins in the log, and where it should end.
fn insert_links(
    sequence: &mut Sequence<'_>,
    node: NodeId,
    before: EventId,
    depth: usize,
    revive: &mut impl FnMut(NodeId) -> bool,
    log: &mut Vec<Edit>,
    entries: &Range<usize>,
) {
    if depth > 0 {
        let dag = sequence.dag();
        for &value in dag.needs(node) {
            if log.len() >= entries.end {
                break;
            }
            let Some(serving) = sequence.serving(value, sequence.place_of(before)) else {
                continue;
            };
            let end = sequence.place_of(sequence.end_of(serving, value));
            // Dead, and for longer than since the run before; what this chain made or uses lives on.
            let first = log.get(entries.start).and_then(Edit::inserted).unwrap_or(before);
            let dead = end < sequence.place_of(first) && sequence.next_event(end + 1) != before;
            let producer = dag.producer(value);
            if dead && sequence.may_run_again(producer) && revive(producer) {
                insert_links(sequence, producer, before, depth - 1, revive, log, entries);
            }
        }
    }
    log.push(Edit::Inserted(sequence.insert(node, before)));
}
