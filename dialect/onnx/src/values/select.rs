//! Operators that take some of the elements, or put some among others.

use std::cmp::Ordering;

use onnx_runtime_ir::Attribute;
use remat_ir::ElementType;

use super::operands::{Operands, axis};
use super::tensor::{Data, Tensor, count, places, strides};

pub(super) fn slice(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let rank = tensor.rank();
    let starts = operands.integers("starts", 1)??;
    let ends = operands.integers("ends", 2)??;
    let along: Vec<usize> = match operands.integers("axes", 3)? {
        Some(list) => list.iter().map(|&value| axis(value, rank)).collect::<Option<_>>()?,
        None => (0..starts.len()).collect(),
    };
    let steps = operands.integers("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    let twice = (1..along.len()).any(|index| along[..index].contains(&along[index]));
    if twice || ends.len() != starts.len() || along.len() != starts.len() || steps.len() != starts.len() {
        return None;
    }
    let own = strides(&tensor.dims);
    let mut dims = tensor.dims.clone();
    let mut origin = 0_isize;
    let mut moves: Vec<isize> = own.iter().map(|&stride| isize::try_from(stride).unwrap_or(0)).collect();
    for (index, &axis) in along.iter().enumerate() {
        let (extent, step) = (i64::try_from(*tensor.dims.get(axis)?).ok()?, steps[index]);
        let from_end = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
        // Going backwards, the largest number means the beginning in ONNX Runtime.
        let endless = step < 0 && [i64::MAX, i64::from(i32::MAX)].contains(&ends[index]);
        let (start, end) = (
            from_end(starts[index]),
            if endless { -1 } else { from_end(ends[index]) },
        );
        let (start, length) = match step.cmp(&0) {
            Ordering::Greater => {
                let (start, end) = (start.clamp(0, extent), end.clamp(0, extent));
                (start, end.saturating_sub(start).max(0).saturating_add(step - 1) / step)
            }
            Ordering::Less if extent == 0 => (0, 0),
            Ordering::Less => {
                let (start, end) = (start.clamp(0, extent - 1), end.clamp(-1, extent - 1));
                let back = step.checked_neg()?;
                (start, start.saturating_sub(end).max(0).saturating_add(back - 1) / back)
            }
            Ordering::Equal => return None,
        };
        dims[axis] = usize::try_from(length).ok()?;
        let stride = moves[axis];
        origin += isize::try_from(start).ok()?.checked_mul(stride)?;
        moves[axis] = stride.checked_mul(isize::try_from(step).ok()?).unwrap_or(0);
    }
    let places = places(&dims, origin, &moves);
    tensor.pick(dims, places)
}

/// Indices from the front.
fn from_front(index: i64, extent: usize) -> Option<usize> {
    axis(index, extent)
}

pub(super) fn gather(operands: &Operands<'_>) -> Option<Tensor> {
    let [tensor, indices] = operands.all()?[..] else {
        return None;
    };
    let axis = axis(operands.int("axis", 0), tensor.rank())?;
    let extent = tensor.dims[axis];
    let chosen: Vec<usize> = indices
        .as_integers()?
        .iter()
        .map(|&index| from_front(index, extent))
        .collect::<Option<_>>()?;
    let mut dims = tensor.dims[..axis].to_vec();
    dims.extend(&indices.dims);
    dims.extend(&tensor.dims[axis + 1..]);
    let total = count(&dims)?;
    let inner: usize = tensor.dims[axis + 1..].iter().product();
    let width = chosen.len() * inner;
    let place = |at: usize| at / width * extent * inner + chosen[at / inner % chosen.len()] * inner + at % inner;
    tensor.pick(dims, (0..total).map(place))
}

pub(super) fn gather_elements(operands: &Operands<'_>) -> Option<Tensor> {
    let [tensor, indices] = operands.all()?[..] else {
        return None;
    };
    let along = axis(operands.int("axis", 0), tensor.rank())?;
    let targets = element_places(tensor, indices, along)?;
    tensor.pick(indices.dims.clone(), targets)
}

/// For each element of `indices`: the place in `tensor` at the same coordinates, but for the axis, where the index counts.
fn element_places(tensor: &Tensor, indices: &Tensor, along: usize) -> Option<Vec<usize>> {
    if indices.rank() != tensor.rank() {
        return None;
    }
    let (own, target) = (strides(&indices.dims), strides(&tensor.dims));
    let chosen = indices.as_integers()?;
    let place = |at: usize| {
        let mut place = 0;
        for axis in 0..own.len() {
            let coordinate = if axis == along {
                from_front(chosen[at], tensor.dims[axis])?
            } else {
                at / own[axis] % indices.dims[axis]
            };
            if coordinate >= tensor.dims[axis] {
                return None;
            }
            place += coordinate * target[axis];
        }
        Some(place)
    };
    (0..chosen.len()).map(place).collect()
}

/// For each tuple in the last axis of `indices`: the place where the slice begins that it names in a tensor of shape `dims`; and the
/// length of such slices.
fn slice_places(dims: &[usize], indices: &Tensor) -> Option<(Vec<usize>, usize)> {
    let depth = *indices.dims.last()?;
    let inner: usize = dims.get(depth..)?.iter().product();
    let own = strides(dims);
    let tuples = indices.as_integers()?;
    if depth == 0 {
        return None;
    }
    let start = |tuple: &[i64]| {
        let parts = tuple.iter().enumerate();
        parts
            .map(|(axis, &index)| Some(from_front(index, dims[axis])? * own[axis]))
            .sum::<Option<usize>>()
    };
    Some((tuples.chunks_exact(depth).map(start).collect::<Option<_>>()?, inner))
}

pub(super) fn gather_nd(operands: &Operands<'_>) -> Option<Tensor> {
    let [tensor, indices] = operands.all()?[..] else {
        return None;
    };
    if operands.int("batch_dims", 0) != 0 {
        return None;
    }
    let (starts, inner) = slice_places(&tensor.dims, indices)?;
    let mut dims = indices.dims[..indices.rank() - 1].to_vec();
    dims.extend(&tensor.dims[*indices.dims.last()?..]);
    count(&dims)?;
    tensor.pick(dims, starts.into_iter().flat_map(|start| start..start + inner))
}

/// Puts elements of `updates` at places of `tensor`, later ones over earlier ones.
fn put(tensor: &Tensor, updates: &Tensor, targets: impl Iterator<Item = usize>) -> Option<Tensor> {
    let mut result = tensor.clone();
    match (&mut result.data, &updates.data) {
        (Data::Integers(values), Data::Integers(updates)) => {
            for (place, &update) in targets.zip(updates) {
                *values.get_mut(place)? = update;
            }
        }
        (Data::Floats(values), Data::Floats(updates)) => {
            for (place, &update) in targets.zip(updates) {
                *values.get_mut(place)? = update;
            }
        }
        _ => return None,
    }
    Some(result)
}

pub(super) fn scatter_elements(operands: &Operands<'_>) -> Option<Tensor> {
    let [tensor, indices, updates] = operands.all()?[..] else {
        return None;
    };
    if operands.text("reduction").is_some_and(|name| name != "none") || updates.dims != indices.dims {
        return None;
    }
    let along = axis(operands.int("axis", 0), tensor.rank())?;
    put(tensor, updates, element_places(tensor, indices, along)?.into_iter())
}

pub(super) fn scatter_nd(operands: &Operands<'_>) -> Option<Tensor> {
    let [tensor, indices, updates] = operands.all()?[..] else {
        return None;
    };
    if operands.text("reduction").is_some_and(|name| name != "none") {
        return None;
    }
    let (starts, inner) = slice_places(&tensor.dims, indices)?;
    if updates.len() != starts.len().checked_mul(inner)? {
        return None;
    }
    put(
        tensor,
        updates,
        starts.into_iter().flat_map(|start| start..start + inner),
    )
}

fn is_zero(tensor: &Tensor, place: usize) -> bool {
    match &tensor.data {
        Data::Integers(values) => values[place] == 0,
        Data::Floats(values) => values[place] == 0.0,
    }
}

pub(super) fn non_zero(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let found: Vec<usize> = (0..tensor.len()).filter(|&place| !is_zero(tensor, place)).collect();
    let own = strides(&tensor.dims);
    // A scalar counts as a vector of one element in the runtime.
    let rank = tensor.rank().max(1);
    let coordinate = |axis: usize, place: usize| tensor.dims.get(axis).map_or(0, |&dim| place / own[axis] % dim);
    let values = (0..rank).flat_map(|axis| found.iter().map(move |&place| (axis, place)));
    let values: Vec<i64> = values
        .map(|(axis, place)| i64::try_from(coordinate(axis, place)).ok())
        .collect::<Option<_>>()?;
    Tensor::integers(ElementType::Int64, vec![rank, found.len()], values)
}

pub(super) fn compress(operands: &Operands<'_>) -> Option<Tensor> {
    let [tensor, condition] = operands.all()?[..] else {
        return None;
    };
    let (tensor, along) = match operands.node.attr("axis").and_then(Attribute::as_int) {
        Some(value) => (tensor.clone(), axis(value, tensor.rank())?),
        None => (tensor.reshaped(vec![tensor.len()])?, 0),
    };
    let extent = tensor.dims[along];
    let taken = condition
        .as_integers()?
        .iter()
        .enumerate()
        .filter(|&(_, &value)| value != 0);
    let taken: Vec<usize> = taken.map(|(index, _)| index).collect();
    if taken.last().is_some_and(|&last| last >= extent) {
        return None;
    }
    let mut dims = tensor.dims.clone();
    dims[along] = taken.len();
    let total = count(&dims)?;
    let inner: usize = dims[along + 1..].iter().product();
    let width = taken.len() * inner;
    let place = |at: usize| at / width * extent * inner + taken[at / inner % taken.len()] * inner + at % inner;
    tensor.pick(dims, (0..total).map(place))
}

pub(super) fn pad(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    if operands.text("mode").is_some_and(|mode| mode != "constant") || operands.has(3) {
        return None;
    }
    let pads = operands.integers("pads", 1)??;
    let rank = tensor.rank();
    if pads.len() != 2 * rank {
        return None;
    }
    let pads: Vec<usize> = pads
        .iter()
        .map(|&pad| usize::try_from(pad).ok())
        .collect::<Option<_>>()?;
    let padded = |axis: usize| {
        pads[axis]
            .checked_add(tensor.dims[axis])?
            .checked_add(pads[rank + axis])
    };
    let dims: Vec<usize> = (0..rank).map(padded).collect::<Option<_>>()?;
    let total = count(&dims)?;
    let own = strides(&dims);
    let targets: Vec<usize> = (0..tensor.len())
        .map(|place| {
            let from = strides(&tensor.dims);
            (0..rank)
                .map(|axis| (place / from[axis] % tensor.dims[axis] + pads[axis]) * own[axis])
                .sum()
        })
        .collect();
    let filler = match (
        operands.node.attr("value").and_then(Attribute::as_float),
        operands.optional(2)?,
    ) {
        (Some(value), _) => Tensor::floats(tensor.element, Vec::new(), [f64::from(value)])?,
        (None, Some(value)) => value.clone(),
        (None, None) => Tensor::integers(tensor.element, Vec::new(), [0])
            .or_else(|| Tensor::floats(tensor.element, Vec::new(), [0.0]))?,
    };
    put(
        &filler.pick(dims, std::iter::repeat_n(0, total))?,
        tensor,
        targets.into_iter(),
    )
}

pub(super) fn trilu(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let offset = operands.optional(1)?.map_or(Some(0), Tensor::as_integer)?;
    let upper = operands.int("upper", 1) != 0;
    let &[.., rows, columns] = &tensor.dims[..] else {
        return None;
    };
    let stays = |place: usize| {
        let (row, column) = (place / columns % rows, place % columns);
        let distance = i64::try_from(column).unwrap_or(0) - i64::try_from(row).unwrap_or(0);
        if upper { distance >= offset } else { distance <= offset }
    };
    let mut result = tensor.clone();
    match &mut result.data {
        Data::Integers(values) => {
            values
                .iter_mut()
                .enumerate()
                .filter(|(place, _)| !stays(*place))
                .for_each(|(_, value)| *value = 0);
        }
        Data::Floats(values) => {
            values
                .iter_mut()
                .enumerate()
                .filter(|(place, _)| !stays(*place))
                .for_each(|(_, value)| *value = 0.0);
        }
    }
    Some(result)
}

/// Values and indices along an axis in order; of equal values the first comes first.
pub(super) fn top_k(operands: &Operands<'_>) -> Option<Vec<Tensor>> {
    let tensor = operands.value(0)?;
    let along = axis(operands.int("axis", -1), tensor.rank())?;
    let wanted = operands.node.attr("k").and_then(Attribute::as_int);
    let wanted = wanted.map_or_else(|| operands.value(1)?.as_integer(), Some)?;
    let wanted = usize::try_from(wanted).ok()?;
    let extent = tensor.dims[along];
    if wanted > extent || operands.int("sorted", 1) == 0 {
        return None;
    }
    let largest = operands.int("largest", 1) != 0;
    let inner: usize = tensor.dims[along + 1..].iter().product();
    let outer: usize = tensor.dims[..along].iter().product();
    let mut dims = tensor.dims.clone();
    dims[along] = wanted;
    let mut taken = vec![0; count(&dims)?];
    for row in 0..outer {
        for column in 0..inner {
            let place = |index: usize| (row * extent + index) * inner + column;
            let mut order: Vec<usize> = (0..extent).collect();
            let compare = |&a: &usize, &b: &usize| {
                let order = match &tensor.data {
                    Data::Integers(values) => values[place(a)].cmp(&values[place(b)]),
                    Data::Floats(values) => values[place(a)].total_cmp(&values[place(b)]),
                };
                if largest { order.reverse() } else { order }
            };
            order.sort_by(compare);
            for (index, &from) in order.iter().take(wanted).enumerate() {
                taken[(row * wanted + index) * inner + column] = place(from);
            }
        }
    }
    let indices = taken
        .iter()
        .map(|&place| i64::try_from(place / inner % extent).unwrap_or(0))
        .collect::<Vec<_>>();
    let values = tensor.pick(dims.clone(), taken)?;
    Some(vec![values, Tensor::integers(ElementType::Int64, dims, indices)?])
}
