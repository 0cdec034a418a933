//! Operations of MLIR that say themselves how they read: those with loops over indices, which the importer states, and paddings.

use super::{Cut, Need, Reason, Site};

/// By loop `extents`; a map of the result (`result_map`) and of each operand that is read by index (`map0`, ..): for each axis one coefficient
/// per loop, and a constant. An axis of the result is one loop; an axis of an operand is a sum, such as `2 * row + window`. Loops that the
/// result does not have, those of sums, run whole.
pub(super) fn loops(site: &Site<'_>) -> Result<Cut, Reason> {
    let extents = site.ints("extents").ok_or(Reason::NoRule)?;
    let width = extents.len() + 1;
    let result = site.ints("result_map").ok_or(Reason::NoRule)?;
    let own = own_loop(result, width, site.axis).ok_or(Reason::Attribute("result_map"))?;
    let mut cut = site.whole();
    for place in 0..site.op.inputs.len() {
        let Some(map) = site
            .ints(&format!("map{place}"))
            .filter(|_| site.operand(place).is_some())
        else {
            continue;
        };
        let dims = site.dims(place)?;
        for (axis, row) in map
            .chunks(width)
            .enumerate()
            .filter(|(_, row)| row.get(own).is_some_and(|&by| by != 0))
        {
            if cut.needs[place] != Need::Whole {
                return Err(Reason::Shapes);
            }
            let (start, end) = reach(row, extents, own, site).ok_or(Reason::Shapes)?;
            if dims.get(axis).is_none_or(|&dim| end > dim) {
                return Err(Reason::Shapes);
            }
            cut = cut.with(place, axis, start..end);
        }
    }
    let mut extents: Vec<u64> = extents.iter().map(|&extent| extent.unsigned_abs()).collect();
    let before = std::mem::replace(&mut extents[own], site.length());
    if let Ok(operations) = u64::try_from(site.int("operations", -1)) {
        cut = cut.with_int("operations", operations / before.max(1) * site.length())?;
    }
    cut.with_ints("extents", &extents)
}

/// The loop that an axis of the result is, if no other axis has to do with it.
fn own_loop(map: &[i64], width: usize, axis: usize) -> Option<usize> {
    let row = map.chunks(width).nth(axis)?;
    let mut used = row.iter().enumerate().filter(|(_, by)| **by != 0);
    let (own, &by) = used.next()?;
    let is_alone = map
        .chunks(width)
        .filter(|row| row.get(own).is_some_and(|&by| by != 0))
        .count()
        == 1;
    (by == 1 && used.next().is_none() && own + 1 < width && is_alone).then_some(own)
}

/// Where the rows begin that an axis of an operand needs, and where they end.
fn reach(row: &[i64], extents: &[i64], own: usize, site: &Site<'_>) -> Option<(u64, u64)> {
    let (coefficients, constant) = row.split_at(extents.len());
    let at = |index: u64| u64::try_from(coefficients[own]).ok()?.checked_mul(index);
    let constant = u64::try_from(*constant.first()?).ok()?;
    let mut window = 0_u64;
    for (index, (&by, &extent)) in coefficients.iter().zip(extents).enumerate() {
        if index != own {
            let steps = u64::try_from(extent.checked_sub(1)?).ok()?;
            window = window.checked_add(u64::try_from(by).ok()?.checked_mul(steps)?)?;
        }
    }
    let start = at(site.rows.start)?.checked_add(constant)?;
    let end = at(site.rows.end - 1)?.checked_add(constant)?.checked_add(window)?;
    Some((start, end.checked_add(1)?))
}

/// `tensor.pad` by constant amounts.
pub(super) fn pad(site: &Site<'_>) -> Result<Cut, Reason> {
    let [dims, low, high] = [
        site.dims(0)?,
        site.extents("static_low", site.out.len(), 0)?,
        site.extents("static_high", site.out.len(), 0)?,
    ];
    if site.op.inputs.len() != 1 || dims.len() != low.len() {
        return Err(Reason::Computed);
    }
    let (axis, extent) = (site.axis, dims[site.axis]);
    let first = site.rows.start.saturating_sub(low[axis]);
    let last = site.rows.end.saturating_sub(low[axis]).min(extent);
    if last <= first {
        return Err(Reason::Padding);
    }
    let (mut before, mut after) = (low.clone(), high);
    before[axis] = low[axis].saturating_sub(site.rows.start);
    after[axis] = site.rows.end.saturating_sub(low[axis] + extent);
    let cut = site.whole().with(0, axis, first..last);
    cut.with_ints("static_low", &before)?.with_ints("static_high", &after)
}
