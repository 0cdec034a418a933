//! Operators of the `tosa` dialect, as MLIR 22 lowers them to loops over buffers: what a padded image and partial results take.
//!
//! The passes `tosa-to-linalg-named` and `tosa-to-linalg` write one operator as several operations, and bufferization gives each a
//! buffer. `docs/mlir/native.md` tells how this was read and measured. After these passes such buffers are results of operations of
//! their own, and nothing here applies.

use remat_operators::Workspace;

use crate::operands::{self, Operands, product, value_bytes};

/// Images are [n, h, w, c], or [n, d, h, w, c].
pub(super) fn bytes(workspace: Workspace, operands: &Operands<'_>) -> Option<u128> {
    let result = value_bytes(operands.output(0)?);
    match workspace {
        Workspace::Padded => padded(operands),
        // The convolution before the bias is added.
        Workspace::PaddedAndResult => Some(padded(operands)?.saturating_add(result)),
        Workspace::PaddedAndWindow => Some(padded(operands)?.saturating_add(window(operands)?)),
        // The sums, first with the image, then with the means.
        Workspace::PaddedAndWindowOrSums => Some(padded(operands)?.saturating_add(window(operands)?).max(result)),
        // The largest values themselves.
        Workspace::Extremes => Some(of_elements(operands, operands.output_elements(0)?)),
        _ => None,
    }
}

/// A copy of the image with its margins; nothing where there are none.
fn padded(operands: &Operands<'_>) -> Option<u128> {
    let margins = operands.ints("pad")?;
    if margins.iter().all(|&margin| margin == 0) {
        return Some(0);
    }
    let mut shape = operands.input_shape(0)?;
    let (spatial, margins) = (shape.get_mut(1..)?, margins.chunks_exact(2));
    for (extent, margin) in spatial.iter_mut().zip(margins) {
        let margin = margin.iter().copied().fold(0, i64::saturating_add);
        *extent = extent.saturating_add_signed(margin);
    }
    Some(of_elements(operands, product(&shape)))
}

/// A tensor that only says how large the window is; the loops over it never read it, but it is allocated.
fn window(operands: &Operands<'_>) -> Option<u128> {
    let kernel = operands.ints("kernel")?.iter().map(|&extent| u64::try_from(extent));
    let kernel: Vec<u64> = kernel.collect::<Result<_, _>>().ok()?;
    Some(of_elements(operands, product(&kernel)))
}

/// Bytes of so many elements of the image's type.
fn of_elements(operands: &Operands<'_>, elements: u128) -> u128 {
    let bits = operands.input(0).and_then(operands::bits).unwrap_or(0);
    elements.saturating_mul(bits).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use remat_ir::{Attribute, ElementType, GraphBuilder, OpSpec, ValueType};

    /// Workspace of an operator on a 1x32x32x8 image of single precision.
    fn workspace(op_type: &str, result: &[u64], attributes: &[(&str, &[i64])]) -> u64 {
        let mut builder = GraphBuilder::new("one");
        let image = ValueType::tensor(ElementType::Float32, &[1, 32, 32, 8]);
        let mut spec = OpSpec::new("op", op_type).reads(builder.input("image", image).unwrap());
        spec.domain = "tosa".to_owned();
        for (name, values) in attributes {
            spec.attributes
                .insert((*name).to_owned(), Attribute::Ints(values.to_vec()));
        }
        let (op, _) = builder
            .op(spec.defines("y", ValueType::tensor(ElementType::Float32, result)))
            .unwrap();
        let graph = builder.finish();
        super::super::lowered(&graph, &graph.ops[op])
    }

    const IMAGE: u64 = 32 * 32 * 8 * 4;
    const PADDED: u64 = 34 * 34 * 8 * 4;
    const SAME: &[u64] = &[1, 32, 32, 8];

    #[test]
    fn a_convolution_takes_a_padded_image_if_it_pads() {
        assert_eq!(workspace("conv2d", SAME, &[("pad", &[1, 1, 1, 1])]), PADDED);
        assert_eq!(workspace("conv2d", SAME, &[("pad", &[0, 0, 0, 0])]), 0);
        assert_eq!(workspace("conv2d", SAME, &[("pad", &[0, 1, 0, 0])]), 33 * 32 * 8 * 4);
    }

    #[test]
    fn a_depthwise_convolution_takes_its_result_once_more() {
        assert_eq!(
            workspace("depthwise_conv2d", SAME, &[("pad", &[1, 1, 1, 1])]),
            PADDED + IMAGE
        );
    }

    #[test]
    fn pools_take_a_padded_image_and_a_window_or_the_sums() {
        let kernel: (&str, &[i64]) = ("kernel", &[2, 2]);
        let halved = [1, 16, 16, 8];
        assert_eq!(workspace("max_pool2d", &halved, &[("pad", &[0; 4]), kernel]), 16);
        assert_eq!(
            workspace("max_pool2d", &halved, &[("pad", &[1; 4]), kernel]),
            PADDED + 16
        );
        assert_eq!(workspace("avg_pool2d", &halved, &[("pad", &[0; 4]), kernel]), IMAGE / 4);
        assert_eq!(
            workspace("avg_pool2d", &halved, &[("pad", &[1; 4]), kernel]),
            PADDED + 16
        );
    }

    #[test]
    fn what_is_one_buffer_takes_nothing() {
        assert_eq!(workspace("tanh", SAME, &[]), 0);
        assert_eq!(workspace("conv2d", SAME, &[]), 0, "an operator without its attributes");
        assert_eq!(
            workspace("max_pool2d", SAME, &[("pad", &[0; 4]), ("kernel", &[-1, 2])]),
            0
        );
    }
}
