//! Sizes: what follows from the model, what the caller must say, and what cannot be.

use crate::common::*;
use remat_ir::{Effects, ElementType, OpId, ValueType};
use remat_onnx::proto::{FunctionProto, GraphProto, Message, NodeProto, TensorProto, TypeProto};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};

fn batch() -> GraphProto {
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Flatten", &["a"], &["b"]),
        node("Neg", &["b"], &["y"]),
    ];
    graph(&[("x", tensor_type(FLOAT, "N 3 T"))], nodes, &["y"])
}

fn sequence() -> TypeProto {
    let mut ty = TypeProto::new();
    ty.mut_sequence_type().elem_type = Some(vector()).into();
    ty
}

#[test]
fn open_dimensions_are_listed_and_settled_by_name() {
    let m = model(batch());
    let Err(OnnxError::UnknownSizes { tensors, dims, .. }) = open(&m) else {
        panic!("sizes are known")
    };
    assert_eq!(
        (tensors, dims),
        (
            vec!["a".to_owned(), "y".to_owned()],
            vec!["N".to_owned(), "T".to_owned()]
        )
    );
    let settled = open_with(&m, &[("N", 4), ("T", 5)], &[]).unwrap();
    assert_eq!(bytes(settled.graph(), "y"), Some(4 * 3 * 5 * 4));
    insta::assert_snapshot!(open_with(&m, &[("N", 4)], &[]).err().unwrap(), @"without the dimension `T`, the size of `a` and 1 more is unknown");
}

#[test]
fn a_dimension_that_does_not_exist_is_rejected_with_those_that_do() {
    let error = open_with(&model(batch()), &[("N", 4), ("T", 5), ("M", 1)], &[])
        .err()
        .unwrap();
    insta::assert_snapshot!(error, @"no dimension is named `M`; the open dimensions are `N`, `T`");
}

#[test]
fn a_dimension_is_settled_in_subgraphs_too() {
    let body = || {
        let mut body = graph(&[], vec![node("Neg", &["x"], &["r"])], &["r"]);
        body.output[0].type_ = Some(tensor_type(FLOAT, "N")).into();
        body
    };
    let branch = node("If", &["c"], &["y"])
        .graph("then_branch", body())
        .graph("else_branch", body());
    let g = graph(
        &[("x", tensor_type(FLOAT, "N")), ("c", tensor_type(BOOL, ""))],
        vec![branch],
        &["y"],
    );
    assert_eq!(
        bytes(open_with(&model(g), &[("N", 6)], &[]).unwrap().graph(), "y"),
        Some(24)
    );
}

#[test]
fn dimensions_without_a_name_are_named_after_their_tensor() {
    let nodes = vec![
        node("NonZero", &["x"], &["places"]),
        node("Cast", &["places"], &["y"]).int("to", 1),
    ];
    let m = model(graph(&[("x", tensor_type(FLOAT, "? 3"))], nodes, &["y"]));
    let Err(OnnxError::UnknownSizes { dims, .. }) = open(&m) else {
        panic!("sizes are known")
    };
    assert_eq!(dims, ["x[0]"]);
    // Callers are asked for inputs only; what the data decides may be stated all the same.
    let Err(OnnxError::UnknownSizes { dims, causes, .. }) = open_with(&m, &[("x[0]", 7)], &[]) else {
        panic!("sizes are known")
    };
    assert!(dims.is_empty());
    assert_eq!(
        causes,
        ["node `NonZero_0` (NonZero): how large its result is depends on the data"]
    );
    let settled = open_with(&m, &[("places[1]", 10), ("x[0]", 7)], &[]).unwrap();
    assert_eq!(bytes(settled.graph(), "y"), Some(2 * 10 * 4));
    assert_eq!(bytes(settled.graph(), "x"), Some(7 * 3 * 4));
}

#[test]
fn an_unknown_operator_needs_a_type_or_a_size() {
    let n = node("Mystery", &["x"], &["y"]).domain("my").named("m");
    let g = graph(&[("x", vector())], vec![n], &["y"]);
    insta::assert_snapshot!(error(g.clone()), @"the size of `y` is unknown (node `m` (Mystery): no rule for its shape)");
    assert_eq!(
        bytes(open_with(&model(g.clone()), &[], &[("y", 100)]).unwrap().graph(), "y"),
        Some(100)
    );
    assert!(matches!(
        open_with(&model(g.clone()), &[], &[("z", 1)]),
        Err(OnnxError::UnknownTensor { .. })
    ));
    let mut typed = g;
    typed.value_info = vec![value("y", Some(tensor_type(FLOAT, "2")))];
    assert_eq!(bytes(import(typed).graph(), "y"), Some(8));
}

#[test]
fn what_the_file_states_counts_before_what_is_inferred() {
    let n = node("Relu", &["x"], &["a"]);
    let mut g = graph(
        &[("x", tensor_type(FLOAT, "N"))],
        vec![n, node("Neg", &["a"], &["y"])],
        &["y"],
    );
    g.value_info = vec![value("a", Some(tensor_type(FLOAT, "5")))];
    let model = import(g);
    assert_eq!(
        (bytes(model.graph(), "a"), bytes(model.graph(), "y")),
        (Some(20), Some(20))
    );
}

#[test]
fn a_dimension_whose_name_is_a_sum_has_the_sum_as_its_size() {
    let joined = node("Concat", &["past", "x"], &["all"]).int("axis", 0);
    let masked = node("Add", &["all", "mask"], &["y"]);
    let types = [
        ("past", tensor_type(FLOAT, "past_length")),
        ("x", tensor_type(FLOAT, "length")),
        ("mask", tensor_type(FLOAT, "past_length+length")),
    ];
    let m = model(graph(&types, vec![joined, masked], &["y"]));
    let Err(OnnxError::UnknownSizes { dims, .. }) = open(&m) else {
        panic!("sizes are known")
    };
    assert_eq!(dims, ["length", "past_length"]);
    let settled = open_with(&m, &[("past_length", 60), ("length", 4)], &[]).unwrap();
    assert_eq!(
        ["mask", "y"].map(|name| bytes(settled.graph(), name)),
        [Some(64 * 4); 2]
    );
}

#[test]
fn a_name_that_a_result_shares_with_an_input_says_less_than_what_follows() {
    let pool = node("MaxPool", &["x"], &["y"])
        .ints("kernel_shape", &[4, 4])
        .ints("strides", &[4, 4]);
    let mut g = graph(&[("x", tensor_type(FLOAT, "1 2 height width"))], vec![pool], &["y"]);
    g.output[0] = value("y", Some(tensor_type(FLOAT, "1 2 height width")));
    let given = [("height", 8), ("width", 16)];
    let settled = open_with(&model(g.clone()), &given, &[]).unwrap();
    assert_eq!(bytes(settled.graph(), "y"), Some(2 * 2 * 4 * 4));
    // Where nothing follows, it counts.
    let mystery = node("Mystery", &["x"], &["y"]).domain("my").named("m");
    g.node = vec![mystery];
    let settled = open_with(&model(g), &given, &[]).unwrap();
    assert_eq!(bytes(settled.graph(), "y"), Some(2 * 8 * 16 * 4));
}

#[test]
fn shapes_computed_from_shapes_are_followed() {
    let mut g = graph(
        &[("x", tensor_type(FLOAT, "4 6")), ("z", tensor_type(FLOAT, "?"))],
        vec![
            node("Shape", &["x"], &["s"]),
            node("Gather", &["s", "one"], &["last"]),
            node("Concat", &["minus", "last"], &["target"]).int("axis", 0),
            node("Equal", &["target", "minus"], &["open"]),
            node("Where", &["open", "two", "target"], &["chosen"]),
            node("Expand", &["scalar", "chosen"], &["y"]),
        ],
        &["y"],
    );
    g.initializer = vec![
        integers("one", &[1]),
        integers("minus", &[-1]),
        integers("two", &[2]),
        tensor("scalar", FLOAT, &[1, 1]),
    ];
    let model = import(g);
    let y = tensor_named(model.graph(), "y");
    assert_eq!(
        model.graph().tensors[y].ty,
        ValueType::tensor(ElementType::Float32, &[2, 6])
    );
}

#[test]
fn integer_and_fused_operators_have_the_shapes_of_their_float_forms() {
    let image = || tensor_type(UINT8, "1 3 8 8");
    let nodes = vec![
        node("QLinearConv", &["x", "s", "z", "w", "s", "z", "s", "z"], &["conv"]).ints("strides", &[2, 2]),
        node("ConvInteger", &["x", "w"], &["integer"]),
        node("MatMulInteger", &["x", "x"], &["product"]),
        node("QLinearAdd", &["x", "s", "z", "row", "s", "z", "s", "z"], &["sum"]).domain("com.microsoft"),
        node("FusedConv", &["f", "v"], &["fused"]).domain("com.microsoft"),
        node("FusedGemm", &["a", "b"], &["dense"])
            .domain("com.microsoft")
            .int("transA", 1)
            .int("transB", 1),
        node("QLinearGlobalAveragePool", &["x", "s", "z", "s", "z"], &["pooled"]).domain("com.microsoft"),
        node("NGramRepeatBlock", &["ids", "a"], &["scores"])
            .domain("com.microsoft")
            .int("ngram_size", 3),
    ];
    let types = [
        ("ids", tensor_type(INT64, "7 5")),
        ("x", image()),
        ("row", tensor_type(UINT8, "8")),
        ("w", tensor_type(INT8, "5 3 3 3")),
        ("s", tensor_type(FLOAT, "")),
        ("z", tensor_type(UINT8, "")),
        ("f", tensor_type(FLOAT, "1 3 8 8")),
        ("v", tensor_type(FLOAT, "5 3 3 3")),
        ("a", tensor_type(FLOAT, "7 2")),
        ("b", tensor_type(FLOAT, "4 7")),
    ];
    let m = import(graph(&types, nodes, &[]));
    let sizes = [
        "conv", "integer", "product", "sum", "fused", "dense", "pooled", "scores",
    ]
    .map(|name| bytes(m.graph(), name));
    let [conv, integer, product, sum] = [5 * 3 * 3, 4 * 5 * 6 * 6, 4 * 3 * 8 * 8, 3 * 8 * 8];
    assert_eq!(
        sizes,
        [conv, integer, product, sum, 4 * 5 * 6 * 6, 4 * 2 * 4, 3, 4 * 7 * 2].map(Some)
    );
}

/// Pools of images with the channels last have another shape, which is not guessed.
#[test]
fn no_shape_is_taken_from_an_operator_that_means_another_layout() {
    let pool = node("QLinearGlobalAveragePool", &["x", "s", "z", "s", "z"], &["pooled"])
        .domain("com.microsoft")
        .int("channels_last", 1);
    let types = [
        ("x", tensor_type(UINT8, "1 8 8 3")),
        ("s", tensor_type(FLOAT, "")),
        ("z", tensor_type(UINT8, "")),
    ];
    insta::assert_snapshot!(error(graph(&types, vec![pool], &[])), @"the size of `pooled` is unknown (node `QLinearGlobalAveragePool_0` (QLinearGlobalAveragePool): no rule for its shape)");
}

#[test]
fn sequences_take_the_memory_of_their_elements() {
    let nodes = vec![
        node("SequenceConstruct", &["x", "x"], &["pair"]),
        node("SequenceEmpty", &[], &["none"]),
        node("SequenceInsert", &["pair", "x"], &["three"]),
        node("SequenceErase", &["three"], &["less"]),
        node("SplitToSequence", &["x"], &["parts"]),
        node("Identity", &["parts"], &["same"]),
        node("ConcatFromSequence", &["same"], &["y"]).int("axis", 0),
    ];
    let model = import(graph(&[("x", vector())], nodes, &["y", "less", "none"]));
    let sizes = ["pair", "none", "three", "less", "parts", "same", "y"].map(|name| bytes(model.graph(), name));
    assert_eq!(
        sizes,
        [Some(64), Some(0), Some(96), Some(96), Some(32), Some(32), Some(32)]
    );
    assert!(!model.graph().is_view(tensor_named(model.graph(), "same")));
}

#[test]
fn a_sequence_from_outside_needs_a_size() {
    let g = graph(
        &[("q", sequence()), ("x", vector())],
        vec![node("SequenceInsert", &["q", "x"], &["y"])],
        &["y"],
    );
    assert!(matches!(open(&model(g.clone())), Err(OnnxError::UnknownSizes { .. })));
    assert_eq!(
        bytes(open_with(&model(g), &[], &[("q", 100)]).unwrap().graph(), "y"),
        Some(132)
    );
}

#[test]
fn loops_carry_types_and_stack_what_they_collect() {
    let inputs = [
        ("i", tensor_type(INT64, "")),
        ("go", tensor_type(BOOL, "")),
        ("v", vector()),
    ];
    let nodes = vec![
        node("Identity", &["go"], &["on"]),
        node("Add", &["v", "outer"], &["w"]),
        node("Neg", &["w"], &["collected"]),
    ];
    let body = graph(&inputs, nodes, &["on", "w", "collected"]);
    let mut trips = tensor("trips", INT64, &[]);
    trips.int64_data = vec![5];
    let n = node("Loop", &["trips", "", "x"], &["last", "all"]).graph("body", body);
    let mut g = graph(&[("x", vector()), ("outer", vector())], vec![n], &["last", "all"]);
    g.initializer = vec![trips];
    let model = import(g);
    assert_eq!(
        (bytes(model.graph(), "last"), bytes(model.graph(), "all")),
        (Some(32), Some(5 * 32))
    );
}

#[test]
fn scans_strip_and_restore_the_scanned_axis() {
    let inputs = [("state", tensor_type(FLOAT, "3")), ("slice", tensor_type(FLOAT, "3"))];
    let body = graph(
        &inputs,
        vec![
            node("Add", &["state", "slice"], &["sum"]),
            node("Neg", &["sum"], &["out"]),
        ],
        &["sum", "out"],
    );
    let n = node("Scan", &["zero", "x"], &["total", "all"])
        .graph("body", body)
        .int("num_scan_inputs", 1);
    let model = import(graph(
        &[("zero", tensor_type(FLOAT, "3")), ("x", tensor_type(FLOAT, "7 3"))],
        vec![n],
        &["total", "all"],
    ));
    assert_eq!(
        (bytes(model.graph(), "total"), bytes(model.graph(), "all")),
        (Some(12), Some(7 * 12))
    );
}

#[test]
fn impossible_shapes_are_rejected_with_the_tensor() {
    let shaped = |dims: &str| {
        error(graph(
            &[("x", tensor_type(FLOAT, dims))],
            vec![node("Relu", &["x"], &["y"])],
            &["y"],
        ))
    };
    insta::assert_snapshot!(shaped("-3 2"), @"`x`, defined by its declaration, has an impossible shape: dimension -3 is negative");
    assert!(shaped("9000000000000000000 9000000000000000000").contains("overflows 64 bits"));
    let mut g = graph(&[("x", vector())], vec![node("Relu", &["x"], &["y"])], &["y"]);
    g.initializer = vec![tensor("w", FLOAT, &[4, -1])];
    insta::assert_snapshot!(error(g.clone()), @"`w`, defined by an initializer, has an impossible shape: dimension -1 is negative");
    let mut short = tensor("w", FLOAT, &[1 << 40]);
    short.raw_data = vec![0; 4];
    g.initializer = vec![short];
    insta::assert_snapshot!(error(g.clone()), @"initializer `w`: its shape needs 4398046511104 bytes, the file has 4");
    g.initializer = vec![integers("s", &[1 << 31, 1 << 31, 1 << 31])];
    g.node = vec![node("Expand", &["x", "s"], &["y"]).named("grow")];
    assert!(error(g).contains("`grow`"));
}

#[test]
fn a_dimension_of_minus_one_counts_as_unknown() {
    let m = model(graph(
        &[("x", tensor_type(FLOAT, "-1 2"))],
        vec![node("Relu", &["x"], &["y"])],
        &["y"],
    ));
    assert_eq!(
        bytes(open_with(&m, &[("x[0]", 3)], &[]).unwrap().graph(), "y"),
        Some(24)
    );
}

/// The size of a result of a node of a domain, its operands of stated types.
fn result_bytes(node: NodeProto, operands: &[(&str, TypeProto)], result: &str) -> Option<u64> {
    let g = graph(operands, vec![node], &[result]);
    let options = ImportOptions {
        open_sizes: true,
        ..ImportOptions::default()
    };
    let opened = OnnxModel::from_proto(model(g), &options).unwrap();
    bytes(opened.graph(), result)
}

#[test]
fn a_scale_of_one_element_is_one_for_the_whole_tensor() {
    let n = node("DequantizeLinear", &["b", "scale"], &["y"]);
    let operands = [("b", tensor_type(6, "32")), ("scale", tensor_type(FLOAT, "1"))];
    assert_eq!(result_bytes(n, &operands, "y"), Some(32 * 4));
    let n = node("QuantizeLinear", &["x", "scale"], &["y"]);
    let operands = [("x", tensor_type(FLOAT, "32")), ("scale", tensor_type(FLOAT, "1"))];
    assert_eq!(result_bytes(n, &operands, "y"), Some(32));
}

#[test]
fn regions_have_a_window_for_each_channel() {
    let n = node("RoiAlign", &["x", "rois", "at"], &["y"])
        .int("output_height", 7)
        .int("output_width", 5);
    let operands = [
        ("x", tensor_type(FLOAT, "1 3 40 40")),
        ("rois", tensor_type(FLOAT, "9 4")),
        ("at", tensor_type(INT64, "9")),
    ];
    assert_eq!(result_bytes(n, &operands, "y"), Some(9 * 3 * 7 * 5 * 4));
}

#[test]
fn classifiers_give_a_label_and_a_score_for_each_class() {
    for op in ["TreeEnsembleClassifier", "LinearClassifier"] {
        let labels = if op == "LinearClassifier" {
            "classlabels_ints"
        } else {
            "classlabels_int64s"
        };
        let n = || {
            node(op, &["x"], &["label", "scores"])
                .domain("ai.onnx.ml")
                .ints(labels, &[1, 2, 3])
        };
        let operands = [("x", tensor_type(FLOAT, "20 4"))];
        assert_eq!(result_bytes(n(), &operands, "label"), Some(20 * 8));
        assert_eq!(result_bytes(n(), &operands, "scores"), Some(20 * 3 * 4));
    }
}

#[test]
fn gradients_have_the_shapes_of_what_they_belong_to() {
    let n = || node("ConvGrad", &["dy", "x", "w"], &["dx", "dw", "db"]).domain("com.microsoft");
    let operands = [
        ("dy", tensor_type(FLOAT, "1 8 30 30")),
        ("x", tensor_type(FLOAT, "1 3 32 32")),
        ("w", tensor_type(FLOAT, "8 3 3 3")),
    ];
    for (result, size) in [("dx", 3 * 32 * 32 * 4), ("dw", 8 * 3 * 3 * 3 * 4), ("db", 8 * 4)] {
        assert_eq!(result_bytes(n(), &operands, result), Some(size));
    }
    let n = node("GatherGrad", &["shape", "at", "dy"], &["dx"]).domain("com.microsoft");
    let mut g = graph(
        &[("at", tensor_type(INT64, "5")), ("dy", tensor_type(FLOAT, "5 16"))],
        vec![n],
        &["dx"],
    );
    g.initializer.push(integers("shape", &[100, 16]));
    assert_eq!(bytes(import(g).graph(), "dx"), Some(100 * 16 * 4));
}

#[test]
fn sizes_follow_through_floating_point() {
    // What `interpolate(scale_factor=1.5)` exports to: the shape, scaled and rounded down.
    let nodes = vec![
        node("Shape", &["x"], &["shape"]),
        node("Cast", &["shape"], &["float"]).int("to", 1),
        node("Mul", &["float", "scale"], &["scaled"]),
        node("Floor", &["scaled"], &["whole"]),
        node("Cast", &["whole"], &["size"]).int("to", 7),
        node("Expand", &["one", "size"], &["y"]),
    ];
    let mut g = graph(&[("x", tensor_type(FLOAT, "5 7"))], nodes, &["y"]);
    let mut scale = tensor("scale", FLOAT, &[]);
    scale.raw_data = 1.5_f32.to_le_bytes().to_vec();
    let mut one = tensor("one", FLOAT, &[]);
    one.raw_data = 1.0_f32.to_le_bytes().to_vec();
    g.initializer.extend([scale, one]);
    assert_eq!(bytes(import(g).graph(), "y"), Some(7 * 10 * 4));
}

#[test]
fn a_size_that_the_file_states_further_on_settles_what_the_data_decides() {
    let nodes = vec![
        node("NonZero", &["x"], &["places"]),
        node("Cast", &["places"], &["numbers"]).int("to", 1),
        node("Neg", &["numbers"], &["y"]),
    ];
    let mut g = graph(&[("x", vector())], nodes, &["y"]);
    assert!(matches!(open(&model(g.clone())), Err(OnnxError::UnknownSizes { .. })));
    g.output[0].type_ = Some(tensor_type(FLOAT, "1 5")).into();
    let model = import(g);
    let sizes = ["places", "numbers", "y"].map(|name| bytes(model.graph(), name));
    assert_eq!(sizes, [Some(40), Some(20), Some(20)]);
}

#[test]
fn a_recompute_gives_as_much_as_the_original() {
    let again = |mut n: NodeProto| {
        n.metadata_props.push(entry("remat.recompute_of", "places"));
        n
    };
    let nodes = vec![
        node("NonZero", &["x"], &["a"]).named("places"),
        again(node("NonZero", &["x"], &["b"]).named("places__remat1")),
        node("Cast", &["b"], &["y"]).int("to", 1),
    ];
    let mut g = graph(&[("x", vector())], nodes, &["a", "y"]);
    g.output[1].type_ = Some(tensor_type(FLOAT, "1 5")).into();
    let model = import(g);
    assert_eq!(
        ["a", "b", "y"].map(|name| bytes(model.graph(), name)),
        [Some(40), Some(40), Some(20)]
    );
}

#[test]
fn what_the_file_states_of_a_result_does_not_settle_an_input() {
    let mut g = graph(
        &[("x", tensor_type(FLOAT, "N"))],
        vec![node("Neg", &["x"], &["a"]), node("Neg", &["a"], &["y"])],
        &["y"],
    );
    g.output[0].type_ = Some(tensor_type(FLOAT, "5")).into();
    let Err(OnnxError::UnknownSizes { tensors, dims, .. }) = open(&model(g)) else {
        panic!("sizes are known")
    };
    assert_eq!((tensors, dims), (vec!["a".to_owned()], vec!["N".to_owned()]));
}

#[test]
fn axes_of_an_input_without_elements_are_known() {
    let inputs = [("x", tensor_type(FLOAT, "2 3")), ("axes", tensor_type(INT64, "0"))];
    let model = import(graph(&inputs, vec![node("ReduceSum", &["x", "axes"], &["y"])], &["y"]));
    assert_eq!(bytes(model.graph(), "y"), Some(4));
}

#[test]
fn elements_of_sequences_are_followed_one_by_one() {
    let inputs = [
        ("x", tensor_type(FLOAT, "8 2")),
        ("z", tensor_type(FLOAT, "5 2")),
        ("c", tensor_type(BOOL, "")),
    ];
    let list = |operand: &str| {
        graph(
            &[],
            vec![node("SequenceConstruct", &[operand, "z"], &["list"])],
            &["list"],
        )
    };
    let scalar = |value: i64| TensorProto {
        dims: Vec::new(),
        ..integers("", &[value])
    };
    let nodes = vec![
        node("Constant", &[], &["sizes"]).tensor("value", integers("", &[1, 3, 4])),
        node("Constant", &[], &["second"]).tensor("value", scalar(1)),
        node("Constant", &[], &["last"]).tensor("value", scalar(-1)),
        node("Constant", &[], &["axis"]).tensor("value", integers("", &[0])),
        node("SplitToSequence", &["x", "sizes"], &["parts"]),
        node("SequenceInsert", &["parts", "z", "second"], &["four"]),
        node("SequenceErase", &["four", "last"], &["three"]),
        node("SequenceAt", &["three", "last"], &["part"]),
        node("ConcatFromSequence", &["three"], &["joined"]).int("axis", 0),
        node("SequenceLength", &["three"], &["length"]),
        node("Unsqueeze", &["length", "axis"], &["shape"]),
        node("ConstantOfShape", &["shape"], &["filled"]),
        node("If", &["c"], &["either"])
            .graph("then_branch", list("x"))
            .graph("else_branch", list("x")),
    ];
    let model = import(graph(&inputs, nodes, &["part", "joined", "filled", "either"]));
    let sizes = ["parts", "four", "three", "part", "joined", "filled", "either"].map(|name| bytes(model.graph(), name));
    let rows = |count: u64| Some(count * 2 * 4);
    assert_eq!(
        sizes,
        [rows(8), rows(13), rows(13), rows(3), rows(9), Some(3 * 4), rows(13)]
    );
}

#[test]
fn what_a_training_graph_hands_over_has_the_sizes_of_its_gradients() {
    let outputs = [
        ("a", tensor_type(FLOAT, "2 3")),
        ("b", vector()),
        ("c", tensor_type(FLOAT, "7")),
    ];
    let yields = || {
        node("YieldOp", &["a", "b", "c"], &["da", "dc"])
            .domain("com.microsoft")
            .ints("non_differentiable_outputs", &[1])
    };
    let sizes = ["da", "dc"].map(|result| result_bytes(yields(), &outputs, result));
    assert_eq!(sizes, [Some(2 * 3 * 4), Some(7 * 4)]);
}

#[test]
fn optimizers_give_sequences_as_large_as_those_they_update() {
    let inputs = ["lr", "step", "weights", "gradients", "first", "second"];
    let step = node("AdamWOptimizer", &inputs, &["done", "new", "first_new", "second_new"]).domain("com.microsoft");
    let types = ["weights", "gradients", "first", "second"].map(|name| (name, sequence()));
    let scalars = [("lr", tensor_type(FLOAT, "")), ("step", tensor_type(INT64, ""))];
    let operands: Vec<_> = scalars.into_iter().chain(types).collect();
    let m = model(graph(&operands, vec![step], &["done", "new"]));
    assert!(matches!(open(&m), Err(OnnxError::UnknownSizes { .. })));
    let settled = open_with(&m, &[], &[("weights", 100), ("first", 200), ("second", 300)]).unwrap();
    let sizes = ["done", "new", "first_new", "second_new"].map(|name| bytes(settled.graph(), name));
    assert_eq!(sizes, [Some(1), Some(100), Some(200), Some(300)]);
    assert_eq!(settled.graph().ops[OpId::new(0)].effects, Effects::Stateful);
}

#[test]
fn recurrent_training_keeps_what_the_gradient_needs_of_each_step() {
    let operands = [
        ("x", tensor_type(FLOAT, "5 2 3")),
        ("w", tensor_type(FLOAT, "1 16 3")),
        ("r", tensor_type(FLOAT, "1 16 4")),
    ];
    let results = ["states", "last", "cell", "cells", "gates"];
    let forward = || node("LSTMTraining", &["x", "w", "r"], &results).domain("com.microsoft");
    let sizes = results.map(|result| result_bytes(forward(), &operands, result));
    assert_eq!(sizes, [160, 32, 32, 160, 640].map(Some));
    let gradients = ["dx", "dw", "dr", "db"];
    let backward = || node("LSTMGrad", &["x", "w", "r"], &gradients).domain("com.microsoft");
    let sizes = gradients.map(|result| result_bytes(backward(), &operands, result));
    assert_eq!(sizes, [120, 192, 256, 128].map(Some));
}

#[test]
fn axes_of_gradients_follow_from_the_shapes_that_were_broadcast() {
    let operands = [
        ("a", tensor_type(FLOAT, "2 1 4")),
        ("b", tensor_type(FLOAT, "3 1")),
        ("dy", tensor_type(FLOAT, "2 3 4")),
    ];
    let nodes = vec![
        node("Shape", &["a"], &["shape_a"]),
        node("Shape", &["b"], &["shape_b"]),
        node("BroadcastGradientArgs", &["shape_a", "shape_b"], &["axes_a", "axes_b"]).domain("com.microsoft"),
        node("ReduceSumTraining", &["dy", "axes_a"], &["sum_a"]).domain("com.microsoft"),
        node("ReduceSumTraining", &["dy", "axes_b"], &["sum_b"])
            .domain("com.microsoft")
            .int("keepdims", 0),
    ];
    let model = import(graph(&operands, nodes, &["sum_a", "sum_b"]));
    let sizes = ["axes_a", "axes_b", "sum_a", "sum_b"].map(|name| bytes(model.graph(), name));
    assert_eq!(sizes, [Some(8), Some(16), Some(2 * 4 * 4), Some(3 * 4)]);
}

#[test]
fn fixing_a_dimension_states_its_number_and_adds_no_types() {
    let mut g = batch();
    g.value_info = vec![value("b", None)];
    let mut function = FunctionProto::new();
    function.name = "f".to_owned();
    function.value_info = vec![value("inner", None)];
    let mut m = model(g);
    m.functions = vec![function];
    let options = ImportOptions {
        dims: [("N".to_owned(), 4), ("T".to_owned(), 5)].into(),
        fixed: ["N".to_owned()].into(),
        ..ImportOptions::default()
    };
    let fixed = OnnxModel::from_bytes(&m.write_to_bytes().unwrap(), None, &options).unwrap();
    let written = fixed.proto();
    assert_eq!(written.graph.input[0].type_, Some(tensor_type(FLOAT, "4 3 T")).into());
    assert!(written.graph.value_info.iter().all(|value| value.type_.is_none()));
    assert!(written.functions[0].value_info[0].type_.is_none());
}
