//! `Resize` by whole numbers.

use remat_ir::Spare;

use super::super::site::{Need, NoWay, Site, Way, axis, signed};
use super::super::values::Rows;

/// Operands: image, region (not used), scales, sizes.
pub(super) fn resize<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    // With two operands it is the first form of the operator, which takes the same rows.
    let is_known = site.int("antialias", 0) == 0
        && site
            .text("keep_aspect_ratio_policy")
            .is_none_or(|policy| policy == "stretch");
    let image = site.dims(0)?;
    if !is_known || image.len() != site.rank() {
        return Err("this form of it is not known".to_owned());
    }
    let mut way = site.way()?;
    let mut extents = site.out.clone();
    for (axis, &rows) in image.iter().enumerate() {
        let part = &site.part[axis];
        let (needed, result): (Rows, Rows) = if site.is_whole(axis) {
            (0..rows, part.clone())
        } else if rows == site.out[axis] {
            (part.clone(), part.clone())
        } else {
            let (needed, scale) = source(site, part, rows, site.out[axis])?;
            let result = needed.start * scale..needed.end * scale;
            (needed, result)
        };
        extents[axis] = result.end - result.start;
        let (before, after) = (part.start - result.start, result.end - part.end);
        if before + after > 0 {
            if way.spare.is_some() {
                return Err("two axes would have spare rows".to_owned());
            }
            way.spare = Some(Spare { axis, before, after });
        }
        way = way.with_axis(0, axis, &needed);
    }
    if site.has(3) {
        let named = match site.ints("axes") {
            Some(axes) => axes
                .iter()
                .map(|&named| axis(named, site.rank()))
                .collect::<Result<Vec<usize>, _>>()?,
            None => (0..site.rank()).collect(),
        };
        let sizes: Vec<i64> = named.into_iter().map(|axis| signed(extents[axis])).collect();
        way.operands[3] = Need::exactly(sizes);
    }
    Ok(way)
}

/// The rows that a part of a cut axis is made of, and the scale.
fn source(site: &Site<'_>, part: &Rows, rows: u64, out: u64) -> Result<(Rows, u64), NoWay> {
    let mode = site.text("mode").unwrap_or("nearest");
    let place = site.text("coordinate_transformation_mode").unwrap_or("half_pixel");
    if rows == 0 || !out.is_multiple_of(rows) {
        return Err("its scale is not a whole number".to_owned());
    }
    let scale = out / rows;
    let nearest = site.text("nearest_mode").unwrap_or("round_prefer_floor");
    let is_nearest = match place {
        "half_pixel" => matches!(nearest, "round_prefer_floor" | "round_prefer_ceil"),
        "asymmetric" => nearest == "floor",
        _ => false,
    };
    let is_linear = mode == "linear" && scale.is_power_of_two() && matches!(place, "half_pixel" | "asymmetric");
    let (first, end) = (part.start / scale, part.end.div_ceil(scale));
    match mode {
        "nearest" if is_nearest => Ok((first..end, scale)),
        _ if is_linear => Ok((first.saturating_sub(1)..(end + 1).min(rows), scale)),
        _ => Err("this way to find rows in between is not known".to_owned()),
    }
}
