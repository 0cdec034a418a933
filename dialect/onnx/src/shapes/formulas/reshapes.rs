//! Tensors that are laid out anew, and those that are spread over others.
//!
//! Source: the operator definitions in the ONNX specification.

use remat_formula::Formula;

use super::call::{Call, number};
use super::table::{Shape, Table};

/// `Reshape`: 0 keeps a dimension, -1 takes what is left.
pub(super) fn reshape(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let shape = call.shape(0, table)?;
    let keeps = call.int("allowzero", 0) == 0;
    let target = call.integers(1, table)?;
    let mut rest = None;
    let mut found: Shape = Vec::with_capacity(target.len());
    for (axis, dim) in target.into_iter().enumerate() {
        let dim = match dim.as_ref().and_then(Formula::as_constant) {
            Some(-1) => {
                rest = Some(axis);
                Some(number(1))
            }
            Some(0) if keeps => shape.get(axis)?.clone(),
            _ => dim,
        };
        found.push(dim);
    }
    if let Some(axis) = rest {
        let products = product(&shape).zip(product(&found));
        found[axis] = products.and_then(|(all, others)| rest_of(&all, &others, table));
    }
    Some(found)
}

/// What is left of a product by others. Where the others are one term, its number may leave a remainder in the formula, though in no size at
/// which the model runs.
fn rest_of(all: &Formula, others: &Formula, table: &mut Table) -> Option<Formula> {
    let in_parts = || {
        let mut terms = others.terms();
        let (Some((divisor, _)), None) = (terms.next(), terms.next()) else {
            return None;
        };
        let plain = others.over(&number(divisor))?;
        table.variables.floor(&all.over(&plain)?, u32::try_from(divisor).ok()?)
    };
    all.over(others).or_else(in_parts)
}

fn product(shape: &Shape) -> Option<Formula> {
    shape
        .iter()
        .try_fold(number(1), |product, dim| product.times(dim.as_ref()?))
}

/// `Squeeze` with its axes: each of them is 1, whatever else is known of it.
pub(super) fn squeeze(call: &Call<'_>, table: &Table) -> Option<Shape> {
    let shape = call.shape(0, table)?;
    let axes = match call.list("axes") {
        Some(axes) => axes.to_vec(),
        None => call.numbers(1, table)?,
    };
    let places = call.places(&axes, shape.len())?;
    let kept = shape.into_iter().enumerate().filter(|(axis, _)| !places.contains(axis));
    Some(kept.map(|(_, dim)| dim).collect())
}

/// `Expand`: the shape is an operand.
pub(super) fn expand(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let (shape, target) = (call.shape(0, table)?, call.integers(1, table)?);
    Some(spread([shape, target], table))
}

/// Operators whose operands are spread over each other.
pub(super) fn broadcast(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let shapes: Option<Vec<Shape>> = (0..call.inputs.len())
        .filter(|&operand| call.has(operand))
        .map(|operand| call.shape(operand, table))
        .collect();
    Some(spread(shapes?, table))
}

/// Shapes over each other: of two dimensions that differ one is 1, so that the larger counts.
fn spread(shapes: impl IntoIterator<Item = Shape>, table: &mut Table) -> Shape {
    let mut result: Shape = Vec::new();
    for shape in shapes {
        let missing = |shape: &Shape, other: &Shape| vec![Some(number(1)); other.len().saturating_sub(shape.len())];
        let one = [missing(&result, &shape), result.clone()].concat();
        let other = [missing(&shape, &result), shape].concat();
        let larger = |(one, other): (Option<Formula>, Option<Formula>)| match (one?, other?) {
            (one, other) if one == number(1) => Some(other),
            (one, other) if other == number(1) => Some(one),
            (one, other) => table.variables.max(&one, &other),
        };
        result = one.into_iter().zip(other).map(larger).collect();
    }
    result
}

/// `MatMul`: matrices, spread over each other.
pub(super) fn matrices(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let [mut one, mut other] = [call.shape(0, table)?, call.shape(1, table)?];
    if one.len() < 2 || other.len() < 2 {
        return None;
    }
    let (columns, _) = (other.pop()?, other.pop()?);
    let (_, rows) = (one.pop()?, one.pop()?);
    let mut shape = spread([one, other], table);
    shape.extend([rows, columns]);
    Some(shape)
}

/// `Tile`: each dimension so often.
pub(super) fn tile(call: &Call<'_>, table: &Table) -> Option<Shape> {
    let (shape, repeats) = (call.shape(0, table)?, call.integers(1, table)?);
    let tiled = |(dim, repeats): (&Option<Formula>, &Option<Formula>)| dim.as_ref()?.times(repeats.as_ref()?);
    (shape.len() == repeats.len()).then(|| shape.iter().zip(&repeats).map(tiled).collect())
}

/// `SpaceToDepth`: blocks of an image become channels.
pub(super) fn space_to_depth(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let shape = call.shape(0, table)?;
    let block = u32::try_from(call.int("blocksize", 0)).ok()?;
    let [images, _, height, width] = <[_; 4]>::try_from(shape).ok()?;
    let mut blocks = |dim: Option<Formula>| table.variables.floor(&dim?, block);
    Some(vec![images, None, blocks(height), blocks(width)])
}
