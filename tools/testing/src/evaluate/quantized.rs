//! Ops whose elements have scales and zero points.

use super::array::Array;
use super::{Call, mixed};

impl Call<'_> {
    /// A number that depends on another one and on all operands from one on, which are single numbers.
    pub(super) fn with_single_numbers(&self, value: i64, from: usize) -> i64 {
        let further = self.operands.iter().skip(from).flatten();
        further.fold(value, |value, array| {
            assert_eq!(array.data.len(), 1, "scales of `{}`", self.op.name);
            mixed(value, array.data[0])
        })
    }

    /// Scales and zero points are single numbers, or vectors along an axis.
    pub(super) fn quantize(&self) -> Array {
        let x = self.operand(0);
        let along = |array: &Array, at: &[usize]| match array.dims.as_slice() {
            [numbers] if *numbers > 1 => array.data[at[self.axis(self.int("axis", 1), x.dims.len())]],
            _ => array.data[0],
        };
        Array::from_fn(x.dims.clone(), |at| {
            let further = self.operands.iter().skip(1).flatten();
            further.fold(x.at(at), |value, array| mixed(value, along(array, at)))
        })
    }

    /// All operands but image and weights are single numbers, or vectors over the channels of the result.
    pub(super) fn quantized_conv(&self) -> Array {
        let weights = if self.op.op_type == "ConvInteger" { 1 } else { 3 };
        let sums = self.convolved(weights);
        Array::from_fn(sums.dims.clone(), |at| {
            let further = self.operands.iter().enumerate().skip(1);
            let further = further.filter_map(|(place, array)| (*array).filter(|_| place != weights));
            further.fold(sums.at(at), |sum, array| match array.data.len() {
                1 => mixed(sum, array.data[0]),
                _ => mixed(sum, array.at(&at[1..2])),
            })
        })
    }

    /// All operands but the matrices are broadcast, those of the left one from its rows on.
    pub(super) fn quantized_matmul(&self) -> Array {
        let right = if self.op.op_type.starts_with('Q') { 3 } else { 1 };
        let left = self.operand(0);
        let of_left = match self.op.op_type.as_str() {
            "MatMulInteger" => vec![2],
            "MatMulIntegerToFloat" => vec![2, 4],
            "DynamicQuantizeMatMul" => vec![],
            _ => vec![1, 2],
        };
        let salt = match self.op.op_type.as_str() {
            "DynamicQuantizeMatMul" => left.data.iter().fold(0, |salt, &element| mixed(salt, element)),
            _ => 0,
        };
        let product = self.product(left, self.operand(right));
        Array::from_fn(product.dims.clone(), |at| {
            let further = self.operands.iter().enumerate().skip(1);
            let further = further.filter_map(|(place, array)| Some((place, (*array).filter(|_| place != right)?)));
            further.fold(mixed(product.at(at), salt), |sum, (place, array)| {
                match array.data.len() {
                    1 => mixed(sum, array.data[0]),
                    _ if of_left.contains(&place) => mixed(sum, array.at(&at[at.len() - 2..at.len() - 1])),
                    _ => mixed(sum, array.at_right(at)),
                }
            })
        })
    }

    pub(super) fn quantized_concat(&self) -> Array {
        let scaled: Vec<Array> = (2..self.operands.len())
            .step_by(3)
            .map(|place| {
                let piece = self.operand(place);
                let own = [0, 1, place + 1, place + 2].map(|place| self.operand(place).data[0]);
                Array::from_fn(piece.dims.clone(), |at| own.into_iter().fold(piece.at(at), mixed))
            })
            .collect();
        let operands = scaled.iter().map(Some).collect();
        Call { op: self.op, operands }.concat()
    }
}
