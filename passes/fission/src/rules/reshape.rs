//! Other shapes for the same elements.

use std::ops::Range;

use remat_ir::Dim;

use super::{Cut, Reason, Site};

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
    let (whole, made) = (site.ty(0).dims(), site.result().dims());
    let is_before = alike(&whole[..axis], &made[..site.axis]);
    if !is_before && !alike(&whole[axis + 1..], &made[site.axis + 1..]) {
        return Err(Reason::Free);
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

/// Whether two lists of dimensions have one product, whatever the sizes of free ones.
fn alike(one: &[Dim], other: &[Dim]) -> bool {
    let parts = |dims: &[Dim]| {
        let numbers = dims.iter().filter(|dim| !dim.is_free());
        let product = numbers
            .map(Dim::size)
            .try_fold(1_u64, |all, size| all.checked_mul(size?));
        let mut names: Vec<Dim> = dims.iter().filter(|dim| dim.is_free()).cloned().collect();
        names.sort_unstable_by_key(|dim| format!("{dim}"));
        (product, names)
    };
    let (one, other) = (parts(one), parts(other));
    one.0.is_some() && one.1.iter().all(is_named) && one == other
}

fn is_named(dim: &Dim) -> bool {
    matches!(dim, Dim::Free { name: Some(_), .. })
}

/// A shape that is an operand is stated anew.
fn shaped(site: &Site<'_>, axis: usize, needed: Range<u64>) -> Result<Cut, Reason> {
    let mut cut = site.whole().with(0, axis, needed);
    match site.op.op_type.as_str() {
        "Reshape" => {
            // A free dimension is that of the operand in its place, or one of them what is left.
            let mut left = Some(-1);
            let kept = |place: usize, dim: &Dim| is_named(dim) && site.ty(0).dims().get(place) == Some(dim);
            let dims = site.stated(|place, dim| if kept(place, dim) { Some(0) } else { left.take() })?;
            cut.integers.insert(1, dims);
            if site.op.attributes.contains_key("allowzero") {
                cut = cut.with_int("allowzero", 0)?;
            }
            Ok(cut)
        }
        // `tensor.expand_shape` in MLIR states it as an attribute.
        "expand_shape" if site.result().has_free_dims() => Err(Reason::Free),
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
