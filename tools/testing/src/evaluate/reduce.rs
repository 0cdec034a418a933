//! Products of matrices, reductions, normalizations.

use super::array::{Array, broadcast, each};
use super::{Call, mixed};

/// Swaps the last two axes of a place if asked to.
fn turned(at: &[usize], turn: bool) -> Vec<usize> {
    let mut at = at.to_vec();
    let rank = at.len();
    if turn {
        at.swap(rank - 2, rank - 1);
    }
    at
}

impl Call<'_> {
    pub(super) fn matmul(&self) -> Array {
        self.product(self.operand(0), self.operand(1))
    }

    pub(super) fn product(&self, a: &Array, b: &Array) -> Array {
        let turn = |name: &str| self.int(name, 0) != 0;
        let (a_dims, b_dims) = (turned(&a.dims, turn("transA")), turned(&b.dims, turn("transB")));
        let (rank_a, rank_b) = (a_dims.len(), b_dims.len());
        assert_eq!(
            a_dims[rank_a - 1],
            b_dims[rank_b - 2],
            "inner axis of `{}`",
            self.op.name
        );
        let mut dims = broadcast(&a_dims[..rank_a - 2], &b_dims[..rank_b - 2]);
        let batch = dims.len();
        dims.extend([a_dims[rank_a - 2], b_dims[rank_b - 1]]);
        let element = |array: &Array, turn: bool, at: &[usize], matrix: [usize; 2]| {
            let place = [at, &turned(&matrix, turn)].concat();
            array.at_right(&place)
        };
        Array::from_fn(dims, |at| {
            let (batch, row, column) = (&at[..batch], at[batch], at[batch + 1]);
            (0..a_dims[rank_a - 1]).fold(0_i64, |sum, inner| {
                let left = element(a, turn("transA"), batch, [row, inner]);
                sum.wrapping_add(left.wrapping_mul(element(b, turn("transB"), batch, [inner, column])))
            })
        })
    }

    pub(super) fn gemm(&self) -> Array {
        let mut product = self.matmul();
        if let Some(bias) = self.given(2) {
            let summed = Array::from_fn(product.dims.clone(), |at| {
                product.at(at).wrapping_add(bias.at_right(at))
            });
            product = summed;
        }
        product
    }

    /// What depends on all elements that differ from a place on some axes only.
    fn over(&self, x: &Array, axes: &[usize], at: &[usize]) -> i64 {
        let extents: Vec<usize> = axes.iter().map(|&axis| x.dims[axis]).collect();
        let mut sum = 0_i64;
        let mut position = 0;
        each(&extents, |along| {
            let mut at = at.to_vec();
            for (&axis, &row) in axes.iter().zip(along) {
                at[axis] = row;
            }
            position += 1;
            sum = sum.wrapping_add(mixed(position, x.at(&at)));
        });
        sum
    }

    /// Softmax and layer normalization: of one axis, or of all from one on; further operands are broadcast.
    pub(super) fn along_axis(&self, to_the_end: bool) -> Array {
        let x = self.operand(0);
        let rank = x.dims.len();
        let is_early = self.int("flattens", 0) != 0 || self.int("opset", 13) < 13;
        let default = if is_early { 1 } else { -1 };
        let axis = self.axis(self.int("axis", self.int("dimension", default)), rank);
        let axes: Vec<usize> = if to_the_end || is_early {
            (axis..rank).collect()
        } else {
            vec![axis]
        };
        let image = match self.op.op_type.as_str() {
            "SkipLayerNormalization" => {
                let skip = self.operand(1);
                Array::from_fn(x.dims.clone(), |at| x.at(at).wrapping_add(skip.at_right(at)))
            }
            _ => x.clone(),
        };
        let skipped = 1 + usize::from(self.op.op_type == "SkipLayerNormalization");
        Array::from_fn(x.dims.clone(), |at| {
            let own = mixed(image.at(at), self.over(&image, &axes, at));
            let further = self.operands.iter().skip(skipped).flatten();
            further.fold(own, |value, array| mixed(value, array.at_right(at)))
        })
    }

    /// Instance and group normalization: over the axes from 2 on, the second over the channels of a group, too.
    pub(super) fn image_norm(&self) -> Array {
        let x = self.operand(0);
        let channels = x.dims[1];
        let groups = match self.op.op_type.as_str() {
            "GroupNormalization" => usize::try_from(self.int("num_groups", 1)).unwrap_or(1),
            _ => channels,
        };
        let each_group = channels / groups;
        let axes: Vec<usize> = (2..x.dims.len()).collect();
        Array::from_fn(x.dims.clone(), |at| {
            let group = at[1] / each_group;
            let mut own = x.at(at);
            for channel in group * each_group..(group + 1) * each_group {
                let mut at = at.to_vec();
                at[1] = channel;
                own = mixed(own, self.over(x, &axes, &at));
            }
            let further = self.operands.iter().skip(1).flatten();
            further.fold(own, |value, array| {
                let place = if array.dims[0] == channels { at[1] } else { group };
                mixed(value, array.at(&[place]))
            })
        })
    }

    pub(super) fn batch_norm(&self) -> Array {
        let x = self.operand(0);
        Array::from_fn(x.dims.clone(), |at| {
            let further = self.operands.iter().skip(1).flatten();
            further.fold(x.at(at), |value, array| mixed(value, array.at(&at[1..2])))
        })
    }

    pub(super) fn global_pool(&self) -> Array {
        let x = self.operand(0);
        let axes: Vec<usize> = (2..x.dims.len()).collect();
        let dims = x
            .dims
            .iter()
            .enumerate()
            .map(|(axis, &dim)| if axis < 2 { dim } else { 1 });
        Array::from_fn(dims.collect(), |at| {
            self.with_single_numbers(self.over(x, &axes, at), 1)
        })
    }

    pub(super) fn reduce(&self) -> Array {
        let x = self.operand(0);
        let rank = x.dims.len();
        let stated = self
            .given(1)
            .map(|axes| axes.data.clone())
            .or_else(|| self.ints("axes"));
        let axes: Vec<usize> = match stated {
            _ if self.op.op_type.starts_with("Arg") => vec![self.axis(self.int("axis", 0), rank)],
            Some(axes) if !axes.is_empty() => axes.iter().map(|&axis| self.axis(axis, rank)).collect(),
            _ => (0..rank).collect(),
        };
        let keeps = self.int("keepdims", 1) != 0;
        let kept = |axis: usize| !axes.contains(&axis);
        let dims = (0..rank).filter(|&axis| keeps || kept(axis));
        let dims = dims.map(|axis| if kept(axis) { x.dims[axis] } else { 1 });
        Array::from_fn(dims.collect(), |at| {
            let mut own = at.iter();
            let place = (0..rank).map(|axis| match keeps || kept(axis) {
                true => own.next().copied().unwrap_or(0),
                false => 0,
            });
            let place: Vec<usize> = place.collect();
            self.over(x, &axes, &place)
        })
    }

    /// The sum of the elements up to each place along the axis that operand 1 names.
    pub(super) fn cumulated(&self) -> Array {
        let x = self.operand(0);
        let axis = self.axis(self.operand(1).data[0], x.dims.len());
        Array::from_fn(x.dims.clone(), |at| {
            let places = (0..=at[axis]).map(|place| {
                let mut at = at.to_vec();
                at[axis] = place;
                x.at(&at)
            });
            places.fold(0, i64::wrapping_add)
        })
    }

    /// As many elements along an axis as operand 1 says, and their places: for tests, what depends on all along the axis.
    pub(super) fn greatest(&self) -> Vec<Array> {
        let x = self.operand(0);
        let axis = self.axis(self.int("axis", -1), x.dims.len());
        let mut dims = x.dims.clone();
        dims[axis] = usize::try_from(self.operand(1).data[0]).unwrap_or(0);
        let result = |which: i64| {
            Array::from_fn(dims.clone(), |at| {
                mixed(which + at[axis] as i64, self.over(x, &[axis], at))
            })
        };
        vec![result(1), result(2)]
    }
}
