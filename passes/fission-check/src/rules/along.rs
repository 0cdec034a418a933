//! Ops whose results depend on all of some axes and on one row of the others: normalizations, reductions; quantization, which has a scale for
//! every row of an axis.

use remat_ir::Attribute;

use super::super::site::{NoWay, Site, Way, axis};

/// The first operand has the shape of the result, or the axes from `from` on are reduced to one; those must be whole.
fn same<'a>(site: &Site<'a>, dependent: impl Fn(usize) -> bool) -> Result<Way<'a>, NoWay> {
    if site.dims(0)?.len() != site.rank() {
        return Err("its shapes are not understood".to_owned());
    }
    let mut way = site.way()?;
    for axis in 0..site.rank() {
        if !dependent(axis) {
            way = way.with_axis(0, axis, &site.part[axis]);
        } else if !site.is_whole(axis) {
            return Err(format!("its results depend on all of axis {axis}"));
        }
    }
    Ok(way)
}

/// Further operands are vectors over the channels, or single numbers.
fn with_channels<'a>(site: &Site<'a>, mut way: Way<'a>) -> Result<Way<'a>, NoWay> {
    for operand in (1..site.op.inputs.len()).filter(|&operand| site.has(operand)) {
        let dims = site.dims(operand)?;
        if dims == site.out[1..2] {
            way = way.with_axis(operand, 0, &site.part[1]);
        } else if dims.iter().any(|&dim| dim != 1) || dims.len() > 1 {
            return Err(format!("operand {operand} is no vector over the channels"));
        }
    }
    Ok(way)
}

fn image(site: &Site<'_>) -> Result<(), NoWay> {
    match site.rank() {
        0..2 => Err("its shapes are not understood".to_owned()),
        _ => Ok(()),
    }
}

/// Each channel of each image by itself.
pub(super) fn per_channel<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    site.channels_first()?;
    image(site)?;
    with_channels(site, same(site, |axis| axis > 1)?)
}

/// Each image by itself.
pub(super) fn per_image<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    same(site, |axis| axis > 0)
}

/// Each group of channels of each image by itself; scale and bias have a number for each channel, or for each group.
pub(super) fn group_norm<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    image(site)?;
    if site.is_whole(1) {
        return per_image(site);
    }
    let groups = u64::try_from(site.int("num_groups", 0)).unwrap_or(0);
    let each = site.out[1]
        .checked_div(groups)
        .filter(|&each| each > 0 && each * groups == site.out[1]);
    let each = each.ok_or("its groups are not understood")?;
    let (start, end) = (site.part[1].start, site.part[1].end);
    if start % each != 0 || end % each != 0 {
        return Err("it cuts a group".to_owned());
    }
    let own = start / each..end / each;
    let mut way = same(site, |axis| axis > 1)?;
    for operand in (1..site.op.inputs.len()).filter(|&operand| site.has(operand)) {
        let part = match site.dims(operand)?.as_slice() {
            [numbers] if *numbers == site.out[1] => &site.part[1],
            [numbers] if *numbers == groups => &own,
            _ => return Err(format!("operand {operand} does not fit its channels")),
        };
        way = way.with_axis(operand, 0, part);
    }
    let count = i64::try_from(own.end - own.start).map_err(|_| "its groups are not understood")?;
    Ok(way.allow("num_groups", vec![Some(Attribute::Int(count))]))
}

/// With statistics that are given, each element by itself.
pub(super) fn batch_norm<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    image(site)?;
    if site.int("training_mode", 0) != 0 {
        return Err("it finds the statistics itself".to_owned());
    }
    with_channels(site, same(site, |_| false)?)
}

/// Sums over one axis, by default the last one. Up to version 12 of the operators, which an attribute says, the default is 1 and all axes after it
/// are summed over, too.
pub(super) fn softmax<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let is_early = site.int("flattens", 0) != 0 || (0..13).contains(&site.int("opset", 13));
    let default = match is_early && site.rank() > 1 {
        true => 1,
        false => -1,
    };
    let summed = axis(site.int("axis", default), site.rank())?;
    same(site, |axis| axis == summed || is_early && axis > summed)
}

/// Normalizes all axes from one on; scale and bias have those axes.
pub(super) fn layer_norm<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let first = axis(site.int("axis", -1), site.rank())?;
    for operand in (1..site.op.inputs.len()).filter(|&operand| site.has(operand)) {
        if site.dims(operand)?.len() > site.rank() - first {
            return Err(format!("operand {operand} has more axes than are normalized"));
        }
    }
    same(site, |axis| axis >= first)
}

/// Operands: image, summand, scale, bias, bias of the summand, the last three vectors over the last axis. The original has them in this order
/// with or without the first bias, which changes nothing here.
pub(super) fn skip_layer_norm<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let last = site.rank().checked_sub(1).ok_or("its shapes are not understood")?;
    for operand in (2..site.op.inputs.len()).filter(|&operand| site.has(operand)) {
        if site.dims(operand)?.len() != 1 {
            return Err(format!("operand {operand} is no vector"));
        }
    }
    Ok(same(site, |axis| axis == last)?.with(1, site.broadcast(1)?))
}

/// Operands: image, and the axes where they are no attribute.
pub(super) fn reduce<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let rank = site.dims(0)?.len();
    let stated = match (site.ints("axes"), site.has(1)) {
        (Some(axes), _) => axes,
        (None, true) => site.integers(1)?,
        (None, false) => &[],
    };
    let mut reduced = vec![stated.is_empty() && site.int("noop_with_empty_axes", 0) == 0; rank];
    for &stated in stated {
        reduced[axis(stated, rank)?] = true;
    }
    without(site, &reduced)
}

/// Finds places along one axis, by default the first.
pub(super) fn position<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let rank = site.dims(0)?.len();
    let along = axis(site.int("axis", 0), rank)?;
    without(site, &(0..rank).map(|axis| axis == along).collect::<Vec<_>>())
}

/// Sums up to each place along the axis that operand 1 names.
pub(super) fn cumulated<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let &[along] = site.integers(1)? else {
        return Err("its axis is not understood".to_owned());
    };
    let along = axis(along, site.rank())?;
    same(site, |axis| axis == along)
}

/// Operand 0 has the axes of the result and those that are reduced.
fn without<'a>(site: &Site<'a>, reduced: &[bool]) -> Result<Way<'a>, NoWay> {
    let rank = reduced.len();
    let keeps = site.int("keepdims", 1) != 0;
    let kept = (0..rank).filter(|&axis| keeps || !reduced[axis]);
    let mut way = site.way()?;
    let mut count = 0;
    for (own, of) in kept.enumerate() {
        count += 1;
        let part = site.part.get(own).ok_or("its shapes do not fit")?;
        if !reduced[of] {
            way = way.with_axis(0, of, part);
        }
    }
    if count != site.rank() {
        return Err("its shapes do not fit".to_owned());
    }
    Ok(way)
}

/// Operands: values, scale, zero point; the last two are scalars or vectors over one axis.
pub(super) fn quantized<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let scale = site.dims(1)?;
    if site.int("block_size", 0) != 0 || site.dims(0)? != site.out || scale.len() > 1 {
        return Err("its scales are not understood".to_owned());
    }
    let mut way = site.way()?.with(0, site.part.to_vec());
    if scale.is_empty() || scale == [1] {
        return Ok(way);
    }
    let along = axis(site.int("axis", 1), site.rank())?;
    for operand in (1..site.op.inputs.len()).filter(|&operand| site.has(operand)) {
        if site.dims(operand)? != site.out[along..=along] {
            return Err("its scales do not fit".to_owned());
        }
        way = way.with_axis(operand, 0, &site.part[along]);
    }
    Ok(way)
}
