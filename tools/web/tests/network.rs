//! The planner of the page, without a browser.

use std::io::Cursor;
use std::path::Path;

use remat::ir::{ElementType, ValueType};
use remat::onnx::proto::{GraphProto, Message, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use remat::onnx::{OnnxModel, Piece, type_proto};
use remat_web::{Failure, Network, Question};

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../test/models")
        .join(name);
    std::fs::read(path).expect("it is there")
}

fn open(bytes: &[u8]) -> Result<Network, Failure> {
    let question = Question {
        name: "model.onnx".to_owned(),
        ..Question::default()
    };
    Network::open(Cursor::new(bytes), question)
}

/// Two ops on a batch of any size, 64 numbers each.
fn open_batch() -> Vec<u8> {
    let value = |name: &str| {
        let ty = ValueType::tensor(ElementType::Float32, &[1, 64]);
        let mut ty = type_proto(&ty);
        let shape = ty
            .as_mut()
            .expect("a type")
            .mut_tensor_type()
            .shape
            .mut_or_insert_default();
        shape.dim[0].set_dim_param("batch".to_owned());
        ValueInfoProto {
            name: name.to_owned(),
            type_: ty.into(),
            ..ValueInfoProto::default()
        }
    };
    let node = |op: &str, input: &str, output: &str| NodeProto {
        op_type: op.to_owned(),
        input: vec![input.to_owned()],
        output: vec![output.to_owned()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: vec![node("Relu", "x", "a"), node("Exp", "a", "y")],
        input: vec![value("x")],
        output: vec![value("y")],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto {
        version: 17,
        ..OperatorSetIdProto::default()
    };
    let model = ModelProto {
        ir_version: 9,
        opset_import: vec![opset],
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
    model.write_to_bytes().expect("it can be written")
}

#[test]
fn a_model_is_planned_and_written() {
    let bytes = file("unet_tiny_train.onnx");
    let mut network = open(&bytes).expect("a model");
    let summary = network.summary();
    assert!(summary.least_bytes < summary.peak_bytes && summary.peak_bytes <= summary.block_bytes);
    assert!(!summary.peak_op.is_empty());
    assert!(network.page().expect("a page").contains("<canvas"));
    assert!(matches!(network.rewritten(), Err(Failure::NoPlan)));

    let priced = network.price(Some(80), 1.0).expect("a plan");
    assert!(
        matches!(network.plan_file(), Err(Failure::NoPlan)),
        "a price is no choice"
    );
    let found = network.plan(Some(60), 2.0, false).expect("a plan");
    assert!(found.peak_bytes * 100 <= summary.peak_bytes * 60);
    assert!(found.recomputes > 0 && found.overhead_percent >= priced.overhead_percent);
    assert!(network.plan_file().expect("a plan").contains("\"remat-plan/"));

    let pieces = network.rewritten().expect("a model");
    let [Piece::Bytes(written)] = &pieces[..] else {
        panic!("the weights of this model are small: {} pieces", pieces.len());
    };
    let rewritten = OnnxModel::from_bytes(written, None, &Default::default()).expect("a model");
    assert_eq!(
        rewritten.lost_marks(),
        None,
        "what runs again is marked, and all marks are there"
    );
    assert!(rewritten.graph().ops.len() > summary.ops);
}

#[test]
fn the_lowest_peak_is_not_above_what_was_found_before() {
    let bytes = file("mlp_tiny_train.onnx");
    let mut network = open(&bytes).expect("a model");
    let some = network.price(Some(70), 1.0).expect("a plan");
    let lowest = network.price(None, 1.0).expect("a plan");
    assert!(lowest.peak_bytes <= some.peak_bytes);
    let refused = network.price(Some(1), 0.5).expect_err("one op needs more");
    assert!(refused.to_string().contains("no plan"), "{refused}");
}

#[test]
fn sizes_that_have_to_be_given_are_named() {
    let bytes = open_batch();
    let failure = open(&bytes).err().expect("the batch is open");
    assert_eq!(failure.open_dims(), ["batch"]);
    let question = Question {
        dims: [("batch".to_owned(), 1024)].into(),
        ..Question::default()
    };
    let network = Network::open(Cursor::new(&bytes), question).expect("all sizes are known");
    assert_eq!(network.summary().peak_bytes, 2 * 1024 * 64 * 4);
}

#[test]
fn what_is_no_model_says_where() {
    let refused = open(b"{\"nodes\": []}").err().expect("no model").to_string();
    assert!(refused.contains("byte"), "{refused}");
}
