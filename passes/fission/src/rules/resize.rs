//! Interpolation.

use super::{Cut, Integers, Reason, Site};

/// Operands: image, region, scales, sizes. Only whole factors, at which every block of rows of the result depends on its row of the image alone
/// (nearest), or on that and one more on each side (linear, factors that are powers of two: others are not exact in binary).
pub(super) fn resize(site: &Site<'_>) -> Result<Cut, Reason> {
    let image = site.dims(0)?;
    let coordinates = site.text("coordinate_transformation_mode", "half_pixel");
    if image.len() != site.out.len() {
        return Err(Reason::Shapes);
    }
    if coordinates == "tf_crop_and_resize" {
        return Err(Reason::Attribute("coordinate_transformation_mode"));
    }
    if site.int("antialias", 0) != 0 {
        return Err(Reason::Attribute("antialias"));
    }
    if site.text("keep_aspect_ratio_policy", "stretch") != "stretch" {
        return Err(Reason::Attribute("keep_aspect_ratio_policy"));
    }
    let (from, to) = (image[site.axis], site.extent());
    if from == 0 {
        return Err(Reason::Shapes);
    }
    if from == to {
        return sized(site, site.same_rows(site.axis), site.length());
    }
    if !to.is_multiple_of(from) || !matches!(coordinates, "half_pixel" | "asymmetric") {
        return Err(Reason::Attribute("coordinate_transformation_mode"));
    }
    let factor = to / from;
    let (mut first, mut last) = (site.rows.start / factor, site.rows.end.div_ceil(factor));
    match site.text("mode", "nearest") {
        "nearest" => {
            let rounding = site.text("nearest_mode", "round_prefer_floor");
            let is_block = match coordinates {
                "half_pixel" => rounding.starts_with("round_prefer_"),
                _ => rounding == "floor",
            };
            if !is_block {
                return Err(Reason::Attribute("nearest_mode"));
            }
        }
        "linear" if factor.is_power_of_two() => {
            first = first.saturating_sub(1);
            last = (last + 1).min(from);
        }
        _ => return Err(Reason::Attribute("mode")),
    }
    let made = first * factor..last * factor;
    let mut cut = site.whole().with(0, site.axis, first..last);
    cut.spare = (site.rows.start - made.start, made.end - site.rows.end);
    sized(site, cut, made.end - made.start)
}

/// States the size of the clone's result, where the original's is stated; scales stay as they are.
fn sized(site: &Site<'_>, mut cut: Cut, rows: u64) -> Result<Cut, Reason> {
    if site.operand(3).is_none() {
        return Ok(cut);
    }
    let mut dims = site.out.clone();
    dims[site.axis] = rows;
    let rank = dims.len();
    let axes = match site.ints("axes").filter(|axes| !axes.is_empty()) {
        None => (0..rank).collect(),
        Some(axes) => {
            let axes = axes.iter().map(|&axis| site.axis_of(axis, rank));
            axes.collect::<Result<Vec<usize>, _>>()?
        }
    };
    if axes.iter().any(|&axis| site.result().is_free(axis)) {
        return Err(Reason::Free);
    }
    let sizes = axes.into_iter().map(|axis| i64::try_from(dims[axis]));
    let sizes: Result<Vec<i64>, _> = sizes.collect();
    let sizes = Integers::list(sizes.map_err(|_| Reason::Shapes)?);
    cut.integers.insert(3, sizes);
    Ok(cut)
}
