//! What is written, line by line.

use remat::onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_shape_proto, type_proto,
};
use remat::onnx::{ImportOptions, OnnxModel};
use remat_onnxruntime_lower::{Layout, LoweringOptions, OrderHint, Shapes, lower};

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

fn listing(graph: &GraphProto) -> String {
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
    assert!(lowered.fits_in_branch() && !lowered.report.in_branch);
    lowered.put_in_branch();
    let written = lowered.written();
    insta::assert_snapshot!(nested(written.graph.get_or_default(), 0));
}

/// One node in a model of these operators, whose output is `output`.
fn relu(version: i64, output: &str) -> ModelProto {
    let graph = GraphProto {
        name: "g".to_owned(),
        node: vec![node("Relu", &["x"], "y")],
        input: vec![vector("x", 64)],
        output: vec![vector(output, 64)],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto {
        version,
        ..OperatorSetIdProto::default()
    };
    ModelProto {
        ir_version: 8,
        opset_import: vec![opset],
        graph: Some(graph).into(),
        ..ModelProto::default()
    }
}

#[test]
fn a_branch_takes_sequences_and_outputs_that_nodes_make() {
    let fits = |proto: ModelProto| {
        let model = OnnxModel::from_proto(proto, &ImportOptions::default()).expect("it is a model");
        let lowered = lower(&model, model.graph(), &LoweringOptions::default(), &Layout::default());
        lowered.expect("it can be written").fits_in_branch()
    };
    assert!(fits(relu(18, "y")) && fits(relu(11, "y")));
    assert!(!fits(relu(10, "y")), "there are no sequences");
    assert!(!fits(relu(18, "x")), "an input is no result of a branch");
    let mut twice = relu(18, "y");
    let graph = twice.graph.mut_or_insert_default();
    graph.output = vec![vector("y", 64), vector("y", 64)];
    assert!(!fits(twice), "a node names each of its results once");
}

#[test]
fn an_operand_that_may_be_overwritten_keeps_its_shape() {
    insta::assert_snapshot!(lowered("features/overwritten.onnx", &LoweringOptions::default()));
}

#[test]
fn stated_shapes_become_dynamic_with_the_operand_that_states_them() {
    insta::assert_snapshot!(lowered("features/views.onnx", &LoweringOptions::default()));
}

/// A tensor of `values`, 64-bit integers.
fn integers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: 7,
        dims: vec![i64::try_from(values.len()).expect("it is short")],
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: op.to_owned(),
        name: output.to_owned(),
        input: inputs.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

/// A vector of single-precision numbers.
fn vector(name: &str, length: i64) -> ValueInfoProto {
    let dim = tensor_shape_proto::Dimension {
        value: Some(tensor_shape_proto::dimension::Value::DimValue(length)),
        ..tensor_shape_proto::Dimension::default()
    };
    let shape = TensorShapeProto {
        dim: vec![dim],
        ..TensorShapeProto::default()
    };
    let tensor = type_proto::Tensor {
        elem_type: 1,
        shape: Some(shape).into(),
        ..type_proto::Tensor::default()
    };
    let ty = TypeProto {
        value: Some(type_proto::Value::TensorType(tensor)),
        ..TypeProto::default()
    };
    ValueInfoProto {
        name: name.to_owned(),
        type_: Some(ty).into(),
        ..ValueInfoProto::default()
    }
}

#[test]
fn a_stated_shape_that_nodes_compute_from_constants_becomes_dynamic_after_them() {
    let nodes = vec![
        node("Mul", &["rows", "factor"], "shape"),
        node("Expand", &["x", "shape"], "wide"),
        node("Exp", &["wide"], "y"),
    ];
    let graph = GraphProto {
        name: "g".to_owned(),
        node: nodes,
        input: vec![vector("x", 64)],
        output: vec![vector("y", 64)],
        initializer: vec![integers("rows", &[100, 64]), integers("factor", &[3, 1])],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto {
        version: 18,
        ..OperatorSetIdProto::default()
    };
    let proto = ModelProto {
        ir_version: 8,
        opset_import: vec![opset],
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
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
