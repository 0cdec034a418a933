//! Images that are resized.
//!
//! Source: the operator definitions of `Resize` and `Upsample` in the ONNX specification.

use onnx_runtime_ir::Attribute;
use remat_formula::Formula;

use super::call::Call;
use super::fraction::Fraction;
use super::table::{Shape, Table};

/// `Resize` and `Upsample`: by sizes, or by factors.
pub(super) fn resize(call: &Call<'_>, table: &mut Table) -> Option<Shape> {
    let mut shape = call.shape(0, table)?;
    let is_upsample = call.node.op_type == "Upsample";
    // Parts of images are for the data to say.
    if call.text("coordinate_transformation_mode") == Some("tf_crop_and_resize") {
        return None;
    }
    let is_stated = |operand: usize| {
        let length = call.info(operand).and_then(|info| info.shape.first()?.as_const());
        call.has(operand) && length != Some(0)
    };
    let axes = match call.list("axes").filter(|axes| !is_upsample && !axes.is_empty()) {
        Some(axes) => call.places(axes, shape.len())?,
        None => (0..shape.len()).collect(),
    };
    let is_sized = !is_upsample && call.version > 10 && is_stated(3);
    let sizes: Shape = if is_sized {
        let is_stretched = call
            .text("keep_aspect_ratio_policy")
            .is_none_or(|policy| policy == "stretch");
        is_stretched.then(|| call.integers(3, table))??
    } else {
        let scales = match call.node.attr("scales") {
            Some(Attribute::Floats(scales)) if is_upsample => {
                scales.iter().map(|&scale| Fraction::exact(scale.into())).collect()
            }
            _ => call.factors(if is_upsample || call.version <= 10 { 1 } else { 2 }, table)?,
        };
        let mut scaled = |(&axis, scale): (&usize, Option<Fraction>)| -> Option<Formula> {
            let dim = Fraction::from(shape[axis].clone()?);
            dim.times(&scale?)?.floor(&mut table.variables)
        };
        let is_complete = scales.len() == axes.len();
        is_complete.then(|| axes.iter().zip(scales).map(&mut scaled).collect())?
    };
    if sizes.len() != axes.len() {
        return None;
    }
    for (axis, size) in axes.into_iter().zip(sizes) {
        shape[axis] = size;
    }
    Some(shape)
}
