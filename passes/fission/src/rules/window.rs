//! Windows that move over pixels: convolutions and pools. Operand and result are `N x C x D1 x ...`; a window along one axis has `kernel`
//! points `dilation` apart, and moves by `stride`.

use std::ops::Range;

use remat_ir::Attribute;
use remat_operators::{Blocked, operator};

use super::site::whole_multiples;
use super::{Cut, Need, Reason, Site};

/// Where a convolution has its operands, the image being the first.
pub(super) struct Operands {
    weights: usize,
    /// Vectors with a number for each output channel; the quantized ones may be single numbers.
    by_channel: &'static [usize],
    /// What has the shape of the result and is added to it.
    summand: Option<usize>,
}

/// Image, weights, bias, and a summand in ONNX Runtime's fused form.
pub(super) const FLOATS: Operands = Operands {
    weights: 1,
    by_channel: &[2],
    summand: Some(3),
};

/// Image, weights, zero points of both.
pub(super) const INTEGERS: Operands = Operands {
    weights: 1,
    by_channel: &[3],
    summand: None,
};

/// Image, weights and result, each with scale and zero point; bias.
pub(super) const SCALED: Operands = Operands {
    weights: 3,
    by_channel: &[4, 5, 8],
    summand: None,
};

/// The window along all axes of the pixels.
struct Window {
    kernel: Vec<u64>,
    strides: Vec<u64>,
    dilations: Vec<u64>,
    /// Rows of padding before the first one, then those after the last one.
    pads: Vec<u64>,
    /// Those of the original, where it does not find them by itself.
    given: Option<Vec<u64>>,
}

impl Window {
    fn of(site: &Site<'_>, kernel: Vec<u64>) -> Result<Self, Reason> {
        let count = kernel.len();
        if count + 2 != site.out.len() {
            return Err(Reason::Shapes);
        }
        let strides = site.extents("strides", count, 1)?;
        let dilations = site.extents("dilations", count, 1)?;
        if strides.contains(&0) || kernel.contains(&0) {
            return Err(Reason::Attribute("strides"));
        }
        let mut window = Self {
            kernel,
            strides,
            dilations,
            pads: vec![0; 2 * count],
            given: None,
        };
        match site.text("auto_pad", "NOTSET") {
            "NOTSET" => {
                window.pads = site.extents("pads", 2 * count, 0)?;
                window.given = Some(window.pads.clone());
            }
            "VALID" => window.given = Some(window.pads.clone()),
            // Along free axes such padding depends on the size.
            "SAME_UPPER" | "SAME_LOWER" if (2..count + 2).any(|axis| site.ty(0).is_free(axis)) => {
                return Err(Reason::Free);
            }
            "SAME_UPPER" => window.pad_to_same(&site.dims(0)?, false)?,
            "SAME_LOWER" => window.pad_to_same(&site.dims(0)?, true)?,
            _ => return Err(Reason::Attribute("auto_pad")),
        }
        Ok(window)
    }

    /// As many pads as give a result for every `stride`-th row; of an odd number one more after the last row, or before the first one.
    fn pad_to_same(&mut self, image: &[u64], more_before: bool) -> Result<(), Reason> {
        let count = self.kernel.len();
        for (dim, extent) in image.iter().skip(2).enumerate().take(count) {
            let stride = self.strides[dim];
            let reached = (extent.div_ceil(stride).saturating_sub(1)).checked_mul(stride);
            let reached = reached.and_then(|reached| reached.checked_add(self.reach(dim).ok()? + 1));
            let all = reached.ok_or(Reason::Shapes)?.saturating_sub(*extent);
            let before = if more_before { all.div_ceil(2) } else { all / 2 };
            self.pads[dim] = before;
            self.pads[count + dim] = all - before;
        }
        Ok(())
    }

    /// How far the last point of the window lies from its first.
    fn reach(&self, dim: usize) -> Result<u64, Reason> {
        let reach = (self.kernel[dim] - 1).checked_mul(self.dilations[dim]);
        reach.ok_or(Reason::Shapes)
    }

    /// The rows of `extent` that the window touches for rows of the result; the padding becomes what is left of it.
    fn touched(&mut self, dim: usize, extent: u64, rows: &Range<u64>) -> Result<Range<u64>, Reason> {
        let (stride, before) = (self.strides[dim], self.pads[dim]);
        let begin = rows.start.checked_mul(stride).ok_or(Reason::Shapes)?;
        let end = (rows.end - 1).checked_mul(stride).ok_or(Reason::Shapes)? + self.reach(dim)? + 1;
        // Both counted from the first row of the padding.
        let first = begin.saturating_sub(before);
        let last = end.saturating_sub(before).min(extent);
        if last <= first {
            return Err(Reason::Padding);
        }
        self.pads[dim] = before.saturating_sub(begin);
        let after = self.kernel.len() + dim;
        self.pads[after] = end.saturating_sub(before + extent);
        Ok(first..last)
    }
}

/// States pads that differ from the original's.
fn with_pads(site: &Site<'_>, cut: Cut, window: &Window) -> Result<Cut, Reason> {
    if window.given.as_ref() == Some(&window.pads) {
        return Ok(cut);
    }
    let mut cut = cut.with_ints("pads", &window.pads)?;
    if site.op.attributes.contains_key("auto_pad") {
        let stated = Attribute::String(b"NOTSET".to_vec());
        cut.attributes.insert("auto_pad".to_owned(), stated);
    }
    Ok(cut)
}

/// The weights are `M x C/group x ...`.
pub(super) fn conv(site: &Site<'_>, operands: &Operands) -> Result<Cut, Reason> {
    site.has_channels_first()?;
    let (image, weights) = (site.dims(0)?, site.dims(operands.weights)?);
    if weights.len() != site.out.len() || image.len() != site.out.len() {
        return Err(Reason::Shapes);
    }
    let rows = || site.rows.clone();
    let mut cut = site.whole();
    if let Some(summand) = operands.summand.filter(|&summand| site.operand(summand).is_some()) {
        cut = cut.with(summand, site.axis, rows());
    }
    if site.axis == 0 {
        return Ok(cut.with(0, 0, rows()));
    }
    if site.axis > 1 {
        let dim = site.axis - 2;
        let mut window = Window::of(site, weights[2..].to_vec())?;
        let touched = window.touched(dim, image[site.axis], &site.rows)?;
        return with_pads(site, cut.with(0, site.axis, touched), &window);
    }
    cut = cut.with(operands.weights, 0, rows());
    for &vector in operands.by_channel {
        if site.operand(vector).is_some() && site.dims(vector)? == [site.extent()] {
            cut = cut.with(vector, 0, rows());
        }
    }
    let group = u64::try_from(site.int("group", 1)).map_err(|_| Reason::Attribute("group"))?;
    let filters = weights[0];
    if group == 1 {
        return Ok(cut);
    }
    if group == 0 || !filters.is_multiple_of(group) {
        return Err(Reason::Attribute("group"));
    }
    // Whole groups of `of_group` filters, each of which reads `weights[1]` channels.
    let of_group = filters / group;
    let groups = whole_multiples(&site.rows, of_group)?;
    let channels = groups.start * weights[1]..groups.end * weights[1];
    cut.with(0, 1, channels).with_int("group", groups.end - groups.start)
}

/// Operands: image, weights `C x M/group x ...`, bias. Row `i` of the image reaches rows `i * stride - pad` to that plus the reach of the
/// kernel; what stands beyond the rows asked for is cut off as padding, and what is missing after them is added as `output_padding`.
pub(super) fn conv_transpose(site: &Site<'_>) -> Result<Cut, Reason> {
    let (image, weights) = (site.dims(0)?, site.dims(1)?);
    if weights.len() != site.out.len() || image.len() != site.out.len() {
        return Err(Reason::Shapes);
    }
    if site.axis == 0 {
        return Ok(site.same_rows(0));
    }
    if site.axis == 1 {
        if site.int("group", 1) != 1 {
            return Err(Reason::Attribute("group"));
        }
        let mut cut = site.whole().with(1, 1, site.rows.clone());
        if site.operand(2).is_some() {
            cut.needs[2] = Need::Rows {
                axis: 0,
                rows: site.rows.clone(),
            };
        }
        return Ok(cut);
    }
    // Such padding depends on the size of the result.
    if site.text("auto_pad", "NOTSET").starts_with("SAME") {
        return Err(Reason::Attribute("auto_pad"));
    }
    if site.ints("output_shape").is_some_and(|shape| !shape.is_empty()) {
        return Err(Reason::Attribute("output_shape"));
    }
    let dim = site.axis - 2;
    let mut window = Window::of(site, weights[2..].to_vec())?;
    let mut added = site.extents("output_padding", window.kernel.len(), 0)?;
    let (stride, before, reach) = (window.strides[dim], window.pads[dim], window.reach(dim)?);
    let (low, high) = (site.rows.start + before, site.rows.end + before);
    let first = low.saturating_sub(reach).div_ceil(stride).min(low / stride);
    let last = ((high - 1) / stride + 1).min(image[site.axis]);
    if last <= first {
        return Err(Reason::Padding);
    }
    // From the first row that the image's rows reach to the one after their last.
    let reached = first * stride..(last - 1) * stride + reach + 1;
    window.pads[dim] = low - reached.start;
    let after = window.kernel.len() + dim;
    window.pads[after] = reached.end.saturating_sub(high);
    let stated = added[dim];
    added[dim] = high.saturating_sub(reached.end);
    if added[dim] >= stride.max(window.dilations[dim]) {
        return Err(Reason::Padding);
    }
    let cut = site.whole().with(0, site.axis, first..last);
    let cut = if added[dim] == stated {
        cut
    } else {
        cut.with_ints("output_padding", &added)?
    };
    with_pads(site, cut, &window)
}

/// One operand. A window that is rounded up ends in padding that is not stated; in a clone it is, along every axis.
pub(super) fn pool(site: &Site<'_>) -> Result<Cut, Reason> {
    site.has_channels_first()?;
    let image = site.dims(0)?;
    if image.len() != site.out.len() {
        return Err(Reason::Shapes);
    }
    if site.axis < 2 {
        return Ok(site.same_rows(site.axis));
    }
    let rounds_up = site.int("ceil_mode", 0) != 0;
    let blocked = operator(&site.op.domain, &site.op.op_type).blocked;
    if rounds_up && !matches!(blocked, Blocked::Pool { averages: false, .. }) {
        return Err(Reason::Attribute("ceil_mode"));
    }
    let count = site.out.len() - 2;
    if site.ints("kernel_shape").is_none() {
        return Err(Reason::Attribute("kernel_shape"));
    }
    let mut window = Window::of(site, site.extents("kernel_shape", count, 1)?)?;
    if rounds_up && site.has_free(2..site.out.len()) {
        return Err(Reason::Free);
    }
    if rounds_up {
        for dim in 0..count {
            let end = (site.out[dim + 2] - 1) * window.strides[dim] + window.reach(dim)? + 1;
            let after = end.saturating_sub(image[dim + 2] + window.pads[dim]);
            window.pads[count + dim] = window.pads[count + dim].max(after);
        }
    }
    let touched = window.touched(site.axis - 2, image[site.axis], &site.rows)?;
    let cut = site.whole().with(0, site.axis, touched);
    let cut = if rounds_up { cut.with_int("ceil_mode", 0)? } else { cut };
    with_pads(site, cut, &window)
}
