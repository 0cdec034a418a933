//! The planner of the page, without a browser.

use std::io::Cursor;
use std::path::Path;

use remat::onnx::{OnnxModel, Piece};
use remat_web::{Failure, Network, Question};

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/models").join(name);
    std::fs::read(path).expect("it is there")
}

fn open(bytes: &[u8]) -> Result<Network, Failure> {
    let question = Question {
        name: "model.onnx".to_owned(),
        ..Question::default()
    };
    Network::open(Cursor::new(bytes), question)
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
    assert!(matches!(network.plan_file(), Err(Failure::NoPlan)), "a price is no choice");
    let found = network.plan(Some(60), 2.0, false).expect("a plan");
    assert!(found.peak_bytes * 100 <= summary.peak_bytes * 60);
    assert!(found.recomputes > 0 && found.overhead_percent >= priced.overhead_percent);
    assert!(network.plan_file().expect("a plan").contains("\"remat-plan/"));

    let pieces = network.rewritten().expect("a model");
    let [Piece::Bytes(written)] = &pieces[..] else {
        panic!("the weights of this model are small: {} pieces", pieces.len());
    };
    let rewritten = OnnxModel::from_bytes(written, None, &Default::default()).expect("a model");
    assert_eq!(rewritten.lost_marks(), None, "what runs again is marked, and all marks are there");
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
fn what_is_no_model_says_where() {
    let refused = open(b"{\"nodes\": []}").err().expect("no model").to_string();
    assert!(refused.contains("byte"), "{refused}");
}
