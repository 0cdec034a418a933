//! Who needs the elements of a tensor.

use remat_ir::{OpId, TensorId};
use remat_operators::Split;

use super::facts::Facts;
use crate::rules::Need;

/// Who needs all elements of a tensor, where they are or where ops moved them.
#[derive(Default)]
pub(super) struct Consumers {
    /// Of what these ran in part, at most the same share of the tensor is needed by them no more.
    pub(super) by_share: Vec<OpId>,
    /// These may need it no more before they ran wholly: they read it beside others, part by part.
    pub(super) at_last: Vec<OpId>,
    /// Whether an output has the elements.
    pub(super) is_given: bool,
}

impl Consumers {
    pub(super) fn all(&self) -> impl Iterator<Item = OpId> {
        self.by_share.iter().chain(&self.at_last).copied()
    }
}

impl Facts<'_> {
    pub(super) fn consumers_of(&self, tensor: TensorId) -> Consumers {
        let mut found = Consumers::default();
        if self.sizes.bytes(tensor) == 0
            || self.graph.tensors[tensor]
                .producer
                .is_none_or(|producer| self.moves(producer))
        {
            return found;
        }
        // The elements, and along which axis others stand beside them: `Some(None)` where that is not known.
        let mut waiting: Vec<(TensorId, Option<Option<usize>>)> = vec![(tensor, None)];
        while let Some((next, beside)) = waiting.pop() {
            found.is_given |= self.outputs.contains(&next);
            for &reader in &self.readers[next] {
                if self.moves(reader) {
                    let joined = match self.family(reader) {
                        Split::Concat if beside.is_none() => Some(self.joined_axis(reader)),
                        _ => beside.map(|_| None),
                    };
                    waiting.extend(self.graph.ops[reader].results().map(|result| (result, joined)));
                } else if !self.picks(reader)
                    && let Some(axes) = self.shares(reader, next)
                {
                    let is_apart = |axis: Option<usize>| axis.is_some_and(|axis| !axes.contains(&axis));
                    match beside.is_none_or(is_apart) {
                        true => found.by_share.push(reader),
                        false => found.at_last.push(reader),
                    }
                }
            }
        }
        for list in [&mut found.by_share, &mut found.at_last] {
            list.sort_unstable();
            list.dedup();
        }
        found
    }

    /// The axis that an op joins.
    pub(super) fn joined_axis(&self, id: OpId) -> Option<usize> {
        let op = &self.graph.ops[id];
        let stated = op.attributes.get("axis")?.as_int()?;
        let rank = i64::try_from(self.extents(id).len()).ok()?;
        usize::try_from(if stated < 0 { stated + rank } else { stated }).ok()
    }

    /// The axes of an operand of which rows of the result need some rows only; `None` unless each row of the result needs the rows that stand at the same
    /// share of the operand. Then parts of the result need no smaller share of the operand than they are of the result.
    fn shares(&self, id: OpId, operand: TensorId) -> Option<Vec<usize>> {
        let op = &self.graph.ops[id];
        let own = self.dims(operand);
        let mut axes = Vec::new();
        for (axis, extent) in self
            .extents(id)
            .into_iter()
            .enumerate()
            .filter(|&(_, extent)| extent > 1)
        {
            let (middle, last) = (extent / 2, extent - 1);
            let mut rows = vec![
                0,
                1,
                2,
                middle.saturating_sub(1),
                middle,
                middle + 1,
                last.saturating_sub(2),
                last.saturating_sub(1),
                last,
            ];
            rows.retain(|&row| row < extent);
            rows.sort_unstable();
            rows.dedup();
            for row in rows {
                let needs = self.needs(id, axis, &(row..row + 1), extent);
                let of_operand = op
                    .inputs
                    .iter()
                    .zip(needs)
                    .filter(|(input, _)| **input == Some(operand));
                for (_, need) in of_operand {
                    match need? {
                        Need::Whole => {}
                        Need::Rows { axis: cut, rows } => {
                            let all = u128::from(*own.get(cut)?);
                            let at = |row: u64| u128::from(row) * all;
                            let (from, to) = (at(row) / u128::from(extent), at(row + 1).div_ceil(u128::from(extent)));
                            if u128::from(rows.start) > from || u128::from(rows.end) < to {
                                return None;
                            }
                            axes.push(cut);
                        }
                    }
                }
            }
        }
        Some(axes)
    }
}
