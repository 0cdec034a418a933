//! Which ops cannot have begun before an op first runs.

use remat_ir::{OpId, TensorId};
use remat_operators::{Split, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Facts;
use crate::rules::Need;

/// How much of a tensor is made of a result: of every element some, or of every line along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Descent {
    Everywhere,
    Along(usize),
}

impl Facts<'_> {
    /// The ops each of whose elements is made of the result of an op.
    pub(super) fn later(&self, id: OpId) -> FxHashSet<OpId> {
        let results = self.graph.ops[id].results();
        let mut descent: FxHashMap<TensorId, Descent> = results.map(|result| (result, Descent::Everywhere)).collect();
        let mut later = FxHashSet::default();
        for next in self.graph.ops.keys().filter(|&next| next > id) {
            if let Some(how) = self.descent(next, &descent) {
                descent.extend(self.graph.ops[next].results().map(|result| (result, how)));
                if how == Descent::Everywhere {
                    later.insert(next);
                }
            }
        }
        later
    }

    fn descent(&self, id: OpId, of: &FxHashMap<TensorId, Descent>) -> Option<Descent> {
        let op = &self.graph.ops[id];
        let operands = || op.inputs.iter().map(|input| of.get(input.as_ref()?).copied());
        let (place, first) = operands().enumerate().find_map(|(place, how)| Some((place, how?)))?;
        let family = self.family(id);
        let is_everywhere = operands().any(|how| how == Some(Descent::Everywhere));
        if operator(&op.domain, &op.op_type).measures {
            return None;
        }
        if family == Split::Concat {
            let is_all = operands().all(|how| how == Some(Descent::Everywhere));
            let along = || self.joined_axis(id).map(Descent::Along).filter(|_| is_everywhere);
            return is_all.then_some(Descent::Everywhere).or_else(along);
        }
        if self.picks(id) {
            let pads = matches!(family, Split::Pad | Split::PadByAttributes);
            let is_picked = place == 0 && first == Descent::Everywhere && !pads;
            return is_picked.then_some(Descent::Everywhere);
        }
        let Descent::Along(axis) = first else {
            return Some(Descent::Everywhere);
        };
        if is_everywhere {
            return Some(Descent::Everywhere);
        }
        // Where rows of the result need some rows only along that axis, they may need none that is made of it.
        let axes = self
            .extents(id)
            .into_iter()
            .enumerate()
            .filter(|&(_, extent)| extent > 1);
        let keeps = axes.filter(|&(own, extent)| {
            let needs = self.needs(id, own, &(0..1), extent);
            matches!(needs.get(place), Some(Some(Need::Rows { axis: cut, .. })) if *cut == axis)
        });
        let keeps: Vec<usize> = keeps.map(|(own, _)| own).collect();
        match keeps[..] {
            [] => Some(Descent::Everywhere),
            [own] => Some(Descent::Along(own)),
            _ => None,
        }
    }
}
