//! Operators that join the elements along axes.

use remat_ir::ElementType;

use super::operands::{Follows, Operands, axes, axis};
use super::tensor::{Data, Tensor, count, strides};

/// Sums and products of whole numbers up to this are exact in single precision, in any order.
const EXACT: f64 = 16_777_216.0;

pub(super) fn reduce(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let rank = tensor.rank();
    let list = operands.integers("axes", 1)?.filter(|list| !list.is_empty());
    let gone = match list {
        Some(list) => axes(&list, rank)?,
        None if operands.int("noop_with_empty_axes", 0) != 0 => return Some(tensor.clone()),
        None => (0..rank).collect(),
    };
    let keeps = operands.int("keepdims", 1) != 0;
    let kept: Vec<usize> = (0..rank)
        .map(|axis| if gone.contains(&axis) { 1 } else { tensor.dims[axis] })
        .collect();
    let groups = groups(tensor, &kept)?;
    let left = |axis: &usize| keeps || !gone.contains(axis);
    let dims: Vec<usize> = (0..rank).filter(left).map(|axis| kept[axis]).collect();
    let name = operands.node.op_type.strip_prefix("Reduce")?;
    match &tensor.data {
        Data::Integers(values) => {
            let join = |group: &Vec<usize>| {
                let mut values = group.iter().map(|&place| values[place]);
                match name {
                    "Sum" => Some(values.fold(0, i64::wrapping_add)),
                    "Prod" => Some(values.fold(1, i64::wrapping_mul)),
                    "Max" => values.max(),
                    "Min" => values.min(),
                    "SumSquare" => Some(values.fold(0_i64, |sum, value| sum.wrapping_add(value.wrapping_mul(value)))),
                    "L1" => values.try_fold(0_i64, |sum, value| sum.checked_add(value.checked_abs()?)),
                    _ => None,
                }
            };
            Tensor::integers(
                tensor.element,
                dims,
                groups.iter().map(join).collect::<Option<Vec<_>>>()?,
            )
        }
        Data::Floats(values) => {
            let join = |group: &Vec<usize>| {
                let values: Vec<f64> = group.iter().map(|&place| values[place]).collect();
                let number = values.iter().all(|value| !value.is_nan());
                match name {
                    "Sum" if is_exact(&values, |sum, value| sum + value) => Some(values.iter().sum()),
                    "Prod" if is_exact(&values, |product, value| product.max(1.0) * value.max(1.0)) => {
                        Some(values.iter().product())
                    }
                    "Max" if number => values.iter().copied().reduce(f64::max),
                    "Min" if number => values.iter().copied().reduce(f64::min),
                    _ => None,
                }
            };
            Tensor::floats(
                tensor.element,
                dims,
                groups.iter().map(join).collect::<Option<Vec<_>>>()?,
            )
        }
    }
}

/// Whether the values are whole numbers whose magnitudes stay small when they are joined, so that any order gives the same.
fn is_exact(values: &[f64], join: fn(f64, f64) -> f64) -> bool {
    let total = values.iter().fold(0.0, |total, value| join(total, value.abs()));
    total <= EXACT && values.iter().all(|value| value.fract() == 0.0)
}

/// The places of the elements that are joined, for each element of the result.
fn groups(tensor: &Tensor, kept: &[usize]) -> Option<Vec<Vec<usize>>> {
    let (own, target) = (strides(&tensor.dims), strides(kept));
    let mut groups = vec![Vec::new(); count(kept)?];
    for place in 0..tensor.len() {
        let at = |axis: usize| place / own[axis] % tensor.dims[axis];
        let group: usize = (0..kept.len())
            .filter(|&axis| kept[axis] > 1)
            .map(|axis| at(axis) * target[axis])
            .sum();
        groups[group].push(place);
    }
    Some(groups)
}

pub(super) fn arg(operands: &Operands<'_>) -> Option<Tensor> {
    let Some(tensor) = operands.value(0) else {
        return arg_of_one(operands);
    };
    let axis = axis(operands.int("axis", 0), tensor.rank())?;
    let last = operands.int("select_last_index", 0) != 0;
    let most = operands.node.op_type == "ArgMax";
    let mut kept = tensor.dims.clone();
    kept[axis] = 1;
    let better = |a: usize, b: usize| {
        let order = match &tensor.data {
            Data::Integers(values) => values[a].cmp(&values[b]),
            Data::Floats(values) => values[a].partial_cmp(&values[b])?,
        };
        Some(if most { order } else { order.reverse() })
    };
    let best = |group: &Vec<usize>| {
        let mut best = (!group.is_empty()).then_some(0)?;
        for index in 1..group.len() {
            let order = better(group[index], group[best])?;
            if order.is_gt() || (last && order.is_eq()) {
                best = index;
            }
        }
        i64::try_from(best).ok()
    };
    let values: Vec<i64> = groups(tensor, &kept)?.iter().map(best).collect::<Option<_>>()?;
    if operands.int("keepdims", 1) == 0 {
        kept.remove(axis);
    }
    Tensor::integers(ElementType::Int64, kept, values)
}

/// Along an axis with one element the place is 0, whatever the element is.
fn arg_of_one(operands: &Operands<'_>) -> Option<Tensor> {
    let mut kept = operands
        .shapes
        .first()?
        .clone()
        .filter(|_| operands.follows == Follows::All)?;
    let axis = axis(operands.int("axis", 0), kept.len())?;
    if kept[axis] != 1 {
        return None;
    }
    if operands.int("keepdims", 1) == 0 {
        kept.remove(axis);
    }
    let count = count(&kept)?;
    Tensor::integers(ElementType::Int64, kept, std::iter::repeat_n(0, count))
}

pub(super) fn cumulative_sum(operands: &Operands<'_>) -> Option<Tensor> {
    let tensor = operands.value(0)?;
    let along = operands.value(1)?.as_integer()?;
    let axis = axis(along, tensor.rank())?;
    let (exclusive, reverse) = (operands.int("exclusive", 0) != 0, operands.int("reverse", 0) != 0);
    let values = tensor.as_integers()?;
    let mut kept = tensor.dims.clone();
    kept[axis] = 1;
    let mut sums = vec![0; values.len()];
    for mut group in groups(tensor, &kept)? {
        if reverse {
            group.reverse();
        }
        let mut sum = 0_i64;
        for place in group {
            let with = sum.wrapping_add(values[place]);
            sums[place] = if exclusive { sum } else { with };
            sum = with;
        }
    }
    Tensor::integers(tensor.element, tensor.dims.clone(), sums)
}

/// `BroadcastGradientArgs`: for each of two shapes that were broadcast, the axes along which its gradient is summed, from last to first.
///
/// Source: ONNX Runtime, `orttraining/training_ops/cpu/op_gradients.cc`.
pub(super) fn gradient_axes(operands: &Operands<'_>) -> Option<Vec<Tensor>> {
    let [a, b] = [operands.value(0)?.as_integers()?, operands.value(1)?.as_integers()?];
    let rank = a.len().max(b.len());
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for place in 1..=rank {
        let axis = i64::try_from(rank - place).ok()?;
        let extent = |shape: &[i64]| shape.len().checked_sub(place).map(|axis| shape[axis]);
        match (extent(a), extent(b)) {
            (Some(a), Some(b)) if a == b => {}
            (None | Some(1), Some(_)) => of_a.push(axis),
            (Some(_), None | Some(1)) => of_b.push(axis),
            _ => return None,
        }
    }
    [of_a, of_b].into_iter().map(Tensor::vector).collect()
}
