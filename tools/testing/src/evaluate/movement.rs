//! Ops that move elements.

use super::Call;
use super::array::{Array, broadcast};

/// A number of rows or a place that an element of an operand or attribute states.
fn place(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Call<'_> {
    pub(super) fn concat(&self) -> Array {
        let pieces: Vec<&Array> = self.operands.iter().flatten().copied().collect();
        let axis = self.axis(self.int("axis", 0), pieces[0].dims.len());
        let mut dims = pieces[0].dims.clone();
        dims[axis] = pieces.iter().map(|piece| piece.dims[axis]).sum();
        Array::from_fn(dims, |at| {
            let mut at = at.to_vec();
            for piece in &pieces {
                if at[axis] < piece.dims[axis] {
                    return piece.at(&at);
                }
                at[axis] -= piece.dims[axis];
            }
            0
        })
    }

    pub(super) fn split(&self) -> Vec<Array> {
        let x = self.operand(0);
        let axis = self.axis(self.int("axis", 0), x.dims.len());
        let count = self.op.outputs.len();
        let even = || vec![(x.dims[axis].div_ceil(count)) as i64; count];
        let sizes = self
            .given(1)
            .map(|sizes| sizes.data.clone())
            .or_else(|| self.ints("split"));
        let mut from = 0;
        let mut results = Vec::new();
        for size in sizes.unwrap_or_else(even) {
            let mut dims = x.dims.clone();
            dims[axis] = place(size).min(x.dims[axis] - from);
            results.push(Array::from_fn(dims, |at| {
                let mut at = at.to_vec();
                at[axis] += from;
                x.at(&at)
            }));
            from += place(size);
        }
        results
    }

    /// Steps of at least one row.
    pub(super) fn slice(&self) -> Array {
        let x = self.operand(0);
        let (starts, ends) = (&self.operand(1).data, &self.operand(2).data);
        let count = starts.len();
        let axes = self
            .given(3)
            .map_or_else(|| (0..count as i64).collect(), |axes| axes.data.clone());
        let steps = self.given(4).map_or_else(|| vec![1; count], |steps| steps.data.clone());
        let mut dims = x.dims.clone();
        let mut from: Vec<(usize, usize)> = vec![(0, 1); dims.len()];
        for index in 0..count {
            let axis = self.axis(axes[index], x.dims.len());
            let rows = x.dims[axis] as i64;
            let row = |bound: i64| if bound < 0 { bound.saturating_add(rows) } else { bound }.clamp(0, rows);
            let (start, end, step) = (row(starts[index]), row(ends[index]), steps[index]);
            assert!(step > 0, "step of `{}`", self.op.name);
            from[axis] = (place(start), place(step));
            dims[axis] = place((end - start).max(0)).div_ceil(place(step));
        }
        Array::from_fn(dims, |at| {
            let at: Vec<usize> = at
                .iter()
                .zip(&from)
                .map(|(at, (start, step))| start + at * step)
                .collect();
            x.at(&at)
        })
    }

    /// Zeros, or the value, around the elements.
    pub(super) fn pad(&self) -> Array {
        let x = self.operand(0);
        let pads = self
            .given(1)
            .map(|pads| pads.data.clone())
            .or_else(|| self.ints("pads"))
            .unwrap_or_default();
        let value = self.given(2).map_or(0, |value| value.data[0]);
        let rank = x.dims.len();
        let axes = self
            .given(3)
            .map_or_else(|| (0..rank as i64).collect(), |axes| axes.data.clone());
        let (mut begins, mut dims) = (vec![0; rank], x.dims.clone());
        for (index, &axis) in axes.iter().enumerate() {
            let axis = self.axis(axis, rank);
            begins[axis] = pads[index];
            dims[axis] = place(dims[axis] as i64 + pads[index] + pads[index + axes.len()]);
        }
        Array::from_fn(dims, |at| {
            let rows = at
                .iter()
                .zip(&begins)
                .map(|(&at, begin)| usize::try_from(at as i64 - begin).ok());
            match rows.collect::<Option<Vec<usize>>>() {
                Some(at) if at.iter().zip(&x.dims).all(|(at, dim)| at < dim) => x.at(&at),
                _ => value,
            }
        })
    }

    pub(super) fn transpose(&self) -> Array {
        let x = self.operand(0);
        let rank = x.dims.len();
        let perm = self.ints("perm").unwrap_or_else(|| (0..rank as i64).rev().collect());
        let dims = perm.iter().map(|&from| x.dims[place(from)]).collect();
        Array::from_fn(dims, |at| {
            let mut from = vec![0; rank];
            for (&axis, &row) in perm.iter().zip(at) {
                from[place(axis)] = row;
            }
            x.at(&from)
        })
    }

    fn shaped(&self, dims: Vec<usize>) -> Array {
        let x = self.operand(0);
        assert_eq!(
            dims.iter().product::<usize>(),
            x.data.len(),
            "shape of `{}`",
            self.op.name
        );
        Array {
            dims,
            data: x.data.clone(),
        }
    }

    /// The dimensions of the operand.
    pub(super) fn shape(&self) -> Array {
        let dims = &self.operand(0).dims;
        Array {
            dims: vec![dims.len()],
            data: dims.iter().map(|&dim| dim as i64).collect(),
        }
    }

    pub(super) fn reshape(&self) -> Array {
        let x = self.operand(0);
        let copies = self.int("allowzero", 0) == 0;
        let wanted = self.operand(1).data.iter().enumerate();
        let mut dims: Vec<i64> = wanted
            .map(|(axis, &dim)| if dim == 0 && copies { x.dims[axis] as i64 } else { dim })
            .collect();
        let known: i64 = dims.iter().filter(|&&dim| dim >= 0).product();
        if let Some(open) = dims.iter_mut().find(|dim| **dim < 0) {
            *open = x.data.len() as i64 / known.max(1);
        }
        self.shaped(dims.into_iter().map(place).collect())
    }

    pub(super) fn flatten(&self) -> Array {
        let x = self.operand(0);
        let (before, after) = x.dims.split_at(self.axis(self.int("axis", 1), x.dims.len()));
        self.shaped(vec![before.iter().product(), after.iter().product()])
    }

    /// `Squeeze` with axes, and `Unsqueeze`.
    pub(super) fn squeeze(&self) -> Array {
        let mut dims = self.operand(0).dims.clone();
        let axes = self
            .given(1)
            .map(|axes| axes.data.clone())
            .or_else(|| self.ints("axes"))
            .unwrap_or_default();
        let squeezes = self.op.op_type == "Squeeze";
        let rank = dims.len() + if squeezes { 0 } else { axes.len() };
        let mut axes: Vec<usize> = axes.iter().map(|&axis| self.axis(axis, rank)).collect();
        axes.sort_unstable();
        if squeezes {
            for axis in axes.into_iter().rev() {
                assert_eq!(dims.remove(axis), 1, "axis {axis} of `{}`", self.op.name);
            }
        } else {
            axes.into_iter().for_each(|axis| dims.insert(axis, 1));
        }
        self.shaped(dims)
    }

    pub(super) fn gather(&self) -> Array {
        let (x, indices) = (self.operand(0), self.operand(1));
        let axis = self.axis(self.int("axis", 0), x.dims.len());
        let dims = [&x.dims[..axis], &indices.dims, &x.dims[axis + 1..]].concat();
        let rows = x.dims[axis] as i64;
        Array::from_fn(dims, |at| {
            let (before, rest) = at.split_at(axis);
            let (index, after) = rest.split_at(indices.dims.len());
            // Indices that no constant states are any numbers: they count around.
            let row = place(indices.at(index).rem_euclid(rows));
            x.at(&[before, &[row], after].concat())
        })
    }

    pub(super) fn gather_nd(&self) -> Array {
        let (x, indices) = (self.operand(0), self.operand(1));
        let lists = indices.dims.len() - 1;
        let length = indices.dims[lists];
        let dims = [&indices.dims[..lists], &x.dims[length..]].concat();
        Array::from_fn(dims, |at| {
            let (list, rest) = at.split_at(lists);
            let row = |position: usize| {
                let index = indices.at(&[list, &[position]].concat());
                place(index.rem_euclid(x.dims[position] as i64))
            };
            let rows: Vec<usize> = (0..length).map(row).collect();
            x.at(&[&rows, rest].concat())
        })
    }

    pub(super) fn gather_elements(&self) -> Array {
        let (x, indices) = (self.operand(0), self.operand(1));
        let axis = self.axis(self.int("axis", 0), x.dims.len());
        Array::from_fn(indices.dims.clone(), |at| {
            let row = place(indices.at(at).rem_euclid(x.dims[axis] as i64));
            x.at(&[&at[..axis], &[row], &at[axis + 1..]].concat())
        })
    }

    pub(super) fn scatter_elements(&self) -> Array {
        let (x, indices, updates) = (self.operand(0), self.operand(1), self.operand(2));
        let axis = self.axis(self.int("axis", 0), x.dims.len());
        let rows = x.dims[axis] as i64;
        Array::from_fn(x.dims.clone(), |at| {
            let has_indices = |axis: usize| at[axis] < indices.dims[axis];
            if (0..at.len()).any(|other| other != axis && !has_indices(other)) {
                return x.at(at);
            }
            // The last one that is written to a place stays.
            let of = |row: usize| [&at[..axis], &[row], &at[axis + 1..]].concat();
            let written = (0..indices.dims[axis]).rev().map(of);
            let mut here = written.filter(|from| place(indices.at(from).rem_euclid(rows)) == at[axis]);
            here.next().map_or_else(|| x.at(at), |from| updates.at(&from))
        })
    }

    pub(super) fn expand(&self) -> Array {
        let x = self.operand(0);
        let shape: Vec<usize> = self.operand(1).data.iter().map(|&dim| place(dim)).collect();
        Array::from_fn(broadcast(&x.dims, &shape), |at| x.at_right(at))
    }

    pub(super) fn tile(&self) -> Array {
        let x = self.operand(0);
        let dims = x.dims.iter().zip(&self.operand(1).data);
        let dims = dims.map(|(&dim, &copies)| dim * place(copies)).collect();
        Array::from_fn(dims, |at| {
            let at = at.iter().zip(&x.dims).map(|(&at, &dim)| at % dim);
            x.at(&at.collect::<Vec<usize>>())
        })
    }

    pub(super) fn depth_to_space(&self) -> Array {
        let x = self.operand(0);
        let side = place(self.int("blocksize", 1));
        let channels = x.dims[1] / (side * side);
        let dims = vec![x.dims[0], channels, x.dims[2] * side, x.dims[3] * side];
        let is_crd = self.text("mode") == Some("CRD");
        Array::from_fn(dims, |at| {
            let inside = at[2] % side * side + at[3] % side;
            let channel = if is_crd {
                at[1] * side * side + inside
            } else {
                inside * channels + at[1]
            };
            x.at(&[at[0], channel, at[2] / side, at[3] / side])
        })
    }

    pub(super) fn space_to_depth(&self) -> Array {
        let x = self.operand(0);
        let side = place(self.int("blocksize", 1));
        let channels = x.dims[1];
        let dims = vec![x.dims[0], channels * side * side, x.dims[2] / side, x.dims[3] / side];
        Array::from_fn(dims, |at| {
            let (inside, channel) = (at[1] / channels, at[1] % channels);
            x.at(&[
                at[0],
                channel,
                at[2] * side + inside / side,
                at[3] * side + inside % side,
            ])
        })
    }

    /// By whole scales.
    pub(super) fn resize(&self) -> Array {
        let x = self.operand(0);
        let scales: Vec<usize> = match self.given(3) {
            Some(sizes) => sizes
                .data
                .iter()
                .zip(&x.dims)
                .map(|(&size, &dim)| place(size) / dim)
                .collect(),
            None => self.operand(2).data.iter().map(|&scale| place(scale)).collect(),
        };
        let dims = x.dims.iter().zip(&scales).map(|(&dim, &scale)| dim * scale).collect();
        let is_linear = self.text("mode") == Some("linear");
        let is_asymmetric = self.text("coordinate_transformation_mode") == Some("asymmetric");
        Array::from_fn(dims, |at| {
            let mut corners = vec![(Vec::new(), 1_i64)];
            for ((&at, &scale), &rows) in at.iter().zip(&scales).zip(&x.dims) {
                let rows = rows as i64;
                // In halves of a row of the result.
                let double = 2 * scale as i64;
                let middle = 2 * at as i64 + if is_asymmetric { 0 } else { 1 - scale as i64 };
                let (low, way) = (middle.div_euclid(double), middle.rem_euclid(double));
                let near = if scale == 1 || !is_linear {
                    vec![(at as i64 / scale as i64, 1)]
                } else {
                    vec![(low, double - way), (low + 1, way)]
                };
                let next = corners.iter().flat_map(|(place_of, weight)| {
                    near.iter().map(move |&(row, factor)| {
                        let mut place_of: Vec<usize> = place_of.clone();
                        place_of.push(place(row.clamp(0, rows - 1)));
                        (place_of, weight * factor)
                    })
                });
                corners = next.collect();
            }
            corners.iter().fold(0_i64, |sum, (at, weight)| {
                sum.wrapping_add(weight.wrapping_mul(x.at(at)))
            })
        })
    }
}
