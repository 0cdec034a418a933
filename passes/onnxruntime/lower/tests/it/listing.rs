//! What is written, line by line.

use remat::onnx::proto::{GraphProto, NodeProto};
use remat_onnxruntime_lower::{LoweringOptions, OrderHint, lower};

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
    let lowered = lower(rewritten.onnx(), &rewritten.graph, options).expect("it can be written");
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
        dynamic_shapes: false,
        ..LoweringOptions::default()
    };
    insta::assert_snapshot!(lowered("features/split.onnx", &options));
}

#[test]
fn stated_shapes_become_dynamic_with_the_operand_that_states_them() {
    insta::assert_snapshot!(lowered("features/views.onnx", &LoweringOptions::default()));
}
