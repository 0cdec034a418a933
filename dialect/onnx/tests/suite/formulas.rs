//! Sizes as formulas of open dimensions: what they are, and that they are the sizes that an import at other values gives.

use proptest::prelude::*;
use remat_ir::{Graph, TensorId};
use remat_onnx::proto::{GraphProto, Message, NodeProto, TensorProto};
use remat_onnx::{ImportOptions, OnnxModel};

use crate::common::*;

fn floats(name: &str, values: &[f32]) -> TensorProto {
    let mut tensor = tensor(name, FLOAT, &[i64::try_from(values.len()).unwrap()]);
    tensor.float_data = values.to_vec();
    tensor
}

fn scalar(name: &str, value: i64) -> TensorProto {
    let mut tensor = tensor(name, INT64, &[]);
    tensor.int64_data = vec![value];
    tensor
}

/// A graph of one input `x` with these dimensions.
fn of(dims: &str, nodes: Vec<NodeProto>, initializer: Vec<TensorProto>) -> GraphProto {
    let last = nodes.last().unwrap().output[0].clone();
    let mut graph = graph(&[("x", tensor_type(FLOAT, dims))], nodes, &[&last]);
    graph.initializer = initializer;
    graph
}

fn windows() -> GraphProto {
    let weights = |name: &str, dims: &[i64]| tensor(name, FLOAT, dims);
    let nodes = vec![
        node("Conv", &["x", "w"], &["a"])
            .ints("strides", &[2, 2])
            .ints("pads", &[1, 1, 1, 1]),
        node("Conv", &["a", "w2"], &["b"])
            .ints("dilations", &[2, 3])
            .ints("pads", &[0, 1, 2, 0]),
        node("Conv", &["x", "w"], &["same"])
            .ints("strides", &[3, 2])
            .text("auto_pad", "SAME_UPPER"),
        node("Conv", &["x", "w"], &["valid"])
            .ints("strides", &[3, 2])
            .text("auto_pad", "VALID"),
        node("MaxPool", &["a"], &["c", "places"])
            .ints("kernel_shape", &[3, 3])
            .ints("strides", &[2, 2])
            .int("ceil_mode", 1),
        node("AveragePool", &["a"], &["d"])
            .ints("kernel_shape", &[2, 3])
            .ints("strides", &[2, 3])
            .ints("pads", &[1, 1, 1, 2])
            .int("ceil_mode", 1),
        node("GlobalAveragePool", &["a"], &["e"]),
        node("ConvTranspose", &["a", "t"], &["f"])
            .ints("strides", &[2, 2])
            .ints("pads", &[1, 1, 1, 1])
            .ints("output_padding", &[1, 0]),
        node("Pad", &["f", "pads"], &["g"]),
        node("Flatten", &["g"], &["y"]),
    ];
    let initializers = vec![
        weights("w", &[4, 3, 3, 3]),
        weights("w2", &[4, 4, 3, 3]),
        weights("t", &[4, 8, 3, 3]),
        integers("pads", &[0, 0, 1, 2, 0, 0, 3, -1]),
    ];
    of("n 3 h w", nodes, initializers)
}

fn images() -> GraphProto {
    let cast = |from: &str, to: &str, code: i64| node("Cast", &[from], &[to]).int("to", code);
    let nodes = vec![
        node("Resize", &["x", "", "scales"], &["a"]),
        // The sizes of the second are computed in integers, those of the third in floating point.
        node("Shape", &["x"], &["shape"]),
        node("Slice", &["shape", "two", "four"], &["extents"]),
        node("Mul", &["extents", "two"], &["doubled"]),
        node("Slice", &["shape", "zero", "two"], &["images"]),
        node("Concat", &["images", "doubled"], &["sizes"]).int("axis", 0),
        node("Resize", &["x", "", "", "sizes"], &["b"]),
        cast("extents", "floats", 1),
        node("Mul", &["floats", "factors"], &["scaled"]),
        node("Floor", &["scaled"], &["floored"]),
        cast("floored", "whole", 7),
        node("Concat", &["images", "whole"], &["other"]).int("axis", 0),
        node("Resize", &["x", "", "", "other"], &["c"]),
        node("Div", &["extents", "three"], &["thirds"]),
        node("Concat", &["images", "thirds"], &["third"]).int("axis", 0),
        node("Expand", &["one", "third"], &["d"]),
        node("SpaceToDepth", &["b"], &["e"]).int("blocksize", 2),
        node("DepthToSpace", &["b2"], &["y"]).int("blocksize", 2),
    ];
    let mut nodes = nodes;
    nodes.insert(17, node("Concat", &["b", "b", "b", "b"], &["b2"]).int("axis", 1));
    let initializers = vec![
        floats("scales", &[1.0, 1.0, 2.0, 0.75]),
        floats("factors", &[0.5, 1.5]),
        floats("one", &[1.0]),
        integers("zero", &[0]),
        integers("two", &[2]),
        integers("three", &[3]),
        integers("four", &[4]),
    ];
    of("n 3 h w", nodes, initializers)
}

fn parts() -> GraphProto {
    let nodes = vec![
        node("Slice", &["x", "one", "minus", "two", "two"], &["a"]),
        node("Slice", &["x", "minus", "least", "three", "minus"], &["b"]),
        node("Slice", &["x", "zero", "most", "two"], &["c"]),
        node("Slice", &["x", "zero", "hundred", "two"], &["d"]),
        node("Concat", &["a", "d"], &["e"]).int("axis", 2),
        // Two unequal parts, whose lengths are computed.
        node("Shape", &["x"], &["shape"]),
        node("Gather", &["shape", "two"], &["height"]).int("axis", 0),
        node("Div", &["height", "two"], &["half"]),
        node("Sub", &["height", "half"], &["rest"]),
        node("Concat", &["half", "rest"], &["lengths"]).int("axis", 0),
        node("Split", &["x", "lengths"], &["f", "g"]).int("axis", 2),
        node("Slice", &["x", "half", "height", "two"], &["h2"]),
        node("Mod", &["height", "three"], &["modulo"]),
        node("Concat", &["zeros", "modulo", "zeros"], &["pads"]).int("axis", 0),
        node("Pad", &["x", "pads"], &["padded"]),
        node("Squeeze", &["half", "zero"], &["count"]),
        node("Range", &["first", "count", "step"], &["range"]),
        node("Tile", &["range", "height"], &["y"]),
    ];
    let initializers = vec![
        integers("zero", &[0]),
        integers("one", &[1]),
        integers("two", &[2]),
        integers("three", &[3]),
        integers("minus", &[-1]),
        integers("hundred", &[100]),
        integers("most", &[i64::MAX]),
        integers("least", &[i64::MIN]),
        tensor("zeros", INT64, &[3]),
        scalar("first", 1),
        scalar("step", 2),
    ];
    let mut graph = of("n 3 h w", nodes, initializers);
    let zeros = graph
        .initializer
        .iter_mut()
        .find(|tensor| tensor.name == "zeros")
        .unwrap();
    *zeros = integers("zeros", &[0, 0, 0]);
    // Rows on the height alone, before and after.
    let pads = graph.node.iter_mut().find(|node| node.output[0] == "pads").unwrap();
    pads.input = ["zeros2", "modulo", "zeros", "one", "zero"].map(str::to_owned).to_vec();
    graph.initializer.push(integers("zeros2", &[0, 0]));
    graph
}

fn attention() -> GraphProto {
    let head = |name: &str| node("Reshape", &["x", "heads"], &[name]);
    let nodes = vec![
        head("a"),
        node("Transpose", &["a"], &["q"]).ints("perm", &[0, 2, 1, 3]),
        node("Transpose", &["a"], &["k"]).ints("perm", &[0, 2, 3, 1]),
        node("MatMul", &["q", "k"], &["scores"]),
        // A mask of one sequence, spread over a batch as exporters write it.
        node("Shape", &["x"], &["shape"]),
        node("Gather", &["shape", "place"], &["length"]).int("axis", 0),
        node("Range", &["from", "length", "one"], &["positions"]),
        node("Unsqueeze", &["positions", "axis"], &["row"]),
        node("Unsqueeze", &["positions", "other"], &["column"]),
        node("LessOrEqual", &["row", "column"], &["before"]),
        node("Gather", &["shape", "places"], &["extents"]).int("axis", 0),
        node("Concat", &["extents", "minus"], &["target"]).int("axis", 0),
        node("Equal", &["target", "minus"], &["is_open"]),
        node("Where", &["is_open", "ones", "target"], &["spread"]),
        node("Expand", &["before3", "spread"], &["mask"]),
        node("Not", &["mask"], &["hidden"]),
        node("Softmax", &["scores"], &["weights"]),
        node("MatMul", &["weights", "q"], &["mixed"]),
        node("Transpose", &["mixed"], &["back"]).ints("perm", &[0, 2, 1, 3]),
        node("Concat", &["extents", "width"], &["flat"]).int("axis", 0),
        node("Reshape", &["back", "flat"], &["merged"]),
        node("Add", &["merged", "x"], &["sum"]),
        // Positions up to a most.
        node("Slice", &["table", "axis", "extent", "other"], &["embedding"]),
        node("Add", &["sum", "embedding"], &["embedded"]),
        node("ConstantOfShape", &["extents"], &["zeros"]),
        node("Reshape", &["embedded", "rows"], &["y"]),
    ];
    let mut nodes = nodes;
    nodes.insert(14, node("Unsqueeze", &["before", "axis"], &["before3"]));
    nodes.insert(7, node("Unsqueeze", &["length", "axis"], &["extent"]));
    let initializers = vec![
        integers("heads", &[0, -1, 4, 16]),
        integers("places", &[0, 1]),
        integers("axis", &[0]),
        integers("other", &[1]),
        integers("minus", &[-1]),
        integers("ones", &[1, 1, 1]),
        integers("width", &[64]),
        integers("rows", &[-1, 64]),
        tensor("table", FLOAT, &[1, 48, 64]),
        scalar("place", 1),
        scalar("from", 0),
        scalar("one", 1),
    ];
    of("batch sequence 64", nodes, initializers)
}

fn ids(graph: &Graph) -> impl Iterator<Item = (TensorId, &remat_ir::Tensor)> {
    graph.tensors.iter_enumerated()
}

/// The graph at one set of sizes has formulas for all its dimensions that may have others, and at the other set they give its sizes.
fn check(graph: &GraphProto, first: &[(&str, u64)], second: &[(&str, u64)]) {
    let proto = model(graph.clone());
    let [here, there] =
        [first, second].map(|dims| open_with(&proto, dims, &[]).unwrap_or_else(|error| panic!("{error}")));
    let (here, there) = (here.graph(), there.graph());
    let formulas = here.formulas.as_ref().expect("dimensions are open");
    let sizes = |dims: &[(&str, u64)]| -> Vec<u64> {
        let size = |name: &str| dims.iter().find(|(other, _)| *other == name).unwrap().1;
        formulas.variables.dims().iter().map(|dim| size(&dim.name)).collect()
    };
    assert_eq!(formulas.given, sizes(first));
    let values = formulas.variables.values(&sizes(second)).unwrap();
    for ((id, tensor), (_, other)) in ids(here).zip(ids(there)) {
        let name = &tensor.name;
        let formula = here
            .bytes_formula(id)
            .unwrap_or_else(|| panic!("{name} has no formula: {:?}", tensor.ty));
        let bytes = other
            .ty
            .bytes()
            .unwrap()
            .unwrap_or_else(|| panic!("{name} has no size: {:?}", other.ty));
        let text = formulas.variables.names().text(&formula);
        assert_eq!(
            formula.value(&values),
            Some(bytes.into()),
            "{name}: {text} at {second:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn formulas_are_the_sizes_at_other_values(
        image in [[1u64..9, 16u64..200, 16u64..200], [1u64..9, 16u64..200, 16u64..200]],
        tokens in [[1u64..9, 1u64..49], [1u64..9, 1u64..49]],
    ) {
        let [first, second] = image.map(|[n, h, w]| [("n", n), ("h", h), ("w", w)]);
        for graph in [windows(), images(), parts()] {
            check(&graph, &first, &second);
        }
        let [first, second] = tokens.map(|[batch, sequence]| [("batch", batch), ("sequence", sequence)]);
        check(&attention(), &first, &second);
    }
}

/// The size of each tensor that an op makes, where it has a formula.
fn texts(graph: GraphProto, dims: &[(&str, u64)]) -> String {
    let imported = open_with(&model(graph), dims, &[]).unwrap_or_else(|error| panic!("{error}"));
    let graph = imported.graph();
    let names = graph.formulas.as_ref().expect("dimensions are open").variables.names();
    let line = |(id, tensor): (TensorId, &remat_ir::Tensor)| {
        let formula = graph
            .bytes_formula(id)
            .map_or_else(|| "?".to_owned(), |formula| names.text(&formula));
        format!("{}: {formula}", tensor.name)
    };
    let made = ids(graph).filter(|(_, tensor)| tensor.producer.is_some());
    made.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn formulas_read_as_a_person_would_write_them() {
    insta::assert_snapshot!("windows", texts(windows(), &[("n", 1), ("h", 64), ("w", 64)]));
    insta::assert_snapshot!("attention", texts(attention(), &[("batch", 2), ("sequence", 8)]));
}

#[test]
fn what_the_data_decides_has_no_formula() {
    let nodes = vec![
        node("NonZero", &["x"], &["places"]),
        node("Cast", &["places"], &["floats"]).int("to", 1),
        // It may be spread over the batch: the result is at least as long.
        node("Slice", &["floats", "zero", "one", "zero"], &["row"]),
        node("Squeeze", &["row", "zero"], &["flat"]),
        node("Add", &["x", "flat"], &["y"]),
    ];
    let graph = of("n", nodes, vec![integers("zero", &[0]), integers("one", &[1])]);
    insta::assert_snapshot!(texts(graph, &[("n", 4), ("places[1]", 4)]), @r"
    places: ?
    floats: ?
    row: ?
    flat: ?
    y: ?
    ");
}

#[test]
fn dimensions_without_a_name_are_open_too() {
    let nodes = vec![node("Add", &["x", "z"], &["y"])];
    let inputs = [("x", tensor_type(FLOAT, "? 3")), ("z", tensor_type(FLOAT, "? 3"))];
    let graph = graph(&inputs, nodes, &["y"]);
    let dims = [("x[0]", 4), ("z[0]", 4)];
    insta::assert_snapshot!(texts(graph.clone(), &dims), @"y: 12*max(x[0], z[0])");
    check(&graph, &dims, &[("x[0]", 7), ("z[0]", 1)]);
}

#[test]
fn a_branch_that_is_not_known_leaves_a_dimension_without_a_formula() {
    let body = |name: &str, nodes: Vec<NodeProto>| {
        let mut body = graph(&[], nodes, &[name]);
        body.name = name.to_owned();
        body
    };
    let branch = node("If", &["c"], &["y"])
        .graph("then_branch", body("a", vec![node("Neg", &["x"], &["a"])]))
        .graph(
            "else_branch",
            body("b", vec![node("Concat", &["x", "x"], &["b"]).int("axis", 0)]),
        );
    let inputs = [("x", tensor_type(FLOAT, "n 3")), ("c", tensor_type(BOOL, ""))];
    let graph = graph(&inputs, vec![branch], &["y"]);
    assert_eq!(texts(graph, &[("n", 4), ("y[0]", 4)]), "y: ?");
}

#[test]
fn a_model_without_open_dimensions_has_no_formulas() {
    let graph = of("2 3", vec![node("Neg", &["x"], &["y"])], Vec::new());
    assert!(import(graph).graph().formulas.is_none());
}

#[test]
fn attributes_beyond_all_sizes_have_no_formula() {
    let (most, least) = (i64::MAX, i64::MIN);
    let window = |op: &str, name: &str, values: &[i64]| {
        node(op, &["x", "w"], &["y"])
            .ints("kernel_shape", &[3, 3])
            .ints(name, values)
    };
    let nodes = vec![
        window("Conv", "pads", &[least, most, least, least]),
        window("Conv", "dilations", &[most, 1 << 31]),
        window("Conv", "strides", &[least, 0]),
        window("MaxPool", "strides", &[-1, 1 << 31]).int("ceil_mode", 1),
        window("ConvTranspose", "output_padding", &[most, most]).ints("strides", &[1 << 31, 1 << 31]),
        node("Slice", &["x", "ends", "ends", "axes", "ends"], &["y"]),
        node("Slice", &["x", "starts", "ends", "axes"], &["y"]),
        node("Pad", &["x", "pads"], &["y"]),
        node("Tile", &["x", "pads"], &["y"]),
        node("Tile", &["x", "repeats"], &["y"]),
        node("Reshape", &["x", "repeats"], &["y"]),
        node("Expand", &["x", "repeats"], &["y"]),
        node("Range", &["start", "limit", "start"], &["y"]),
        node("Split", &["x", "ends"], &["y", "z"]).int("axis", least),
        node("SpaceToDepth", &["x"], &["y"]).int("blocksize", most),
    ];
    for node in nodes {
        let initializers = vec![
            tensor("w", FLOAT, &[4, 3, 3, 3]),
            integers("starts", &[most, least]),
            integers("ends", &[least, most]),
            integers("axes", &[2, 3]),
            integers("pads", &[most, most, most, most, most, least, most, least]),
            integers("repeats", &[most, most, most, most]),
            scalar("start", least),
            scalar("limit", most),
        ];
        let graph = of("n 3 h w", vec![node], initializers);
        let options = ImportOptions {
            dims: [("n", 2), ("h", 8), ("w", 1 << 40)]
                .map(|(name, size)| (name.to_owned(), size))
                .into(),
            open_sizes: true,
            ..ImportOptions::default()
        };
        // Whether it can be read at all is not the point.
        let bytes = model(graph).write_to_bytes().unwrap();
        let _ = OnnxModel::from_bytes(&bytes, None, &options);
    }
}
