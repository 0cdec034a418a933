//! Ops that keep all elements in their row-major order.
//!
//! Two shapes of one number of elements fall into pairs of groups of axes with equal products. In each pair a box of the result is a run of
//! elements without gap, or the axes are the same; then the run, or the box, is that of the operand.

use super::super::site::{Elements, Need, NoWay, Site, Way, axis, signed};
use super::super::values::Rows;
use super::window::with_default;

pub(super) fn ways<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    // Where a zero of the original stands for no rows, a tile may say otherwise.
    let copies = site.int("allowzero", 0) == 0;
    let mut ways = vec![way_where(site, copies)?];
    if !copies {
        ways.push(way_where(site, true)?);
    }
    Ok(ways)
}

pub(super) fn reshape<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    way_where(site, true)
}

/// The way for a tile in whose shape, if it reads one, a zero copies an axis or does not.
fn way_where<'a>(site: &Site<'a>, copies: bool) -> Result<Way<'a>, NoWay> {
    let dims = site.dims(0)?;
    let from = operand_box(&site.out, site.part, &dims).ok_or("such rows are no rows of its operand")?;
    let result: Vec<u64> = site.part.iter().map(|rows| rows.end - rows.start).collect();
    let tile: Vec<u64> = from.iter().map(|rows| rows.end - rows.start).collect();
    let mut way = site.way()?.with(0, from);
    match site.op.op_type.as_str() {
        "Reshape" if site.op.attributes.contains_key("shape") => {
            let shape: Vec<i64> = result.iter().map(|&dim| signed(dim)).collect();
            way = way.allow("shape", vec![Some(remat_ir::Attribute::Ints(shape))]);
        }
        "Reshape" => {
            // No axis of a tile is empty. A zero copies an axis of the operand, or is not taken; then what it would mean does not matter.
            let right = if copies {
                with_default(0, 0)
            } else {
                vec![Some(remat_ir::Attribute::Int(1))]
            };
            way = way.allow("allowzero", right);
            let plain = result.iter().map(|&dim| signed(dim)).collect();
            let test = move |shape: &[i64]| resolved(shape, &tile, copies).as_ref() == Some(&result);
            way.operands[1] = Need::Elements(Elements {
                plain,
                test: Box::new(test),
                open: site.open(1),
            });
        }
        // Of MLIR: which axes become one is stated, whatever their rows.
        "expand_shape" => {
            let shape: Vec<i64> = result.iter().map(|&dim| signed(dim)).collect();
            way = way.allow("static_output_shape", vec![Some(remat_ir::Attribute::Ints(shape))]);
        }
        "collapse_shape" => {}
        "Flatten" => {
            let at = match site.int("axis", 1) {
                at if at == signed(tile.len() as u64) => tile.len(),
                at => axis(at, tile.len())?,
            };
            let (before, after) = tile.split_at(at);
            if result != [before.iter().product::<u64>(), after.iter().product()] {
                return Err("its shapes do not fit".to_owned());
            }
        }
        _ => {
            let stated = site.op.attributes.contains_key("axes") || site.has(1);
            let longer = if site.op.op_type == "Squeeze" {
                (&tile, &dims)
            } else {
                (&result, &site.out)
            };
            let new_ones = longer
                .0
                .iter()
                .zip(longer.1)
                .any(|(&tile, &whole)| tile == 1 && whole != 1);
            if !stated && new_ones {
                return Err("it would squeeze axes of one row that had more".to_owned());
            }
        }
    }
    Ok(way)
}

/// The dimensions that a shape stands for: 0 copies the operand's, -1 takes what is left.
fn resolved(shape: &[i64], operand: &[u64], copies: bool) -> Option<Vec<u64>> {
    let mut dims = Vec::with_capacity(shape.len());
    let mut open = None;
    for (axis, &dim) in shape.iter().enumerate() {
        dims.push(match dim {
            0 if copies => *operand.get(axis)?,
            -1 if open.replace(axis).is_none() => 1,
            _ => u64::try_from(dim).ok()?,
        });
    }
    let product = |dims: &[u64]| dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
    let (all, known) = (product(operand)?, product(&dims)?);
    if let Some(open) = open {
        dims[open] = all.checked_div(known)?;
    }
    (product(&dims)? == all).then_some(dims)
}

/// The box of the operand that has the elements of a box of the result, in their order.
fn operand_box(out: &[u64], part: &[Rows], dims: &[u64]) -> Option<Vec<Rows>> {
    let mut found = Vec::with_capacity(dims.len());
    let (mut o, mut i) = (0, 0);
    while o < out.len() || i < dims.len() {
        let (first_o, first_i) = (o, i);
        let (mut product_o, mut product_i) = (1_u64, 1_u64);
        // At least one axis of each side, as long as there is one; axes of one row end a group.
        loop {
            if product_o <= product_i && o < out.len() && (o == first_o || product_o != product_i) {
                product_o = product_o.checked_mul(out[o])?;
                o += 1;
            } else if i < dims.len() && (i == first_i || product_o != product_i) {
                product_i = product_i.checked_mul(dims[i])?;
                i += 1;
            } else {
                break;
            }
        }
        if product_o != product_i || product_o == 0 {
            return None;
        }
        let (out, part, dims) = (&out[first_o..o], &part[first_o..o], &dims[first_i..i]);
        if out == dims {
            found.extend_from_slice(part);
        } else {
            found.extend(as_box(&run(out, part)?, dims)?);
        }
    }
    Some(found)
}

/// The elements of a box as one run without gap: one row on the first axes, any on the next one, all on the others.
fn run(dims: &[u64], part: &[Rows]) -> Option<Rows> {
    let (mut start, mut count, mut inner) = (0, 1, 1_u64);
    for (&dim, rows) in dims.iter().zip(part).rev() {
        start += rows.start * inner;
        let own = rows.end - rows.start;
        // Once an axis is cut, those before it have one row.
        if own > 1 && count != inner {
            return None;
        }
        count *= own;
        inner = inner.checked_mul(dim)?;
    }
    Some(start..start + count)
}

/// A run of elements as a box.
fn as_box(run: &Rows, dims: &[u64]) -> Option<Vec<Rows>> {
    let count = run.end - run.start;
    let mut inner: u64 = dims.iter().product();
    let mut rest = run.clone();
    let mut found = Vec::with_capacity(dims.len());
    for (axis, &dim) in dims.iter().enumerate() {
        inner /= dim.max(1);
        let first = rest.start / inner;
        if count.is_multiple_of(inner) && rest.start.is_multiple_of(inner) && first + count / inner <= dim {
            found.push(first..first + count / inner);
            found.extend(dims[axis + 1..].iter().map(|&dim| 0..dim));
            return Some(found);
        }
        if (rest.end - 1) / inner != first {
            return None;
        }
        found.push(first..first + 1);
        rest = rest.start - first * inner..rest.end - first * inner;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_of_one_shape_are_boxes_of_another_or_none() {
        let find = operand_box;
        assert_eq!(find(&[2, 12], &[0..1, 0..12], &[2, 3, 4]), Some(vec![0..1, 0..3, 0..4]));
        assert_eq!(find(&[2, 12], &[0..2, 4..8], &[2, 3, 4]), Some(vec![0..2, 1..2, 0..4]));
        assert_eq!(find(&[2, 12], &[0..2, 4..6], &[2, 3, 4]), Some(vec![0..2, 1..2, 0..2]));
        assert_eq!(find(&[2, 12], &[0..2, 3..6], &[2, 3, 4]), None);
        assert_eq!(find(&[6, 4], &[2..4, 0..4], &[1, 2, 3, 1, 4]), None);
        assert_eq!(
            find(&[6, 4], &[3..6, 1..2], &[1, 2, 3, 1, 4]),
            Some(vec![0..1, 1..2, 0..3, 0..1, 1..2])
        );
        assert_eq!(find(&[2, 3, 4], &[0..2, 1..2, 0..4], &[6, 4]), None);
        assert_eq!(find(&[2, 3, 4], &[1..2, 0..3, 1..3], &[6, 4]), Some(vec![3..6, 1..3]));
        assert_eq!(find(&[1, 1], &[0..1, 0..1], &[]), Some(vec![]));
        assert_eq!(find(&[4, 1], &[1..3, 0..1], &[4, 1, 1]), Some(vec![1..3, 0..1, 0..1]));
    }

    #[test]
    fn shapes_with_wildcards_are_resolved() {
        assert_eq!(resolved(&[0, -1], &[2, 3, 4], true), Some(vec![2, 12]));
        assert_eq!(resolved(&[-1, -1], &[2, 3], true), None);
        assert_eq!(resolved(&[5], &[2, 3], true), None);
        assert_eq!(resolved(&[0], &[2, 3], false), None);
    }
}
