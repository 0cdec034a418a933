//! Parts of tensors, and tensors of parts.
//!
//! Source: the operator definitions in the ONNX specification.

use remat_formula::Formula;

use super::call::{Call, number};
use super::table::{Shape, Table};
use crate::values::axis as place_of;

/// An end from here on means the end of the axis: exporters write one of the largest integers of 32 or 64 bits.
const ALL: i64 = i32::MAX as i64;

/// `Slice`, whose bounds are operands from version 10 on.
pub(super) fn slice(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let mut shape = call.shape(0, table)?;
    let is_new = call.version >= 10;
    let list = |operand: usize, name: &str| {
        let stated = || {
            Some(
                call.list(name)?
                    .iter()
                    .map(|&value| Some(number(value)))
                    .collect::<Shape>(),
            )
        };
        if is_new {
            call.integers(operand, table)
        } else {
            stated()
        }
    };
    let has = |operand: usize, name: &str| {
        if is_new {
            call.has(operand)
        } else {
            call.list(name).is_some()
        }
    };
    let (starts, ends) = (list(1, "starts"), list(2, "ends"));
    let count = starts.as_ref().or(ends.as_ref()).map(Vec::len)?;
    let numbers = |list: Shape| {
        list.iter()
            .map(|value| value.as_ref()?.as_constant())
            .collect::<Option<Vec<_>>>()
    };
    let axes = if has(3, "axes") {
        call.places(&numbers(list(3, "axes")?)?, shape.len())?
    } else {
        (0..count).collect()
    };
    let steps = if has(4, "steps") && is_new {
        list(4, "steps")?
    } else {
        vec![Some(number(1)); count]
    };
    let at = |list: &Option<Shape>, place: usize| list.as_ref()?.get(place)?.clone();
    let mut found = Vec::new();
    for (place, &axis) in axes.iter().enumerate() {
        let step = steps.get(place).and_then(|step| step.as_ref()?.as_constant());
        let dim = shape.get(axis)?.clone();
        let length = || rows(&dim?, &at(&starts, place)?, &at(&ends, place)?, step?, table);
        found.push((axis, length()));
    }
    for (axis, length) in found {
        shape[axis] = length;
    }
    Some(shape)
}

/// How many rows there are from one to the next, of all.
fn rows(dim: &Formula, start: &Formula, end: &Formula, step: i64, table: &mut Table) -> Option<Formula> {
    let variables = &mut table.variables;
    if step <= 0 {
        // Backwards: all of it, or nothing of which this is said here.
        let is_all = start.as_constant().is_some_and(|start| start == -1 || start >= ALL)
            && end.as_constant().is_some_and(|end| end <= -ALL);
        let by = u32::try_from(step.unsigned_abs()).ok()?;
        return is_all.then(|| variables.ceil(dim, by))?;
    }
    let mut place = |bound: &Formula| {
        if bound.as_constant().is_some_and(|bound| bound >= ALL) {
            return Some(dim.clone());
        }
        if bound.as_constant().is_some_and(|bound| bound <= -ALL) {
            return Some(number(0));
        }
        let (least, most) = variables.bounds(bound);
        if least >= 0 {
            variables.min(bound, dim)
        } else if most < 0 {
            variables.max(&dim.plus(bound)?, &number(0))
        } else {
            None
        }
    };
    let (start, end) = (place(start)?, place(end)?);
    let length = variables.max(&end.minus(&start)?, &number(0))?;
    variables.ceil(&length, u32::try_from(step).ok()?)
}

/// `Split`: by sizes, or in equal parts.
pub(super) fn split(call: &Call<'_>, table: &mut Table) -> Option<Vec<Shape>> {
    let shape = call.shape(0, table)?;
    let axis = place_of(call.int("axis", 0), shape.len())?;
    let lengths: Shape = if let Some(sizes) = call.list("split") {
        sizes.iter().map(|&size| Some(number(size))).collect()
    } else if call.has(1) {
        call.integers(1, table)?
    } else {
        let dim = shape[axis].as_ref()?;
        let count = u32::try_from(call.results).ok()?;
        let length = table.variables.ceil(dim, count)?;
        let others = length.times(&number(i64::from(count) - 1))?;
        let last = if call.version >= 18 {
            dim.minus(&others)?
        } else {
            length.clone()
        };
        let mut lengths = vec![Some(length); call.results];
        *lengths.last_mut()? = Some(last);
        lengths
    };
    let part = |length| {
        let mut part = shape.clone();
        part[axis] = length;
        part
    };
    Some(lengths.into_iter().map(part).collect())
}

/// `Pad`: rows before and after, on all axes or on those that are named.
pub(super) fn pad(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let mut shape = call.shape(0, table)?;
    let axes = if call.has(3) {
        call.places(&call.numbers(3, table)?, shape.len())?
    } else {
        (0..shape.len()).collect()
    };
    let pads: Shape = match call.list("pads").or_else(|| call.list("paddings")) {
        Some(pads) => pads.iter().map(|&pad| Some(number(pad))).collect(),
        None => call.integers(1, table)?,
    };
    if pads.len() != axes.len() * 2 {
        return None;
    }
    let padded = |dim: &Option<Formula>, [before, after]: [&Option<Formula>; 2]| {
        dim.as_ref()?.plus(before.as_ref()?)?.plus(after.as_ref()?)
    };
    for (place, &axis) in axes.iter().enumerate() {
        shape[axis] = padded(&shape[axis], [&pads[place], &pads[axes.len() + place]]);
    }
    Some(shape)
}

/// `Range`: the numbers from one to the next.
pub(super) fn range(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let mut bound = [0, 1, 2].map(|operand| match call.integers(operand, table)?.as_slice() {
        [element] => element.clone(),
        _ => None,
    });
    let [start, limit, step] = bound.each_mut().map(Option::take);
    let length = || {
        let (start, limit, step) = (start?, limit?, step?.as_constant()?);
        let by = u32::try_from(step.unsigned_abs()).ok()?;
        let distance = if step > 0 {
            limit.minus(&start)?
        } else {
            start.minus(&limit)?
        };
        let distance = table.variables.max(&distance, &number(0))?;
        table.variables.ceil(&distance, by)
    };
    Some(vec![length()])
}

/// `Concat`: on all other axes the operands are equal.
pub(super) fn concat(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let shapes: Vec<Shape> = (0..call.inputs.len())
        .map(|operand| call.shape(operand, table))
        .collect::<Option<_>>()?;
    let rank = shapes.first()?.len();
    let axis = place_of(call.int("axis", 0), rank).filter(|_| shapes.iter().all(|shape| shape.len() == rank))?;
    let extent = |place: usize| {
        let mut extents = shapes.iter().map(|shape| shape[place].as_ref());
        if place == axis {
            return extents.try_fold(Formula::default(), |sum, extent| sum.plus(extent?));
        }
        let length = |extent: &&Formula| (extent.terms().count(), extent.to_string());
        extents.flatten().min_by_key(length).cloned()
    };
    Some((0..rank).map(extent).collect())
}

/// `TopK`: so many along an axis.
pub(super) fn top(call: &Call<'_>, table: &mut Table) -> Option<Vec<Shape>> {
    let mut shape = call.shape(0, table)?;
    let axis = place_of(call.int("axis", -1), shape.len())?;
    let [count] = call.integers(1, table)?.try_into().ok()?;
    shape[axis] = count;
    Some(vec![shape; call.results])
}
