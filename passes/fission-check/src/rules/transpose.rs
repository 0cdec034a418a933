//! The transposed convolution.
//!
//! Row `i` of the operand adds to the rows from `i s - p` to `i s - p + r` of the result, where `r = (k - 1) d`. Row `o` of the result has
//! addends from the rows `ceil((o + p - r) / s)` to `floor((o + p) / s)`.

use remat_ir::Attribute;

use super::super::site::{NoWay, Site, Way, rows, signed};

/// Operands: image, weights, bias.
pub(super) fn conv_transpose<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    let (image, weights) = (site.dims(0)?, site.dims(1)?);
    let rank = site.rank();
    if !(3..=5).contains(&rank) || weights.len() != rank || image.len() != rank {
        return Err("its shapes are not understood".to_owned());
    }
    if site.int("group", 1) != 1 && !site.is_whole(1) {
        return Err("it has groups".to_owned());
    }
    let spatial = rank - 2;
    let mut ways = Vec::new();
    let mut why = String::new();
    for choice in 0..1_u32 << spatial {
        let chosen = |axis: usize| choice >> axis & 1 == 1;
        if (0..spatial).any(|axis| chosen(axis) && !site.is_whole(axis + 2)) {
            continue;
        }
        let formula: Vec<bool> = (0..spatial)
            .map(|axis| chosen(axis) || !site.is_whole(axis + 2))
            .collect();
        match lay(site, &image, &weights, &formula) {
            Ok(way) => ways.push(way),
            Err(reason) => why = reason,
        }
    }
    if ways.is_empty() { Err(why) } else { Ok(ways) }
}

fn lay<'a>(site: &Site<'a>, image: &[u64], weights: &[u64], formula: &[bool]) -> Result<Way<'a>, NoWay> {
    let spatial = formula.len();
    let mut way = site.way()?.with_axis(0, 0, &site.part[0]);
    if !site.is_whole(1) {
        way = way.with_axis(1, 1, &site.part[1]).with_axis(2, 0, &site.part[1]);
    }
    if !formula.contains(&true) {
        return Ok(way);
    }
    if site.ints("output_shape").is_some() || !matches!(site.text("auto_pad"), None | Some("NOTSET")) {
        return Err("its padding depends on the size of its result".to_owned());
    }
    let list = |name: &str, default: i64, count: usize| {
        let list = site.ints(name).map_or_else(|| vec![default; count], <[i64]>::to_vec);
        let is_sound = list.len() == count && list.iter().all(|number| (0..=1 << 31).contains(number));
        is_sound
            .then_some(list)
            .ok_or_else(|| format!("`{name}` is not understood"))
    };
    let (strides, dilations) = (list("strides", 1, spatial)?, list("dilations", 1, spatial)?);
    let mut pads = list("pads", 0, 2 * spatial)?;
    let mut more = list("output_padding", 0, spatial)?;
    for axis in (0..spatial).filter(|&axis| formula[axis]) {
        let (stride, dilation) = (strides[axis].max(1), dilations[axis].max(1));
        let reach = (signed(weights[axis + 2]) - 1) * dilation;
        let begin = pads[axis];
        let (low, high) = (
            signed(site.part[axis + 2].start) + begin,
            signed(site.part[axis + 2].end) + begin,
        );
        let first = -(reach - low).div_euclid(stride);
        let first = first.min(low.div_euclid(stride)).max(0);
        let end = ((high - 1).div_euclid(stride) + 1).min(signed(image[axis + 2]));
        let needed = rows(first, end)?;
        pads[axis] = low - first * stride;
        let beyond = (end - 1) * stride + reach + 1 - high;
        pads[axis + spatial] = beyond.max(0);
        more[axis] = (-beyond).max(0);
        if more[axis] >= stride.max(dilation) || pads[axis] < 0 {
            return Err("no padding makes such rows".to_owned());
        }
        way = way.with_axis(0, axis + 2, &needed);
    }
    let optional = |list: Vec<i64>| match list.iter().all(|&number| number == 0) {
        true => vec![Some(Attribute::Ints(list)), None],
        false => vec![Some(Attribute::Ints(list))],
    };
    Ok(way
        .allow("pads", optional(pads))
        .allow("output_padding", optional(more))
        .allow("auto_pad", vec![None, Some(Attribute::String(b"NOTSET".to_vec()))]))
}
