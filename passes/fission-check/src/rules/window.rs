//! Convolutions and pooling: windows along the spatial axes.
//!
//! Window `o` of an axis with stride `s`, dilation `d`, kernel `k` and begin padding `p` covers the rows from `o s - p` to
//! `o s - p + (k - 1) d`. Windows `lo..hi` need the rows from the first of `lo` to the last of `hi - 1`; where those lie outside of the axis,
//! the tile is padded.

use remat_ir::Attribute;

use super::super::site::{NoWay, Site, Way, rows, signed};
use super::super::values::Rows;

/// The windows of an op along its spatial axes.
struct Windows {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// Begins, then ends.
    pads: Vec<i64>,
    /// Whether the last window may lie partly outside.
    rounds_up: bool,
}

impl Windows {
    fn of(site: &Site<'_>, kernel: Vec<i64>, image: &[u64]) -> Result<Self, NoWay> {
        let spatial = site.rank().saturating_sub(2);
        let auto_pad = site.text("auto_pad").unwrap_or("NOTSET");
        let list = |name: &str, default: i64, count: usize| {
            site.ints(name).map_or_else(|| vec![default; count], <[i64]>::to_vec)
        };
        let pads = match auto_pad {
            "NOTSET" => list("pads", 0, 2 * spatial),
            _ => vec![0; 2 * spatial],
        };
        let mut windows = Self {
            kernel,
            strides: list("strides", 1, spatial),
            dilations: list("dilations", 1, spatial),
            pads,
            rounds_up: site.int("ceil_mode", 0) != 0,
        };
        let counts = [&windows.kernel, &windows.strides, &windows.dilations].map(Vec::len);
        let is_sound = counts == [spatial; 3]
            && windows.pads.len() == 2 * spatial
            && [&windows.kernel, &windows.strides, &windows.dilations]
                .iter()
                .all(|numbers| numbers.iter().all(|number| (1..=1 << 31).contains(number)))
            && windows.pads.iter().all(|pad| (0..=1 << 31).contains(pad));
        if spatial == 0 || !is_sound {
            return Err("its windows are not understood".to_owned());
        }
        match auto_pad {
            "NOTSET" | "VALID" => {}
            "SAME_UPPER" | "SAME_LOWER" if image.len() == spatial + 2 => {
                for axis in 0..spatial {
                    let sum = windows.same(axis, signed(image[axis + 2]));
                    let (less, more) = (sum / 2, sum - sum / 2);
                    let is_upper = auto_pad == "SAME_UPPER";
                    windows.pads[axis] = if is_upper { less } else { more };
                    windows.pads[axis + spatial] = if is_upper { more } else { less };
                }
            }
            _ => return Err("its padding is not understood".to_owned()),
        }
        Ok(windows)
    }

    /// Begin and end padding together that give a window for every `stride`-th row of an axis.
    fn same(&self, axis: usize, extent: i64) -> i64 {
        let windows = (extent + self.strides[axis] - 1) / self.strides[axis];
        ((windows - 1) * self.strides[axis] + self.reach(axis) + 1 - extent).max(0)
    }

    /// From the first to the last row of a window.
    fn reach(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1) * self.dilations[axis]
    }
}

/// The ways to lay windows over tiles: along an axis that is cut by the formula, along others by the formula or as they were. `image` are the
/// dimensions of the operand.
fn laid<'a>(site: &Site<'a>, windows: &Windows, image: &[u64]) -> Result<Vec<Way<'a>>, NoWay> {
    let spatial = site.rank() - 2;
    if image.len() != site.rank() || spatial > 3 {
        return Err("its shapes are not understood".to_owned());
    }
    let cut: Vec<bool> = (0..spatial).map(|axis| !site.is_whole(axis + 2)).collect();
    let mut ways = Vec::new();
    let mut why = String::new();
    for choice in 0..1_u32 << spatial {
        let by_formula = |axis: usize| cut[axis] || choice >> axis & 1 == 1;
        if (0..spatial).any(|axis| cut[axis] && choice >> axis & 1 == 1) {
            continue;
        }
        let formula: Vec<bool> = (0..spatial).map(by_formula).collect();
        match lay(site, windows, image, &formula) {
            Ok(way) => ways.push(way),
            Err(reason) => why = reason,
        }
    }
    if ways.is_empty() { Err(why) } else { Ok(ways) }
}

fn lay<'a>(site: &Site<'a>, windows: &Windows, image: &[u64], formula: &[bool]) -> Result<Way<'a>, NoWay> {
    let spatial = formula.len();
    let mut way = site.way()?.with_axis(0, 0, &site.part[0]);
    if !formula.contains(&true) {
        return Ok(way);
    }
    if windows.rounds_up && site.op.op_type != "MaxPool" {
        return Err("its last window may lie partly outside".to_owned());
    }
    let mut pads = windows.pads.clone();
    for axis in 0..spatial {
        let (stride, reach, begin) = (windows.strides[axis], windows.reach(axis), windows.pads[axis]);
        let extent = signed(image[axis + 2]);
        if formula[axis] {
            let part = &site.part[axis + 2];
            let first = signed(part.start) * stride - begin;
            let end = (signed(part.end) - 1) * stride - begin + reach + 1;
            let needed: Rows = rows(first.max(0), end.min(extent))?;
            pads[axis] = (-first).max(0);
            pads[axis + spatial] = (end - extent).max(0);
            way = way.with_axis(0, axis + 2, &needed);
        } else if windows.rounds_up {
            let end = (signed(site.out[axis + 2]) - 1) * stride + reach + 1;
            pads[axis + spatial] = pads[axis + spatial].max(end - extent - begin);
        }
    }
    let no_pads = pads.iter().all(|&pad| pad == 0);
    let text = |text: &str| Some(Attribute::String(text.as_bytes().to_vec()));
    let mut paddings = vec![Some(Attribute::Ints(pads))];
    let mut autos = vec![None, text("NOTSET")];
    if no_pads {
        paddings.push(None);
        autos.push(text("VALID"));
    }
    Ok(way
        .allow("pads", paddings)
        .allow("auto_pad", autos)
        .allow("ceil_mode", vec![None, Some(Attribute::Int(0))]))
}

/// Operands: image, weights, bias, summand of the fused form.
pub(super) fn conv<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    let has_summand = site.has(3);
    if has_summand && site.dims(3)? != site.out {
        return Err("its summand has another shape".to_owned());
    }
    let ways = convolution(site, 1, &[2])?;
    Ok(ways.into_iter().map(|way| way.with(3, site.part.to_vec())).collect())
}

/// Operands of the form in integers: image, weights, zero points of both; of the form with scales: image, weights and result, each with scale and
/// zero point, and bias.
pub(super) fn quantized_conv<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    site.channels_first()?;
    match site.op.op_type.as_str() {
        "ConvInteger" => convolution(site, 1, &[3]),
        _ => convolution(site, 3, &[4, 5, 8]),
    }
}

/// A convolution by the weights of one operand; of `vectors`, those with a number for each output channel are cut along with them.
fn convolution<'a>(site: &Site<'a>, filters: usize, vectors: &[usize]) -> Result<Vec<Way<'a>>, NoWay> {
    let (image, weights) = (site.dims(0)?, site.dims(filters)?);
    if site.rank() < 3 || weights.len() != site.rank() {
        return Err("its shapes are not understood".to_owned());
    }
    let kernel = weights[2..].iter().map(|&k| signed(k)).collect();
    let windows = Windows::of(site, kernel, &image)?;
    let channels = channels(site, &weights)?;
    let mut cut_along = vec![filters];
    for &vector in vectors.iter().filter(|&&vector| site.has(vector)) {
        match site.dims(vector)?.as_slice() {
            [numbers] if *numbers == site.out[1] => cut_along.push(vector),
            [] | [1] => {}
            _ => return Err(format!("operand {vector} does not fit its channels")),
        }
    }
    let ways = laid(site, &windows, &image)?;
    let finish = |mut way: Way<'a>| {
        for &operand in &cut_along {
            way = way.with_axis(operand, 0, &site.part[1]);
        }
        if let Some((inputs, group)) = &channels {
            way = way.with_axis(0, 1, inputs);
            way = way.allow("group", with_default(*group, 1));
        }
        way
    };
    Ok(ways.into_iter().map(finish).collect())
}

/// Where a box takes some of the channels of a grouped convolution: the input channels that it needs, and how many groups they are.
fn channels(site: &Site<'_>, weights: &[u64]) -> Result<Option<(Rows, i64)>, NoWay> {
    let group = u64::try_from(site.int("group", 1)).ok().filter(|&group| group > 0);
    let group = group.ok_or("its groups are none")?;
    if site.is_whole(1) || group == 1 {
        return Ok(None);
    }
    let per = site.out[1] / group;
    let part = &site.part[1];
    if per * group != site.out[1] || !part.start.is_multiple_of(per) || !part.end.is_multiple_of(per) {
        return Err("it cuts a group".to_owned());
    }
    let (first, last) = (part.start / per, part.end / per);
    Ok(Some((first * weights[1]..last * weights[1], signed(last - first))))
}

/// The operand is an image.
pub(super) fn pool<'a>(site: &Site<'a>) -> Result<Vec<Way<'a>>, NoWay> {
    site.channels_first()?;
    let kernel = site.ints("kernel_shape").map(<[i64]>::to_vec).unwrap_or_default();
    let image = site.dims(0)?;
    let windows = Windows::of(site, kernel, &image)?;
    let ways = laid(site, &windows, &image)?;
    Ok(ways.into_iter().map(|way| way.with_axis(0, 1, &site.part[1])).collect())
}

/// An integer attribute that may be left out where it is the default.
pub(super) fn with_default(value: i64, default: i64) -> Vec<Option<Attribute>> {
    let mut values = vec![Some(Attribute::Int(value))];
    if value == default {
        values.push(None);
    }
    values
}
