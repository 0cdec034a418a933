//! Values from shapes, bounds and attributes.

use onnx_runtime_ir::{Attribute, TensorData};
use remat_ir::ElementType;

use super::operands::{Operands, axis};
use super::tensor::{Data, MAX_ELEMENTS, Tensor};
use crate::types::element;

pub(super) fn constant(operands: &Operands<'_>) -> Option<Tensor> {
    let attribute = |name| operands.node.attr(name);
    if let Some(Attribute::Tensor(data)) = attribute("value") {
        return tensor(data);
    }
    if let Some(value) = attribute("value_int").and_then(Attribute::as_int) {
        return Tensor::integers(ElementType::Int64, Vec::new(), [value]);
    }
    if let Some(values) = attribute("value_ints").and_then(Attribute::as_ints) {
        return Tensor::vector(values.to_vec());
    }
    if let Some(value) = attribute("value_float").and_then(Attribute::as_float) {
        return Tensor::floats(ElementType::Float32, Vec::new(), [f64::from(value)]);
    }
    match attribute("value_floats") {
        Some(Attribute::Floats(values)) => Tensor::floats(
            ElementType::Float32,
            vec![values.len()],
            values.iter().map(|&value| f64::from(value)),
        ),
        _ => None,
    }
}

fn tensor(data: &TensorData) -> Option<Tensor> {
    let element = element(data.dtype as i32).ok().flatten()?;
    Tensor::from_bytes(element, data.dims.clone(), &data.data)
}

pub(super) fn shape(operands: &Operands<'_>) -> Option<Tensor> {
    let dims = operands.shapes.first()?.as_ref()?;
    let rank = i64::try_from(dims.len()).ok()?;
    let place = |name, default| {
        let place: i64 = operands.int(name, default);
        let place = if place < 0 { place + rank } else { place };
        usize::try_from(place.clamp(0, rank)).ok()
    };
    let (start, end) = (place("start", 0)?, place("end", rank)?);
    let dims = dims.get(start..end.max(start))?;
    Tensor::vector(dims.iter().map(|&dim| i64::try_from(dim).ok()).collect::<Option<_>>()?)
}

pub(super) fn size(operands: &Operands<'_>) -> Option<Tensor> {
    let dims = operands.shapes.first()?.as_ref()?;
    let product = dims
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
    Tensor::integers(ElementType::Int64, Vec::new(), [i64::try_from(product).ok()?])
}

pub(super) fn constant_of_shape(operands: &Operands<'_>) -> Option<Tensor> {
    let dims = operands.value(0)?.as_integers()?;
    let dims: Vec<usize> = dims
        .iter()
        .map(|&dim| usize::try_from(dim).ok())
        .collect::<Option<_>>()?;
    let value = match operands.node.attr("value") {
        Some(Attribute::Tensor(data)) => tensor(data)?,
        _ => Tensor::floats(ElementType::Float32, vec![1], [0.0])?,
    };
    let count = super::tensor::count(&dims)?;
    value.pick(dims, std::iter::repeat_n(0, count))
}

pub(super) fn range(operands: &Operands<'_>) -> Option<Tensor> {
    let [start, limit, delta] = operands.all()?[..] else {
        return None;
    };
    let element = start.element;
    let length = |steps: f64| (0.0..=MAX_ELEMENTS as f64).contains(&steps).then_some(steps as usize);
    match (&start.data, &limit.data, &delta.data) {
        (Data::Integers(start), Data::Integers(limit), Data::Integers(delta)) => {
            let (&[start], &[limit], &[delta]) = (&start[..], &limit[..], &delta[..]) else {
                return None;
            };
            let (span, step) = (i128::from(limit) - i128::from(start), i128::from(delta));
            if step == 0 {
                return None;
            }
            // Rounded up.
            let steps = span / step + i128::from(span % step != 0 && (span < 0) == (step < 0));
            let count = length(steps.max(0) as f64)?;
            let step = |index: usize| start.checked_add(delta.checked_mul(i64::try_from(index).ok()?)?);
            let values: Vec<i64> = (0..count).map(step).collect::<Option<_>>()?;
            Tensor::integers(element, vec![count], values)
        }
        (Data::Floats(start), Data::Floats(limit), Data::Floats(delta)) => {
            let (&[start], &[limit], &[delta]) = (&start[..], &limit[..], &delta[..]) else {
                return None;
            };
            let steps = ((limit - start) / delta).ceil();
            let count = length(if steps.is_nan() { -1.0 } else { steps.max(0.0) })?;
            // Runtimes add the step again and again or multiply it: alike only where both are exact.
            let whole = [start, limit, delta]
                .iter()
                .all(|value| value.fract() == 0.0 && value.abs() < 2_f64.powi(20));
            let values = (0..count).map(|index| start + delta * index as f64);
            (whole || count < 2).then(|| Tensor::floats(element, vec![count], values))?
        }
        _ => None,
    }
}

pub(super) fn eye_like(operands: &Operands<'_>) -> Option<Tensor> {
    let dims = operands.shapes.first()?.as_ref()?;
    let &[rows, columns] = &dims[..] else { return None };
    let element = match operands.node.attr("dtype").and_then(Attribute::as_int) {
        Some(code) => element(i32::try_from(code).ok()?).ok().flatten()?,
        None => operands.value(0)?.element,
    };
    super::tensor::count(dims)?;
    let offset = operands.int("k", 0);
    let place = |index: usize| (index / columns, index % columns);
    let on = |index: usize| {
        let (row, column) = place(index);
        i64::try_from(column).unwrap_or(0) - i64::try_from(row).unwrap_or(0) == offset
    };
    let values = (0..rows * columns).map(on);
    let integers: Vec<i64> = values.map(i64::from).collect();
    let floats = integers.iter().map(|&value| value as f64);
    Tensor::integers(element, dims.clone(), integers.iter().copied())
        .or_else(|| Tensor::floats(element, dims.clone(), floats))
}

pub(super) fn one_hot(operands: &Operands<'_>) -> Option<Tensor> {
    let [indices, depth, values] = operands.all()?[..] else {
        return None;
    };
    let depth = usize::try_from(depth.as_integer()?).ok()?;
    let axis = axis(operands.int("axis", -1), indices.rank() + 1)?;
    let mut dims = indices.dims.clone();
    dims.insert(axis, depth);
    super::tensor::count(&dims)?;
    let inner: usize = indices.dims[axis..].iter().product();
    let chosen = indices.as_integers()?;
    let signed = i64::try_from(depth).ok()?;
    let place = |index: usize| {
        let (rest, at) = (index % inner, index / inner % depth);
        let chosen = chosen[index / (inner * depth) * inner + rest];
        let chosen = if chosen < 0 { chosen + signed } else { chosen };
        usize::from(usize::try_from(chosen) == Ok(at))
    };
    values.pick(dims.clone(), (0..dims.iter().product()).map(place))
}
