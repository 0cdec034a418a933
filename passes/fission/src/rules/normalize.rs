//! Normalizations and reductions: axes whose rows do not depend on each other.

use std::ops::Range;

use super::site::whole_multiples;
use super::{Cut, Reason, Site};

/// Every channel of every image: operand 0 is `N x C x ...`, further operands are vectors over the channels.
pub(super) fn per_channel(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis > 1 {
        return Err(Reason::Dependent);
    }
    channel_scale(site)
}

/// Every image: operand 0 is `N x ...`.
pub(super) fn per_image(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis > 0 {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(0))
}

/// Operand 0 is `N x C x ...`, further operands are vectors over the channels, or single numbers.
pub(super) fn channel_scale(site: &Site<'_>) -> Result<Cut, Reason> {
    site.has_channels_first()?;
    let mut cut = site.same_rows(site.axis);
    for place in 1..site.op.inputs.len() {
        if site.axis != 1 || site.operand(place).is_none() {
            continue;
        }
        cut = match site.dims(place)?.as_slice() {
            [] => cut,
            [channels] if *channels == site.extent() => cut.with(place, 0, site.rows.clone()),
            [1] => cut,
            _ => return Err(Reason::Shapes),
        };
    }
    Ok(cut)
}

/// Operands: `N x C x ...`, numbers for each channel of each image, and what broadcasts to the result.
pub(super) fn by_channel(site: &Site<'_>) -> Result<Cut, Reason> {
    let mut cut = site.same_rows(site.axis);
    if site.axis < 2 {
        cut = cut.with(1, site.axis, site.rows.clone());
    }
    for (place, need) in cut.needs.iter_mut().enumerate().skip(2) {
        *need = site.aligned(place)?;
    }
    Ok(cut)
}

/// The sum runs over `axis`; in models of operator sets below 13 (`flattens`, or `opset` of the quantized form) over all axes after it, too, and
/// from axis 1 on where nothing is said.
pub(crate) fn softened_axes(site: &Site<'_>) -> Result<Range<usize>, Reason> {
    let rank = site.out.len();
    let flattens = site.int("flattens", 0) != 0 || site.int("opset", 13) < 13;
    let default = if flattens && rank > 1 { 1 } else { -1 };
    let summed = site.axis_of(site.int("axis", default), rank)?;
    Ok(summed..if flattens { rank } else { summed + 1 })
}

/// Every axis that is not summed over.
pub(super) fn softmax(site: &Site<'_>) -> Result<Cut, Reason> {
    if softened_axes(site)?.contains(&site.axis) {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(site.axis))
}

/// Along `axis`; operand 1 has numbers for the rows across it.
pub(super) fn soften(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis != site.axis_of(site.int("axis", -1), site.out.len())? {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(site.axis))
}

/// Operands: `N x C x ...`, scale and bias with a number for each channel or for each group.
pub(super) fn group_norm(site: &Site<'_>) -> Result<Cut, Reason> {
    let groups = u64::try_from(site.int("num_groups", 1)).unwrap_or(0);
    if site.axis == 0 {
        return Ok(site.same_rows(0));
    }
    if site.axis > 1 || groups == 0 || !site.extent().is_multiple_of(groups) {
        return Err(Reason::Dependent);
    }
    let channels = site.extent() / groups;
    let own = whole_multiples(&site.rows, channels)?;
    let mut cut = site.same_rows(1);
    for place in 1..site.op.inputs.len() {
        cut = match site.dims(place)?.as_slice() {
            [dim] if *dim == site.extent() => cut.with(place, 0, site.rows.clone()),
            [dim] if *dim == groups => cut.with(place, 0, own.clone()),
            _ => return Err(Reason::Shapes),
        };
    }
    cut.with_int("num_groups", own.end - own.start)
}

/// All axes from `axis` on are normalized; scale and bias have their shape. Mean and deviation have the axes before.
pub(super) fn layer_norm(site: &Site<'_>) -> Result<Cut, Reason> {
    let normalized = site.axis_of(site.int("axis", -1), site.out.len())?;
    if site.axis >= normalized {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(site.axis))
}

/// Operands: image, summand, scale, bias, bias of the summand. The last axis is normalized.
pub(super) fn skip_layer_norm(site: &Site<'_>) -> Result<Cut, Reason> {
    if site.axis + 1 == site.out.len() {
        return Err(Reason::Dependent);
    }
    let mut cut = site.same_rows(site.axis);
    *cut.needs.get_mut(1).ok_or(Reason::Shapes)? = site.aligned(1)?;
    Ok(cut)
}

/// The axes that are reduced: an attribute or operand 1; without any, all unless `noop_with_empty_axes` says otherwise.
pub(crate) fn reduced_axes(site: &Site<'_>) -> Result<Vec<usize>, Reason> {
    let rank = site.dims(0)?.len();
    let stated = match site.ints("axes") {
        Some(axes) => Some(axes),
        None => site.integers(1)?,
    };
    match stated.filter(|axes| !axes.is_empty()) {
        Some(axes) => axes.iter().map(|&axis| site.axis_of(axis, rank)).collect(),
        None if site.int("noop_with_empty_axes", 0) != 0 => Ok(Vec::new()),
        None => Ok((0..rank).collect()),
    }
}

/// The axis of the operand that the axis of the result is, if it stays.
pub(crate) fn operand_axis(site: &Site<'_>, reduced: &[usize], rank: usize) -> Option<usize> {
    let axis = if site.int("keepdims", 1) != 0 {
        Some(site.axis)
    } else {
        (0..rank).filter(|axis| !reduced.contains(axis)).nth(site.axis)
    };
    axis.filter(|axis| !reduced.contains(axis))
}

/// The axes that stay, where places along `axis` are found.
pub(super) fn position(site: &Site<'_>) -> Result<Cut, Reason> {
    let rank = site.dims(0)?.len();
    let along = site.axis_of(site.int("axis", 0), rank)?;
    let axis = operand_axis(site, &[along], rank).ok_or(Reason::Dependent)?;
    Ok(site.same_rows(axis))
}

/// Every axis but the one that operand 1 names.
pub(super) fn cumulate(site: &Site<'_>) -> Result<Cut, Reason> {
    let along = match site.integers(1)? {
        Some(&[along]) => site.axis_of(along, site.out.len())?,
        _ => return Err(Reason::Computed),
    };
    if site.axis == along {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(site.axis))
}

/// Axes that stay.
pub(super) fn reduce(site: &Site<'_>) -> Result<Cut, Reason> {
    let reduced = reduced_axes(site)?;
    let axis = operand_axis(site, &reduced, site.dims(0)?.len()).ok_or(Reason::Dependent)?;
    Ok(site.same_rows(axis))
}
