//! A softmax in two passes, and what it weighs in one: maxima and sums of exponentials along an axis, and what is divided by these.

use remat_ir::{Attribute, Dim, Graph, Op, OpId, Part, TensorId, ValueType};
use remat_verify::Code;

use super::Checker;
use super::pattern::{dims, is_averaged, maker, operand};
use super::site::axis;
use super::values::{Held, Rows};

/// A softmax of the original along one axis.
struct Softmax {
    of: TensorId,
    axis: usize,
    is_logarithm: bool,
}

/// The softmax whose result a tensor is.
fn softmax(graph: &Graph, result: TensorId) -> Option<Softmax> {
    let op = maker(graph, result)?;
    let is_softmax = op.domain.is_empty() && matches!(&*op.op_type, "Softmax" | "LogSoftmax");
    let &[Some(of)] = op.inputs.as_slice() else {
        return None;
    };
    let rank = dims(graph, of)?.len();
    let int = |name: &str, default: i64| op.attributes.get(name).map_or(Some(default), Attribute::as_int);
    let is_early = int("flattens", 0)? != 0;
    let along = axis(int("axis", if is_early && rank > 1 { 1 } else { -1 })?, rank).ok()?;
    let is_understood = is_softmax
        && op.results().count() == 1
        && dims(graph, result) == dims(graph, of)
        && (!is_early || along + 1 == rank);
    is_understood.then_some(Softmax {
        of,
        axis: along,
        is_logarithm: op.op_type == "LogSoftmax",
    })
}

/// The softmax and the matrices whose product a tensor is.
fn weighed(graph: &Graph, result: TensorId) -> Option<(Softmax, TensorId)> {
    let op = maker(graph, result)?;
    let is_product = matches!(
        (&*op.domain, &*op.op_type),
        ("", "MatMul") | ("com.microsoft", "FusedMatMul")
    );
    let found = softmax(graph, operand(op, 0)?).filter(|found| !found.is_logarithm)?;
    let is_understood = is_product && op.inputs.len() == 2 && op.attributes.is_empty();
    Some((found, operand(op, 1)?)).filter(|_| is_understood)
}

/// The dimensions of what is kept of rows of a tensor along an axis: two numbers instead of each, or two more columns than the product has.
pub(super) fn kept(of: &[u64], weighed: Option<&[u64]>, axis: usize) -> Option<Vec<u64>> {
    let Some(weighed) = weighed else {
        let mut kept = of.to_vec();
        *kept.get_mut(axis)? = 1;
        kept.push(2);
        return Some(kept);
    };
    let (stacks, stacks_of_weighed) = (of.split_last_chunk::<2>()?, weighed.split_last_chunk::<2>()?);
    let rank = of.len().max(weighed.len()) - 2;
    let dim = |dims: &[u64], at: usize| (at + dims.len()).checked_sub(rank).map_or(1, |own| dims[own]);
    let stack = (0..rank).map(|at| match [stacks.0, stacks_of_weighed.0].map(|dims| dim(dims, at)) {
        [1, other] => Some(other),
        [one, other] => (other == 1 || one == other).then_some(one),
    });
    let columns = stacks_of_weighed.1[1].checked_add(2)?;
    stack.chain([Some(stacks.1[0]), Some(columns)]).collect()
}

/// Whether an axis of what is kept is left open.
pub(super) fn is_kept_open(of: &ValueType, weighed: Option<&ValueType>, axis: usize, at: usize) -> bool {
    let Some(weighed) = weighed else {
        return at != axis && of.is_free(at);
    };
    // Rows are those of the softmax, stacks of either; the columns are no axis of the softmax.
    let rank = of.dims().len().max(weighed.dims().len());
    let is_open = |ty: &ValueType| {
        (at + ty.dims().len())
            .checked_sub(rank)
            .is_some_and(|own| ty.is_free(own))
    };
    at + 1 < rank && is_open(of) || at + 2 < rank && is_open(weighed)
}

/// Whether stacks of matrices have the same sizes, or one for all, at every size of what is left open.
fn are_stacked(of: &ValueType, weighed: &ValueType) -> bool {
    let stacks = of.dims().iter().rev().zip(weighed.dims().iter().rev()).skip(2);
    let mut open = stacks.filter(|(left, right)| left.is_free() || right.is_free());
    open.all(|(left, right)| match left {
        Dim::Free { name: Some(_), .. } if left == right => true,
        _ => [left, right].contains(&&Dim::Known(1)),
    })
}

impl Checker<'_> {
    /// Maxima and sums of exponentials along an axis, and what they weigh where there are matrices, too.
    pub(super) fn exponentials(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let Some(held) = self.operands_to_combine(id, op) else {
            return;
        };
        let found = match (&held[..], &*op.op_type) {
            (
                [
                    Held::Part {
                        of,
                        rows: Some(rows),
                        spare: None,
                    },
                ],
                "Exponentials",
            ) => Some((*of, rows.clone(), None)),
            (
                [
                    Held::Part {
                        of,
                        rows: Some(rows),
                        spare: None,
                    },
                    Held::Part {
                        of: weighed,
                        rows: Some(own),
                        spare: None,
                    },
                ],
                "Weigh",
            ) => Some((*of, rows.clone(), Some((*weighed, own.clone())))),
            _ => None,
        };
        let axis = stated_axis(op);
        let Some(((of, rows, weighed), axis)) = found.zip(axis).filter(|_| op.attributes.len() == 1) else {
            self.add(Code::F014, id, || {
                format!(
                    "`{}` does not find exponentials along an axis of rows of a tensor",
                    op.name
                )
            });
            return;
        };
        let type_of = |tensor: TensorId| &self.original.tensors[tensor].ty;
        let is_float = |tensor: TensorId| type_of(tensor).element().is_some_and(is_averaged);
        let is_whole_but = |tensor: TensorId, rows: &[Rows], axis: usize| {
            let dims = dims(self.original, tensor).unwrap_or_default();
            let mut others = (0..dims.len()).filter(|&at| at != axis);
            axis < dims.len() && rows.len() == dims.len() && others.all(|at| rows[at] == (0..dims[at]))
        };
        let weighs = weighed.as_ref().is_none_or(|(weighed, own)| {
            let inner = own.len().checked_sub(2);
            let is_inner = |inner: usize| is_whole_but(*weighed, own, inner) && Some(&own[inner]) == rows.get(axis);
            let ty = type_of(*weighed);
            let is_fixed = !ty.dims().iter().rev().take(2).any(Dim::is_free) && are_stacked(type_of(of), ty);
            axis > 0 && axis + 1 == rows.len() && is_float(*weighed) && is_fixed && inner.is_some_and(is_inner)
        });
        if !is_float(of) || type_of(of).is_free(axis) || !is_whole_but(of, &rows, axis) || !weighs {
            self.add(Code::F014, id, || {
                format!(
                    "`{}` needs rows of one axis of its operand, the same of what it weighs, in single or half precision, and an axis of fixed size",
                    op.name
                )
            });
            return;
        }
        let weighed = weighed.map(|(weighed, _)| weighed);
        let held = Held::Exponentials {
            of,
            weighed,
            axis,
            rows,
        };
        self.state(id, op, result, part, held, Code::F014);
    }

    /// Rows of a softmax.
    pub(super) fn softened(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let [Some(data), Some(kept)] = op.inputs[..] else {
            self.add(Code::F015, id, || {
                format!("`{}` needs rows, and their exponentials", op.name)
            });
            return;
        };
        let (Some(data), Some(kept)) = (self.values.get(data).cloned(), self.values.get(kept).cloned()) else {
            return;
        };
        let of = self.tensors.get(part.of.as_str()).copied();
        let Some((of, found)) = of.and_then(|of| Some((of, softmax(self.original, of)?))) else {
            self.add(Code::F004, id, || {
                format!("`{}` is not the result of a softmax", part.of)
            });
            return;
        };
        let dims = dims(self.original, of).unwrap_or_default();
        let is_whole_but_axis = part.ranges.len() == dims.len()
            && (0..dims.len()).all(|at| at == found.axis || part.ranges[at] == (0..dims[at]));
        let is_stated = op.attributes.len() == 2
            && stated_axis(op) == Some(found.axis)
            && op.attributes.get("log") == Some(&Attribute::Int(i64::from(found.is_logarithm)));
        if part.is_sum || part.spare.is_some() || !is_whole_but_axis || !is_stated {
            self.add(Code::F002, id, || format!("`{}` cannot compute {part}", op.name));
            return;
        }
        let rows = |rows: Vec<Rows>| Held::Part {
            of: found.of,
            rows: Some(rows),
            spare: None,
        };
        let own = rows(part.ranges.clone());
        if data != own {
            let (data, own) = (data.shown(self.original), own.shown(self.original));
            self.add(Code::F005, id, || {
                format!("operand 0 of `{}` holds {data}, not {own}", op.name)
            });
        }
        self.expect_exponentials(id, op, &kept, (&found, None));
        let held = Held::Part {
            of,
            rows: Some(part.ranges.clone()),
            spare: None,
        };
        self.define(id, op, result, part, held, Code::F002);
    }

    /// The product of a softmax and matrices.
    pub(super) fn weighed(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let kept = match op.inputs[..] {
            [Some(kept)] if op.attributes.is_empty() => kept,
            _ => {
                self.add(Code::F015, id, || format!("`{}` needs exponentials alone", op.name));
                return;
            }
        };
        let Some(kept) = self.values.get(kept).cloned() else {
            return;
        };
        let of = self.tensors.get(part.of.as_str()).copied();
        let Some((of, (found, matrices))) = of.and_then(|of| Some((of, weighed(self.original, of)?))) else {
            self.add(Code::F004, id, || {
                format!("`{}` is not the product of a softmax and matrices", part.of)
            });
            return;
        };
        self.expect_exponentials(id, op, &kept, (&found, Some(matrices)));
        self.define(id, op, result, part, Held::whole(self.original, of), Code::F002);
    }

    /// Reports what is read instead of the exponentials of all that a softmax reads.
    fn expect_exponentials(&mut self, id: OpId, op: &Op, kept: &Held, of: (&Softmax, Option<TensorId>)) {
        let (found, weighed) = of;
        let dims = dims(self.original, found.of).unwrap_or_default();
        let own = Held::Exponentials {
            of: found.of,
            weighed,
            axis: found.axis,
            rows: dims.into_iter().map(|dim| 0..dim).collect(),
        };
        if *kept != own {
            let (kept, own) = (kept.shown(self.original), own.shown(self.original));
            self.add(Code::F015, id, || {
                format!("`{}` divides by {kept}, not by {own}", op.name)
            });
        }
    }
}

fn stated_axis(op: &Op) -> Option<usize> {
    let axis = op.attributes.get("axis").and_then(Attribute::as_int)?;
    usize::try_from(axis).ok()
}
