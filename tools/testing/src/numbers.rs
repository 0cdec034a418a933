//! Graphs of a few operators in double precision: what a sum that is split is held against.
#![expect(clippy::cast_possible_wrap, reason = "the shapes of tests are small")]

use std::collections::BTreeMap;

use remat_ir::{Attribute, Graph, Op, TensorId};

use super::ranked;
use super::rows::{Numbers, concat, places};

/// Values of all tensors of a graph, by name, where `given` says those of inputs and of constants whose elements the graph does not state.
///
/// # Panics
/// If an operator is not one of the few that are known here, or if a result has another shape than the graph states.
#[must_use]
pub fn evaluate_numbers(graph: &Graph, given: impl Fn(&str, &[usize]) -> Numbers) -> BTreeMap<String, Numbers> {
    let dims_of = |tensor: TensorId| -> Vec<usize> {
        let tensor = &graph.tensors[tensor];
        let dims = tensor.ty.known_shape();
        let dims = dims.unwrap_or_else(|| panic!("the shape of `{}` is not known", tensor.name));
        dims.into_iter().map(|dim| dim as usize).collect()
    };
    let mut values: BTreeMap<String, Numbers> = BTreeMap::new();
    for (id, tensor) in graph.tensors.iter_enumerated() {
        if tensor.producer.is_none() {
            let dims = dims_of(id);
            let value = match graph.values.get(&id) {
                Some(elements) => Numbers {
                    dims,
                    data: elements.iter().map(|&element| element as f64).collect(),
                },
                None => given(&tensor.name, &dims),
            };
            values.insert(tensor.name.clone(), value);
        }
    }
    for op in &graph.ops {
        let operand = |input: &Option<TensorId>| values.get(&graph.tensors[(*input)?].name);
        let operands: Vec<Option<&Numbers>> = op.inputs.iter().map(operand).collect();
        let made = match op.op_type.as_str() {
            "ArgMax" | "ArgMin" => ranked::of_onnx(op, operands[0].expect("an operand"), None),
            "TopK" => {
                let count = operands[1].expect("a number of them").data[0] as i64;
                ranked::of_onnx(op, operands[0].expect("an operand"), Some(count))
            }
            _ => vec![evaluate_op(op, &operands)],
        };
        for (result, value) in op.outputs.iter().zip(made) {
            let Some(result) = *result else { continue };
            let name = &graph.tensors[result].name;
            assert_eq!(value.dims, dims_of(result), "the shape of `{name}`");
            values.insert(name.clone(), value);
        }
    }
    values
}

fn evaluate_op(op: &Op, operands: &[Option<&Numbers>]) -> Numbers {
    let operand = |place: usize| operands[place].expect("an operand");
    let list = |place: usize| -> Vec<i64> { operand(place).data.iter().map(|&value| value as i64).collect() };
    let int = |name: &str, default: i64| op.attributes.get(name).and_then(Attribute::as_int).unwrap_or(default);
    let ints = |name: &str| {
        op.attributes
            .get(name)
            .and_then(Attribute::as_ints)
            .map(<[i64]>::to_vec)
    };
    let counts = || ints("counts").expect("`counts`");
    let epsilon = match op.attributes.get("epsilon") {
        Some(Attribute::Float(epsilon)) => f64::from(*epsilon),
        _ => f64::from(1e-5_f32),
    };
    let all: Vec<&Numbers> = operands.iter().flatten().copied().collect();
    match op.op_type.as_str() {
        "Relu" => map(operand(0), |value| value.max(0.0)),
        "Add" | "Sum" => fold(&all, |a, b| a + b),
        "Mul" => fold(&all, |a, b| a * b),
        "Sub" => fold(&all, |a, b| a - b),
        "Neg" => map(operand(0), |value| -value),
        "Exp" => map(operand(0), f64::exp),
        "Max" => fold(&all, f64::max),
        "Min" => fold(&all, f64::min),
        "Shape" => Numbers {
            dims: vec![operand(0).dims.len()],
            data: operand(0).dims.iter().map(|&dim| dim as f64).collect(),
        },
        "Reshape" => {
            let source = operand(0);
            let listed = list(1).into_iter().enumerate();
            let dims = listed.map(|(axis, dim)| if dim == 0 { source.dims[axis] } else { dim as usize });
            Numbers {
                dims: dims.collect(),
                data: source.data.clone(),
            }
        }
        "Squeeze" => {
            let axes: Vec<usize> = ints("axes")
                .expect("axes")
                .into_iter()
                .map(|axis| axis as usize)
                .collect();
            let kept = operand(0)
                .dims
                .iter()
                .enumerate()
                .filter(|(axis, _)| !axes.contains(axis));
            Numbers {
                dims: kept.map(|(_, &dim)| dim).collect(),
                data: operand(0).data.clone(),
            }
        }
        "Expand" => {
            let shape: Vec<usize> = list(1).into_iter().map(|dim| dim as usize).collect();
            Numbers::from_fn(&shape, |place| operand(0).at(&place))
        }
        "LogSoftmax" => log_softmax(operand(0), int("axis", -1)),
        "GatherElements" => gather_elements(operand(0), operand(1), int("axis", 0) as usize),
        "ScatterElements" => scatter_elements(&all, int("axis", 0) as usize),
        "Slice" => slice(operand(0), &list(1), &list(2), &list(3)),
        "Concat" => concat(&all, int("axis", 0) as usize),
        "MatMul" => matmul(operand(0), operand(1)),
        "FusedMatMul" => {
            let turned = |place: usize, name: &str| match int(name, 0) {
                0 => operand(place).clone(),
                _ => transposed(operand(place)),
            };
            matmul(&turned(0, "transA"), &turned(1, "transB"))
        }
        "GlobalAveragePool" => reduce(
            operand(0),
            &(2..operand(0).dims.len()).collect::<Vec<_>>(),
            true,
            "ReduceMean",
        ),
        "GlobalMaxPool" => reduce(
            operand(0),
            &(2..operand(0).dims.len()).collect::<Vec<_>>(),
            true,
            "ReduceMax",
        ),
        name if name.starts_with("Reduce") => {
            let rank = operand(0).dims.len() as i64;
            let axes = ints("axes").unwrap_or_else(|| {
                if operands.len() > 1 {
                    list(1)
                } else {
                    (0..rank).collect()
                }
            });
            let axes: Vec<usize> = axes.into_iter().map(|axis| axis.rem_euclid(rank) as usize).collect();
            reduce(operand(0), &axes, int("keepdims", 1) != 0, name)
        }
        "InstanceNormalization" => group_norm(operand(0), operand(1), operand(2), operand(0).dims[1], epsilon),
        "GroupNormalization" => {
            let groups = int("num_groups", 1) as usize;
            group_norm(operand(0), operand(1), operand(2), groups, epsilon)
        }
        "Moments" => moments(operand(0)),
        "CombineMoments" => combine_moments(&all, &counts()),
        "CombineMeans" => {
            let counts = counts();
            let total: i64 = counts.iter().sum();
            let weighted: Vec<Numbers> = all
                .iter()
                .zip(&counts)
                .map(|(part, &count)| map(part, |value| value * count as f64 / total as f64))
                .collect();
            fold(&weighted.iter().collect::<Vec<_>>(), |a, b| a + b)
        }
        "Normalizer" => {
            let number = |place: usize| operands.get(place).copied().flatten();
            let numbers = [number(1), number(2), number(3), number(4)];
            normalizer(
                operand(0),
                int("count", 0) as f64,
                int("groups", 0) as usize,
                epsilon,
                numbers,
            )
        }
        "Normalize" => of_elements(normalize(operand(0), operand(1)), &all[2..]),
        "LayerNormalization" => {
            let axis = int("axis", -1).rem_euclid(operand(0).dims.len() as i64) as usize;
            of_elements(layer_norm(operand(0), axis, epsilon), &all[1..])
        }
        "Softmax" => map(&log_softmax(operand(0), int("axis", -1)), f64::exp),
        "Exponentials" => exponentials(operand(0), None, int("axis", -1)),
        "Weigh" => exponentials(operand(0), Some(operand(1)), int("axis", -1)),
        "CombineExponentials" => combine_exponentials(&all),
        "Soften" => {
            let [most, sum] = [0, 1].map(|column| without_last_axis(&columns(operand(1), column..column + 1)));
            let shifted = fold(&[operand(0), &most], |value, most| value - most);
            match int("log", 0) {
                0 => fold(&[&map(&shifted, f64::exp), &sum], |value, sum| value / sum),
                _ => fold(&[&shifted, &sum], |value, sum| value - sum.ln()),
            }
        }
        "Best" | "CombineBest" => ranked::best(op, &all),
        "BestValues" => ranked::half(operand(0), 0),
        "BestPlaces" => {
            let mut places = ranked::half(operand(0), 1);
            if int("keepdims", 1) == 0 {
                places.dims.remove(int("axis", 0) as usize);
            }
            places
        }
        "Weighed" => {
            let all = operand(0);
            let weighed = columns(all, 2..all.dims.last().copied().unwrap_or(2));
            fold(&[&weighed, &columns(all, 1..2)], |value, sum| value / sum)
        }
        name => panic!("`{name}` is not known in double precision"),
    }
}

fn map(value: &Numbers, function: impl Fn(f64) -> f64) -> Numbers {
    Numbers {
        dims: value.dims.clone(),
        data: value.data.iter().map(|&value| function(value)).collect(),
    }
}

/// Element by element, where operands are broadcast.
fn fold(operands: &[&Numbers], function: impl Fn(f64, f64) -> f64) -> Numbers {
    let rank = operands.iter().map(|operand| operand.dims.len()).max().unwrap_or(0);
    let dim = |axis: usize, operand: &Numbers| {
        let own = (axis + operand.dims.len()).checked_sub(rank);
        own.map_or(1, |own| operand.dims[own])
    };
    let largest = |axis: usize| operands.iter().map(|operand| dim(axis, operand)).max().unwrap_or(1);
    let dims: Vec<usize> = (0..rank).map(largest).collect();
    Numbers::from_fn(&dims, |place| {
        let elements = operands.iter().map(|operand| operand.at(&place));
        elements.reduce(&function).expect("an operand")
    })
}

fn slice(source: &Numbers, starts: &[i64], ends: &[i64], axes: &[i64]) -> Numbers {
    let mut rows: Vec<(usize, usize)> = source.dims.iter().map(|&dim| (0, dim)).collect();
    for ((&start, &end), &axis) in starts.iter().zip(ends).zip(axes) {
        let dim = source.dims[axis as usize] as i64;
        let bound = |bound: i64| if bound < 0 { bound.saturating_add(dim) } else { bound }.clamp(0, dim) as usize;
        rows[axis as usize] = (bound(start), bound(end));
    }
    let dims: Vec<usize> = rows.iter().map(|(start, end)| end - start).collect();
    Numbers::from_fn(&dims, |place| {
        let place: Vec<usize> = place.iter().zip(&rows).map(|(at, (start, _))| at + start).collect();
        source.at(&place)
    })
}

/// Along one axis.
fn log_softmax(value: &Numbers, axis: i64) -> Numbers {
    let axis = axis.rem_euclid(value.dims.len() as i64) as usize;
    let most = reduce(value, &[axis], true, "ReduceMax");
    let shifted = fold(&[value, &most], |value, most| value - most);
    let sums = reduce(&map(&shifted, f64::exp), &[axis], true, "ReduceSum");
    fold(&[&shifted, &map(&sums, f64::ln)], |value, sum| value - sum)
}

/// The maximum along an axis, the sum of the exponentials of what differs from it, and what these weigh.
fn exponentials(value: &Numbers, weighed: Option<&Numbers>, axis: i64) -> Numbers {
    let axis = axis.rem_euclid(value.dims.len() as i64) as usize;
    let most = reduce(value, &[axis], true, "ReduceMax");
    let powers = map(&fold(&[value, &most], |value, most| value - most), f64::exp);
    let sum = reduce(&powers, &[axis], true, "ReduceSum");
    let of_all = weighed.map(|weighed| matmul(&powers, weighed));
    let Some(product) = of_all else {
        let [most, sum] = [most, sum].map(|value| Numbers {
            dims: [&value.dims[..], &[1]].concat(),
            data: value.data,
        });
        return concat(&[&most, &sum], most.dims.len() - 1);
    };
    // Where what is weighed has more stacks.
    let [most, sum] = [most, sum].map(|value| fold(&[&value, &columns(&product, 0..1)], |value, _| value));
    concat(&[&most, &sum, &product], product.dims.len() - 1)
}

fn combine_exponentials(parts: &[&Numbers]) -> Numbers {
    let mosts: Vec<Numbers> = parts.iter().map(|part| columns(part, 0..1)).collect();
    let most = fold(&mosts.iter().collect::<Vec<_>>(), f64::max);
    let scaled: Vec<Numbers> = parts
        .iter()
        .zip(&mosts)
        .map(|(part, own)| {
            let scale = map(&fold(&[own, &most], |own, most| own - most), f64::exp);
            let rest = columns(part, 1..part.dims.last().copied().unwrap_or(1));
            fold(&[&rest, &scale], |value, scale| value * scale)
        })
        .collect();
    let sum = fold(&scaled.iter().collect::<Vec<_>>(), |a, b| a + b);
    concat(&[&most, &sum], most.dims.len() - 1)
}

/// Places of the last axis.
fn columns(value: &Numbers, range: std::ops::Range<usize>) -> Numbers {
    let last = value.dims.len() as i64 - 1;
    slice(value, &[range.start as i64], &[range.end as i64], &[last])
}

fn without_last_axis(value: &Numbers) -> Numbers {
    let mut value = value.clone();
    value.dims.pop();
    value
}

/// A row for any number.
fn row(number: f64, rows: usize) -> usize {
    ((number * 64.0).floor() as i64).rem_euclid(rows as i64) as usize
}

fn gather_elements(data: &Numbers, indices: &Numbers, axis: usize) -> Numbers {
    Numbers::from_fn(&indices.dims, |mut place| {
        place[axis] = row(indices.at(&place), data.dims[axis]);
        data.at(&place)
    })
}

/// Operands: data, indices, updates.
fn scatter_elements(operands: &[&Numbers], axis: usize) -> Numbers {
    let [data, indices, updates] = operands else {
        panic!("`ScatterElements` has three operands")
    };
    let mut written = (*data).clone();
    let at = |place: &[usize]| {
        place
            .iter()
            .zip(&data.dims)
            .fold(0, |index, (&at, &dim)| index * dim + at)
    };
    for (place, index) in places(&indices.dims).into_iter().zip(&indices.data) {
        let update = updates.at(&place);
        let mut to = place;
        to[axis] = row(*index, data.dims[axis]);
        written.data[at(&to)] = update;
    }
    written
}

/// The last two axes swapped.
fn transposed(value: &Numbers) -> Numbers {
    let swapped = |list: &[usize]| {
        let (stack, last) = list.split_at(list.len() - 2);
        [stack, &[last[1], last[0]]].concat()
    };
    Numbers::from_fn(&swapped(&value.dims), |place| value.at(&swapped(&place)))
}

/// Of two stacks of matrices, which are broadcast; a vector is one row on the left, one column on the right.
fn matmul(left: &Numbers, right: &Numbers) -> Numbers {
    let is_vector = [left, right].map(|factor| factor.dims.len() == 1);
    let (mut left, mut right) = (left.clone(), right.clone());
    if is_vector[0] {
        left.dims.insert(0, 1);
    }
    if is_vector[1] {
        right.dims.push(1);
    }
    let inner = left.dims[left.dims.len() - 1];
    let rank = left.dims.len().max(right.dims.len());
    let stack = |axis: usize| {
        let dim = |factor: &Numbers| {
            (axis + factor.dims.len())
                .checked_sub(rank)
                .map_or(1, |own| factor.dims[own])
        };
        dim(&left).max(dim(&right))
    };
    let mut dims: Vec<usize> = (0..rank - 2).map(stack).collect();
    dims.extend([left.dims[left.dims.len() - 2], right.dims[right.dims.len() - 1]]);
    let mut product = Numbers::from_fn(&dims, |place| {
        let term = |at: usize| {
            let (mut own, mut other) = (place.clone(), place.clone());
            (own[rank - 1], other[rank - 2]) = (at, at);
            left.at(&own) * right.at(&other)
        };
        (0..inner).map(term).sum()
    });
    if is_vector[1] {
        product.dims.remove(rank - 1);
    }
    if is_vector[0] {
        product.dims.remove(rank - 2);
    }
    product
}

fn reduce(source: &Numbers, axes: &[usize], keeps: bool, name: &str) -> Numbers {
    let start = match name {
        "ReduceMax" => f64::NEG_INFINITY,
        "ReduceMin" => f64::INFINITY,
        _ => 0.0,
    };
    let kept: Vec<usize> = source
        .dims
        .iter()
        .enumerate()
        .map(|(axis, &dim)| if axes.contains(&axis) { 1 } else { dim })
        .collect();
    let mut found = Numbers::from_fn(&kept, |_| start);
    let terms: usize = axes.iter().map(|&axis| source.dims[axis]).product();
    for (place, &value) in places(&source.dims).iter().zip(&source.data) {
        let index = kept
            .iter()
            .zip(place)
            .fold(0, |index, (&dim, &at)| index * dim + if dim == 1 { 0 } else { at });
        let known = &mut found.data[index];
        *known = match name {
            "ReduceMax" => known.max(value),
            "ReduceMin" => known.min(value),
            "ReduceL1" => *known + value.abs(),
            "ReduceSumSquare" => *known + value * value,
            "ReduceMean" => *known + value / terms as f64,
            _ => *known + value,
        };
    }
    if !keeps {
        found.dims = kept
            .iter()
            .enumerate()
            .filter(|(axis, _)| !axes.contains(axis))
            .map(|(_, &dim)| dim)
            .collect();
    }
    found
}

/// Groups of channels normalized as the definition says, in one pass; scale and bias have a number for each channel, or for each group.
fn group_norm(source: &Numbers, scale: &Numbers, bias: &Numbers, groups: usize, epsilon: f64) -> Numbers {
    let [_, channels, count] = source.channels();
    let each = channels / groups;
    let mut made = source.clone();
    for (at, group) in made.data.chunks_mut(each * count).enumerate() {
        let elements = group.len() as f64;
        let mean = group.iter().sum::<f64>() / elements;
        let variance = group.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / elements;
        for (place, value) in group.iter_mut().enumerate() {
            let channel = at % groups * each + place / count;
            let own = |numbers: &Numbers| {
                let is_by_channel = numbers.data.len() == channels;
                numbers.data[if is_by_channel { channel } else { channel / each }]
            };
            *value = (*value - mean) / (variance + epsilon).sqrt() * own(scale) + own(bias);
        }
    }
    made
}

/// Without a factor and a summand.
fn layer_norm(source: &Numbers, axis: usize, epsilon: f64) -> Numbers {
    let mut made = source.clone();
    for row in made.data.chunks_mut(source.dims[axis..].iter().product()) {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / row.len() as f64;
        row.iter_mut()
            .for_each(|value| *value = (*value - mean) / (variance + epsilon).sqrt());
    }
    made
}

/// Times a factor and with a summand, as far as they are given.
fn of_elements(source: Numbers, numbers: &[&Numbers]) -> Numbers {
    let scaled = match numbers.first() {
        Some(factor) => fold(&[&source, factor], |value, factor| value * factor),
        None => source,
    };
    match numbers.get(1) {
        Some(summand) => fold(&[&scaled, summand], |value, summand| value + summand),
        None => scaled,
    }
}

fn moments(source: &Numbers) -> Numbers {
    let [images, channels, each] = source.channels();
    let mut data = Vec::new();
    for channel in source.data.chunks(each) {
        let mean = channel.iter().sum::<f64>() / each as f64;
        data.extend([mean, channel.iter().map(|value| (value - mean).powi(2)).sum()]);
    }
    Numbers {
        dims: vec![images, channels, 1, 2],
        data,
    }
}

fn combine_moments(parts: &[&Numbers], counts: &[i64]) -> Numbers {
    let total: f64 = counts.iter().sum::<i64>() as f64;
    let mut all = parts[0].clone();
    for at in (0..all.data.len()).step_by(2) {
        let pairs = || {
            parts
                .iter()
                .zip(counts)
                .map(|(part, &count)| (part.data[at], part.data[at + 1], count as f64))
        };
        let mean = pairs().map(|(mean, _, count)| mean * count / total).sum::<f64>();
        let squares = pairs()
            .map(|(own, squares, count)| squares + count * (own - mean).powi(2))
            .sum();
        (all.data[at], all.data[at + 1]) = (mean, squares);
    }
    all
}

fn normalizer(moments: &Numbers, count: f64, groups: usize, epsilon: f64, numbers: [Option<&Numbers>; 4]) -> Numbers {
    let [images, channels, _] = moments.channels();
    let each = channels / groups;
    let number = |place: usize, channel: usize, default: f64| {
        numbers[place].map_or(default, |own| {
            own.data[if own.data.len() == channels {
                channel
            } else {
                channel / each
            }]
        })
    };
    let mut data = Vec::new();
    for image in 0..images {
        for channel in 0..channels {
            let group = channel / each * each..(channel / each + 1) * each;
            let of = |channel: usize| (image * channels + channel) * 2;
            let mean = group.clone().map(|channel| moments.data[of(channel)]).sum::<f64>() / each as f64;
            let squares: f64 = group
                .map(|channel| moments.data[of(channel) + 1] + count * (moments.data[of(channel)] - mean).powi(2))
                .sum();
            let inverse = 1.0 / (squares / (count * each as f64) + epsilon).sqrt();
            let (scale, bias) = (number(0, channel, 1.0), number(1, channel, 0.0));
            let (factor, summand) = (number(2, channel, 1.0), number(3, channel, 0.0));
            data.extend([
                inverse * scale * factor,
                (bias - mean * inverse * scale) * factor + summand,
            ]);
        }
    }
    Numbers {
        dims: vec![images, channels, 1, 2],
        data,
    }
}

fn normalize(source: &Numbers, numbers: &Numbers) -> Numbers {
    let mut made = source.clone();
    for (channel, values) in made.data.chunks_mut(source.channels()[2]).enumerate() {
        for value in values {
            *value = *value * numbers.data[2 * channel] + numbers.data[2 * channel + 1];
        }
    }
    made
}
