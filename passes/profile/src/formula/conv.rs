//! Convolutions. Every output element of a convolution takes one multiply-add per weight of its output channel, so
//! strides, pads, dilations and groups are all in the shapes already, and the layout of the image does not matter.

use crate::KernelClass;
use crate::operands::{Operands, product};

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

fn per_outermost(operands: &Operands<'_>, weight: usize) -> Option<u128> {
    let shape = operands.input_shape(weight)?;
    shape.get(1..).map(product)
}
