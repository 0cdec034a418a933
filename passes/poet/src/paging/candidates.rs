//! What may be added to a sequence so that less is in memory at a place.

use remat_plan::{NodeId, ValueId};
use smallvec::{SmallVec, smallvec};

use super::model::Model;
use super::sequence::{Instances, Item};

/// Longest chain of runs that is added at once.
const LONGEST: usize = 64;

/// What a search may add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Allowed {
    /// Values may move out and back.
    pub(super) pages: bool,
    /// Nodes may run again.
    pub(super) runs: bool,
}

/// Items to add right before a position, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Addition {
    pub(super) position: usize,
    pub(super) items: SmallVec<[Item; 2]>,
}

impl Addition {
    /// The sequence with the items.
    pub(super) fn apply(&self, items: &[Item], into: &mut Vec<Item>) {
        into.clear();
        into.extend_from_slice(&items[..self.position]);
        into.extend_from_slice(&self.items);
        into.extend_from_slice(&items[self.position..]);
    }
}

/// A value that crosses a place without being needed there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    pub(super) value: ValueId,
    /// The last touch before the place.
    pub(super) from: usize,
    /// The next use behind it.
    pub(super) to: usize,
}

/// The gaps over a position, by value.
pub(super) fn gaps(instances: &Instances, at: usize) -> impl Iterator<Item = Gap> + '_ {
    instances.of.keys().filter_map(move |value| {
        let instance = instances.before(value, at)?;
        let to = instances.next_use(value, at)?;
        if to == at || to > instance.last {
            return None;
        }
        let uses = &instances.uses[value];
        let last_use = uses[..uses.partition_point(|&used| used < at)].last().copied();
        let from = last_use.map_or(instance.begin, |used| used.max(instance.begin));
        Some(Gap { value, from, to })
    })
}

/// Everything that closes a gap: the value comes back, or is made again, with what that needs.
pub(super) fn fillings(
    model: &Model<'_>,
    instances: &Instances,
    allowed: Allowed,
    gap: Gap,
    add: &mut impl FnMut(Addition),
) {
    let mut filling = |items: SmallVec<[Item; 2]>| {
        add(Addition {
            position: gap.to,
            items,
        });
    };
    let pages = allowed.pages && model.has_second_memory();
    if pages {
        filling(smallvec![Item::Fetch(gap.value)]);
    }
    let node = model.dag.producer(gap.value);
    if !allowed.runs || model.dag.max_computes(node) < 2 {
        return;
    }
    let run = Item::Run(node);
    let needs = model.dag.needs(node).iter().copied();
    let lost: SmallVec<[ValueId; 4]> = needs.filter(|&need| !instances.is_live(need, gap.to)).collect();
    filling(smallvec![run]);
    if lost.is_empty() {
        return;
    }
    if let Some(chain) = chain(model, instances, node, gap.to) {
        filling(chain);
    }
    if pages {
        filling(lost.iter().map(|&value| Item::Fetch(value)).chain([run]).collect());
    }
}

/// The runs that make a node's results again from what is in memory at a position, in reference order; `None` if that is too long, or
/// needs a node that may not run again.
fn chain(model: &Model<'_>, instances: &Instances, node: NodeId, at: usize) -> Option<SmallVec<[Item; 2]>> {
    let mut found: SmallVec<[NodeId; 8]> = smallvec![node];
    let mut next = 0;
    while let Some(&node) = found.get(next) {
        next += 1;
        for &need in model.dag.needs(node) {
            let producer = model.dag.producer(need);
            if instances.is_live(need, at) || found.contains(&producer) {
                continue;
            }
            if found.len() == LONGEST || model.dag.max_computes(producer) < 2 {
                return None;
            }
            found.push(producer);
        }
    }
    found.sort_unstable();
    Some(found.into_iter().map(Item::Run).collect())
}
