//! Cut off and malicious files: always an error, never a panic. `tools/fuzz` has the mutants.

use remat_onnx::proto::{Message, ModelProto};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};

use crate::common::*;

fn load(bytes: &[u8]) -> Result<OnnxModel, OnnxError> {
    OnnxModel::from_bytes(bytes, None, &ImportOptions::default())
}

/// A model with a bit of everything.
fn rich() -> ModelProto {
    let body = || graph(&[], vec![node("Add", &["a", "w"], &["r"])], &["r"]);
    let nodes = vec![
        node("Conv", &["x", "k"], &["a"])
            .named("conv")
            .ints("pads", &[1, 1, 1, 1])
            .ints("strides", &[2, 2]),
        node("If", &["c"], &["b"])
            .graph("then_branch", body())
            .graph("else_branch", body()),
        node("Reshape", &["b", "shape"], &["d"]),
        node("F", &["d"], &["e"]).domain("my"),
        node("SequenceConstruct", &["e", "e"], &["s"]),
        node("ConcatFromSequence", &["s"], &["y"]).int("axis", 0),
    ];
    let mut g = graph(
        &[("x", tensor_type(FLOAT, "1 2 8 8")), ("c", tensor_type(BOOL, ""))],
        nodes,
        &["y"],
    );
    g.initializer = vec![
        tensor("k", FLOAT, &[2, 2, 3, 3]),
        integers("shape", &[2, -1]),
        tensor("w", FLOAT, &[1]),
    ];
    g.value_info = vec![value("a", Some(tensor_type(FLOAT, "1 2 4 4")))];
    let mut m = model(g);
    m.functions = vec![function("my", "F", &["v"], &["u"], vec![node("Relu", &["v"], &["u"])])];
    m
}

#[test]
fn a_model_cut_off_anywhere_is_an_error_or_a_smaller_model() {
    let bytes = rich().write_to_bytes().unwrap();
    assert!(load(&bytes).is_ok());
    let mut rejected = 0;
    for length in 0..bytes.len() {
        rejected += usize::from(load(&bytes[..length]).is_err());
    }
    // A file may end between two fields of the model itself and stay well-formed.
    assert!(rejected > bytes.len() * 9 / 10, "{rejected} of {}", bytes.len());
}

#[test]
fn files_of_other_kinds_are_no_models() {
    let text = |bytes: &[u8]| load(bytes).err().unwrap().to_string();
    let texts = [text(b""), text(b"{\"nodes\": []}"), text(b"\x08\x08"), text(b"GIF89a")];
    insta::assert_snapshot!(texts.join("\n"), @r#"
    not an ONNX model: the file is empty, at byte 0
    not an ONNX model: a protobuf group, at byte 0
    not an ONNX model: the model has no graph, at byte 0
    not an ONNX model: field 8 of a Model message has wire type 7, at byte 0
    "#);
}

#[test]
fn groups_and_deep_nesting_are_rejected_before_they_are_parsed() {
    let mut bytes = rich().write_to_bytes().unwrap();
    bytes.extend(std::iter::repeat_n(0xd3, 1 << 20));
    assert!(matches!(load(&bytes), Err(OnnxError::NotOnnx { .. })));
    let mut inner = graph(&[], vec![node("Relu", &["x"], &["z"])], &["z"]);
    for _ in 0..60 {
        inner = graph(
            &[],
            vec![node("If", &["c"], &["z"]).graph("then_branch", inner)],
            &["z"],
        );
    }
    let m = model(graph(
        &[("x", vector()), ("c", tensor_type(BOOL, ""))],
        inner.node,
        &["z"],
    ));
    assert!(matches!(open(&m), Err(OnnxError::TooDeep { .. })));
}

#[test]
fn functions_that_unfold_exponentially_are_not_unfolded() {
    let call = |callee: usize, from: &str, to: &str| node(&format!("F{callee}"), &[from], &[to]).domain("my");
    let mut m = model(graph(&[("x", vector())], vec![call(40, "x", "y")], &["y"]));
    m.functions = vec![function("my", "F0", &["v"], &["w"], vec![node("Neg", &["v"], &["w"])])];
    for level in 1..=40 {
        let body = vec![call(level - 1, "v", "t"), call(level - 1, "t", "w")];
        m.functions
            .push(function("my", &format!("F{level}"), &["v"], &["w"], body));
    }
    m.graph.mut_or_insert_default().output[0].type_ = Some(vector()).into();
    assert!(open(&m).is_ok());
}

#[test]
fn a_chain_of_calls_that_is_too_deep_is_an_error() {
    let mut m = model(graph(
        &[("x", vector())],
        vec![node("F99", &["x"], &["y"]).domain("my")],
        &["y"],
    ));
    m.functions = (0..100)
        .map(|level: i32| {
            let body = node(&format!("F{}", level - 1), &["v"], &["w"]).domain("my");
            function("my", &format!("F{level}"), &["v"], &["w"], vec![body])
        })
        .rev()
        .collect();
    assert!(matches!(open(&m), Err(OnnxError::TooDeep { .. })));
}

#[test]
fn a_length_that_would_become_a_rank_is_not_allocated() {
    let axes = tensor_type(INT64, "4000000000");
    let n = node("Unsqueeze", &["x", "axes"], &["y"]).named("blow");
    let text = error(graph(&[("x", vector()), ("axes", axes)], vec![n], &["y"]));
    insta::assert_snapshot!(text, @"the size of `y` is unknown (node `blow` (Unsqueeze): input 1 lists 4000000000 dimensions)");
}

#[test]
fn sums_of_symbols_multiplied_over_and_over_stay_small() {
    let nodes: Vec<_> = (0..60)
        .flat_map(|i| {
            let (from, joined, to) = (format!("v{i}"), format!("j{i}"), format!("v{}", i + 1));
            [
                node("Concat", &[&from, "x"], &[&joined]).int("axis", 0),
                node("Mul", &["s", "s"], &[&format!("s{i}")]),
                node("Flatten", &[&joined], &[&to]).int("axis", 0),
            ]
        })
        .collect();
    let mut g = graph(
        &[
            ("v0", tensor_type(FLOAT, "a b")),
            ("x", tensor_type(FLOAT, "c b")),
            ("s", vector()),
        ],
        nodes,
        &[],
    );
    g.output = vec![value("v60", None)];
    assert!(matches!(open(&model(g)), Err(OnnxError::UnknownSizes { .. })));
}
