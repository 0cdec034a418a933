//! A reference interpreter of the operators that are split, by their definition, element by element. Elements are whole numbers in `f64`, so
//! that sums are exact in any order and equal results have equal bits.

use std::collections::BTreeMap;

use remat_ir::{Attribute, Graph, Op};

use crate::value::Value;

/// All values of a run, by name of the tensor.
pub(crate) fn run(graph: &Graph, given: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let mut values = given.clone();
    for (&tensor, elements) in &graph.values {
        let dims = graph.tensors[tensor].ty.known_shape().unwrap();
        let dims: Vec<usize> = dims.iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
        let data = elements.iter().map(|&element| element as f64).collect();
        values.insert(graph.tensors[tensor].name.clone(), Value { dims, data });
    }
    for op in &graph.ops {
        let operands = op.inputs.iter();
        let operands: Vec<Option<&Value>> = operands
            .map(|input| input.map(|tensor| &values[&graph.tensors[tensor].name]))
            .collect();
        let results = evaluate(op, &operands);
        for (output, result) in op.outputs.iter().zip(results) {
            if let Some(output) = *output {
                let tensor = &graph.tensors[output];
                let dims: Vec<u64> = result.dims.iter().map(|&dim| dim as u64).collect();
                assert_eq!(tensor.ty.known_shape(), Some(dims), "shape of `{}`", tensor.name);
                values.insert(tensor.name.clone(), result);
            }
        }
    }
    values
}

/// An op and its attributes.
struct Call<'a> {
    op: &'a Op,
    operands: &'a [Option<&'a Value>],
}

impl Call<'_> {
    fn x(&self, place: usize) -> &Value {
        self.operands[place].expect("an operand")
    }

    fn given(&self, place: usize) -> Option<&Value> {
        self.operands.get(place).copied().flatten()
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.op
            .attributes
            .get(name)
            .and_then(Attribute::as_int)
            .unwrap_or(default)
    }

    fn ints(&self, name: &str, default: &[i64]) -> Vec<i64> {
        let ints = self.op.attributes.get(name).and_then(Attribute::as_ints);
        ints.unwrap_or(default).to_vec()
    }

    fn text(&self, name: &str, default: &'static str) -> String {
        self.op
            .attributes
            .get(name)
            .and_then(Attribute::as_str)
            .unwrap_or(default)
            .to_owned()
    }

    fn axis(&self, default: i64, rank: usize) -> usize {
        positive(self.int("axis", default), rank)
    }
}

fn positive(axis: i64, rank: usize) -> usize {
    usize::try_from(if axis < 0 { axis + signed(rank) } else { axis }).unwrap()
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap()
}

pub(crate) fn evaluate(op: &Op, operands: &[Option<&Value>]) -> Vec<Value> {
    let call = Call { op, operands };
    let one = |value: Value| vec![value];
    match op.op_type.as_str() {
        "Add" => one(zip(&call, |a, b| a + b)),
        "Sub" => one(zip(&call, |a, b| a - b)),
        "Mul" => one(zip(&call, |a, b| a * b)),
        "PRelu" => one(zip(&call, |a, b| if a < 0.0 { a * b } else { a })),
        "Relu" => one(map(call.x(0), |a| a.max(0.0))),
        "Neg" => one(map(call.x(0), |a| -a)),
        "Where" => {
            let dims = call.x(1).dims.clone();
            one(Value::from_fn(&dims, |at| {
                let condition = call.x(0).broadcast(at) > 0.0;
                call.x(if condition { 1 } else { 2 }).broadcast(at)
            }))
        }
        "DequantizeLinear" => one(dequantize(&call)),
        "Conv" | "FusedConv" => one(conv(&call)),
        "ConvTranspose" => one(conv_transpose(&call)),
        "MaxPool" | "AveragePool" => one(pool(&call)),
        "GlobalAveragePool" => one(reduce(&call, &[2, 3], true)),
        "Resize" => one(resize(&call)),
        "MatMul" | "FusedMatMul" => one(matmul(&call)),
        "Gemm" => one(gemm(&call)),
        "Softmax" => {
            let axis = call.axis(-1, call.x(0).dims.len());
            one(normalize(call.x(0), &[axis], |row, at| {
                let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (row[at] - most).exp() / row.iter().map(|x| (x - most).exp()).sum::<f64>()
            }))
        }
        "LayerNormalization" => {
            let axes: Vec<usize> = (call.axis(-1, call.x(0).dims.len())..call.x(0).dims.len()).collect();
            let centred = normalize(call.x(0), &axes, |row, at| {
                row[at] - row.iter().sum::<f64>() / row.len() as f64
            });
            one(Value::from_fn(&centred.dims, |at| {
                centred.at(at) * call.x(1).broadcast(at)
            }))
        }
        "SkipLayerNormalization" => {
            let sum = Value::from_fn(&call.x(0).dims.clone(), |at| call.x(0).at(at) + call.x(1).broadcast(at));
            let last = sum.dims.len() - 1;
            one(normalize(&sum, &[last], |row, at| {
                row[at] - row.iter().sum::<f64>() / row.len() as f64
            }))
        }
        "InstanceNormalization" => {
            let centred = normalize(call.x(0), &[2, 3], |row, at| {
                row[at] - row.iter().sum::<f64>() / row.len() as f64
            });
            one(Value::from_fn(&centred.dims, |at| {
                centred.at(at) * call.x(1).at(&[at[1]]) + call.x(2).at(&[at[1]])
            }))
        }
        "GroupNormalization" => one(normalize(call.x(0), &[1, 2, 3], |row, at| {
            row[at] - row.iter().sum::<f64>() / row.len() as f64
        })),
        "BatchNormalization" => {
            let of = |place: usize, at: &[usize]| call.x(place).at(&[at[1]]);
            let dims = call.x(0).dims.clone();
            one(Value::from_fn(&dims, |at| {
                (call.x(0).at(at) - of(3, at)) * of(1, at) + of(2, at)
            }))
        }
        "ReduceSum" | "ReduceMax" => {
            let rank = call.x(0).dims.len();
            let axes: Vec<usize> = call.x(1).ints().iter().map(|&axis| positive(axis, rank)).collect();
            one(reduce(&call, &axes, call.int("keepdims", 1) != 0))
        }
        "Concat" => one(concat(&call)),
        "Split" => split(&call),
        "Slice" => one(slice(&call)),
        "Pad" => one(pad(&call)),
        "Transpose" => {
            let x = call.x(0);
            let perm: Vec<usize> = call
                .ints("perm", &[])
                .iter()
                .map(|&axis| positive(axis, x.dims.len()))
                .collect();
            let dims: Vec<usize> = perm.iter().map(|&axis| x.dims[axis]).collect();
            one(Value::from_fn(&dims, |at| {
                let mut from = vec![0; at.len()];
                for (to, &axis) in perm.iter().enumerate() {
                    from[axis] = at[to];
                }
                x.at(&from)
            }))
        }
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" => one(reshape(&call)),
        "Gather" => one(gather(&call)),
        "GatherND" => {
            let (data, indices) = (call.x(0), call.x(1));
            let rank = indices.dims.len();
            let tuple = indices.dims[rank - 1];
            let mut dims = indices.dims[..rank - 1].to_vec();
            dims.extend(&data.dims[tuple..]);
            one(Value::from_fn(&dims, |at| {
                let (outer, inner) = at.split_at(rank - 1);
                let position = |place: usize| {
                    let at: Vec<usize> = outer.iter().copied().chain([place]).collect();
                    positive(indices.part(&point(&at)).ints()[0], data.dims[place])
                };
                let from: Vec<usize> = (0..tuple).map(position).chain(inner.iter().copied()).collect();
                data.at(&from)
            }))
        }
        other => panic!("no definition of {other}"),
    }
}

fn point(at: &[usize]) -> Vec<std::ops::Range<u64>> {
    at.iter().map(|&at| at as u64..at as u64 + 1).collect()
}

fn map(x: &Value, f: impl Fn(f64) -> f64) -> Value {
    Value {
        dims: x.dims.clone(),
        data: x.data.iter().map(|&element| f(element)).collect(),
    }
}

fn zip(call: &Call<'_>, f: impl Fn(f64, f64) -> f64) -> Value {
    let (a, b) = (call.x(0), call.x(1));
    let rank = a.dims.len().max(b.dims.len());
    let dim = |value: &Value, axis: usize| {
        (axis + value.dims.len())
            .checked_sub(rank)
            .map_or(1, |axis| value.dims[axis])
    };
    let dims: Vec<usize> = (0..rank).map(|axis| dim(a, axis).max(dim(b, axis))).collect();
    Value::from_fn(&dims, |at| f(a.broadcast(at), b.broadcast(at)))
}

fn dequantize(call: &Call<'_>) -> Value {
    let axis = call.axis(1, call.x(0).dims.len());
    let of = |place: usize, at: &[usize]| match call.x(place).dims.as_slice() {
        [] => call.x(place).data[0],
        _ => call.x(place).at(&[at[axis]]),
    };
    Value::from_fn(&call.x(0).dims.clone(), |at| (call.x(0).at(at) - of(2, at)) * of(1, at))
}

/// Kernel, strides, dilations and pads of a window over two axes.
struct Window {
    kernel: [i64; 2],
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
}

impl Window {
    fn of(call: &Call<'_>, kernel: [i64; 2]) -> Self {
        Self {
            kernel,
            strides: call.ints("strides", &[1, 1]),
            dilations: call.ints("dilations", &[1, 1]),
            pads: call.ints("pads", &[0, 0, 0, 0]),
        }
    }

    fn reach(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1) * self.dilations[axis]
    }

    fn out(&self, axis: usize, extent: usize, rounds_up: bool) -> usize {
        let room = signed(extent) + self.pads[axis] + self.pads[axis + 2] - self.reach(axis) - 1;
        let steps = if rounds_up { room + self.strides[axis] - 1 } else { room } / self.strides[axis];
        usize::try_from(steps + 1).unwrap()
    }

    /// The pixels of the window at an output pixel, those outside of the image left out, each with its place in the kernel.
    fn pixels(&self, at: [usize; 2], image: [usize; 2]) -> Vec<([usize; 2], [usize; 2])> {
        let inside = |axis: usize, k: i64| {
            let pixel = signed(at[axis]) * self.strides[axis] - self.pads[axis] + k * self.dilations[axis];
            usize::try_from(pixel).ok().filter(|&pixel| pixel < image[axis])
        };
        let mut found = Vec::new();
        for i in 0..self.kernel[0] {
            for j in 0..self.kernel[1] {
                if let (Some(row), Some(column)) = (inside(0, i), inside(1, j)) {
                    let place = [usize::try_from(i).unwrap(), usize::try_from(j).unwrap()];
                    found.push(([row, column], place));
                }
            }
        }
        found
    }
}

fn conv(call: &Call<'_>) -> Value {
    let (x, w) = (call.x(0), call.x(1));
    let group = usize::try_from(call.int("group", 1)).unwrap();
    let window = Window::of(call, [signed(w.dims[2]), signed(w.dims[3])]);
    let (filters, channels) = (w.dims[0] / group, w.dims[1]);
    assert_eq!(x.dims[1], channels * group, "channels of `{}`", call.op.name);
    let dims = [
        x.dims[0],
        w.dims[0],
        window.out(0, x.dims[2], false),
        window.out(1, x.dims[3], false),
    ];
    Value::from_fn(&dims, |at| {
        let first = at[1] / filters * channels;
        let mut sum = call.given(2).map_or(0.0, |bias| bias.at(&[at[1]]));
        for ([i, j], [k, l]) in window.pixels([at[2], at[3]], [x.dims[2], x.dims[3]]) {
            for channel in 0..channels {
                sum += x.at(&[at[0], first + channel, i, j]) * w.at(&[at[1], channel, k, l]);
            }
        }
        sum + call.given(3).map_or(0.0, |summand| summand.at(at))
    })
}

fn conv_transpose(call: &Call<'_>) -> Value {
    let (x, w) = (call.x(0), call.x(1));
    let window = Window::of(call, [signed(w.dims[2]), signed(w.dims[3])]);
    let added = call.ints("output_padding", &[0, 0]);
    let extent = |axis: usize| {
        let reached = (signed(x.dims[axis + 2]) - 1) * window.strides[axis] + window.reach(axis) + 1;
        let extent = reached + added[axis] - window.pads[axis] - window.pads[axis + 2];
        usize::try_from(extent).unwrap()
    };
    let dims = [x.dims[0], w.dims[1], extent(0), extent(1)];
    let mut out = Value::from_fn(&dims, |at| call.given(2).map_or(0.0, |bias| bias.at(&[at[1]])));
    let place = |axis: usize, from: usize, k: usize| {
        let at = signed(from) * window.strides[axis] + signed(k) * window.dilations[axis] - window.pads[axis];
        usize::try_from(at).ok().filter(|&at| at < dims[axis + 2])
    };
    let visit = [
        x.dims[0], x.dims[1], x.dims[2], x.dims[3], w.dims[1], w.dims[2], w.dims[3],
    ];
    Value::from_fn(&visit, |at| {
        let &[n, c, i, j, m, k, l] = at else {
            unreachable!("seven axes")
        };
        if let (Some(row), Some(column)) = (place(0, i, k), place(1, j, l)) {
            out.add_at(&[n, m, row, column], x.at(&[n, c, i, j]) * w.at(&[c, m, k, l]));
        }
        0.0
    });
    out
}

fn pool(call: &Call<'_>) -> Value {
    let x = call.x(0);
    let kernel = call.ints("kernel_shape", &[]);
    let window = Window::of(call, [kernel[0], kernel[1]]);
    let rounds_up = call.int("ceil_mode", 0) != 0;
    let dims = [
        x.dims[0],
        x.dims[1],
        window.out(0, x.dims[2], rounds_up),
        window.out(1, x.dims[3], rounds_up),
    ];
    Value::from_fn(&dims, |at| {
        let pixels = window.pixels([at[2], at[3]], [x.dims[2], x.dims[3]]);
        let elements = pixels.iter().map(|&([i, j], _)| x.at(&[at[0], at[1], i, j]));
        if call.op.op_type == "MaxPool" {
            return elements.fold(f64::NEG_INFINITY, f64::max);
        }
        let all = kernel[0] * kernel[1];
        let count = if call.int("count_include_pad", 0) != 0 {
            all
        } else {
            signed(pixels.len())
        };
        elements.sum::<f64>() / count as f64
    })
}

/// Sizes or scales; scales are whole.
fn resize(call: &Call<'_>) -> Value {
    let x = call.x(0);
    let dims: Vec<usize> = match call.given(3) {
        Some(sizes) => sizes
            .ints()
            .iter()
            .map(|&size| usize::try_from(size).unwrap())
            .collect(),
        None => x
            .dims
            .iter()
            .zip(call.x(2).ints())
            .map(|(&dim, scale)| dim * usize::try_from(scale).unwrap())
            .collect(),
    };
    let half = call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
    let source = |at: usize, axis: usize| {
        let scale = dims[axis] as f64 / x.dims[axis] as f64;
        if half {
            (at as f64 + 0.5) / scale - 0.5
        } else {
            at as f64 / scale
        }
    };
    let clamp = |at: f64, axis: usize| {
        let row = at.max(0.0) as usize;
        row.min(x.dims[axis] - 1)
    };
    let is_nearest = call.text("mode", "nearest") == "nearest";
    Value::from_fn(&dims, |at| {
        if is_nearest {
            let round = |at: f64| if half { (at - 0.5).ceil() } else { at.floor() };
            let from: Vec<usize> = (0..at.len())
                .map(|axis| clamp(round(source(at[axis], axis)), axis))
                .collect();
            return x.at(&from);
        }
        let mut sum = 0.0;
        for corner in 0..1usize << at.len() {
            let mut weight = 1.0;
            let mut from = Vec::new();
            for (axis, &at) in at.iter().enumerate() {
                let place = source(at, axis).clamp(0.0, (x.dims[axis] - 1) as f64);
                let share = place - place.floor();
                let is_upper = corner >> axis & 1 == 1;
                weight *= if is_upper { share } else { 1.0 - share };
                from.push(clamp(place.floor() + if is_upper { 1.0 } else { 0.0 }, axis));
            }
            if weight > 0.0 {
                sum += weight * x.at(&from);
            }
        }
        sum
    })
}

fn swapped(x: &Value, swap: bool) -> Value {
    if !swap {
        return x.clone();
    }
    let rank = x.dims.len();
    let mut dims = x.dims.clone();
    dims.swap(rank - 1, rank - 2);
    Value::from_fn(&dims, |at| {
        let mut from = at.to_vec();
        from.swap(rank - 1, rank - 2);
        x.at(&from)
    })
}

fn matmul(call: &Call<'_>) -> Value {
    let a = swapped(call.x(0), call.int("transA", 0) != 0);
    let b = swapped(call.x(1), call.int("transB", 0) != 0);
    let rank = a.dims.len().max(b.dims.len());
    let inner = a.dims[a.dims.len() - 1];
    let dim = |value: &Value, axis: usize| {
        (axis + value.dims.len())
            .checked_sub(rank)
            .map_or(1, |axis| value.dims[axis])
    };
    let mut dims: Vec<usize> = (0..rank - 2).map(|axis| dim(&a, axis).max(dim(&b, axis))).collect();
    dims.extend([dim(&a, rank - 2), dim(&b, rank - 1)]);
    Value::from_fn(&dims, |at| {
        let (mut left, mut right) = (at.to_vec(), at.to_vec());
        let term = |k: usize| {
            left[rank - 1] = k;
            right[rank - 2] = k;
            a.broadcast(&left) * b.broadcast(&right)
        };
        (0..inner).map(term).sum()
    })
}

fn gemm(call: &Call<'_>) -> Value {
    let product = matmul(call);
    let Some(summand) = call.given(2) else {
        return product;
    };
    Value::from_fn(&product.dims, |at| product.at(at) + summand.broadcast(at))
}

/// Every element by the elements that lie along `axes` with it.
fn normalize(x: &Value, axes: &[usize], f: impl Fn(&[f64], usize) -> f64) -> Value {
    Value::from_fn(&x.dims, |at| {
        let ranges: Vec<std::ops::Range<u64>> = (0..at.len())
            .map(|axis| {
                if axes.contains(&axis) {
                    0..x.dims[axis] as u64
                } else {
                    at[axis] as u64..at[axis] as u64 + 1
                }
            })
            .collect();
        let row = x.part(&ranges);
        let own: Vec<usize> = (0..at.len())
            .map(|axis| if axes.contains(&axis) { at[axis] } else { 0 })
            .collect();
        let place = own.iter().zip(&row.dims).fold(0, |index, (&at, &dim)| index * dim + at);
        f(&row.data, place)
    })
}

fn reduce(call: &Call<'_>, axes: &[usize], keeps: bool) -> Value {
    let x = call.x(0);
    let is_max = call.op.op_type == "ReduceMax";
    let reduced = normalize(x, axes, |row, _| {
        if is_max {
            row.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        } else {
            row.iter().sum()
        }
    });
    let first: Vec<std::ops::Range<u64>> = (0..x.dims.len())
        .map(|axis| {
            if axes.contains(&axis) {
                0..1
            } else {
                0..x.dims[axis] as u64
            }
        })
        .collect();
    let mut value = reduced.part(&first);
    if !keeps {
        value.dims = (0..x.dims.len())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| x.dims[axis])
            .collect();
    }
    value
}

fn concat(call: &Call<'_>) -> Value {
    let axis = call.axis(0, call.x(0).dims.len());
    let mut dims = call.x(0).dims.clone();
    dims[axis] = call.operands.iter().flatten().map(|value| value.dims[axis]).sum();
    Value::from_fn(&dims, |at| {
        let mut at = at.to_vec();
        for value in call.operands.iter().flatten() {
            if at[axis] < value.dims[axis] {
                return value.at(&at);
            }
            at[axis] -= value.dims[axis];
        }
        unreachable!("a position of the result")
    })
}

fn split(call: &Call<'_>) -> Vec<Value> {
    let x = call.x(0);
    let axis = call.axis(0, x.dims.len());
    let count = call.op.outputs.len();
    let each = (x.dims[axis] / count) as u64;
    let part = |place: u64| {
        let range = |other: usize| {
            if other == axis {
                place * each..(place + 1) * each
            } else {
                0..x.dims[other] as u64
            }
        };
        x.part(&(0..x.dims.len()).map(range).collect::<Vec<_>>())
    };
    (0..count as u64).map(part).collect()
}

fn slice(call: &Call<'_>) -> Value {
    let x = call.x(0);
    let (starts, ends) = (call.x(1).ints(), call.x(2).ints());
    let axes = call
        .given(3)
        .map_or_else(|| (0..signed(starts.len())).collect(), Value::ints);
    let steps = call.given(4).map_or_else(|| vec![1; starts.len()], Value::ints);
    let mut rows: Vec<Vec<usize>> = x.dims.iter().map(|&dim| (0..dim).collect()).collect();
    for (place, &axis) in axes.iter().enumerate() {
        let axis = positive(axis, x.dims.len());
        let extent = signed(x.dims[axis]);
        let bound = |bound: i64| if bound < 0 { bound + extent } else { bound.min(extent) };
        let all = bound(starts[place])..bound(ends[place]);
        let step = usize::try_from(steps[place]).unwrap();
        rows[axis] = all.step_by(step).map(|row| usize::try_from(row).unwrap()).collect();
    }
    let dims: Vec<usize> = rows.iter().map(Vec::len).collect();
    Value::from_fn(&dims, |at| {
        let from: Vec<usize> = at.iter().zip(&rows).map(|(&at, rows)| rows[at]).collect();
        x.at(&from)
    })
}

fn pad(call: &Call<'_>) -> Value {
    let x = call.x(0);
    let pads: Vec<usize> = call
        .x(1)
        .ints()
        .iter()
        .map(|&pad| usize::try_from(pad).unwrap())
        .collect();
    let rank = x.dims.len();
    let dims: Vec<usize> = (0..rank)
        .map(|axis| x.dims[axis] + pads[axis] + pads[axis + rank])
        .collect();
    Value::from_fn(&dims, |at| {
        let from: Option<Vec<usize>> = (0..rank)
            .map(|axis| at[axis].checked_sub(pads[axis]).filter(|&row| row < x.dims[axis]))
            .collect();
        from.map_or(7.0, |from| x.at(&from))
    })
}

fn reshape(call: &Call<'_>) -> Value {
    let x = call.x(0);
    let rank = x.dims.len();
    let dims: Vec<usize> = match call.op.op_type.as_str() {
        "Reshape" => call
            .x(1)
            .ints()
            .iter()
            .map(|&dim| usize::try_from(dim).unwrap())
            .collect(),
        "Flatten" => {
            let (outer, inner) = x.dims.split_at(call.axis(1, rank));
            vec![outer.iter().product(), inner.iter().product()]
        }
        "Squeeze" => {
            let axes: Vec<usize> = call.x(1).ints().iter().map(|&axis| positive(axis, rank)).collect();
            (0..rank)
                .filter(|axis| !axes.contains(axis))
                .map(|axis| x.dims[axis])
                .collect()
        }
        _ => {
            let mut dims = x.dims.clone();
            for axis in call.x(1).ints() {
                dims.insert(usize::try_from(axis).unwrap(), 1);
            }
            dims
        }
    };
    assert_eq!(
        dims.iter().product::<usize>(),
        x.data.len(),
        "elements of `{}`",
        call.op.name
    );
    Value {
        dims,
        data: x.data.clone(),
    }
}

fn gather(call: &Call<'_>) -> Value {
    let (x, indices) = (call.x(0), call.x(1));
    let axis = call.axis(0, x.dims.len());
    let mut dims = x.dims[..axis].to_vec();
    dims.extend(&indices.dims);
    dims.extend(&x.dims[axis + 1..]);
    let inner = axis + indices.dims.len();
    Value::from_fn(&dims, |at| {
        let index = indices.part(&point(&at[axis..inner])).ints()[0];
        let mut from = at[..axis].to_vec();
        from.push(positive(index, x.dims[axis]));
        from.extend(&at[inner..]);
        x.at(&from)
    })
}
