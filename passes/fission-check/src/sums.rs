//! Sums over the axis that tiles cut: what an op sums up over rows of its operand, and what puts such sums together.

use remat_ir::{Attribute, ElementType, Op, OpId, Part, TensorId, ValueType};
use remat_verify::Code;

use super::Checker;
use super::site::{NoWay, axis};
use super::values::{Held, Rows};

/// How the sums of an op over elements of a type are put together: by which op.
fn combined_by(op: &Op, element: ElementType) -> Option<&'static str> {
    let is_float = matches!(
        element,
        ElementType::Float16 | ElementType::Bfloat16 | ElementType::Float32 | ElementType::Float64
    );
    Some(match (&*op.domain, &*op.op_type) {
        ("", "ReduceSum" | "ReduceL1" | "ReduceSumSquare" | "MatMul") | ("com.microsoft", "FusedMatMul")
            if is_float =>
        {
            "Sum"
        }
        ("", "ReduceMax" | "GlobalMaxPool") => "Max",
        ("", "ReduceMin") => "Min",
        ("", "ReduceMean" | "GlobalAveragePool") if is_float => "CombineMeans",
        _ => return None,
    })
}

/// The axes of the operands of a product over which it sums, where they have so many.
fn inner_axes(op: &Op, [left, right]: [usize; 2]) -> Result<[usize; 2], NoWay> {
    let is_set = |name: &str| match op.attributes.get(name) {
        None | Some(Attribute::Int(0)) => Ok(false),
        Some(Attribute::Int(_)) => Ok(true),
        Some(_) => Err(format!("`{name}` is not understood")),
    };
    if !matches!(&*op.op_type, "MatMul" | "FusedMatMul") {
        return Err("it is no product".to_owned());
    }
    if is_set("transBatchA")? || is_set("transBatchB")? {
        return Err("its stacks are turned".to_owned());
    }
    // A vector has one axis, whatever it is told.
    let at = |rank: usize, from_end: usize| rank.saturating_sub(if rank < 2 { 1 } else { from_end });
    Ok([
        at(left, if is_set("transA")? { 2 } else { 1 }),
        at(right, if is_set("transB")? { 1 } else { 2 }),
    ])
}

/// What an op of the original sums up.
struct Summing {
    /// Dimensions of operand 0.
    dims: Vec<u64>,
    /// The axes of it that are summed over, each once.
    axes: Vec<usize>,
    /// What puts sums over parts together.
    combined_by: &'static str,
}

impl Checker<'_> {
    /// What an op of the original sums up, if sums over parts of it may be put together.
    fn summing(&self, op: &Op) -> Result<Summing, NoWay> {
        let type_of = |place: usize| {
            let operand = op.inputs.get(place).copied().flatten();
            operand.map(|operand| &self.original.tensors[operand].ty)
        };
        let unknown = || "its shapes are not understood".to_owned();
        let ty = type_of(0).ok_or_else(unknown)?;
        let dims = ty.known_shape().ok_or_else(unknown)?;
        let combined_by = ty.element().and_then(|element| combined_by(op, element));
        let combined_by = combined_by.ok_or("sums of its kind are not put together")?;
        let rank = dims.len();
        let open = || "a size that it sums over is left open".to_owned();
        let mut axes = match op.op_type.as_str() {
            "MatMul" | "FusedMatMul" => {
                let right = type_of(1).and_then(ValueType::known_shape).ok_or_else(unknown)?;
                let [own, inner] = inner_axes(op, [rank, right.len()])?;
                if dims.get(own).is_none() || right.get(inner) != dims.get(own) {
                    return Err(unknown());
                }
                if type_of(1).is_some_and(|ty| ty.is_free(inner)) {
                    return Err(open());
                }
                vec![own]
            }
            "GlobalAveragePool" | "GlobalMaxPool" => match op.attributes.get("channels_last") {
                None | Some(Attribute::Int(0)) => (2..rank).collect(),
                Some(_) => return Err("its channels stand last".to_owned()),
            },
            _ => self.reduced(op, rank)?,
        };
        if axes.iter().any(|&axis| ty.is_free(axis)) {
            return Err(open());
        }
        axes.sort_unstable();
        axes.dedup();
        Ok(Summing {
            dims,
            axes,
            combined_by,
        })
    }

    /// The axes that a reduction reduces.
    fn reduced(&self, op: &Op, rank: usize) -> Result<Vec<usize>, NoWay> {
        let operand = op.inputs.get(1).copied().flatten();
        let stated = match (op.attributes.get("axes"), operand) {
            (Some(axes), _) => axes.as_ints(),
            (None, Some(operand)) => self.original.values.get(&operand).map(Vec::as_slice),
            (None, None) => Some(&[][..]),
        };
        let stated = stated.ok_or("its axes are not known")?;
        if !stated.is_empty() {
            return stated.iter().map(|&stated| axis(stated, rank)).collect();
        }
        match op.attributes.get("noop_with_empty_axes") {
            None | Some(Attribute::Int(0)) => Ok((0..rank).collect()),
            Some(_) => Err("it reduces nothing".to_owned()),
        }
    }

    /// An op that sums up over rows of operand 0 of what it comes from.
    pub(super) fn summed(&mut self, id: OpId, op: &Op, before_id: OpId, part: &Part) {
        let before = &self.original.ops[before_id];
        let (&[Some(result)], &[Some(was)], Some(&Some(data))) =
            (&op.outputs[..], &before.outputs[..], before.inputs.first())
        else {
            self.add(Code::F002, id, || format!("`{}` sums nothing up", op.name));
            return;
        };
        let summing = match self.summing(before) {
            Ok(summing) => summing,
            Err(why) => {
                self.add(Code::F004, id, || {
                    format!("`{}` ({}) cannot sum up {part}: {why}", op.name, op.op_type)
                });
                return;
            }
        };
        let dims = &summing.dims;
        let is_inside = part.of == self.original.tensors[data].name
            && part.spare.is_none()
            && part.ranges.len() == dims.len()
            && part.ranges.iter().zip(dims).all(|(rows, &dim)| rows.end <= dim);
        if !is_inside {
            self.add(Code::F002, id, || format!("`{}` cannot sum up {part}", op.name));
            return;
        }
        let is_cut = |axis: &usize| part.ranges[*axis] != (0..dims[*axis]);
        if let Some(axis) = (0..dims.len()).find(|axis| is_cut(axis) && !summing.axes.contains(axis)) {
            self.add(Code::F004, id, || {
                format!(
                    "`{}` ({}) cannot sum up {part}: it does not sum over axis {axis}",
                    op.name, op.op_type
                )
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
            let mut expected = Held::whole(self.original, then);
            if let Held::Part { rows: Some(rows), .. } = &mut expected {
                if place == 0 {
                    rows.clone_from(&part.ranges);
                } else if place == 1
                    && let Ok([own, inner]) = inner_axes(before, [dims.len(), rows.len()])
                    && let Some((now, summed)) = rows.get_mut(inner).zip(part.ranges.get(own))
                {
                    now.clone_from(summed);
                }
            }
            self.expect(id, op, now, &expected);
        }
        if op.attributes != before.attributes {
            self.add(Code::F006, id, || {
                format!("the attributes of `{}` are not those of `{}`", op.name, before.name)
            });
        }
        self.is_of_type(id, result, was);
        let rows = part.ranges.clone();
        self.values.set(result, Held::Sum { op: before_id, rows });
    }

    /// Sums over rows put together.
    pub(super) fn combined(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let Some(held) = self.operands_to_combine(id, op) else {
            return;
        };
        let mut sum: Option<OpId> = None;
        let mut boxes: Vec<Vec<Rows>> = Vec::new();
        for held in &held {
            match held {
                Held::Sum { op: before, rows } if sum.is_none_or(|sum| sum == *before) => {
                    sum = Some(*before);
                    boxes.push(rows.clone());
                }
                other => {
                    let other = other.shown(self.original);
                    self.add(Code::F014, id, || format!("`{}` cannot put {other} together", op.name));
                    return;
                }
            }
        }
        let before = sum.map(|sum| &self.original.ops[sum]);
        let summing = before.and_then(|before| self.summing(before).ok());
        let was = before.and_then(|before| before.results().next());
        let (Some(before), Some(summing), Some(was)) = (before, summing, was) else {
            self.add(Code::F014, id, || format!("`{}` puts nothing together", op.name));
            return;
        };
        let counts = boxes.iter().map(|rows| {
            let summed: Vec<Rows> = summing.axes.iter().map(|&axis| rows[axis].clone()).collect();
            elements(&summed)
        });
        let is_weighted = match summing.combined_by {
            "CombineMeans" => has_counts(op, counts),
            _ => op.attributes.is_empty(),
        };
        if summing.combined_by != op.op_type {
            self.add(Code::F014, id, || {
                let right = summing.combined_by;
                format!(
                    "`{}` puts sums of `{}` together, which takes `{right}`",
                    op.name, before.name
                )
            });
        } else if !is_weighted {
            self.add(Code::F014, id, || {
                format!(
                    "`{}` weighs sums of `{}` by other numbers than their elements",
                    op.name, before.name
                )
            });
        }
        let over = joined(&boxes);
        let whole: Vec<Rows> = summing.dims.iter().map(|&dim| 0..dim).collect();
        match (sum, over) {
            // Some of the rows: a sum over a part still.
            (Some(sum), Some(rows)) if rows != whole => {
                self.summed_so_far(id, op, (result, was), part, Held::Sum { op: sum, rows });
            }
            (_, over) => {
                if over.is_none() {
                    self.add(Code::F014, id, || {
                        format!(
                            "the rows of the sums that `{}` puts together do not follow each other",
                            op.name
                        )
                    });
                }
                let held = Held::whole(self.original, was);
                self.define(id, op, result, part, held, Code::F014);
            }
        }
    }

    /// A sum over some of the rows, which must state which.
    fn summed_so_far(&mut self, id: OpId, op: &Op, (result, was): (TensorId, TensorId), part: &Part, held: Held) {
        let Held::Sum { op: before, rows } = &held else { return };
        let data = self.original.ops[*before].inputs.first().copied().flatten();
        let stated = data.map(|data| Part {
            of: self.original.tensors[data].name.clone(),
            ranges: rows.clone(),
            spare: None,
            is_sum: true,
        });
        if stated.as_ref() != Some(part) {
            let held = held.shown(self.original);
            self.add(Code::F014, id, || {
                format!("`{}` states {part}, it computes {held}", op.name)
            });
        }
        self.is_of_type(id, result, was);
        // Who reads what is stated to be whole is not reported, too.
        let held = match part.is_sum {
            true => held,
            false => Held::whole(self.original, was),
        };
        self.values.set(result, held);
    }

    /// Whether a sum over rows has the type of the whole sum.
    fn is_of_type(&mut self, id: OpId, result: TensorId, was: TensorId) {
        let (now, then) = (&self.tiled.tensors[result], &self.original.tensors[was]);
        if now.ty != then.ty {
            self.add(Code::F002, id, || {
                format!("`{}` is {}, the whole is {}", now.name, now.ty, then.ty)
            });
        }
    }

    /// What the operands of an op hold, which must all be there; `None` where that is not known.
    pub(super) fn operands_to_combine(&mut self, id: OpId, op: &Op) -> Option<Vec<Held>> {
        if op.inputs.is_empty() || op.inputs.contains(&None) {
            self.add(Code::F014, id, || format!("`{}` lacks an operand", op.name));
            return None;
        }
        let operands = op.inputs.iter().flatten();
        operands.map(|&operand| self.values.get(operand).cloned()).collect()
    }
}

/// The box that boxes make up which follow each other along one axis and agree elsewhere.
pub(super) fn joined(boxes: &[Vec<Rows>]) -> Option<Vec<Rows>> {
    let mut boxes = boxes.iter();
    let mut whole = boxes.next()?.clone();
    let mut along = None;
    for rows in boxes {
        if rows.len() != whole.len() {
            return None;
        }
        let mut differing = (0..whole.len()).filter(|&axis| whole[axis] != rows[axis]);
        let axis = differing.next()?;
        let is_only = differing.next().is_none() && along.is_none_or(|along| along == axis);
        if !is_only || whole[axis].end != rows[axis].start {
            return None;
        }
        along = Some(axis);
        whole[axis].end = rows[axis].end;
    }
    Some(whole)
}

/// The elements of a box, as attributes count them; `None` for more than they can.
pub(super) fn elements(rows: &[Rows]) -> Option<i64> {
    let mut extents = rows.iter().map(|rows| rows.end - rows.start);
    let product = extents.try_fold(1, u64::checked_mul);
    i64::try_from(product?).ok()
}

/// Whether the attribute `counts` has these numbers, and nothing else is stated.
pub(super) fn has_counts(op: &Op, counts: impl Iterator<Item = Option<i64>>) -> bool {
    let stated = op.attributes.get("counts").and_then(Attribute::as_ints);
    let counts: Option<Vec<i64>> = counts.collect();
    op.attributes.len() == 1 && stated.is_some() && stated == counts.as_deref()
}
