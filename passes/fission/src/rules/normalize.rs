//! Normalizations and reductions: axes whose rows do not depend on each other.

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

/// Operand 0 is `N x C x ...`, further operands are vectors over the channels.
pub(super) fn channel_scale(site: &Site<'_>) -> Result<Cut, Reason> {
    let mut cut = site.same_rows(site.axis);
    for place in 1..site.op.inputs.len() {
        if site.axis == 1 && site.operand(place).is_some() {
            if site.dims(place)? != [site.extent()] {
                return Err(Reason::Shapes);
            }
            cut = cut.with(place, 0, site.rows.clone());
        }
    }
    Ok(cut)
}

/// The sum runs over `axis`; models of operator sets below 13 sum over all axes after it, too, and start at 1 where nothing is said. Only what
/// holds for both is split.
pub(super) fn softmax(site: &Site<'_>) -> Result<Cut, Reason> {
    let rank = site.out.len();
    let summed = match site.ints("axis").is_some() || site.op.attributes.contains_key("axis") {
        true => site.axis_of(site.int("axis", -1), rank)?,
        false => 1.min(rank - 1),
    };
    if site.axis >= summed {
        return Err(Reason::Dependent);
    }
    Ok(site.same_rows(site.axis))
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

/// Axes that stay.
pub(super) fn reduce(site: &Site<'_>) -> Result<Cut, Reason> {
    let reduced = reduced_axes(site)?;
    let axis = operand_axis(site, &reduced, site.dims(0)?.len()).ok_or(Reason::Dependent)?;
    Ok(site.same_rows(axis))
}
