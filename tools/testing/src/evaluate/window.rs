//! Convolutions and pooling.

use super::array::{Array, each};
use super::{Call, mixed};

/// Where windows lie along the spatial axes.
struct Windows {
    kernel: Vec<usize>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    begins: Vec<i64>,
    ends: Vec<i64>,
}

impl Windows {
    fn of(call: &Call<'_>, kernel: &[usize], image: &[usize]) -> Self {
        let rank = kernel.len();
        let ones = || vec![1; rank];
        let is_padded = matches!(call.text("auto_pad"), None | Some("NOTSET"));
        let pads = call
            .ints("pads")
            .filter(|_| is_padded)
            .unwrap_or_else(|| vec![0; 2 * rank]);
        let mut windows = Self {
            kernel: kernel.to_vec(),
            strides: call.ints("strides").unwrap_or_else(ones),
            dilations: call.ints("dilations").unwrap_or_else(ones),
            begins: pads[..rank].to_vec(),
            ends: pads[rank..].to_vec(),
        };
        let same = call
            .text("auto_pad")
            .and_then(|auto_pad| auto_pad.strip_prefix("SAME_"));
        for axis in (0..rank).filter(|_| same.is_some()) {
            // As many windows as rows, divided by the stride and rounded up.
            let rows = image[axis] as i64;
            let mut sum = 0;
            while windows.count(axis, image[axis], false) < image[axis].div_ceil(windows.strides[axis] as usize) {
                sum += 1;
                let less = sum / 2;
                let (begin, end) = if same == Some("UPPER") {
                    (less, sum - less)
                } else {
                    (sum - less, less)
                };
                (windows.begins[axis], windows.ends[axis]) = (begin, end);
                assert!(sum <= rows + windows.reach(axis), "auto_pad of `{}`", call.op.name);
            }
        }
        windows
    }

    /// From the first to the last row of a window, the last one excluded.
    fn reach(&self, axis: usize) -> i64 {
        (self.kernel[axis] as i64 - 1) * self.dilations[axis]
    }

    fn count(&self, axis: usize, rows: usize, round_up: bool) -> usize {
        let room = rows as i64 + self.begins[axis] + self.ends[axis] - self.reach(axis) - 1;
        let stride = self.strides[axis];
        let mut count = room.div_euclid(stride) + 1;
        // A window that begins in the padding after the last row is none.
        if round_up && room % stride != 0 && count * stride < rows as i64 + self.begins[axis] {
            count += 1;
        }
        usize::try_from(count).unwrap_or(0)
    }

    /// The row under a tap of a window, if it is one.
    fn row(&self, axis: usize, window: usize, tap: usize, rows: usize) -> Option<usize> {
        let row = window as i64 * self.strides[axis] - self.begins[axis] + tap as i64 * self.dilations[axis];
        usize::try_from(row).ok().filter(|&row| row < rows)
    }

    fn rows(&self, window: &[usize], tap: &[usize], rows: &[usize]) -> Option<Vec<usize>> {
        (0..tap.len())
            .map(|axis| self.row(axis, window[axis], tap[axis], rows[axis]))
            .collect()
    }
}

impl Call<'_> {
    pub(super) fn conv(&self) -> Array {
        let sums = self.convolved(1);
        Array::from_fn(sums.dims.clone(), |at| {
            let bias = self.given(2).map_or(0, |bias| bias.at(&at[1..2]));
            let sum = sums.at(at).wrapping_add(bias);
            let sum = sum.wrapping_add(self.given(3).map_or(0, |summand| summand.at(at)));
            match self.text("activation") {
                Some(_) => sum.max(0),
                None => sum,
            }
        })
    }

    /// The sums of products by the weights of an operand.
    pub(super) fn convolved(&self, weights: usize) -> Array {
        let (x, w) = (self.operand(0), self.operand(weights));
        let windows = Windows::of(self, &w.dims[2..], &x.dims[2..]);
        let groups = usize::try_from(self.int("group", 1)).unwrap_or(1);
        assert_eq!(x.dims[1], w.dims[1] * groups, "channels of `{}`", self.op.name);
        let mut dims = vec![x.dims[0], w.dims[0]];
        dims.extend((0..windows.kernel.len()).map(|axis| windows.count(axis, x.dims[axis + 2], false)));
        Array::from_fn(dims, |at| {
            let first = at[1] / (w.dims[0] / groups) * w.dims[1];
            let mut sum = 0_i64;
            each(&windows.kernel, |tap| {
                let Some(rows) = windows.rows(&at[2..], tap, &x.dims[2..]) else {
                    return;
                };
                for channel in 0..w.dims[1] {
                    let element = x.at(&[&[at[0], first + channel][..], &rows].concat());
                    sum = sum.wrapping_add(element.wrapping_mul(w.at(&[&[at[1], channel][..], tap].concat())));
                }
            });
            sum
        })
    }

    pub(super) fn conv_transpose(&self) -> Array {
        let (x, w) = (self.operand(0), self.operand(1));
        let windows = Windows::of(self, &w.dims[2..], &x.dims[2..]);
        let rank = windows.kernel.len();
        let more = self.ints("output_padding").unwrap_or_else(|| vec![0; rank]);
        let rows = |axis: usize| {
            let last = (x.dims[axis + 2] as i64 - 1) * windows.strides[axis] + windows.reach(axis) + 1;
            usize::try_from(last + more[axis] - windows.begins[axis] - windows.ends[axis]).unwrap_or(0)
        };
        let mut dims = vec![x.dims[0], w.dims[1]];
        dims.extend((0..rank).map(rows));
        let mut result = Array::from_fn(dims.clone(), |at| self.given(2).map_or(0, |bias| bias.at(&at[1..2])));
        let mut place = Vec::new();
        each(&dims, |at| place.push(at.to_vec()));
        for (at, element) in place.iter().zip(&mut result.data) {
            each(&x.dims[2..], |from| {
                let tap: Option<Vec<usize>> = (0..rank)
                    .map(|axis| {
                        let way =
                            at[axis + 2] as i64 + windows.begins[axis] - from[axis] as i64 * windows.strides[axis];
                        let tap = usize::try_from(way / windows.dilations[axis]).ok()?;
                        (way >= 0 && way % windows.dilations[axis] == 0 && tap < windows.kernel[axis]).then_some(tap)
                    })
                    .collect();
                let Some(tap) = tap else { return };
                for channel in 0..x.dims[1] {
                    let factor = w.at(&[&[channel, at[1]][..], &tap].concat());
                    let from = x.at(&[&[at[0], channel][..], from].concat());
                    *element = element.wrapping_add(from.wrapping_mul(factor));
                }
            });
        }
        result
    }

    pub(super) fn pool(&self) -> Array {
        let x = self.operand(0);
        let kernel = self.ints("kernel_shape").unwrap_or_default();
        let kernel: Vec<usize> = kernel.iter().map(|&k| usize::try_from(k).unwrap_or(0)).collect();
        let windows = Windows::of(self, &kernel, &x.dims[2..]);
        let round_up = self.int("ceil_mode", 0) != 0;
        let mut dims = x.dims[..2].to_vec();
        dims.extend((0..kernel.len()).map(|axis| windows.count(axis, x.dims[axis + 2], round_up)));
        let counts_all = self.int("count_include_pad", 0) != 0;
        Array::from_fn(dims, |at| {
            let (mut most, mut sum, mut count) = (i64::MIN, 0_i64, 0);
            each(&kernel, |tap| {
                let rows = windows.rows(&at[2..], tap, &x.dims[2..]);
                count += i64::from(counts_all || rows.is_some());
                if let Some(rows) = rows {
                    let element = x.at(&[&at[..2], &rows].concat());
                    (most, sum) = (most.max(element), sum.wrapping_add(element));
                }
            });
            match self.op.op_type.as_str() {
                "MaxPool" => most,
                _ => self.with_single_numbers(mixed(sum, count), 1),
            }
        })
    }
}
