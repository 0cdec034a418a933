//! The same elements in another shape or order.

use super::operands::{Operands, axes, axis};
use super::tensor::{Tensor, broadcast, broadcast_places, count, places, strides};

pub(super) fn reshape(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let wanted = operands.integers("shape", 1)??;
    let keeps_zero = operands.int("allowzero", 0) != 0;
    let mut open = None;
    let mut dims = Vec::with_capacity(wanted.len());
    for (index, &dim) in wanted.iter().enumerate() {
        dims.push(match dim {
            -1 if open.replace(index).is_none() => 1,
            0 if !keeps_zero => *tensor.dims.get(index)?,
            dim => usize::try_from(dim).ok()?,
        });
    }
    if let Some(index) = open {
        let rest = count(&dims)?;
        dims[index] = tensor.len().checked_div(rest)?;
    }
    tensor.reshaped(dims)
}

pub(super) fn flatten(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let rank = i64::try_from(tensor.rank()).ok()?;
    let axis = operands.int("axis", 1);
    let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
    let rows = tensor.dims.get(..axis)?.iter().product();
    tensor.reshaped(vec![rows, tensor.dims[axis..].iter().product()])
}

pub(super) fn squeeze(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let gone = match operands.integers("axes", 1)? {
        Some(list) => axes(&list, tensor.rank())?,
        None => (0..tensor.rank()).filter(|&axis| tensor.dims[axis] == 1).collect(),
    };
    let left = (0..tensor.rank()).filter(|axis| !gone.contains(axis));
    tensor.reshaped(left.map(|axis| tensor.dims[axis]).collect())
}

pub(super) fn unsqueeze(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let list = operands.integers("axes", 1)??;
    let mut dims = tensor.dims.clone();
    for axis in axes(&list, tensor.rank() + list.len())? {
        dims.insert(axis, 1);
    }
    tensor.reshaped(dims)
}

pub(super) fn transpose(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let order: Vec<usize> = match operands.integers("perm", usize::MAX)? {
        Some(order) => order
            .iter()
            .map(|&from| axis(from, tensor.rank()))
            .collect::<Option<_>>()?,
        None => (0..tensor.rank()).rev().collect(),
    };
    let mut seen = order.clone();
    seen.sort_unstable();
    if !seen.into_iter().eq(0..tensor.rank()) {
        return None;
    }
    let own = strides(&tensor.dims);
    let dims: Vec<usize> = order.iter().map(|&from| tensor.dims[from]).collect();
    let steps: Vec<isize> = order
        .iter()
        .map(|&from| isize::try_from(own[from]).unwrap_or(0))
        .collect();
    let places = places(&dims, 0, &steps);
    tensor.pick(dims, places)
}

pub(super) fn expand(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let wanted = operands.value(1)?.as_integers()?;
    let wanted: Vec<usize> = wanted
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .collect::<Option<_>>()?;
    let dims = broadcast(&tensor.dims, &wanted)?;
    count(&dims)?;
    let places = broadcast_places(&tensor.dims, &dims);
    tensor.pick(dims, places)
}

pub(super) fn tile(operands: &Operands<'_>) -> Option<Tensor> {
    let mut tensor = operands.value(0)?.clone();
    let repeats = operands.value(1)?.as_integers()?;
    if repeats.len() != tensor.rank() {
        return None;
    }
    for (axis, &times) in repeats.iter().enumerate() {
        let times = usize::try_from(times).ok()?;
        let mut dims = tensor.dims.clone();
        let from = dims[axis];
        dims[axis] = from.checked_mul(times)?;
        let total = count(&dims)?;
        let inner: usize = dims[axis + 1..].iter().product();
        let (wide, rest) = (dims[axis] * inner, from * inner);
        let place = |index: usize| index / wide * rest + index % wide % rest;
        tensor = tensor.pick(dims, (0..total).map(place))?;
    }
    Some(tensor)
}

pub(super) fn concat(operands: &Operands<'_>) -> Option<Tensor> {
    let parts = operands.all()?;
    let first = *parts.first()?;
    let axis = axis(
        operands.int("axis", if operands.version < 4 { 1 } else { i64::MAX }),
        first.rank(),
    )?;
    let alike = |part: &&Tensor| {
        part.rank() == first.rank()
            && part.element == first.element
            && (0..first.rank()).all(|at| at == axis || part.dims[at] == first.dims[at])
    };
    if !parts.iter().all(alike) {
        return None;
    }
    let mut dims = first.dims.clone();
    dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
    count(&dims)?;
    let outer: usize = dims[..axis].iter().product();
    let inner: usize = dims[axis + 1..].iter().product();
    // All elements one part after the other, then in the order of the result.
    let mut starts = Vec::with_capacity(parts.len());
    let mut together = 0;
    for part in &parts {
        starts.push(together);
        together += part.len();
    }
    let order = (0..outer).flat_map(|row| {
        let parts = parts.iter().zip(&starts);
        parts.flat_map(move |(part, start)| {
            let width = part.dims[axis] * inner;
            start + row * width..start + (row + 1) * width
        })
    });
    let order: Vec<usize> = order.collect();
    if let Some(values) = parts.iter().map(|part| part.as_integers()).collect::<Option<Vec<_>>>() {
        let joined = values.concat();
        return Tensor::integers(first.element, dims, order.into_iter().map(|place| joined[place]));
    }
    let joined = parts
        .iter()
        .map(|part| part.as_floats())
        .collect::<Option<Vec<_>>>()?
        .concat();
    Tensor::floats(first.element, dims, order.into_iter().map(|place| joined[place]))
}

pub(super) fn split(operands: &Operands<'_>) -> Option<Vec<Tensor>> {
    let tensor = operands.value(0)?;
    let axis = axis(operands.int("axis", 0), tensor.rank())?;
    let whole = tensor.dims[axis];
    let results = operands.node.outputs.len();
    let lengths: Vec<usize> = match operands.integers("split", 1)? {
        Some(lengths) => lengths
            .iter()
            .map(|&length| usize::try_from(length).ok())
            .collect::<Option<_>>()?,
        None => {
            let length = whole.div_ceil(results.max(1));
            (0..results)
                .map(|index| length.min(whole.saturating_sub(index * length)))
                .collect()
        }
    };
    let sum = lengths.iter().try_fold(0_usize, |sum, &length| sum.checked_add(length));
    if lengths.len() != results || sum != Some(whole) {
        return None;
    }
    let inner: usize = tensor.dims[axis + 1..].iter().product();
    let mut start = 0;
    let mut parts = Vec::with_capacity(results);
    for length in lengths {
        let mut dims = tensor.dims.clone();
        dims[axis] = length;
        let (narrow, wide) = (length * inner, whole * inner);
        let place = |index: usize| index / narrow * wide + start * inner + index % narrow;
        let total: usize = dims.iter().product();
        parts.push(tensor.pick(dims, (0..total).map(place))?);
        start += length;
    }
    Some(parts)
}
