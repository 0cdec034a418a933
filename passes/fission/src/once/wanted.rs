//! Which tensors must have been made, all of them, before an op first runs.

use std::ops::Range;

use remat_ir::{Attribute, OpId, TensorId};
use remat_operators::{MOMENTS, NORMALIZER, STREAMED_DOMAIN, Split, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Facts;
use crate::rules::{Need, Reason, split};

/// Ranges of rows of one tensor that are told apart.
const MOST_RANGES: usize = 8;

/// Which elements of a tensor something is made of: rows of one axis, or all.
#[derive(Clone, PartialEq, Eq)]
enum Wanted {
    Whole,
    Rows(usize, Vec<Range<u64>>),
}

impl Facts<'_> {
    /// The tensors all of whose elements are there before an op first runs, along whatever axis, at whatever row.
    pub(super) fn whole_before(&self, id: OpId) -> FxHashSet<TensorId> {
        let axes = self.extents(id).into_iter().enumerate();
        let axes = axes.filter(|&(_, extent)| extent > 1);
        let parts = axes
            .flat_map(|(axis, extent)| [0, extent - 1, extent / 2].map(|start| Wanted::rows(axis, start..start + 1)));
        let mut parts: Vec<Wanted> = parts.collect();
        if parts.is_empty() {
            parts.push(Wanted::Whole);
        }
        let mut found: Option<FxHashSet<TensorId>> = None;
        for part in parts {
            let wanted = self.wanted(id, &part);
            let whole = wanted
                .into_iter()
                .filter(|(_, wanted)| *wanted == Wanted::Whole)
                .map(|(tensor, _)| tensor);
            found = Some(match found {
                Some(found) => whole.filter(|tensor| found.contains(tensor)).collect(),
                None => whole.collect(),
            });
        }
        found.unwrap_or_default()
    }

    /// What rows of the result of an op need, or more rows if they cannot be cut alone; `None` for operands of which nothing is known.
    pub(super) fn needs(&self, id: OpId, axis: usize, rows: &Range<u64>, extent: u64) -> Vec<Option<Need>> {
        let whole = || vec![Some(Need::Whole); self.graph.ops[id].inputs.len()];
        self.of_rows(id, axis, rows, extent).unwrap_or_else(whole)
    }

    /// The same; `None` if they are made with all other rows only.
    fn of_rows(&self, id: OpId, axis: usize, rows: &Range<u64>, extent: u64) -> Option<Vec<Option<Need>>> {
        let op = &self.graph.ops[id];
        if !self.layout.is_divisible(id) {
            return None;
        }
        if let Some(rows) = self.of_statistics(id, axis, rows) {
            let statistics = Need::Rows { axis, rows };
            let of_first = |(place, _)| (place == 0).then(|| statistics.clone());
            return Some(op.inputs.iter().enumerate().map(of_first).collect());
        }
        let mut cut = split(self.graph, id, axis, rows.clone());
        if let Err(Reason::Multiple(number)) = cut.as_ref().map_err(|not| not.reason) {
            let number = number.max(1);
            let from = rows.start / number * number;
            let to = rows.end.div_ceil(number).saturating_mul(number).min(extent);
            cut = split(self.graph, id, axis, from..to);
        }
        let is_gathered = matches!(self.family(id), Split::Gather | Split::GatherTuples);
        match cut {
            Ok(cut) => {
                let known = |need: Need| (!is_gathered || need == Need::Whole).then_some(need);
                Some(cut.needs.into_iter().map(known).collect())
            }
            Err(not) => (not.reason == Reason::Padding).then(|| vec![None; op.inputs.len()]),
        }
    }

    /// Of statistics of a normalization in two passes, or numbers made of them: the images or channels of the operand. The passes give them all at
    /// once; but where the normalization runs in one pass, some are enough.
    fn of_statistics(&self, id: OpId, axis: usize, rows: &Range<u64>) -> Option<Range<u64>> {
        let op = &self.graph.ops[id];
        if op.domain != STREAMED_DOMAIN || !matches!(&*op.op_type, MOMENTS | NORMALIZER) || axis > 1 {
            return None;
        }
        let groups = op.attributes.get("groups").and_then(Attribute::as_int);
        let groups = groups
            .and_then(|groups| u64::try_from(groups).ok())
            .filter(|_| axis == 1);
        let channels = *self.extents(id).get(1)?;
        let each = groups.map_or(1, |groups| channels / groups.max(1)).max(1);
        Some(rows.start / each * each..(rows.end.div_ceil(each) * each).min(channels.max(rows.end)))
    }

    /// What part of the result of an op is made of.
    fn wanted(&self, id: OpId, part: &Wanted) -> FxHashMap<TensorId, Wanted> {
        let mut wanted: FxHashMap<TensorId, Wanted> = FxHashMap::default();
        self.want_operands(id, part, &mut wanted);
        for index in (0..usize::from(id)).rev() {
            let before = OpId::from(index);
            let parts: Vec<Wanted> = self.graph.ops[before]
                .results()
                .filter_map(|result| wanted.get(&result).cloned())
                .collect();
            for part in parts {
                if !self.want_operands(before, &part, &mut wanted) && !self.sums_up.contains(&before) {
                    let results = self.graph.ops[before].results();
                    wanted.extend(results.map(|result| (result, Wanted::Whole)));
                }
            }
        }
        wanted
    }

    /// Adds what a part of the result of an op is made of; whether the part can be made alone.
    fn want_operands(&self, id: OpId, part: &Wanted, wanted: &mut FxHashMap<TensorId, Wanted>) -> bool {
        let op = &self.graph.ops[id];
        let extents = self.extents(id);
        // Of what picks, all of the result may be little of the operand.
        let picked = extents.iter().position(|&extent| extent > 0).filter(|_| self.picks(id));
        let all = picked.map(|axis| Wanted::rows(axis, 0..extents[axis]));
        let part = match part {
            _ if operator(&op.domain, &op.op_type).measures => return true,
            Wanted::Whole => all.as_ref(),
            Wanted::Rows(..) => Some(part),
        };
        let Some(&Wanted::Rows(axis, ref ranges)) = part else {
            wanted.extend(op.reads().map(|tensor| (tensor, Wanted::Whole)));
            return true;
        };
        let extent = extents.get(axis).copied().unwrap_or(0);
        let mut is_cut = true;
        for rows in ranges {
            let needs = self.of_rows(id, axis, rows, extent);
            is_cut &= needs.is_some();
            let needs = needs.unwrap_or_else(|| vec![Some(Need::Whole); op.inputs.len()]);
            for (operand, need) in op.inputs.iter().zip(needs) {
                let (Some(operand), Some(need)) = (*operand, need) else {
                    continue;
                };
                match need {
                    Need::Whole => drop(wanted.insert(operand, Wanted::Whole)),
                    Need::Rows { axis, rows } => {
                        let extent = self.dims(operand).get(axis).copied().unwrap_or(u64::MAX);
                        let have = wanted.entry(operand).or_insert_with(|| Wanted::Rows(axis, Vec::new()));
                        have.add(axis, rows, extent);
                    }
                }
            }
        }
        is_cut
    }
}

impl Wanted {
    fn rows(axis: usize, rows: Range<u64>) -> Self {
        Self::Rows(axis, std::iter::once(rows).collect())
    }

    /// These rows, too; of rows along another axis those that are less are forgotten.
    fn add(&mut self, axis: usize, rows: Range<u64>, extent: u64) {
        let Self::Rows(own, ranges) = self else { return };
        let count = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        if *own != axis {
            if count(ranges) >= rows.end - rows.start {
                return;
            }
            (*own, *ranges) = (axis, Vec::new());
        }
        ranges.push(rows);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges.drain(..) {
            match joined.last_mut().filter(|last| last.end >= range.start) {
                Some(last) => last.end = last.end.max(range.end),
                None => joined.push(range),
            }
        }
        if joined.len() > MOST_RANGES {
            joined.sort_unstable_by_key(|range| std::cmp::Reverse(range.end - range.start));
            joined.truncate(MOST_RANGES);
        }
        *ranges = joined;
        if count(ranges) >= extent {
            *self = Self::Whole;
        }
    }
}
