//! Sums over the axis that tiles cut: what an op sums up over rows of its operand, and what puts such sums together.

use remat_ir::{Attribute, Effects, Op, OpId, Part, TensorId};
use remat_verify::Code;

use super::Checker;
use super::norms::{has_counts, joined};
use super::site::{NoWay, axis};
use super::values::{Held, Rows};

/// How the sums of an op are put together: by which op.
fn combined_by(op: &Op) -> Option<&'static str> {
    Some(match (&*op.domain, &*op.op_type) {
        ("", "ReduceSum" | "ReduceL1" | "ReduceSumSquare" | "MatMul") => "Sum",
        ("", "ReduceMax" | "GlobalMaxPool") => "Max",
        ("", "ReduceMin") => "Min",
        ("", "ReduceMean" | "GlobalAveragePool") => "CombineMeans",
        _ => return None,
    })
}

impl Checker<'_> {
    /// The axes of operand 0 that an op of the original sums over.
    fn summed_axes(&self, op: &Op) -> Result<Vec<usize>, NoWay> {
        let unknown = || "its shapes are not understood".to_owned();
        let dims = |place: usize| {
            let operand = op.inputs.get(place).copied().flatten();
            operand.and_then(|operand| self.original.tensors[operand].ty.known_shape())
        };
        let rank = dims(0).ok_or_else(unknown)?.len();
        match op.op_type.as_str() {
            "MatMul" => Ok(vec![rank.checked_sub(1).ok_or_else(unknown)?]),
            "GlobalAveragePool" | "GlobalMaxPool" => Ok((2..rank).collect()),
            _ => {
                let operand = op.inputs.get(1).copied().flatten();
                let stated = match (op.attributes.get("axes").and_then(Attribute::as_ints), operand) {
                    (Some(axes), _) => axes.to_vec(),
                    (None, Some(operand)) => self.original.values.get(&operand).cloned().ok_or_else(unknown)?,
                    (None, None) => Vec::new(),
                };
                let is_nothing = op
                    .attributes
                    .get("noop_with_empty_axes")
                    .and_then(Attribute::as_int)
                    .unwrap_or(0)
                    != 0;
                match stated.as_slice() {
                    [] if is_nothing => Ok(Vec::new()),
                    [] => Ok((0..rank).collect()),
                    stated => stated.iter().map(|&stated| axis(stated, rank)).collect(),
                }
            }
        }
    }

    /// An op that sums up over rows of operand 0 of what it comes from.
    pub(super) fn summed(&mut self, id: OpId, op: &Op, before_id: OpId, part: &Part) {
        let before = &self.original.ops[before_id];
        let (Some(result), Some(was), Some(Some(data))) =
            (op.results().next(), before.results().next(), before.inputs.first())
        else {
            self.add(Code::F002, id, || format!("`{}` sums nothing up", op.name));
            return;
        };
        let name = &self.original.tensors[*data].name;
        let dims = self.original.tensors[*data].ty.known_shape().unwrap_or_default();
        let is_inside = part.of == *name && part.spare.is_none() && part.ranges.len() == dims.len();
        if !is_inside || part.ranges.iter().zip(&dims).any(|(rows, &dim)| rows.end > dim) || op.outputs.len() != 1 {
            self.add(Code::F002, id, || format!("`{}` cannot sum up {part}", op.name));
            return;
        }
        let axes = match combined_by(before) {
            Some(_) => self.summed_axes(before),
            None => Err("sums of its kind are not put together".to_owned()),
        };
        let is_cut = |axis: usize| part.ranges[axis] != (0..dims[axis]);
        let axes = axes.and_then(
            |axes| match (0..dims.len()).find(|axis| is_cut(*axis) && !axes.contains(axis)) {
                Some(axis) => Err(format!("it does not sum over axis {axis}")),
                None => Ok(axes),
            },
        );
        if let Err(why) = axes {
            self.add(Code::F004, id, || {
                format!("`{}` ({}) cannot sum up {part}: {why}", op.name, op.op_type)
            });
            return;
        }
        for (place, (&now, &then)) in op.inputs.iter().zip(&before.inputs).enumerate() {
            let (Some(now), Some(then)) = (now, then) else {
                if now.is_some() != then.is_some() {
                    self.add(Code::F005, id, || {
                        format!("operand {place} of `{}` is left out or added", op.name)
                    });
                }
                continue;
            };
            let whole = Held::whole(self.original, then);
            let rows = match (place, &whole) {
                (0, _) => Some(part.ranges.clone()),
                (1, Held::Part { rows: Some(rows), .. }) if before.op_type == "MatMul" => {
                    let mut rows = rows.clone();
                    let inner = rows.len().saturating_sub(2);
                    rows[inner] = part.ranges[dims.len() - 1].clone();
                    Some(rows)
                }
                _ => None,
            };
            let expected = rows.map_or(whole, |rows| Held::Part {
                of: then,
                rows: Some(rows),
                spare: None,
            });
            self.expect(id, op, now, &expected);
        }
        if op.attributes != before.attributes {
            self.add(Code::F006, id, || {
                format!("the attributes of `{}` are not those of `{}`", op.name, before.name)
            });
        }
        if self.tiled.tensors[result].ty != self.original.tensors[was].ty {
            self.add(Code::F002, id, || {
                format!("`{}` has another type than the whole", self.tiled.tensors[result].name)
            });
        }
        let held = Held::Sum {
            op: before_id,
            rows: part.ranges.clone(),
        };
        self.values.set(result, held);
    }

    /// Sums over rows put together.
    pub(super) fn combined(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let mut of: Option<OpId> = None;
        let mut boxes: Vec<Vec<Rows>> = Vec::new();
        for operand in op.inputs.iter().copied().flatten() {
            match self.values.get(operand) {
                Some(Held::Sum { op: before, rows }) if of.is_none_or(|of| of == *before) => {
                    of = Some(*before);
                    boxes.push(rows.clone());
                }
                Some(other) => {
                    let other = other.shown(self.original);
                    self.add(Code::F014, id, || format!("`{}` puts {other} together", op.name));
                    return;
                }
                None => return,
            }
        }
        let Some(before) = of.map(|of| &self.original.ops[of]) else {
            self.add(Code::F014, id, || format!("`{}` puts nothing together", op.name));
            return;
        };
        let data = before.inputs.first().copied().flatten();
        let dims = data
            .and_then(|data| self.original.tensors[data].ty.known_shape())
            .unwrap_or_default();
        let axes = self.summed_axes(before).unwrap_or_default();
        let counts = boxes
            .iter()
            .map(|rows| axes.iter().map(|&axis| rows[axis].end - rows[axis].start).product());
        let is_weighted = match op.op_type.as_str() {
            "CombineMeans" => has_counts(op, counts),
            _ => op.attributes.is_empty(),
        };
        let whole: Vec<Rows> = dims.iter().map(|&dim| 0..dim).collect();
        if combined_by(before) != Some(&*op.op_type) || !is_weighted || joined(&boxes) != Some(whole) {
            self.add(Code::F014, id, || {
                format!(
                    "what `{}` puts together is not all that `{}` sums up, or not in its way",
                    op.name, before.name
                )
            });
        }
        let Some(was) = before.results().next() else { return };
        if part.is_sum || op.effects != Effects::Pure {
            self.add(Code::F014, id, || format!("`{}` states {part}", op.name));
        }
        let held = Held::whole(self.original, was);
        self.define(id, op, result, part, held, Code::F014);
    }
}
