//! What is written, line by line.

use remat::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use remat::onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_lower::{Layout, LoweringOptions, OrderHint, Shapes, lower, out_of_branch};
use remat_testing::onnx::{FLOAT, FLOAT16, NodeExt, graph, integers, model, node, numbers, opset, tensor_type};

use crate::support::{Rewritten, models};

/// `name = Op(operands)`, and the mark of a clone.
fn line(node: &NodeProto) -> String {
    let marks = node
        .attribute
        .iter()
        .filter(|attribute| attribute.name == remat_onnx::MARK);
    let mark: String = marks.map(|mark| format!("  {}={}", mark.name, mark.i)).collect();
    format!(
        "{} = {}({}){mark}",
        node.output.join(", "),
        node.op_type,
        node.input.join(", ")
    )
}

pub(crate) fn listing(graph: &GraphProto) -> String {
    graph.node.iter().map(|node| line(node) + "\n").collect()
}

fn lowered(model: &str, options: &LoweringOptions) -> String {
    let rewritten = Rewritten::open(&models().join(model)).expect("the model opens");
    let lowered = lower(rewritten.onnx(), &rewritten.graph, options, &Layout::default()).expect("it can be written");
    format!(
        "{:#?}\n{}",
        lowered.report,
        listing(lowered.proto.graph.get_or_default())
    )
}

#[test]
fn clones_are_marked_shapes_are_dynamic_and_the_order_is_fixed() {
    insta::assert_snapshot!(lowered("features/split.onnx", &LoweringOptions::default()));
}

#[test]
fn the_priority_order_needs_no_anchors() {
    let options = LoweringOptions {
        order: OrderHint::Priority,
        ..LoweringOptions::default()
    };
    insta::assert_snapshot!(lowered("features/split.onnx", &options));
}

#[test]
fn shapes_can_be_left_to_the_runtime() {
    let options = LoweringOptions {
        shapes: Shapes::Static,
        ..LoweringOptions::default()
    };
    insta::assert_snapshot!(lowered("features/split.onnx", &options));
}

/// The listing of a graph, each subgraph below its node.
fn nested(graph: &GraphProto, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let mut text = String::new();
    for node in &graph.node {
        text += &format!("{indent}{}\n", line(node));
        for attribute in &node.attribute {
            if let Some(inner) = attribute.g.as_ref() {
                text += &format!("{indent} {}:\n{}", attribute.name, nested(inner, depth + 1));
            }
        }
    }
    let names = |values: &[ValueInfoProto]| -> String {
        let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
        names.join(", ")
    };
    let weights: Vec<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    text + &format!(
        "{indent}inputs {}; outputs {}; weights {}\n",
        names(&graph.input),
        names(&graph.output),
        weights.join(", ")
    )
}

#[test]
fn all_nodes_can_stand_in_a_branch() {
    let rewritten = Rewritten::open(&models().join("features/overwritten.onnx")).expect("the model opens");
    let options = LoweringOptions {
        order: OrderHint::Priority,
        ..LoweringOptions::default()
    };
    let mut lowered =
        lower(rewritten.onnx(), &rewritten.graph, &options, &Layout::default()).expect("it can be written");
    assert!(lowered.doubled_bytes().is_some() && !lowered.report.in_branch);
    lowered.put_in_branch();
    let written = lowered.written();
    insta::assert_snapshot!(nested(written.graph.get_or_default(), 0));
    // Out of it again, they are what they were, where the runtime saved constants as weights, too: none is left that nothing reads.
    let mut again = written.into_owned();
    let mut saved = again.clone();
    let around = saved.graph.mut_or_insert_default();
    let (constants, others) = std::mem::take(&mut around.node)
        .into_iter()
        .partition(|node| node.op_type == "Constant");
    around.node = others;
    let constants: Vec<NodeProto> = constants;
    assert!(!constants.is_empty());
    around.initializer.extend(constants.iter().map(|constant| TensorProto {
        name: constant.output[0].clone(),
        ..TensorProto::default()
    }));
    assert!(out_of_branch(&mut saved));
    let weights = &saved.graph.get_or_default().initializer;
    assert_eq!(weights.len(), lowered.proto.graph.get_or_default().initializer.len());
    assert!(out_of_branch(&mut again));
    let (again, plain) = (again.graph.get_or_default(), lowered.proto.graph.get_or_default());
    assert_eq!(listing(again), listing(plain));
    assert_eq!(again.initializer.len(), plain.initializer.len());
    let mut plain = lowered.proto.clone();
    assert!(!out_of_branch(&mut plain), "it is in none");
}

/// A model of operators of this version, whose values are vectors of 64 numbers.
fn of_vectors(version: i64, nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let vector = tensor_type(FLOAT, "64");
    let mut graph = graph(&[("x", vector.clone())], nodes, outputs);
    for output in &mut graph.output {
        output.type_ = Some(vector.clone()).into();
    }
    ModelProto {
        opset_import: vec![opset("", version)],
        ..model(graph)
    }
}

/// One node in a model of these operators, with these outputs.
fn relu(version: i64, outputs: &[&str]) -> ModelProto {
    of_vectors(version, vec![node("Relu", &["x"], &["y"])], outputs)
}

#[test]
fn a_branch_takes_sequences_and_outputs_that_nodes_make() {
    let fits = |proto: ModelProto| {
        let model = OnnxModel::from_proto(proto, &ImportOptions::default()).expect("it is a model");
        let lowered = lower(&model, model.graph(), &LoweringOptions::default(), &Layout::default());
        lowered.expect("it can be written").doubled_bytes().is_some()
    };
    assert!(fits(relu(18, &["y"])) && fits(relu(11, &["y"])));
    assert!(!fits(relu(10, &["y"])), "there are no sequences");
    assert!(!fits(relu(18, &["x"])), "an input is not a result of a branch");
    assert!(!fits(relu(18, &["y", "y"])), "a node names each of its results once");
}

#[test]
fn an_operand_that_may_be_overwritten_keeps_its_shape() {
    insta::assert_snapshot!(lowered("features/overwritten.onnx", &LoweringOptions::default()));
}

#[test]
fn stated_shapes_become_dynamic_with_the_operand_that_states_them() {
    insta::assert_snapshot!(lowered("features/views.onnx", &LoweringOptions::default()));
}

#[test]
fn a_stated_shape_that_nodes_compute_from_constants_becomes_dynamic_after_them() {
    let nodes = vec![
        node("Mul", &["rows", "factor"], &["shape"]),
        node("Expand", &["x", "shape"], &["wide"]),
        node("Exp", &["wide"], &["y"]),
    ];
    let mut proto = of_vectors(18, nodes, &["y"]);
    proto.graph.mut_or_insert_default().initializer = vec![integers("rows", &[100, 64]), integers("factor", &[3, 1])];
    let model = OnnxModel::from_proto(proto, &ImportOptions::default()).expect("it is a model");
    let lowered =
        lower(&model, model.graph(), &LoweringOptions::default(), &Layout::default()).expect("it can be written");
    let graph = lowered.proto.graph.get_or_default();
    let at = |op: &str, operand: &str| {
        let found = graph
            .node
            .iter()
            .position(|node| node.op_type == op && node.input.iter().any(|name| name == operand));
        found.unwrap_or_else(|| panic!("no {op} reads `{operand}`:\n{}", listing(graph)))
    };
    let late = &graph.node[at("Add", "shape")].output[0];
    assert!(at("Mul", "rows") < at("Add", "shape") && at("Add", "shape") < at("Expand", late));
    OnnxModel::from_proto(
        lowered.proto.clone(),
        &ImportOptions {
            open_sizes: true,
            ..ImportOptions::default()
        },
    )
    .expect("every value is made");
}

/// The products of a model whose input has elements of this type, as they are written.
fn products(element: i32) -> String {
    let single = |from: &str, to: &str| node("Cast", &[from], &[to]).int("to", FLOAT.into());
    let nodes = vec![
        node("Transpose", &["x"], &["turned"]),
        single("turned", "left"),
        node("Mul", &["left", "scale"], &["scaled"]),
        single("x", "right"),
        node("Add", &["right", "left"], &["sum"]),
        node("MatMul", &["scaled", "right"], &["scores"]),
        node("MatMul", &["sum", "scores"], &["y"]),
    ];
    let mut graph = graph(&[("x", tensor_type(element, "4 4"))], nodes, &["y"]);
    graph.initializer = vec![numbers("scale", &[])];
    let model = OnnxModel::from_proto(model(graph), &ImportOptions::default()).expect("it is a model");
    let lowered =
        lower(&model, model.graph(), &LoweringOptions::default(), &Layout::default()).expect("it can be written");
    let nodes = &lowered.proto.graph.get_or_default().node;
    let products: Vec<String> = nodes.iter().filter(|node| node.op_type == "MatMul").map(line).collect();
    products.join("\n")
}

#[test]
fn products_of_what_was_in_half_precision_read_factors_through_views() {
    insta::assert_snapshot!(products(FLOAT16), @r"
    scores = MatMul(scaled__view, right__view)
    y = MatMul(sum, scores)
    ");
    insta::assert_snapshot!(products(FLOAT), @r"
    scores = MatMul(scaled, right)
    y = MatMul(sum, scores)
    ");
}
