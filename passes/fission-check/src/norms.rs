//! Normalizations in two passes: statistics of an operand, numbers for each channel made of them, and what is multiplied and added to.
//!
//! What a normalization computes is read off the original, from its result back.

use remat_ir::{Attribute, ElementType, Graph, Op, OpId, Part, StorageClass, TensorId};
use remat_verify::Code;

use super::Checker;
use super::values::{Held, Numbers, Rows};

/// What normalizations add where they do not say.
const EPSILON: f32 = 1e-5;

impl Checker<'_> {
    /// The statistics of rows of a tensor.
    pub(super) fn moments(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let Some(data) = op.inputs.first().copied().flatten() else {
            self.add(Code::F014, id, || format!("`{}` reads nothing", op.name));
            return;
        };
        let Some(held) = self.values.get(data) else { return };
        let Held::Part {
            of,
            rows: Some(rows),
            spare: None,
        } = held.clone()
        else {
            let held = held.shown(self.original);
            self.add(Code::F014, id, || {
                format!("`{}` finds the statistics of {held}", op.name)
            });
            return;
        };
        let dims = self.original.tensors[of].ty.known_shape().unwrap_or_default();
        let is_image = rows.len() > 2 && rows[..2].iter().zip(&dims).all(|(rows, &dim)| *rows == (0..dim));
        if !is_image || op.inputs.len() != 1 || !op.attributes.is_empty() {
            self.add(Code::F014, id, || {
                format!("`{}` has not all channels of its operand", op.name)
            });
            return;
        }
        self.state(id, op, result, part, Held::Moments { of, rows });
    }

    /// Statistics of rows put together.
    pub(super) fn combined_moments(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let mut parts: Vec<(TensorId, Vec<Rows>)> = Vec::new();
        for operand in op.inputs.iter().copied().flatten() {
            match self.values.get(operand) {
                Some(Held::Moments { of, rows }) => parts.push((*of, rows.clone())),
                Some(other) => {
                    let other = other.shown(self.original);
                    self.add(Code::F014, id, || format!("`{}` puts {other} together", op.name));
                    return;
                }
                None => return,
            }
        }
        let of = parts.first().map(|(of, _)| *of);
        let boxes: Vec<Vec<Rows>> = parts.iter().map(|(_, rows)| rows.clone()).collect();
        let counts = boxes
            .iter()
            .map(|rows| rows[2..].iter().map(|rows| rows.end - rows.start).product());
        let whole = joined(&boxes).filter(|_| parts.iter().all(|(own, _)| Some(*own) == of) && has_counts(op, counts));
        match (of, whole) {
            (Some(of), Some(rows)) => self.state(id, op, result, part, Held::Moments { of, rows }),
            _ => self.add(Code::F014, id, || {
                format!(
                    "what `{}` puts together does not abut, or is weighted by other numbers than its elements",
                    op.name
                )
            }),
        }
    }

    /// What channels are multiplied by and what is added, made of statistics.
    pub(super) fn normalizer(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let mut operands = op.inputs.iter().copied();
        let moments = operands
            .next()
            .flatten()
            .and_then(|moments| self.values.get(moments))
            .cloned();
        let mut numbers = [None; 4];
        for (place, operand) in operands.enumerate() {
            let Some(operand) = operand else { continue };
            let own = match self.values.get(operand) {
                Some(Held::Part { of, .. }) if self.values.get(operand) == Some(&Held::whole(self.original, *of)) => {
                    Some(*of)
                }
                Some(_) => None,
                None => return,
            };
            match (own, numbers.get_mut(place)) {
                (Some(own), Some(number)) => *number = Some(own),
                _ => {
                    self.add(Code::F015, id, || {
                        format!("operand {} of `{}` is not whole", place + 1, op.name)
                    });
                    return;
                }
            }
        }
        let Some(moments) = moments else { return };
        let Held::Moments { of, rows } = &moments else {
            let held = moments.shown(self.original);
            self.add(Code::F015, id, || format!("`{}` makes its numbers of {held}", op.name));
            return;
        };
        let dims = self.original.tensors[*of].ty.known_shape().unwrap_or_default();
        let is_whole = rows.iter().zip(&dims).all(|(rows, &dim)| *rows == (0..dim));
        let whole = |name: &str| {
            op.attributes
                .get(name)
                .and_then(Attribute::as_int)
                .and_then(|value| u64::try_from(value).ok())
        };
        let count: u64 = dims.iter().skip(2).product();
        let epsilon = match op.attributes.get("epsilon") {
            Some(Attribute::Float(epsilon)) => Some(epsilon.to_bits()),
            _ => None,
        };
        let (Some(groups), Some(epsilon), true) = (whole("groups"), epsilon, is_whole && whole("count") == Some(count))
        else {
            self.add(Code::F015, id, || {
                format!(
                    "`{}` has not the statistics of all elements, or counts them wrongly",
                    op.name
                )
            });
            return;
        };
        let held = Held::Numbers(Numbers {
            of: *of,
            channels: [0..dims[0], 0..dims[1]],
            groups,
            epsilon,
            numbers,
        });
        self.state(id, op, result, part, held);
    }

    /// Rows of the result of a normalization.
    pub(super) fn normalized(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let [Some(data), Some(numbers)] = op.inputs[..] else {
            self.add(Code::F015, id, || {
                format!("`{}` has other operands than a normalization", op.name)
            });
            return;
        };
        let (Some(data), Some(numbers)) = (self.values.get(data).cloned(), self.values.get(numbers).cloned()) else {
            return;
        };
        let norm = self
            .tensors
            .get(part.of.as_str())
            .copied()
            .and_then(|of| Some((of, norm(self.original, of)?)));
        let Some((of, norm)) = norm else {
            self.add(Code::F004, id, || {
                format!("`{}` is not the result of a normalization over an image", part.of)
            });
            return;
        };
        let expected = Held::Part {
            of: norm.of,
            rows: Some(part.ranges.clone()),
            spare: None,
        };
        if data != expected {
            let (data, expected) = (data.shown(self.original), expected.shown(self.original));
            self.add(Code::F005, id, || {
                format!("operand 0 of `{}` holds {data}, not {expected}", op.name)
            });
        }
        let wanted = Numbers {
            channels: [0, 1].map(|axis| part.ranges.get(axis).cloned().unwrap_or(0..0)),
            ..norm
        };
        if numbers != Held::Numbers(wanted) || !op.attributes.is_empty() {
            let numbers = numbers.shown(self.original);
            self.add(Code::F015, id, || {
                format!(
                    "`{}` multiplies by and adds {numbers}, which are not those of {part}",
                    op.name
                )
            });
        }
        let held = Held::Part {
            of,
            rows: Some(part.ranges.clone()),
            spare: None,
        };
        let ty = &self.tiled.tensors[result].ty;
        if part.is_sum || part.spare.is_some() || part.dims() != ty.known_shape() {
            self.add(Code::F002, id, || format!("`{}` cannot compute {part}", op.name));
        }
        self.define(id, op, result, part, held, Code::F002);
    }

    /// Notes what two numbers for each channel are, if that is stated.
    fn state(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part, held: Held) {
        let (of, rows) = match &held {
            Held::Moments { of, rows } => (*of, rows.clone()),
            Held::Numbers(numbers) => {
                let dims = self.original.tensors[numbers.of].ty.known_shape().unwrap_or_default();
                (numbers.of, dims.into_iter().map(|dim| 0..dim).collect())
            }
            Held::Part { .. } | Held::Sum { .. } | Held::Integers => return,
        };
        let dims: Vec<u64> = rows
            .iter()
            .take(2)
            .map(|rows| rows.end - rows.start)
            .chain([1, 2])
            .collect();
        let ty = &self.tiled.tensors[result].ty;
        let is_stated =
            part.is_sum && part.spare.is_none() && part.of == self.original.tensors[of].name && part.ranges == rows;
        if !is_stated || ty.element() != Some(ElementType::Float32) || ty.known_shape() != Some(dims) {
            let held = held.shown(self.original);
            self.add(Code::F014, id, || {
                format!("`{}` states {part} of type {ty}, it computes {held}", op.name)
            });
        }
        self.values.set(result, held);
    }
}

/// The box that boxes make up which follow each other along one axis and agree elsewhere.
pub(super) fn joined(boxes: &[Vec<Rows>]) -> Option<Vec<Rows>> {
    let mut boxes = boxes.iter();
    let mut whole = boxes.next()?.clone();
    let mut along = None;
    for rows in boxes {
        let mut others = (0..whole.len()).filter(|&axis| whole[axis] != rows[axis]);
        let axis = others.next()?;
        let is_one = others.next().is_none() && along.is_none_or(|along| along == axis);
        if rows.len() != whole.len() || !is_one || whole[axis].end != rows[axis].start {
            return None;
        }
        along = Some(axis);
        whole[axis].end = rows[axis].end;
    }
    Some(whole)
}

/// Whether the attribute `counts` has these numbers, and nothing else is stated.
pub(super) fn has_counts(op: &Op, counts: impl Iterator<Item = u64>) -> bool {
    let stated = op
        .attributes
        .get("counts")
        .and_then(Attribute::as_ints)
        .unwrap_or_default();
    let counts: Option<Vec<i64>> = counts.map(|count| i64::try_from(count).ok()).collect();
    op.attributes.len() == 1 && counts.as_deref() == Some(stated)
}

/// What the normalization computes whose result is `result`.
fn norm(graph: &Graph, result: TensorId) -> Option<Numbers> {
    let dims = |tensor: TensorId| graph.tensors[tensor].ty.known_shape();
    let maker = |tensor: TensorId| Some(&graph.ops[graph.tensors[tensor].producer?]);
    let operand = |op: &Op, place: usize| op.inputs.get(place).copied().flatten();
    let is = |op: &Op, name: &str| op.domain.is_empty() && op.op_type == name && op.results().count() == 1;
    let image = dims(result)?;
    let (channels, mut at, mut own) = (*image.get(1)?, result, [None; 4]);
    for (place, name) in [(3, "Add"), (2, "Mul")] {
        let op = maker(at)?;
        let (left, right) = (operand(op, 0), operand(op, 1));
        if !is(op, name) || op.inputs.len() != 2 {
            continue;
        }
        let is_number = |tensor: Option<TensorId>| tensor.is_some_and(|tensor| is_by_channel(graph, tensor, &image));
        let (number, rest) = match (is_number(left), is_number(right)) {
            (false, true) => (right, left?),
            (true, false) => (left, right?),
            _ => continue,
        };
        if dims(rest).as_ref() != Some(&image) {
            continue;
        }
        (own[place], at) = (number, rest);
    }
    let mut op = maker(at)?;
    let is_between_shapes = is(op, "Reshape");
    if is_between_shapes {
        op = maker(operand(op, 0)?)?;
    }
    let mut of = operand(op, 0)?;
    let groups = if is(op, "InstanceNormalization") {
        let inner = dims(of)?;
        if is_between_shapes {
            let before = maker(of)?;
            of = operand(before, 0)?;
            if !is(before, "Reshape") || inner.first() != image.first() {
                return None;
            }
        }
        *inner.get(1)?
    } else if is(op, "GroupNormalization") && !is_between_shapes {
        u64::try_from(op.attributes.get("num_groups")?.as_int()?).ok()?
    } else {
        return None;
    };
    (own[0], own[1]) = (Some(operand(op, 1)?), Some(operand(op, 2)?));
    let epsilon = match op.attributes.get("epsilon") {
        Some(Attribute::Float(epsilon)) => *epsilon,
        None => EPSILON,
        Some(_) => return None,
    };
    let fits = |tensor: &Option<TensorId>| {
        let dims = tensor.and_then(dims);
        dims.is_some_and(|dims| dims == [groups] || dims == [channels])
    };
    let is_understood =
        dims(of)? == image && image.len() > 2 && groups > 0 && channels % groups == 0 && own[..2].iter().all(fits);
    is_understood.then_some(Numbers {
        of,
        channels: [0..image[0], 0..channels],
        groups,
        epsilon: epsilon.to_bits(),
        numbers: own,
    })
}

/// Whether a tensor is a constant with an element for each channel, which broadcasts to the image.
fn is_by_channel(graph: &Graph, tensor: TensorId, image: &[u64]) -> bool {
    let dims = graph.tensors[tensor].ty.known_shape().unwrap_or_default();
    let is_constant = graph.storages[graph.tensors[tensor].storage].class == StorageClass::Constant;
    let behind = image.len() - 2;
    let Some(channel) = dims.len().checked_sub(behind + 1) else {
        return false;
    };
    let others = dims.iter().enumerate().filter(|&(axis, _)| axis != channel);
    is_constant && channel <= 1 && dims[channel] == image[1] && others.clone().all(|(_, &dim)| dim == 1)
}
