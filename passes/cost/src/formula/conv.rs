//! Convolutions. Every output element of a convolution takes one multiply-add per weight of its output channel, so
//! strides, pads, dilations and groups are all in the shapes already, and the layout of the image does not matter.

use crate::KernelClass;
use crate::operands::{Operands, product};
use crate::work::CpuDetail;

/// Weights have the output channels outermost: `M x C/group x k...`.
pub(super) fn flops(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let outputs = operands.output_elements(0)?;
    Some(
        outputs
            .saturating_mul(2)
            .saturating_mul(per_outermost(operands, weight)?),
    )
}

/// Weights have the input channels outermost: `C x M/group x k...`; every input element meets all weights of its channel.
pub(super) fn transposed_flops(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let inputs = operands.input_elements(0)?;
    Some(
        inputs
            .saturating_mul(2)
            .saturating_mul(per_outermost(operands, weight)?),
    )
}

/// Weights have the output channels innermost: `k... x C x M`.
pub(super) fn last_output_flops(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let shape = operands.input_shape(weight)?;
    let per_output = product(shape.get(..shape.len().checked_sub(1)?)?);
    Some(
        operands
            .output_elements(0)?
            .saturating_mul(2)
            .saturating_mul(per_output),
    )
}

/// Weights have the kernel outermost: `k x k x C x multiplier`; every output element meets one kernel.
pub(super) fn depthwise_flops(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let kernel = product(operands.input_shape(weight)?.get(..2)?);
    Some(operands.output_elements(0)?.saturating_mul(2).saturating_mul(kernel))
}

/// Weights have the input channels innermost: `M x k... x C`; every input element meets all weights of its channel.
pub(super) fn transposed_last_channels_flops(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let shape = operands.input_shape(weight)?;
    let per_input = product(shape.get(..shape.len().checked_sub(1)?)?);
    Some(operands.input_elements(0)?.saturating_mul(2).saturating_mul(per_input))
}

/// A convolution whose groups have one input channel each does little arithmetic per byte and has kernels of its own.
pub(super) fn class(operands: &Operands<'_>, weight: usize) -> KernelClass {
    let one_channel = operands
        .input_shape(weight)
        .is_some_and(|shape| shape.get(1) == Some(&1));
    if one_channel && operands.int("group").is_some_and(|group| group > 1) {
        KernelClass::DepthwiseConv
    } else {
        KernelClass::Conv
    }
}

/// The image is unfolded, each of the `C/group x k...` rows written pixel row by pixel row, and packed for the product with
/// the weights. A kernel of one point without strides is packed only.
pub(super) fn detail(operands: &Operands<'_>, weight: usize) -> Option<CpuDetail> {
    let y = operands.output(0)?.known_shape()?;
    let strided = operands.ints("strides").is_some_and(|s| s.iter().any(|&s| s != 1));
    let pointwise = product(operands.input_shape(weight)?.get(2..)?) == 1 && !strided;
    let rows = unfolded_rows(operands, weight, &y)?;
    let element = operands.input(0)?.element()?.bits();
    let (pixels, copies, runs) = image(&y, rows)?;
    Some(CpuDetail {
        repacked_bytes: (pixels.saturating_mul(u128::from(element)) / 8).saturating_mul(if pointwise {
            1
        } else {
            copies
        }),
        runs: match (pointwise, strided) {
            (true, _) => 0,
            (false, false) => runs,
            (false, true) => runs.saturating_add(pixels / STRIDED_RUN),
        },
        row: row(&y),
    })
}

/// The product of weights and image is written out and folded into the result; the weights are packed for every image.
pub(super) fn transposed_detail(operands: &Operands<'_>, weight: usize) -> Option<CpuDetail> {
    let x = operands.input_shape(0)?;
    let rows = unfolded_rows(operands, weight, &x)?;
    let element = operands.input(0)?.element()?.bits();
    let (pixels, copies, runs) = image(&x, rows)?;
    let weights = operands.input_bytes(weight).saturating_mul(u128::from(*x.first()?));
    let unfolded = pixels.saturating_mul(u128::from(element)) / 8;
    Some(CpuDetail {
        repacked_bytes: unfolded.saturating_mul(copies).saturating_add(weights),
        runs,
        row: row(&x),
    })
}

/// Rows of all unfolded images of a batch, `image` being the shape whose pixels they run over.
fn unfolded_rows(operands: &Operands<'_>, weight: usize, image: &[u64]) -> Option<u128> {
    let groups = operands.int("group").and_then(|g| u128::try_from(g).ok()).unwrap_or(1);
    let per_image = per_outermost(operands, weight)?.saturating_mul(groups);
    Some(per_image.saturating_mul(u128::from(*image.first()?)))
}

/// Elements that are picked with a stride in the time that it takes to start a loop.
const STRIDED_RUN: u128 = 8;

/// Elements of `rows` unfolded images of this shape, how often each is touched, and the pixel rows in them.
fn image(shape: &[u64], rows: u128) -> Option<(u128, u128, u128)> {
    const COPIES: u128 = 2;
    let (_, upper) = shape.get(2..)?.split_last()?;
    let pixels = rows.saturating_mul(product(shape.get(2..)?));
    Some((pixels, COPIES, rows.saturating_mul(product(upper))))
}

/// The pixels of one image stand side by side in the product; a single one makes it a product with a vector.
fn row(shape: &[u64]) -> Option<u64> {
    u64::try_from(product(shape.get(2..)?))
        .ok()
        .filter(|&pixels| pixels > 1)
}

fn per_outermost(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let shape = operands.input_shape(weight)?;
    shape.get(1..).map(product)
}
