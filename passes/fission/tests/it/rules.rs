//! Every family of rules, on random shapes: tiles are the parts of the whole, element by element.

use proptest::prelude::*;
use remat_fission::{Axis, Mode};
use remat_ir::{Attribute, TensorId};

use crate::net::{Net, int, ints, text};

/// Tiles the op `y` along an axis in both modes; whether that was possible in any number of tiles.
fn tiles(net: &Net, axis: Axis) -> bool {
    let mut possible = false;
    for tiles in [2, 3] {
        for mode in [Mode::LineBuffer, Mode::Recompute] {
            possible |= net.check_fused_chain("y", "y", tiles, axis, mode).is_ok();
        }
    }
    possible
}

/// The axes along which the only op of a net, `y`, is tiled.
fn axes_of(net: &Net) -> Vec<Axis> {
    let all = [Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns];
    all.into_iter().filter(|&axis| tiles(net, axis)).collect()
}

const PIXELS: [Axis; 2] = [Axis::Rows, Axis::Columns];
const IMAGES: [Axis; 4] = [Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns];

fn single(op_type: &str, operands: &[(&str, &[usize])], attributes: &[(&str, Attribute)]) -> Net {
    let mut net = Net::default();
    let inputs: Vec<TensorId> = operands
        .iter()
        .map(|&(name, dims)| {
            if name.starts_with('w') {
                net.constant(name, dims)
            } else {
                net.input(name, dims)
            }
        })
        .collect();
    let y = net.op("y", op_type, &inputs, attributes);
    net.output(y);
    net
}

#[test]
fn elementwise_operands_broadcast() {
    for (x, b) in [
        (vec![2, 3, 4, 5], vec![2, 3, 4, 5]),
        (vec![2, 3, 4, 5], vec![3, 1, 1]),
        (vec![2, 3, 4, 5], vec![4, 5]),
        (vec![2, 3, 4, 5], vec![2, 1, 4, 1]),
        (vec![2, 3, 4, 5], vec![]),
    ] {
        for op_type in ["Add", "Mul", "PRelu"] {
            let net = single(op_type, &[("x", &x), ("b", &b)], &[]);
            assert_eq!(axes_of(&net), IMAGES, "{op_type} {b:?}");
        }
    }
    let net = single(
        "Where",
        &[("c", &[4, 1]), ("x", &[2, 3, 4, 5]), ("y0", &[2, 3, 4, 5])],
        &[],
    );
    assert_eq!(axes_of(&net), IMAGES);
}

#[test]
fn quantized_channels_take_their_scales_with_them() {
    let net = single(
        "DequantizeLinear",
        &[("x", &[2, 4, 4, 3]), ("w", &[4]), ("wz", &[4])],
        &[("axis", int(1))],
    );
    assert_eq!(axes_of(&net), IMAGES);
    let net = single(
        "DequantizeLinear",
        &[("x", &[2, 4, 4, 3]), ("w", &[]), ("wz", &[])],
        &[],
    );
    assert_eq!(axes_of(&net), IMAGES);
}

proptest! {
    #![proptest_config(remat_testing::cases(48))]

    #[test]
    fn convolutions(
        (h, w) in (5usize..12, 5usize..12),
        kernel in 1usize..4,
        stride in 1i64..3,
        dilation in 1i64..3,
        pads in prop::array::uniform4(0i64..3),
        group in prop::sample::select(vec![1usize, 2, 4]),
        fused in any::<bool>(),
    ) {
        let reach = (kernel as u64 - 1) * dilation.unsigned_abs();
        prop_assume!(h as u64 > reach && w as u64 > reach);
        let mut net = Net::default();
        let x = net.input("x", &[2, 4, h, w]);
        let weights = net.constant("w", &[4, 4 / group, kernel, kernel]);
        let bias = net.constant("b", &[4]);
        let attributes = [
            ("strides", ints(&[stride, stride])),
            ("dilations", ints(&[dilation, dilation])),
            ("pads", ints(&pads)),
            ("group", int(i64::try_from(group).unwrap())),
        ];
        let mut y = net.op("y0", "Conv", &[x, weights, bias], &attributes);
        if fused {
            let summand = net.op("s", "Relu", &[y], &[]);
            y = net.op("y", "com.microsoft::FusedConv", &[x, weights, bias, summand], &attributes);
        } else {
            y = net.op("y", "Relu", &[y], &[]);
        }
        net.output(y);
        let first = if fused { "s" } else { "y0" };
        for axis in IMAGES {
            for mode in [Mode::LineBuffer, Mode::Recompute] {
                for tiles in [2, 3] {
                    let _ = net.check_fused_chain(first, "y", tiles, axis, mode);
                }
            }
        }
        prop_assert!(net.check_fused_chain(first, "y", 2, Axis::Batch, Mode::Recompute).is_ok());
        prop_assert!(net.check_fused_chain(first, "y", 2, Axis::Channels, Mode::Recompute).is_ok() || group == 4 && fused);
    }

    #[test]
    fn pools(
        (h, w) in (6usize..13, 6usize..13),
        kernel in 1i64..4,
        stride in 1i64..3,
        pad in 0i64..2,
        rounds_up in any::<bool>(),
        counts in 0i64..2,
    ) {
        prop_assume!(pad < kernel);
        let attributes = [
            ("kernel_shape", ints(&[kernel, kernel])),
            ("strides", ints(&[stride, stride])),
            ("pads", ints(&[pad; 4])),
        ];
        let mut max = attributes.to_vec();
        max.push(("ceil_mode", int(i64::from(rounds_up))));
        let net = single("MaxPool", &[("x", &[2, 3, h, w])], &max);
        prop_assert_eq!(axes_of(&net), IMAGES);
        let mut average = attributes.to_vec();
        average.push(("count_include_pad", int(counts)));
        let net = single("AveragePool", &[("x", &[2, 3, h, w])], &average);
        prop_assert_eq!(axes_of(&net), IMAGES);
    }

    #[test]
    fn transposed_convolutions(
        (h, w) in (3usize..7, 3usize..7),
        kernel in 1usize..5,
        stride in 1i64..4,
        dilation in 1i64..3,
        pad in 0i64..2,
        added in 0i64..2,
    ) {
        let reach = i64::try_from(kernel).unwrap().saturating_sub(1) * dilation;
        prop_assume!(added < stride.max(dilation) && 2 * pad <= reach);
        let net = single("ConvTranspose", &[("x", &[2, 3, h, w]), ("w", &[3, 2, kernel, kernel]), ("wb", &[2])], &[
            ("strides", ints(&[stride, stride])),
            ("dilations", ints(&[dilation, dilation])),
            ("pads", ints(&[pad; 4])),
            ("output_padding", ints(&[added, added])),
        ]);
        for axis in [Axis::Batch, Axis::Channels] {
            prop_assert!(tiles(&net, axis));
        }
        for axis in PIXELS {
            let possible = tiles(&net, axis);
            prop_assert!(possible || stride > reach, "{axis:?}");
        }
    }

    #[test]
    fn interpolation(
        (h, w) in (3usize..7, 3usize..7),
        factor in 1i64..5,
        linear in any::<bool>(),
        half in any::<bool>(),
        sized in any::<bool>(),
    ) {
        prop_assume!(!linear || factor != 3);
        let mut net = Net::default();
        let x = net.input("x", &[2, 3, h, w]);
        let (h, w) = (i64::try_from(h).unwrap(), i64::try_from(w).unwrap());
        let by = net.numbers("factors", &[1, 1, factor, factor]);
        let to = net.list("sizes", &[2, 3, h * factor, w * factor]);
        let (how, rounding) = if half { ("half_pixel", "round_prefer_floor") } else { ("asymmetric", "floor") };
        let attributes = [
            ("mode", text(if linear { "linear" } else { "nearest" })),
            ("coordinate_transformation_mode", text(how)),
            ("nearest_mode", text(rounding)),
        ];
        let inputs = if sized { [Some(x), None, None, Some(to)] } else { [Some(x), None, Some(by), None] };
        let y = net.ops(&["y"], "Resize", &inputs, &attributes)[0];
        net.output(y);
        prop_assert_eq!(axes_of(&net), IMAGES);
    }

    #[test]
    fn products(
        batch in 2usize..4,
        (m, k, n) in (3usize..6, 1usize..5, 3usize..6),
        (ta, tb) in (any::<bool>(), any::<bool>()),
    ) {
        let flip = |swap: bool, a: usize, b: usize| if swap { [b, a] } else { [a, b] };
        let (a, b) = (flip(ta, m, k), flip(tb, k, n));
        let attributes = [("transA", int(i64::from(ta))), ("transB", int(i64::from(tb)))];
        let net = single("com.microsoft::FusedMatMul", &[("x", &[batch, 3, a[0], a[1]]), ("b", &[batch, 3, b[0], b[1]])], &attributes);
        prop_assert_eq!(axes_of(&net), IMAGES);
        let net = single("MatMul", &[("x", &[batch, 3, m, k]), ("w", &[k, n])], &[]);
        prop_assert_eq!(axes_of(&net), IMAGES);
        let net = single("MatMul", &[("x", &[batch, 3, m, k]), ("w", &[3, k, n])], &[]);
        prop_assert_eq!(axes_of(&net), IMAGES);
        for summand in [vec![n], vec![m, 1], vec![m, n], vec![1, n]] {
            let net = single("Gemm", &[("x", &a), ("w", &b), ("wc", &summand)], &attributes);
            prop_assert!(tiles(&net, Axis::Rows) && tiles(&net, Axis::Columns), "{:?}", summand);
        }
    }

    #[test]
    fn slices_and_pads(start in 0i64..3, step in 1i64..4, before in 0i64..3, after in 0i64..3) {
        let mut net = Net::default();
        let x = net.input("x", &[2, 3, 12, 5]);
        let starts = net.list("starts", &[start, -5]);
        let ends = net.list("ends", &[12, i64::MAX >> 8]);
        let axes = net.list("axes", &[2, -1]);
        let steps = net.list("steps", &[step, 1]);
        let y = net.op("y", "Slice", &[x, starts, ends, axes, steps], &[]);
        net.output(y);
        prop_assert_eq!(axes_of(&net), IMAGES);
        let mut net = Net::default();
        let x = net.input("x", &[2, 3, 6, 6]);
        let pads = net.list("pads", &[0, 0, before, after, 0, 0, after, before]);
        let y = net.op("y", "Pad", &[x, pads], &[]);
        net.output(y);
        prop_assert_eq!(axes_of(&net), IMAGES);
    }

    #[test]
    fn gathered_rows(indices in prop::collection::vec(0i64..6, 4..8)) {
        let mut net = Net::default();
        let x = net.input("x", &[2, 3, 6, 4]);
        let known = net.list("known", &indices);
        let y = net.op("y", "Gather", &[x, known], &[("axis", int(2))]);
        net.output(y);
        prop_assert_eq!(axes_of(&net), IMAGES);
    }
}

#[test]
fn places_and_sums_along_an_axis_need_all_of_it() {
    let image: (&str, &[usize]) = ("x", &[2, 3, 4, 5]);
    for (op_type, axis) in [("ArgMax", 1), ("ArgMin", -3), ("LpNormalization", 1)] {
        let net = single(op_type, &[image], &[("axis", int(axis))]);
        assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns], "{op_type}");
    }
    assert_eq!(
        axes_of(&single("ArgMax", &[image], &[])),
        [Axis::Channels, Axis::Rows, Axis::Columns]
    );
    // All axes that are left.
    let net = single("ArgMax", &[image], &[("axis", int(1)), ("keepdims", int(0))]);
    assert_eq!(axes_of(&net), IMAGES);
    let mut net = Net::default();
    let x = net.input("x", &[2, 3, 4, 5]);
    let along = net.list("along", &[2]);
    let y = net.op("y", "CumSum", &[x, along], &[]);
    net.output(y);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels, Axis::Columns]);
    let mut net = Net::default();
    let x = net.input("x", &[2, 3, 4, 5]);
    let count = net.list("count", &[2]);
    let made = net.ops(&["y", "places"], "TopK", &[Some(x), Some(count)], &[("axis", int(1))]);
    made.into_iter().for_each(|result| net.output(result));
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
}

#[test]
fn normalized_axes_stay_whole() {
    let image: (&str, &[usize]) = ("x", &[2, 3, 4, 5]);
    let net = single("Softmax", &[image], &[("axis", int(-1))]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels, Axis::Rows]);
    let net = single("Softmax", &[image], &[("axis", int(1))]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
    // In models of early operator sets.
    for attributes in [vec![("axis", int(1)), ("flattens", int(1))], vec![("flattens", int(1))]] {
        assert_eq!(axes_of(&single("LogSoftmax", &[image], &attributes)), [Axis::Batch]);
    }
    let net = single("LayerNormalization", &[image, ("w", &[4, 5])], &[("axis", int(2))]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels]);
    let net = single(
        "com.microsoft::SkipLayerNormalization",
        &[image, ("s", &[2, 3, 4, 5])],
        &[],
    );
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels, Axis::Rows]);
    let net = single("InstanceNormalization", &[image, ("w", &[3]), ("wb", &[3])], &[]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels]);
    for (vectors, groups) in [(6, 3), (3, 3), (6, 1)] {
        let operands: [(&str, &[usize]); 3] = [("x", &[2, 6, 4, 5]), ("w", &[vectors]), ("wb", &[vectors])];
        let net = single("GroupNormalization", &operands, &[("num_groups", int(groups))]);
        let expected = [Axis::Batch, Axis::Channels];
        assert_eq!(axes_of(&net), if groups == 1 { &expected[..1] } else { &expected });
    }
    let net = single("GlobalAveragePool", &[image], &[]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels]);
    let vectors = [image, ("w", &[3]), ("wb", &[3]), ("wm", &[3]), ("wv", &[3])];
    assert_eq!(axes_of(&single("BatchNormalization", &vectors, &[])), IMAGES);
}

#[test]
fn reduced_axes_stay_whole() {
    for (axes, keeps, expected) in [
        (vec![3], 1, vec![Axis::Batch, Axis::Channels, Axis::Rows]),
        (vec![2, 3], 1, vec![Axis::Batch, Axis::Channels]),
        (vec![-3], 1, vec![Axis::Batch, Axis::Rows, Axis::Columns]),
        // Of three axes that stay, batch is the first, rows and channels the second, columns the third.
        (vec![1], 0, vec![Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns]),
    ] {
        for op_type in ["ReduceSum", "ReduceMax"] {
            let mut net = Net::default();
            let x = net.input("x", &[2, 3, 4, 5]);
            let list = net.list("axes", &axes);
            let y = net.op("y", op_type, &[x, list], &[("keepdims", int(keeps))]);
            net.output(y);
            assert_eq!(axes_of(&net), expected, "{op_type} {axes:?} {keeps}");
        }
    }
}

#[test]
fn joined_and_divided_axes_stay_whole() {
    let net = single(
        "Concat",
        &[("x", &[2, 3, 4, 5]), ("b", &[2, 2, 4, 5])],
        &[("axis", int(1))],
    );
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
    let mut net = Net::default();
    let x = net.input("x", &[2, 4, 4, 5]);
    let halves = net.ops(&["y", "z"], "Split", &[Some(x), None], &[("axis", int(1))]);
    net.output(halves[0]);
    net.output(halves[1]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
}

#[test]
fn transposed_axes_are_found_where_they_were() {
    for perm in [[0, 2, 3, 1], [3, 1, 0, 2], [0, 2, 1, 3]] {
        let net = single("Transpose", &[("x", &[2, 3, 4, 5])], &[("perm", ints(&perm))]);
        assert_eq!(axes_of(&net), IMAGES);
    }
}

#[test]
fn reshaped_axes_are_found_where_as_much_stands_before_them() {
    let reshaped = |from: &[usize], to: &[i64]| {
        let mut net = Net::default();
        let x = net.input("x", from);
        let shape = net.list("shape", to);
        let z = net.op("z", "Relu", &[x], &[]);
        let y = net.op("y", "Reshape", &[z, shape], &[]);
        let out = net.op("out", "Neg", &[y], &[]);
        net.output(out);
        let all = [Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns];
        let possible = |axis: &Axis| {
            let tiled = net.check_fused_chain("z", "out", 2, *axis, Mode::LineBuffer);
            tiled.is_ok_and(|tiled| tiled.ops.iter().any(|op| op.name == "z_tile1"))
        };
        all.into_iter().filter(possible).collect::<Vec<_>>()
    };
    // Windows of 7x7 of an image with channels last, and back: rows and columns of windows.
    assert_eq!(
        reshaped(&[2, 14, 14, 3], &[2, 2, 7, 2, 7, 3]),
        [Axis::Batch, Axis::Channels, Axis::Columns]
    );
    assert_eq!(
        reshaped(&[2, 2, 7, 2, 7, 3], &[2, 14, 14, 3]),
        [Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns]
    );
    // Heads apart.
    assert_eq!(
        reshaped(&[2, 6, 8], &[2, 6, 2, 4]),
        [Axis::Batch, Axis::Channels, Axis::Rows]
    );
    // Images as lists of pixels: rows are multiples of pixels.
    assert_eq!(
        reshaped(&[2, 3, 4, 5], &[2, 3, 20]),
        [Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns]
    );
    assert_eq!(
        reshaped(&[1, 6, 5], &[6, 5]),
        [Axis::Batch, Axis::Channels, Axis::Rows, Axis::Columns]
    );
}

#[test]
fn axes_of_one_row_come_and_go() {
    let mut net = Net::default();
    let x = net.input("x", &[2, 3, 1, 4]);
    let axes = net.list("axes", &[2]);
    let a = net.op("a", "Squeeze", &[x, axes], &[]);
    let b = net.op("b", "Relu", &[a], &[]);
    let c = net.op("c", "Unsqueeze", &[b, axes], &[]);
    let d = net.op("d", "Flatten", &[c], &[("axis", int(1))]);
    net.output(d);
    assert!(
        net.check_fused_chain("a", "d", 2, Axis::Batch, Mode::LineBuffer)
            .is_ok()
    );
    assert!(
        net.check_fused_chain("a", "c", 2, Axis::Channels, Mode::LineBuffer)
            .is_ok()
    );
}

#[test]
fn single_elements_are_looked_up_and_written_within_rows() {
    let axis = [("axis", int(1))];
    let looked_up = single("GatherElements", &[("x", &[6, 7, 4]), ("i", &[5, 7, 4])], &axis);
    assert_eq!(axes_of(&looked_up), [Axis::Batch, Axis::Columns]);
    let written = single(
        "ScatterElements",
        &[("x", &[6, 7, 4]), ("i", &[6, 2, 4]), ("u", &[6, 2, 4])],
        &axis,
    );
    assert_eq!(axes_of(&written), [Axis::Batch, Axis::Columns]);
    let few = single(
        "ScatterElements",
        &[("x", &[6, 7, 4]), ("i", &[6, 2, 3]), ("u", &[6, 2, 3])],
        &axis,
    );
    assert_eq!(axes_of(&few), [Axis::Batch], "some columns have no index");
}

#[test]
fn gathered_rows_of_unknown_indices_and_tuples_follow_the_indices() {
    let net = single("Gather", &[("x", &[5, 4]), ("i", &[1])], &[]);
    assert!(!tiles(&net, Axis::Rows), "one row");
    let mut net = Net::default();
    let table = net.constant("table", &[4, 3]);
    let x = net.input("x", &[6, 1]);
    let zeros = net.op("zeros", "Sub", &[x, x], &[]);
    let y = net.op("y", "GatherND", &[table, zeros], &[]);
    net.output(y);
    assert!(tiles(&net, Axis::Rows) && !tiles(&net, Axis::Columns));
    let looked_up = net.op("z", "Gather", &[table, zeros], &[]);
    net.output(looked_up);
    for axis in [Axis::Batch, Axis::Tokens] {
        let done = net.check_fused_chain("z", "z", 2, axis, Mode::Recompute);
        assert_eq!(done.is_ok(), axis == Axis::Batch);
    }
}

#[test]
fn paddings_that_follow_from_the_image_are_stated() {
    for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"] {
        for (stride, dilation) in [(1, 1), (2, 1), (3, 1), (2, 2)] {
            let attributes = [
                ("auto_pad", text(auto)),
                ("strides", ints(&[stride, 1])),
                ("dilations", ints(&[dilation, dilation])),
            ];
            let net = single("Conv", &[("x", &[2, 4, 14, 13]), ("w", &[4, 4, 3, 2])], &attributes);
            assert_eq!(axes_of(&net), IMAGES, "{auto} {stride} {dilation}");
            let mut pool = attributes.to_vec();
            pool.push(("kernel_shape", ints(&[3, 2])));
            for op_type in ["MaxPool", "AveragePool"] {
                let net = single(op_type, &[("x", &[2, 4, 14, 13])], &pool);
                assert_eq!(axes_of(&net), IMAGES, "{op_type} {auto} {stride} {dilation}");
            }
        }
    }
}

#[test]
fn quantized_operators_take_scales_of_channels_with_them() {
    let scales = |channels: usize| if channels > 1 { vec![channels] } else { vec![] };
    for (channels, group) in [(1, 1), (4, 1), (4, 2), (4, 4)] {
        let by_channel = scales(channels);
        let operands: [(&str, &[usize]); 9] = [
            ("x", &[2, 4, 6, 7]),
            ("ws", &[]),
            ("wz", &[]),
            ("w", &[4, 4 / group, 3, 3]),
            ("wws", &by_channel),
            ("wwz", &by_channel),
            ("wys", &[]),
            ("wyz", &[1]),
            ("wb", &[4]),
        ];
        let attributes = [("pads", ints(&[1; 4])), ("group", int(i64::try_from(group).unwrap()))];
        for op_type in ["QLinearConv", "com.microsoft::QLinearConv"] {
            assert_eq!(
                axes_of(&single(op_type, &operands, &attributes)),
                IMAGES,
                "{op_type} {channels} {group}"
            );
        }
        let operands = [operands[0], operands[3], operands[1], operands[5]];
        assert_eq!(axes_of(&single("ConvInteger", &operands, &attributes)), IMAGES);
    }
    let last = [("channels_last", int(1))];
    let pooled: [(&str, &[usize]); 5] = [
        ("x", &[2, 4, 6, 7]),
        ("ws", &[]),
        ("wz", &[]),
        ("wys", &[]),
        ("wyz", &[]),
    ];
    let net = single("com.microsoft::QLinearGlobalAveragePool", &pooled, &[]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels]);
    assert_eq!(
        axes_of(&single("com.microsoft::QLinearGlobalAveragePool", &pooled, &last)),
        []
    );
    let window = [("kernel_shape", ints(&[3, 3])), ("pads", ints(&[1; 4]))];
    assert_eq!(
        axes_of(&single("com.microsoft::QLinearAveragePool", &pooled, &window)),
        IMAGES
    );
    let softmax = [("axis", int(2)), ("opset", int(13))];
    let net = single("com.microsoft::QLinearSoftmax", &pooled, &softmax);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Channels, Axis::Columns]);
    let pair: [(&str, &[usize]); 8] = [
        ("x", &[2, 4, 6, 7]),
        ("ws", &[]),
        ("wz", &[]),
        ("b", &[4, 1, 1]),
        ("wbs", &[]),
        ("wbz", &[]),
        ("wys", &[]),
        ("wyz", &[]),
    ];
    assert_eq!(axes_of(&single("com.microsoft::QLinearAdd", &pair, &[])), IMAGES);
    let pieces: [(&str, &[usize]); 8] = [
        ("wys", &[]),
        ("wyz", &[]),
        ("x", &[2, 3, 4, 5]),
        ("ws", &[]),
        ("wz", &[]),
        ("b", &[2, 2, 4, 5]),
        ("wbs", &[]),
        ("wbz", &[]),
    ];
    let net = single("com.microsoft::QLinearConcat", &pieces, &[("axis", int(1))]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
}

#[test]
fn quantized_products_are_cut_where_scales_are_single_numbers() {
    for (of_rows, of_columns) in [(1, 1), (1, 6), (4, 6)] {
        let (left, right) = ([of_rows], [of_columns]);
        let operands: [(&str, &[usize]); 8] = [
            ("x", &[4, 5]),
            ("wxs", &left),
            ("wxz", &left),
            ("w", &[5, 6]),
            ("wws", &right),
            ("wwz", &right),
            ("wys", &[]),
            ("wyz", &[]),
        ];
        let net = single("QLinearMatMul", &operands, &[]);
        assert_eq!(tiles(&net, Axis::Rows), of_rows == 1);
        assert!(tiles(&net, Axis::Columns));
        let integers = [operands[0], operands[3], operands[1], operands[4]];
        let net = single("MatMulInteger", &integers, &[]);
        assert_eq!(
            (tiles(&net, Axis::Rows), tiles(&net, Axis::Columns)),
            (of_rows == 1, true)
        );
        let gemm: Vec<(&str, &[usize])> = [&operands[..6], &[("wb", &[6])], &operands[6..]].concat();
        let net = single("com.microsoft::QGemm", &gemm, &[]);
        assert_eq!(
            (tiles(&net, Axis::Rows), tiles(&net, Axis::Columns)),
            (of_rows == 1, true)
        );
    }
    let operands: [(&str, &[usize]); 5] = [("x", &[4, 5]), ("w", &[5, 6]), ("ws", &[6]), ("wz", &[6]), ("wb", &[6])];
    let net = single("com.microsoft::DynamicQuantizeMatMul", &operands, &[]);
    assert!(!tiles(&net, Axis::Rows), "all rows are looked at for the scale");
    assert!(tiles(&net, Axis::Columns));
}

#[test]
fn pads_of_some_axes_only() {
    let mut net = Net::default();
    let x = net.input("x", &[2, 3, 6, 6]);
    let pads = net.list("pads", &[1, 2, 0, 1]);
    let value = net.constant("value", &[]);
    let axes = net.list("axes", &[-1, 2]);
    let y = net.op("y", "Pad", &[x, pads, value, axes], &[]);
    net.output(y);
    assert_eq!(axes_of(&net), IMAGES);
}

#[test]
fn broadcast_and_repeated_axes() {
    let mut net = Net::default();
    let x = net.input("x", &[3, 1, 5]);
    let shape = net.list("shape", &[2, 1, 4, 5]);
    let y = net.op("y", "Expand", &[x, shape], &[]);
    net.output(y);
    assert_eq!(axes_of(&net), IMAGES);
    let mut net = Net::default();
    let x = net.input("x", &[2, 3, 4, 5]);
    let copies = net.list("copies", &[1, 2, 1, 1]);
    let y = net.op("y", "Tile", &[x, copies], &[]);
    net.output(y);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
}

#[test]
fn blocks_of_pixels_stay_together() {
    let side = ("blocksize", int(2));
    let net = single("DepthToSpace", &[("x", &[2, 8, 4, 5])], std::slice::from_ref(&side));
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
    let net = single(
        "DepthToSpace",
        &[("x", &[2, 8, 4, 5])],
        &[side.clone(), ("mode", text("CRD"))],
    );
    assert_eq!(axes_of(&net), IMAGES);
    let net = single("SpaceToDepth", &[("x", &[2, 2, 8, 6])], &[side]);
    assert_eq!(axes_of(&net), [Axis::Batch, Axis::Rows, Axis::Columns]);
}

#[test]
fn letters_of_the_result_of_a_sum_are_axes() {
    let attention: [(&str, &[usize]); 2] = [("x", &[2, 3, 4, 6]), ("b", &[2, 3, 5, 6])];
    for equation in ["bhqc,bhkc->bhqk", "...qc,...kc->...qk", "bhqc, bhkc -> bhqk"] {
        let net = single("Einsum", &attention, &[("equation", text(equation))]);
        assert_eq!(axes_of(&net), IMAGES, "{equation}");
    }
    let net = single(
        "Einsum",
        &[("x", &[4, 3]), ("b", &[3, 5])],
        &[("equation", text("ij,jk"))],
    );
    assert!(tiles(&net, Axis::Rows) && tiles(&net, Axis::Columns));
    let net = single("Einsum", &[("x", &[4, 4, 3])], &[("equation", text("iik->ik"))]);
    assert!(!tiles(&net, Axis::Rows), "a diagonal");
    assert!(tiles(&net, Axis::Columns));
}
