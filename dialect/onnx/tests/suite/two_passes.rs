//! Normalizations of groups and softmaxes in half precision, written for two passes.

use remat_onnx::proto::{GraphProto, ModelProto};
use remat_onnx::write_for_two_passes;

use crate::common::*;

/// A normalization of two groups of two channels with a scale of so many elements, between ops of its size, and one of a smaller image.
fn groups(scale: i64, version: i64) -> ModelProto {
    let norm = |x: &str, y: &str| {
        node("GroupNormalization", &[x, "scale", "bias"], &[y])
            .named(y)
            .int("num_groups", 2)
    };
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        norm("a", "b"),
        node("AveragePool", &["b"], &["c"])
            .ints("kernel_shape", &[4, 4])
            .ints("strides", &[4, 4]),
        norm("c", "y"),
    ];
    let mut main = graph(&[("x", tensor_type(FLOAT, "1 4 16 8"))], nodes, &["y"]);
    main.initializer = vec![numbers("scale", &[scale]), numbers("bias", &[scale])];
    let mut model = model(main);
    model.opset_import = vec![opset("", version)];
    model
}

fn shown(graph: &GraphProto) -> String {
    let line = |node: &remat_onnx::proto::NodeProto| {
        format!(
            "{} = {}({})",
            node.output.join(", "),
            node.op_type,
            node.input.join(", ")
        )
    };
    graph.node.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn written(model: &ModelProto, dims: &[(&str, u64)]) -> (bool, GraphProto) {
    let opened = open_with(model, dims, &[]).unwrap();
    let mut graph = opened.proto().graph.clone().unwrap();
    let is_changed = write_for_two_passes(&opened, &mut graph);
    (is_changed, graph)
}

#[test]
fn large_ones_with_a_scale_for_each_channel_get_a_product_and_a_sum() {
    let model = groups(4, 21);
    let (is_changed, graph) = written(&model, &[]);
    assert!(is_changed);
    insta::assert_snapshot!(shown(&graph), @"
    a = Relu(x)
    b_grouped = Reshape(a, b_groups)
    b_normalized = InstanceNormalization(b_grouped, b_ones, b_zeros)
    b_whole = Reshape(b_normalized, b_image)
    b_scale = Reshape(scale, b_channels)
    b_bias = Reshape(bias, b_channels)
    b_scaled = Mul(b_whole, b_scale)
    b = Add(b_scaled, b_bias)
    c = AveragePool(b)
    y = GroupNormalization(c, scale, bias)
    ");
    // The graph is one that can be opened, and what it gives has the size that it had.
    let mut written = model.clone();
    written.graph = Some(graph).into();
    let opened = open(&written).unwrap();
    let of = |name: &str| {
        opened.graph().tensors[tensor_named(opened.graph(), name)]
            .ty
            .known_shape()
    };
    assert_eq!(of("b"), Some(vec![1, 4, 16, 8]));
    assert_eq!(of("y"), Some(vec![1, 4, 4, 2]));
}

#[test]
fn a_scale_for_each_group_is_that_of_the_instance() {
    let (is_changed, graph) = written(&groups(2, 18), &[]);
    assert!(is_changed);
    insta::assert_snapshot!(shown(&graph), @"
    a = Relu(x)
    b_grouped = Reshape(a, b_groups)
    b_normalized = InstanceNormalization(b_grouped, scale, bias)
    b = Reshape(b_normalized, b_image)
    c = AveragePool(b)
    y = GroupNormalization(c, scale, bias)
    ");
}

#[test]
fn what_has_no_known_size_or_another_scale_stays() {
    let mut model = groups(4, 21);
    model.graph.as_mut().unwrap().input[0] = value("x", Some(tensor_type(FLOAT, "1 4 h 8")));
    assert!(!written(&model, &[("h", 16)]).0);
    let mut model = groups(4, 21);
    // A scale for neither each group nor each channel.
    model.graph.as_mut().unwrap().initializer = vec![numbers("scale", &[1]), numbers("bias", &[1])];
    assert!(!written(&model, &[]).0);
}

#[test]
fn a_large_softmax_in_half_precision_runs_in_single_precision() {
    let of_type = |element: i32, shape: &str| {
        let nodes = vec![
            node("Relu", &["x"], &["a"]),
            node("Softmax", &["a"], &["b"]).named("soft"),
            node("Slice", &["b", "from", "to"], &["c"]),
            node("LogSoftmax", &["c"], &["y"]),
        ];
        let mut main = graph(&[("x", tensor_type(element, shape))], nodes, &["y"]);
        main.initializer = vec![integers("from", &[0, 0]), integers("to", &[1, 64])];
        let mut model = model(main);
        model.opset_import = vec![opset("", 17)];
        model
    };
    let half = of_type(FLOAT16, "16 64");
    let (is_changed, graph) = written(&half, &[]);
    assert!(is_changed);
    insta::assert_snapshot!(shown(&graph), @"
    a = Relu(x)
    b_wide = Cast(a)
    b_made = Softmax(b_wide)
    b = Cast(b_made)
    c = Slice(b, from, to)
    y = LogSoftmax(c)
    ");
    let mut written_half = half.clone();
    written_half.graph = Some(graph).into();
    let opened = open(&written_half).unwrap();
    let of = |name: &str| opened.graph().tensors[tensor_named(opened.graph(), name)].ty.clone();
    let before = open(&half).unwrap();
    assert_eq!(of("b"), before.graph().tensors[tensor_named(before.graph(), "b")].ty);
    assert!(!written(&of_type(FLOAT, "16 64"), &[]).0);
    assert!(!written(&of_type(FLOAT16, "64 64"), &[]).0, "tiles of rows do");
}
