//! Normalizations in two passes: statistics of an operand, numbers for each channel that follow from them, and what is multiplied and added to.

use remat_ir::{Attribute, ElementType, Op, OpId, Part, TensorId};
use remat_verify::Code;

use super::Checker;
use super::pattern::{is_averaged, is_fixed_but_images, normalization};
use super::softmax::{is_kept_open, kept};
use super::sums::{elements, has_counts, joined};
use super::values::{Held, Numbers, Rows};

impl Checker<'_> {
    /// The statistics of rows of a tensor.
    pub(super) fn moments(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let Some(held) = self.operands_to_combine(id, op) else {
            return;
        };
        let [
            Held::Part {
                of,
                rows: Some(rows),
                spare: None,
            },
        ] = &held[..]
        else {
            self.add(Code::F014, id, || {
                format!("`{}` does not find the statistics of rows of one tensor", op.name)
            });
            return;
        };
        let ty = &self.original.tensors[*of].ty;
        let dims = ty.known_shape().unwrap_or_default();
        let has_channels = rows.len() > 2 && rows[..2].iter().zip(&dims).all(|(rows, &dim)| *rows == (0..dim));
        let is_understood = ty.element().is_some_and(is_averaged) && is_fixed_but_images(ty);
        if !has_channels || !is_understood || !op.attributes.is_empty() {
            self.add(Code::F014, id, || {
                format!(
                    "`{}` needs all channels of all images of its operand, in single or half precision, and images of fixed size",
                    op.name
                )
            });
            return;
        }
        let (of, rows) = (*of, rows.clone());
        self.state(id, op, result, part, Held::Moments { of, rows }, Code::F014);
    }

    /// Statistics of rows put together.
    pub(super) fn combined_statistics(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let Some(held) = self.operands_to_combine(id, op) else {
            return;
        };
        let first = &held[0];
        let mut boxes = Vec::new();
        for held in &held {
            let is_own = match held {
                Held::Moments { .. } => op.op_type == "CombineMoments",
                Held::Exponentials { .. } => op.op_type == "CombineExponentials",
                Held::Best { .. } => op.op_type == "CombineBest",
                Held::Part { .. } | Held::Sum { .. } | Held::Numbers(_) | Held::Integers => false,
            };
            let rows = held.rows().map(<[Rows]>::to_vec).filter(|_| is_own);
            match rows.filter(|rows| first.of_rows(rows.clone()) == *held) {
                Some(rows) => boxes.push(rows),
                None => {
                    let other = held.shown(self.original);
                    self.add(Code::F014, id, || format!("`{}` cannot put {other} together", op.name));
                    return;
                }
            }
        }
        let Some(rows) = joined(&boxes) else {
            self.add(Code::F014, id, || {
                format!(
                    "the rows of the statistics that `{}` puts together do not abut",
                    op.name
                )
            });
            return;
        };
        let is_weighted = match first {
            Held::Moments { .. } => has_counts(op, boxes.iter().map(|rows| elements(&rows[2..]))),
            Held::Best { ranking, .. } => ranking.is_stated(op, 0),
            _ => op.attributes.is_empty(),
        };
        if !is_weighted {
            let ways = match first {
                Held::Best { .. } => "ranks the best of parts in another way than these",
                _ => "weighs statistics by other numbers than their elements",
            };
            self.add(Code::F014, id, || format!("`{}` {ways}", op.name));
        }
        self.state(id, op, result, part, first.of_rows(rows), Code::F014);
    }

    /// What channels are multiplied by and what is added, made of statistics.
    pub(super) fn normalizer(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let mut numbers = [None; 4];
        for (place, operand) in op.inputs.iter().enumerate().skip(1) {
            let Some(operand) = *operand else { continue };
            let Some(held) = self.values.get(operand) else { return };
            let whole = match held {
                Held::Part { of, .. } if *held == Held::whole(self.original, *of) => Some(*of),
                _ => None,
            };
            let (Some(number), Some(of)) = (numbers.get_mut(place - 1), whole) else {
                let held = held.shown(self.original);
                self.add(Code::F015, id, || {
                    format!("operand {place} of `{}` is {held}, which is no number of it", op.name)
                });
                return;
            };
            *number = Some(of);
        }
        let Some(moments) = op.inputs.first().copied().flatten() else {
            self.add(Code::F015, id, || format!("`{}` has no statistics", op.name));
            return;
        };
        let Some(moments) = self.values.get(moments).cloned() else {
            return;
        };
        let (of, dims) = match &moments {
            Held::Moments { of, .. } => (*of, self.original.tensors[*of].ty.known_shape().unwrap_or_default()),
            other => {
                let other = other.shown(self.original);
                self.add(Code::F015, id, || {
                    format!("`{}` needs statistics, not {other}", op.name)
                });
                return;
            }
        };
        let rows: Vec<Rows> = dims.iter().map(|&dim| 0..dim).collect();
        let count = elements(rows.get(2..).unwrap_or_default());
        if moments != (Held::Moments { of, rows }) {
            let moments = moments.shown(self.original);
            self.add(Code::F015, id, || {
                format!("`{}` has {moments}, which are not those of all rows", op.name)
            });
        }
        let integer = |name: &str| op.attributes.get(name).and_then(Attribute::as_int);
        let groups = integer("groups").and_then(|groups| u64::try_from(groups).ok());
        let epsilon = match op.attributes.get("epsilon") {
            Some(Attribute::Float(epsilon)) => Some(epsilon.to_bits()),
            _ => None,
        };
        let (3, Some((groups, epsilon))) = (op.attributes.len(), groups.zip(epsilon)) else {
            self.add(Code::F015, id, || {
                format!("`{}` states other things than `count`, `groups` and `epsilon`", op.name)
            });
            return;
        };
        if integer("count").is_none() || integer("count") != count {
            self.add(Code::F015, id, || {
                format!("`count` of `{}` is not the number of elements of a channel", op.name)
            });
        }
        let held = Held::Numbers(Numbers {
            of,
            channels: [0, 1].map(|axis| 0..dims.get(axis).copied().unwrap_or(0)),
            groups,
            epsilon,
            numbers,
        });
        self.state(id, op, result, part, held, Code::F015);
    }

    /// Rows of the result of a normalization.
    pub(super) fn normalized(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let [Some(data), Some(numbers), ref beside @ ..] = op.inputs[..] else {
            self.add(Code::F015, id, || {
                format!("`{}` needs rows, and numbers for their channels", op.name)
            });
            return;
        };
        let (Some(data), Some(numbers)) = (self.values.get(data).cloned(), self.values.get(numbers).cloned()) else {
            return;
        };
        let of = self.tensors.get(part.of.as_str()).copied();
        let Some((of, (norm, of_elements))) = of.and_then(|of| Some((of, normalization(self.original, of)?))) else {
            self.add(Code::F004, id, || {
                format!("`{}` is not the result of a normalization over an image", part.of)
            });
            return;
        };
        if part.is_sum || part.spare.is_some() || part.ranges.len() < 2 || !op.attributes.is_empty() {
            self.add(Code::F002, id, || format!("`{}` cannot compute {part}", op.name));
            return;
        }
        let rows = Held::Part {
            of: norm.of,
            rows: Some(part.ranges.clone()),
            spare: None,
        };
        if data != rows {
            let (data, rows) = (data.shown(self.original), rows.shown(self.original));
            self.add(Code::F005, id, || {
                format!("operand 0 of `{}` holds {data}, not {rows}", op.name)
            });
        }
        let of_elements = of_elements.into_iter().flatten().collect::<Vec<_>>();
        if beside.len() != of_elements.len() || beside.contains(&None) {
            self.add(Code::F005, id, || {
                format!("`{}` has not {} numbers for each element", op.name, of_elements.len())
            });
            return;
        }
        for (&now, number) in beside.iter().flatten().zip(of_elements) {
            let dims = self.original.tensors[number].ty.known_shape().unwrap_or_default();
            let first = part.ranges.len().saturating_sub(dims.len());
            let expected = Held::Part {
                of: number,
                rows: Some(part.ranges[first..].to_vec()),
                spare: None,
            };
            self.expect(id, op, now, &expected);
        }
        let own = Held::Numbers(Numbers {
            channels: [part.ranges[0].clone(), part.ranges[1].clone()],
            ..norm
        });
        if numbers != own {
            let (numbers, own) = (numbers.shown(self.original), own.shown(self.original));
            self.add(Code::F015, id, || {
                format!("`{}` normalizes by {numbers}, {part} needs {own}", op.name)
            });
        }
        let held = Held::Part {
            of,
            rows: Some(part.ranges.clone()),
            spare: None,
        };
        self.define(id, op, result, part, held, Code::F002);
    }

    /// Notes what statistics, or the numbers that follow, are; that, and their type, must be stated.
    pub(super) fn state(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part, held: Held, code: Code) {
        let (of, rows) = match &held {
            Held::Moments { of, rows } | Held::Exponentials { of, rows, .. } | Held::Best { of, rows, .. } => {
                (*of, rows.clone())
            }
            Held::Numbers(numbers) => {
                let dims = self.original.tensors[numbers.of].ty.known_shape().unwrap_or_default();
                let others = dims.iter().skip(2).map(|&dim| 0..dim);
                (numbers.of, numbers.channels.iter().cloned().chain(others).collect())
            }
            Held::Part { .. } | Held::Sum { .. } | Held::Integers => return,
        };
        let (element, shown) = match &held {
            Held::Best { .. } => (ElementType::Int64, "with places"),
            _ => (ElementType::Float32, "in single precision"),
        };
        let dims = match &held {
            Held::Best { ranking, .. } => Some(ranking.kept(&rows)),
            Held::Exponentials { of, weighed, axis, .. } => {
                let dims = |tensor: TensorId| self.original.tensors[tensor].ty.known_shape().unwrap_or_default();
                kept(&dims(*of), weighed.map(dims).as_deref(), *axis)
            }
            _ => {
                let channels = rows.iter().take(2).map(|rows| rows.end - rows.start);
                Some(channels.chain([1, 2]).collect())
            }
        };
        let was = |tensor: TensorId| &self.original.tensors[tensor].ty;
        let is_open = |at: usize| match &held {
            Held::Exponentials { axis, weighed, .. } => is_kept_open(was(of), weighed.map(was), *axis, at),
            Held::Best { ranking, .. } => at != ranking.axis && was(of).is_free(at),
            _ => at == 0 && was(of).is_free(0),
        };
        self.leaves_open(id, op, result, is_open);
        self.cuts_nothing_open(id, op, of, &rows);
        let ty = &self.tiled.tensors[result].ty;
        let stated = Part {
            of: self.original.tensors[of].name.clone(),
            ranges: rows,
            spare: None,
            is_sum: true,
        };
        if *part != stated {
            let held = held.shown(self.original);
            self.add(code, id, || format!("`{}` states {part}, it computes {held}", op.name));
        }
        if ty.element() != Some(element) || dims.is_none() || ty.known_shape() != dims {
            let name = &self.tiled.tensors[result].name;
            self.add(Code::F002, id, || {
                format!("`{name}` is {ty}, not what is kept of each channel or row {shown}")
            });
        }
        self.values.set(result, held);
    }
}
