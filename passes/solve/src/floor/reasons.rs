//! Why a set cannot be reached within a budget, and which part of it is to blame.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::graph::{Graph, Item, Set};

/// Bytes of what no plan has.
pub(super) const NEVER: u64 = u64::MAX;

/// Why the run that made the youngest of a set cannot be one of this node.
pub(super) struct Reason {
    pub(super) node: usize,
    /// Other items of the set: any set that contains them and an item of the node fails likewise.
    pub(super) items: Set,
    /// What such a set needs at least, if the run is one of the node.
    pub(super) bytes: u64,
}

impl Reason {
    /// A set needs more than the budget that would be resident before the run, in part because the node needs it.
    pub(super) fn before(graph: &Graph, node: usize, nogood: &[Item], bytes: u64) -> Self {
        let needs = graph.needs(node);
        let others = nogood.iter().copied().filter(|item| needs.binary_search(item).is_err());
        Self {
            node,
            items: others.collect(),
            bytes,
        }
    }

    /// The run itself would take more than the budget; as few other items as possible are to blame.
    pub(super) fn during(graph: &Graph, set: &[Item], node: usize, budget: u64) -> Self {
        let is_other = |item: &Item| graph.producer(*item) != node && graph.needs(node).binary_search(item).is_err();
        let mut others: Set = set.iter().copied().filter(is_other).collect();
        others.sort_by_key(|&item| Reverse(graph.bytes(item)));
        let mut resident: Set = graph.needs(node).into();
        let mut items = Set::new();
        let mut bytes = graph.at(&resident, node);
        for item in others {
            if bytes > budget {
                break;
            }
            resident.push(item);
            items.push(item);
            bytes = graph.at(&resident, node);
        }
        Self { node, items, bytes }
    }
}

/// The smallest part of a set found that cannot be reached, and what it needs, from one reason per node that makes items of the set.
///
/// A part fails if the reason of each of its makers lies in it: so each reason brings the makers of its items with their reasons.
pub(super) fn part_to_blame(graph: &Graph, set: &[Item], reasons: &[Reason]) -> (Set, u64) {
    let all = || {
        (
            set.into(),
            reasons.iter().map(|reason| reason.bytes).min().unwrap_or(NEVER),
        )
    };
    let mut best: Option<(Set, u64)> = None;
    for first in reasons {
        let most = best.as_ref().map_or(usize::MAX, |(part, _)| part.len());
        let Some((part, bytes)) = closed(graph, set, reasons, first, most) else {
            continue;
        };
        let better = |(other, known): &(Set, u64)| (part.len(), Reverse(bytes)) < (other.len(), Reverse(*known));
        if best.as_ref().is_none_or(better) {
            best = Some((part, bytes));
        }
    }
    let (mut part, bytes) = best.unwrap_or_else(all);
    part.sort_unstable();
    (part, bytes)
}

/// The least part with an item of one node that its makers' reasons lie in; `None` where it has more than `most` items.
fn closed(graph: &Graph, set: &[Item], reasons: &[Reason], first: &Reason, most: usize) -> Option<(Set, u64)> {
    let mut part: Set = set
        .iter()
        .copied()
        .filter(|&item| graph.producer(item) == first.node)
        .take(1)
        .collect();
    let mut makers: SmallVec<[usize; 12]> = SmallVec::from_slice(&[first.node]);
    let (mut bytes, mut next) = (NEVER, 0);
    while let Some(&maker) = makers.get(next) {
        next += 1;
        let reason = reasons.iter().find(|reason| reason.node == maker)?;
        bytes = bytes.min(reason.bytes);
        for &item in &reason.items {
            if part.contains(&item) {
                continue;
            }
            part.push(item);
            let other = graph.producer(item);
            if !makers.contains(&other) {
                makers.push(other);
            }
        }
        if part.len() > most {
            return None;
        }
    }
    Some((part, bytes))
}
