//! Convolutions and pools.
//!
//! Source: the operator definitions in the ONNX specification.

use remat_formula::Formula;

use super::call::{Call, number};
use super::table::{Shape, Table};

/// What a window does along one axis.
struct Window {
    /// From the first element that it looks at to the last one.
    extent: i64,
    stride: i64,
    before: i64,
    after: i64,
}

/// How the padding is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Stated,
    Same,
    None,
}

impl Call<'_> {
    /// How the padding is said; pools take what is stated before the rest.
    fn padding(&self, is_pool: bool) -> Padding {
        match self.text("auto_pad") {
            _ if is_pool && self.list("pads").is_some() => Padding::Stated,
            Some("SAME_UPPER" | "SAME_LOWER") => Padding::Same,
            Some("VALID") => Padding::None,
            _ => Padding::Stated,
        }
    }

    /// Number `axis` of a list attribute that has a default.
    fn along(&self, name: &str, axis: usize, default: i64) -> i64 {
        self.list(name)
            .and_then(|list| list.get(axis))
            .copied()
            .unwrap_or(default)
    }

    /// The window along an axis of the image, of so many.
    fn axis(&self, axis: usize, of: usize) -> Option<Window> {
        let own = || self.info(1)?.shape.get(axis + 2)?.as_const();
        let kernel = match self.list("kernel_shape") {
            Some(kernel) => *kernel.get(axis)?,
            None => own()?,
        };
        let dilation = self.along("dilations", axis, 1);
        Some(Window {
            extent: dilation.checked_mul(kernel.checked_sub(1)?)?.checked_add(1)?,
            stride: Some(self.along("strides", axis, 1)).filter(|&stride| stride > 0)?,
            before: self.along("pads", axis, 0),
            after: self.along("pads", axis + of, 0),
        })
    }
}

/// `Conv` and pools: images and channels are known, the rest are numbers of windows.
pub(super) fn window(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let images = call.shape(0, table)?;
    let spatial = images.get(2..)?;
    let is_pool = call.node.op_type != "Conv";
    let padding = call.padding(is_pool);
    let is_ceil = call.int("ceil_mode", 0) != 0;
    let mut count = |(axis, dim): (usize, &Option<Formula>)| {
        let dim = dim.as_ref()?;
        let window = call.axis(axis, spatial.len())?;
        let stride = u32::try_from(window.stride).ok()?;
        let (before, after) = match padding {
            Padding::Same => return table.variables.ceil(dim, stride),
            Padding::None => (0, 0),
            Padding::Stated => (window.before, window.after),
        };
        let room = after.checked_sub(window.extent)?.checked_add(window.stride)?;
        if !is_ceil {
            let padded = dim.plus(&number(before.checked_add(room)?))?;
            return table.variables.floor(&padded, stride);
        }
        // A window that would begin in the padding at the end is none.
        let padded = dim.plus(&number(before.checked_add(room.min(0))?))?;
        (is_pool && after < window.extent).then(|| table.variables.ceil(&padded, stride))?
    };
    let windows: Vec<_> = spatial.iter().enumerate().map(&mut count).collect();
    // The rule of the inference crate knows the channels.
    Some([images[0].clone(), None].into_iter().chain(windows).collect())
}

/// `ConvTranspose` and `MaxUnpool`, which undo the count of windows.
pub(super) fn transposed(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let images = call.shape(0, table)?;
    let spatial = images.get(2..)?;
    let is_unpool = call.node.op_type == "MaxUnpool";
    if call.list("output_shape").is_some() || (is_unpool && call.has(2)) {
        return None;
    }
    let padding = call.padding(is_unpool);
    let extent = |(axis, dim): (usize, &Option<Formula>)| {
        let window = call.axis(axis, spatial.len())?;
        let strides = dim.as_ref()?.times(&number(window.stride))?;
        if padding == Padding::Same {
            return Some(strides);
        }
        let spare = if is_unpool {
            0
        } else {
            call.along("output_padding", axis, 0)
        };
        let ends = [spare, window.extent, -window.stride, -window.before, -window.after];
        let ends = ends.iter().try_fold(0_i64, |sum, &end| sum.checked_add(end))?;
        strides.plus(&number(ends))
    };
    let extents: Vec<_> = spatial.iter().enumerate().map(extent).collect();
    Some([images[0].clone(), None].into_iter().chain(extents).collect())
}
