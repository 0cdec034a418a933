//! Other shapes for the same elements.

use std::ops::Range;

use super::{Cut, Integers, Reason, Site};

/// An axis of the result is one of the operand where as many elements lie before it: then rows are rows, or each row of one is several of the
/// other.
pub(super) fn reshape(site: &Site<'_>) -> Result<Cut, Reason> {
    let (from, to) = (site.dims(0)?, &site.out);
    let product = |dims: &[u64]| dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
    let product = |dims: &[u64]| product(dims).ok_or(Reason::Shapes);
    let before = product(&to[..site.axis])?;
    let (mut axis, mut passed) = (0, 1u64);
    while axis < from.len() && passed < before {
        passed = passed.checked_mul(from[axis]).ok_or(Reason::Shapes)?;
        axis += 1;
    }
    // Axes of one row say nothing.
    while axis + 1 < from.len() && from[axis] == 1 && to[site.axis] != 1 {
        axis += 1;
    }
    if passed != before || axis == from.len() {
        return Err(Reason::Dependent);
    }
    let (old, new) = (from[axis], to[site.axis]);
    if old == 0 || new == 0 {
        return Err(Reason::Shapes);
    }
    let rows = &site.rows;
    let needed = if old == new {
        rows.clone()
    } else if old.is_multiple_of(new) {
        let each = old / new;
        rows.start * each..rows.end * each
    } else if new.is_multiple_of(old) {
        let each = new / old;
        if !rows.start.is_multiple_of(each) || !rows.end.is_multiple_of(each) {
            return Err(Reason::Multiple(each));
        }
        rows.start / each..rows.end / each
    } else {
        return Err(Reason::Dependent);
    };
    shaped(site, axis, needed)
}

/// A shape that is an operand is stated anew.
fn shaped(site: &Site<'_>, axis: usize, needed: Range<u64>) -> Result<Cut, Reason> {
    let mut cut = site.whole().with(0, axis, needed);
    match site.op.op_type.as_str() {
        "Reshape" => {
            let mut dims = site.out.clone();
            dims[site.axis] = site.length();
            let dims: Result<Vec<i64>, _> = dims.into_iter().map(i64::try_from).collect();
            cut.integers
                .insert(1, Integers::list(dims.map_err(|_| Reason::Shapes)?));
            if site.op.attributes.contains_key("allowzero") {
                cut = cut.with_int("allowzero", 0)?;
            }
            Ok(cut)
        }
        // `tensor.expand_shape` in MLIR states it as an attribute.
        "expand_shape" => {
            let mut dims = site.out.clone();
            dims[site.axis] = site.length();
            cut.with_ints("static_output_shape", &dims)
        }
        // Without axes, an axis that has one row in a tile would go, too.
        "Squeeze" if site.ints("axes").is_none() && site.operand(1).is_none() => Err(Reason::Attribute("axes")),
        // A clone of the others finds its shape by itself.
        _ => Ok(cut),
    }
}
