//! What exporters write to compute shapes, one idiom per test case, and operators whose results have a size only if it is followed.

use crate::common::*;
use remat_onnx::proto::{NodeProto, TensorProto};

/// The sizes that a model's shapes come to: `nodes` compute the list `size` from `x`, of shape 4 x 6, or from constants.
fn size_of(nodes: Vec<NodeProto>, constants: Vec<TensorProto>) -> Option<u64> {
    let mut nodes = nodes;
    nodes.push(node("ConstantOfShape", &["size"], &["y"]));
    let mut g = graph(&[("x", tensor_type(FLOAT, "4 6"))], nodes, &["y"]);
    g.initializer = constants;
    bytes(open(&model(g)).ok()?.graph(), "y")
}

fn scalar(name: &str, value: i64) -> TensorProto {
    TensorProto {
        dims: Vec::new(),
        ..integers(name, &[value])
    }
}

fn matrix(name: &str, dims: [i64; 2], values: &[i64]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        ..integers(name, values)
    }
}

fn floats(name: &str, values: &[f32]) -> TensorProto {
    TensorProto {
        float_data: values.to_vec(),
        ..tensor(name, FLOAT, &[i64::try_from(values.len()).unwrap()])
    }
}

/// `Shape(x)`, then the rest.
fn after_shape(rest: impl IntoIterator<Item = NodeProto>) -> Vec<NodeProto> {
    [node("Shape", &["x"], &["s"])].into_iter().chain(rest).collect()
}

type Idiom = (&'static str, Vec<NodeProto>, Vec<TensorProto>, u64);

/// Idioms that move elements, by name, with the number of elements that they come to.
fn moves() -> Vec<Idiom> {
    vec![
        (
            "Reshape of a constant to a list",
            vec![node("Reshape", &["c", "all"], &["size"])],
            vec![matrix("c", [1, 2], &[4, 6]), integers("all", &[-1])],
            24,
        ),
        (
            "Slice backwards",
            after_shape([node("Slice", &["s", "end", "start", "axis", "end"], &["size"])]),
            vec![
                integers("end", &[-1]),
                integers("start", &[i64::MIN]),
                integers("axis", &[0]),
            ],
            24,
        ),
        (
            "the pads of a constant, reversed pairwise: Reshape, Slice, Transpose, Reshape",
            vec![
                node("Reshape", &["c", "pairs"], &["m"]),
                node("Slice", &["m", "end", "start", "axis", "end"], &["r"]),
                node("Transpose", &["r"], &["t"]),
                node("Reshape", &["t", "all"], &["size"]),
            ],
            vec![
                integers("c", &[1, 2, 3, 4]),
                integers("pairs", &[-1, 2]),
                integers("end", &[-1]),
                integers("start", &[i64::MIN]),
                integers("axis", &[0]),
                integers("all", &[-1]),
            ],
            24,
        ),
        (
            "Expand of one extent",
            vec![node("Expand", &["c", "n"], &["size"])],
            vec![integers("c", &[3]), integers("n", &[2])],
            9,
        ),
        (
            "Split and Squeeze of a matrix",
            vec![
                node("Split", &["c"], &["a", "b"]).int("axis", 0),
                node("Squeeze", &["b", "axis"], &["size"]),
            ],
            vec![matrix("c", [2, 2], &[9, 9, 2, 5]), integers("axis", &[0])],
            10,
        ),
        (
            "Tile",
            vec![node("Tile", &["c", "n"], &["size"])],
            vec![integers("c", &[2, 3]), integers("n", &[2])],
            36,
        ),
        (
            "ScatterND of one extent",
            after_shape([node("ScatterND", &["s", "at", "by"], &["size"])]),
            vec![matrix("at", [1, 1], &[0]), integers("by", &[10])],
            60,
        ),
    ]
}

/// Idioms that compute.
fn sums() -> Vec<Idiom> {
    vec![
        (
            "Range, as positions",
            vec![node("Range", &["from", "to", "by"], &["size"])],
            vec![scalar("from", 2), scalar("to", 5), scalar("by", 1)],
            24,
        ),
        (
            "Size",
            vec![
                node("Size", &["x"], &["n"]),
                node("Unsqueeze", &["n", "axis"], &["size"]),
            ],
            vec![integers("axis", &[0])],
            24,
        ),
        (
            "ReduceProd",
            after_shape([node("ReduceProd", &["s"], &["size"]).int("keepdims", 1)]),
            Vec::new(),
            24,
        ),
        (
            "Pow",
            after_shape([node("Pow", &["s", "two"], &["size"])]),
            vec![integers("two", &[2])],
            16 * 36,
        ),
        (
            "the side of a square, from how many elements it has",
            after_shape([
                node("Mul", &["s", "s"], &["squares"]),
                node("Cast", &["squares"], &["f"]).int("to", 1),
                node("Pow", &["f", "half"], &["sides"]),
                node("Cast", &["sides"], &["size"]).int("to", 7),
            ]),
            vec![floats("half", &[0.5])],
            24,
        ),
        (
            "a scale in floating point, rounded up",
            after_shape([
                node("Cast", &["s"], &["f"]).int("to", 1),
                node("Mul", &["f", "scale"], &["m"]),
                node("Ceil", &["m"], &["c"]),
                node("Cast", &["c"], &["size"]).int("to", 7),
            ]),
            vec![floats("scale", &[0.4, 0.4])],
            2 * 3,
        ),
    ]
}

#[test]
fn every_idiom_of_exporters_gives_its_shape() {
    for (what, nodes, constants, elements) in moves().into_iter().chain(sums()) {
        assert_eq!(size_of(nodes, constants), Some(elements * 4), "{what}");
    }
}

#[test]
fn as_many_are_picked_as_a_computed_number_says() {
    let nodes = vec![
        node("Shape", &["x"], &["s"]),
        node("Gather", &["s", "last"], &["extent"]).int("axis", 0),
        node("Concat", &["extent", "limit"], &["both"]).int("axis", 0),
        node("ReduceMin", &["both"], &["k"]).int("keepdims", 1),
        node("TopK", &["x", "k"], &["y", "at"]),
    ];
    let mut g = graph(&[("x", tensor_type(FLOAT, "2 100"))], nodes, &["y", "at"]);
    g.initializer = vec![integers("last", &[1]), integers("limit", &[30])];
    let model = import(g);
    assert_eq!(
        ["y", "at"].map(|name| bytes(model.graph(), name)),
        [Some(2 * 30 * 4), Some(2 * 30 * 8)]
    );
}

#[test]
fn how_many_boxes_are_left_is_decided_by_the_data_and_told_by_the_node() {
    let inputs = [
        ("boxes", tensor_type(FLOAT, "1 100 4")),
        ("scores", tensor_type(FLOAT, "1 2 100")),
    ];
    let nodes = vec![node("NonMaxSuppression", &["boxes", "scores"], &["left"])];
    insta::assert_snapshot!(error(graph(&inputs, nodes.clone(), &["left"])), @"the size of `left` is unknown (node `NonMaxSuppression_0` (NonMaxSuppression): how large its result is depends on the data)");
    // Each of them has three numbers, however many there are.
    let mut g = graph(&inputs, nodes, &["left"]);
    g.output[0].type_ = Some(tensor_type(INT64, "25 3")).into();
    assert_eq!(bytes(import(g).graph(), "left"), Some(25 * 3 * 8));
}
