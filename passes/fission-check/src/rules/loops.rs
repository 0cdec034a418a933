//! Operations of MLIR: boxes of their loops, and what each operand is read at within them.

use remat_ir::Attribute;

use super::super::site::{NoWay, Site, Way, rows, signed, whole};
use super::super::values::Rows;

/// How an axis is indexed: a coefficient for each loop, and a constant.
type Row<'a> = &'a [i64];

/// The loops run over the box that the part gives them through the map of the result, all others whole. An operand is read from the least to the
/// greatest value that its index takes within that box; an axis that has nothing to do with cut loops is there whole.
pub(super) fn loops<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let extents = site.ints("extents").ok_or("its loops are not known")?;
    let width = extents.len() + 1;
    let mut box_of: Vec<Option<Rows>> = vec![None; extents.len()];
    let result = site.ints("result_map").ok_or("how it writes its result is not known")?;
    if result.len() != width * site.rank() {
        return Err("the map of its result does not fit its result".to_owned());
    }
    for (axis, row) in result
        .chunks(width)
        .enumerate()
        .filter(|&(axis, _)| !site.is_whole(axis))
    {
        let own = one_loop(row).ok_or_else(|| format!("axis {axis} of the result is not one loop"))?;
        if box_of[own].replace(site.part[axis].clone()).is_some() {
            return Err(format!("loop {own} would run over two boxes"));
        }
    }
    // A loop that is cut moves along no axis of the result that is whole.
    for (axis, row) in result
        .chunks(width)
        .enumerate()
        .filter(|&(axis, _)| site.is_whole(axis))
    {
        if row.iter().zip(&box_of).any(|(&by, cut)| by != 0 && cut.is_some()) {
            return Err(format!("axis {axis} of the result would be cut, too"));
        }
    }
    let mut way = site.way_with_scalars();
    for operand in (0..way.operands.len()).filter(|&operand| site.has(operand)) {
        let Some(map) = site.ints(&format!("map{operand}")) else {
            continue;
        };
        let mut needed = whole(&site.dims(operand)?);
        if map.len() != width * needed.len() {
            return Err(format!("the map of operand {operand} does not fit it"));
        }
        for (row, needed) in map.chunks(width).zip(&mut needed) {
            if row.iter().zip(&box_of).any(|(&by, cut)| by != 0 && cut.is_some()) {
                *needed = indices(row, extents, &box_of).ok_or("an index is too large")??;
            }
        }
        way = way.with(operand, needed);
    }
    let lengths = extents.iter().zip(&box_of).map(|(&extent, cut)| match cut {
        Some(rows) => signed(rows.end - rows.start),
        None => extent,
    });
    let lengths: Vec<i64> = lengths.collect();
    if let Some(Attribute::Int(operations)) = site.op.attributes.get("operations") {
        let product = |extents: &[i64]| extents.iter().map(|&extent| i128::from(extent)).product::<i128>();
        let share = i128::from(*operations) * product(&lengths) / product(extents).max(1);
        let share = i64::try_from(share).map_err(|_| "it computes too much to count")?;
        way = way.allow("operations", vec![Some(Attribute::Int(share))]);
    }
    Ok(way.allow("extents", vec![Some(Attribute::Ints(lengths))]))
}

/// The loop that an index is, and nothing else.
fn one_loop(row: Row<'_>) -> Option<usize> {
    let loops = row.len() - 1;
    let own = row[..loops].iter().position(|&by| by != 0)?;
    let is_plain = row.iter().enumerate().all(|(at, &by)| by == i64::from(at == own));
    is_plain.then_some(own)
}

/// From the least index to the greatest; `None` where they do not fit.
fn indices(row: Row<'_>, extents: &[i64], box_of: &[Option<Rows>]) -> Option<Result<Rows, NoWay>> {
    let mut least = *row.last()?;
    let mut greatest = least;
    for ((&by, &extent), cut) in row.iter().zip(extents).zip(box_of) {
        let (first, last) = match cut {
            Some(rows) => (signed(rows.start), signed(rows.end).checked_sub(1)?),
            None => (0, extent.checked_sub(1)?),
        };
        let [one, other] = [by.checked_mul(first)?, by.checked_mul(last)?];
        least = least.checked_add(one.min(other))?;
        greatest = greatest.checked_add(one.max(other))?;
    }
    Some(rows(least, greatest.checked_add(1)?))
}

/// `tensor.pad`: what of the box lies within the operand is read there, the rest is padding.
pub(super) fn pad<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let dims = site.dims(0)?;
    let amounts = |name: &str| match site.ints(name) {
        Some(amounts) if amounts.len() == dims.len() && amounts.iter().all(|&amount| amount >= 0) => Ok(amounts),
        _ => Err(format!("`{name}` is not known")),
    };
    let (low, high) = (amounts("static_low")?, amounts("static_high")?);
    if site.op.inputs.len() != 1 || site.rank() != dims.len() {
        return Err("its amounts are computed".to_owned());
    }
    let mut needed = whole(&dims);
    let [mut before, mut after] = [low.to_vec(), high.to_vec()];
    for axis in (0..dims.len()).filter(|&axis| !site.is_whole(axis)) {
        let (dim, begin) = (signed(dims[axis]), low[axis]);
        // Where the box begins and ends, counted from the first row of the operand.
        let (from, to) = (
            signed(site.part[axis].start) - begin,
            signed(site.part[axis].end) - begin,
        );
        needed[axis] = rows(from.max(0), to.min(dim))?;
        before[axis] = (-from).max(0);
        after[axis] = (to - dim).max(0);
    }
    let way = site.way()?.with(0, needed);
    let way = way.allow("static_low", vec![Some(Attribute::Ints(before))]);
    Ok(way.allow("static_high", vec![Some(Attribute::Ints(after))]))
}
