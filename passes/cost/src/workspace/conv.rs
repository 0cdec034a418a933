//! Convolutions.

use crate::operands::{Operands, bits, product};

/// Elements of the buffer in which a convolution unfolds and multiplies one stretch of an image after the other: 128 columns
/// of 128 rows (`MLAS_SGEMM_STRIDEN`, `MLAS_SGEMM_STRIDEK`).
const STRETCH: u128 = 128 * 128;

/// One image of one group, unfolded as a whole if there are more filters than pixels, otherwise stretch by stretch. Where
/// the image already is the matrix, nothing.
pub(super) fn conv(operands: &Operands<'_>) -> Option<u128> {
    let (x, w) = (operands.input_shape(0)?, operands.input_shape(1)?);
    let pixels = product(operands.output(0)?.known_shape()?.get(2..)?);
    let kernel = w.get(2..)?;
    let channels = u128::from(*w.get(1)?);
    let plain = |name: &str, neutral: i64| operands.ints(name).is_none_or(|v| v.iter().all(|&v| v == neutral));
    let dense = plain("strides", 1) && plain("pads", 0) && operands.text("auto_pad").is_none_or(|p| p == "NOTSET");
    if dense && (product(kernel) == 1 || (channels == 1 && plain("dilations", 1) && spans(kernel, x.get(2..)?))) {
        return None;
    }
    let filters = u128::from(*w.first()?) / group(operands);
    let unfolded = pixels.saturating_mul(channels).saturating_mul(product(kernel));
    let elements = if filters > pixels { unfolded } else { STRETCH };
    Some(bits(operands.input(0)?)?.max(32).saturating_mul(elements) / 8)
}

/// Whether a two-dimensional kernel is as wide as the image, or a column as high as it.
fn spans(kernel: &[u64], image: &[u64]) -> bool {
    match (kernel, image) {
        ([kh, kw], [h, w]) => kw == w || (kh == h && *kw == 1),
        _ => false,
    }
}

fn group(operands: &Operands<'_>) -> u128 {
    operands
        .int("group")
        .and_then(|g| u128::try_from(g).ok())
        .unwrap_or(1)
        .max(1)
}

/// The product of weights and one image of one group, before it is folded: `k_h k_w C_out/group x H_in W_in` elements.
pub(super) fn transposed(operands: &Operands<'_>) -> Option<u128> {
    let (x, w) = (operands.input_shape(0)?, operands.input_shape(1)?);
    let image = product(x.get(2..)?);
    let folded = product(w.get(1..)?);
    Some(bits(operands.input(0)?)?.saturating_mul(image).saturating_mul(folded) / 8)
}

/// One image of one group of bytes, unfolded.
pub(super) fn integer(operands: &Operands<'_>) -> Option<u128> {
    let w = operands.input_shape(1)?;
    let pixels = product(operands.output(0)?.known_shape()?.get(2..)?);
    if product(w.get(2..)?) == 1 {
        return None;
    }
    Some(pixels.saturating_mul(product(w.get(1..)?)))
}

/// One image with channels last, the result likewise, and a pointer per pixel and kernel point.
pub(super) fn quantized(operands: &Operands<'_>) -> Option<u128> {
    let (x, w) = (operands.input_shape(0)?, operands.input_shape(3)?);
    let y = operands.output(0)?.known_shape()?;
    let turned = product(x.get(1..)?).saturating_add(product(y.get(1..)?));
    let kernel = product(w.get(2..)?);
    let pointers = if kernel == 1 {
        0
    } else {
        product(y.get(2..)?).saturating_mul(kernel).saturating_mul(8)
    };
    let groups = group(operands);
    // Groups that are not depthwise multiply into a buffer (one measurement).
    let depthwise = u128::from(*w.first()?) == groups;
    let product_buffer = if groups > 1 && !depthwise { 65_536 } else { 0 };
    Some(turned.saturating_add(pointers).saturating_add(product_buffer))
}
