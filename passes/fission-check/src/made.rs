//! The ops that fission adds: `Slice`, `Concat` and pools of single elements, sums put together, normalizations, softmax and the best in two passes.

use remat_ir::{Attribute, Effects, Op, OpId, Part, Spare, TensorId};
use remat_verify::Code;

use super::Checker;
use super::values::{Held, Rows};

/// The domain of what runs in two passes.
const STREAMED: &str = "com.remat.streamed";

impl Checker<'_> {
    /// An op that comes from none of the original.
    pub(super) fn made(&mut self, id: OpId, op: &Op) {
        let is_pure = op.effects == Effects::Pure && op.captures.is_empty() && op.bodies.is_empty();
        let is_plain = op.domain.is_empty() && is_pure;
        let is_streamed = op.domain == STREAMED && is_pure;
        let (&[Some(result)], [Some(part)]) = (&op.outputs[..], &op.parts[..]) else {
            self.add(Code::F001, id, || format!("`{}` has not one result", op.name));
            return;
        };
        let found = match op.op_type.as_str() {
            "Moments" if is_streamed => return self.moments(id, op, result, part),
            "CombineMoments" | "CombineExponentials" | "CombineBest" if is_streamed => {
                return self.combined_statistics(id, op, result, part);
            }
            "Exponentials" | "Weigh" if is_streamed => return self.exponentials(id, op, result, part),
            "Soften" if is_streamed => return self.softened(id, op, result, part),
            "Best" if is_streamed => return self.best(id, op, result, part),
            "BestValues" | "BestPlaces" if is_streamed => return self.best_of_all(id, op, result, part),
            "Weighed" if is_streamed => return self.weighed(id, op, result, part),
            "Normalizer" if is_streamed => return self.normalizer(id, op, result, part),
            "Normalize" if is_streamed => return self.normalized(id, op, result, part),
            "CombineMeans" if is_streamed => return self.combined(id, op, result, part),
            "Sum" | "Max" | "Min" if is_plain => return self.combined(id, op, result, part),
            "Slice" if is_plain && op.attributes.is_empty() && self.slices_numbers(op) => {
                return self.sliced_numbers(id, op, result, part);
            }
            "Slice" if is_plain && op.attributes.is_empty() => self.sliced(id, op),
            "MaxPool" if is_plain && is_copy(op) => self.copied(id, op),
            "Concat" if is_plain && op.attributes.keys().all(|name| name == "axis") => self.joined(id, op),
            _ => {
                self.add(Code::F001, id, || {
                    format!("`{}` is neither of the original nor slices, joins or sums up", op.name)
                });
                return;
            }
        };
        let Some((of, rows)) = found else { return };
        let held = Held::Part {
            of,
            rows: Some(rows),
            spare: None,
        };
        let code = match op.op_type.as_str() {
            "Slice" => Code::F008,
            "Concat" => Code::F009,
            _ => Code::F002,
        };
        self.define(id, op, result, part, held, code);
    }

    /// Compares what is stated of a result with what it holds, and its type.
    pub(super) fn define(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part, held: Held, code: Code) {
        let Held::Part { of, rows, spare } = &held else { return };
        let was = &self.original.tensors[*of];
        let ty = &self.tiled.tensors[result].ty;
        if ty.element() != was.ty.element() || ty.known_shape().is_none() {
            let name = &self.tiled.tensors[result].name;
            self.add(Code::F002, id, || format!("`{name}` is {ty}, a part of {}", was.ty));
        }
        self.leaves_open(id, op, result, |axis| was.ty.is_free(axis));
        self.cuts_nothing_open(id, op, *of, rows.as_deref().unwrap_or_default());
        let stated = (part.of.as_str(), Some(&part.ranges), part.spare);
        if stated == (was.name.as_str(), rows.as_ref(), *spare) && !part.is_sum {
            self.values.set(result, held);
            return;
        }
        let held = held.shown(self.original);
        self.add(code, id, || format!("`{}` states {part}, it computes {held}", op.name));
        // What is stated is taken as it is, so that readers are not reported, too.
        if let Some(&of) = self.tensors.get(part.of.as_str()) {
            let stated = Held::Part {
                of,
                rows: Some(part.ranges.clone()),
                spare: part.spare,
            };
            self.values.set(result, stated);
        }
    }

    /// The part that an operand holds, without spare rows.
    fn part(&mut self, id: OpId, op: &Op, operand: Option<TensorId>) -> Option<(TensorId, Vec<Rows>, Option<Spare>)> {
        let Some(operand) = operand else {
            self.add(Code::F005, id, || format!("`{}` lacks an operand", op.name));
            return None;
        };
        match self.values.get(operand)?.clone() {
            Held::Part { of, rows, spare } => Some((of, rows?, spare)),
            Held::Integers
            | Held::Sum { .. }
            | Held::Moments { .. }
            | Held::Exponentials { .. }
            | Held::Best { .. }
            | Held::Numbers(_) => {
                self.add(Code::F005, id, || {
                    format!("`{}` takes elements from what is of no tensor", op.name)
                });
                None
            }
        }
    }

    /// Whether what is sliced are numbers of a normalization.
    fn slices_numbers(&self, op: &Op) -> bool {
        let data = op.inputs.first().copied().flatten();
        matches!(data.and_then(|data| self.values.get(data)), Some(Held::Numbers(_)))
    }

    /// The numbers of some images or channels.
    fn sliced_numbers(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let data = op.inputs.first().copied().flatten();
        let Some(Held::Numbers(mut numbers)) = data.and_then(|data| self.values.get(data)).cloned() else {
            return;
        };
        let mut rows: Vec<Rows> = numbers.channels.iter().cloned().chain([0..1, 0..2]).collect();
        if self.bounded(id, op, &mut rows, None).is_none() {
            return;
        }
        if rows[2..] != [0..1, 0..2] {
            self.add(Code::F008, id, || {
                format!("`{}` takes a part of the numbers of a channel", op.name)
            });
            return;
        }
        numbers.channels = [rows[0].clone(), rows[1].clone()];
        self.state(id, op, result, part, Held::Numbers(numbers), Code::F008);
    }

    fn sliced(&mut self, id: OpId, op: &Op) -> Option<(TensorId, Vec<Rows>)> {
        let (of, mut rows, spare) = self.part(id, op, op.inputs.first().copied().flatten())?;
        self.bounded(id, op, &mut rows, spare)?;
        Some((of, rows))
    }

    /// Narrows rows to what the bounds of a slice say; `None` where that is wrong.
    fn bounded(&mut self, id: OpId, op: &Op, rows: &mut [Rows], spare: Option<Spare>) -> Option<()> {
        let elements = |position: usize| {
            self.tiled
                .values
                .get(&op.inputs.get(position).copied().flatten()?)
                .cloned()
        };
        let bounds = (elements(1), elements(2), elements(3));
        let has_steps = op.inputs.get(4).copied().flatten().is_some();
        let (Some(starts), Some(ends), Some(axes)) = bounds else {
            self.add(Code::F008, id, || format!("the bounds of `{}` are not known", op.name));
            return None;
        };
        if has_steps || starts.len() != axes.len() || ends.len() != axes.len() {
            self.add(Code::F008, id, || format!("the bounds of `{}` are none", op.name));
            return None;
        }
        let mut cut = vec![false; rows.len()];
        for ((axis, start), end) in axes.iter().zip(starts).zip(ends) {
            let taken = usize::try_from(*axis)
                .ok()
                .filter(|&axis| axis < rows.len() && !cut[axis]);
            let Some(axis) = taken else {
                self.add(Code::F008, id, || {
                    format!("`{}` slices axis {axis} of {} axes", op.name, rows.len())
                });
                return None;
            };
            cut[axis] = true;
            let spare = spare.filter(|spare| spare.axis == axis);
            let (before, after) = spare.map_or((0, 0), |spare| (spare.before, spare.after));
            let extent = (rows[axis].end - rows[axis].start) + before + after;
            let (start, end) = (bound(start, extent), bound(end, extent));
            if start >= end {
                self.add(Code::F008, id, || format!("`{}` takes rows {start} to {end}", op.name));
                return None;
            }
            if start < before || end > extent - after {
                self.add(Code::F010, id, || {
                    format!("`{}` takes rows {start} to {end}, spare ones among them", op.name)
                });
                return None;
            }
            let first = rows[axis].start;
            rows[axis] = first + start - before..first + end - before;
        }
        if let Some(spare) = spare.filter(|spare| !cut[spare.axis]) {
            self.add(Code::F010, id, || {
                format!("`{}` leaves the spare rows of axis {}", op.name, spare.axis)
            });
            return None;
        }
        Some(())
    }

    /// What a pool of single elements reads.
    fn copied(&mut self, id: OpId, op: &Op) -> Option<(TensorId, Vec<Rows>)> {
        let (of, rows, spare) = self.part(id, op, op.inputs.first().copied().flatten())?;
        if spare.is_some() {
            self.add(Code::F010, id, || format!("`{}` copies spare rows", op.name));
            return None;
        }
        let kernel = op.attributes.get("kernel_shape").and_then(Attribute::as_ints);
        if kernel.map(<[i64]>::len) != rows.len().checked_sub(2) {
            self.add(Code::F006, id, || format!("`{}` pools another number of axes", op.name));
            return None;
        }
        Some((of, rows))
    }

    fn joined(&mut self, id: OpId, op: &Op) -> Option<(TensorId, Vec<Rows>)> {
        let axis = op.attributes.get("axis").and_then(Attribute::as_int);
        let axis = axis.and_then(|axis| usize::try_from(axis).ok());
        let mut joined: Option<(TensorId, Vec<Rows>)> = None;
        for &operand in &op.inputs {
            let (of, rows, spare) = self.part(id, op, operand)?;
            if spare.is_some() {
                self.add(Code::F010, id, || format!("`{}` joins spare rows", op.name));
                return None;
            }
            let axis = axis.filter(|&axis| axis < rows.len());
            if axis.is_none() {
                self.add(Code::F009, id, || {
                    format!("`{}` joins along no axis of {}", op.name, rows.len())
                });
                return None;
            }
            let Some((first, whole)) = &mut joined else {
                joined = Some((of, rows));
                continue;
            };
            let fits = |axis: usize| {
                let same = |other: usize| other == axis || whole[other] == rows[other];
                *first == of && (0..rows.len()).all(same) && whole[axis].end == rows[axis].start
            };
            match axis.filter(|&axis| fits(axis)) {
                Some(axis) => whole[axis].end = rows[axis].end,
                None => {
                    let shown = |of: TensorId, rows: &Vec<Rows>| {
                        let rows = Some(rows.clone());
                        Held::Part { of, rows, spare: None }.shown(self.original)
                    };
                    let (left, right) = (shown(*first, whole), shown(of, &rows));
                    self.add(Code::F009, id, || {
                        format!("{left} and {right} do not join in `{}`", op.name)
                    });
                    return None;
                }
            }
        }
        if joined.is_none() {
            self.add(Code::F009, id, || format!("`{}` joins nothing", op.name));
        }
        joined
    }
}

/// Whether a pool takes the greatest of one element each, and nothing around them.
fn is_copy(op: &Op) -> bool {
    let kernel = op.attributes.get("kernel_shape").and_then(Attribute::as_ints);
    op.attributes.len() == 1
        && op.inputs.len() == 1
        && kernel.is_some_and(|kernel| kernel.iter().all(|&extent| extent == 1))
}

/// A bound of a slice of so many rows, from the first.
fn bound(bound: i64, extent: u64) -> u64 {
    let rows = i64::try_from(extent).unwrap_or(i64::MAX);
    let bound = if bound < 0 { bound.saturating_add(rows) } else { bound };
    u64::try_from(bound.clamp(0, rows)).unwrap_or(0)
}
