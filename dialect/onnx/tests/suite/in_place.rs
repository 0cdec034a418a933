//! Results in the memory of the operand that a kernel of ONNX Runtime writes them over.

use crate::common::*;
use remat_ir::Graph;
use remat_onnx::OnnxModel;

/// The storage of each result, by the name of its root, once kernels write over their operands.
fn memory_of(model: OnnxModel) -> Vec<(String, String)> {
    let model = model.with_kernels_in_place();
    let graph: &Graph = model.graph();
    assert_eq!(graph.validate(), Ok(()));
    let results = graph.tensors.iter().filter(|tensor| tensor.producer.is_some());
    results
        .map(|tensor| (tensor.name.clone(), graph.storage_name(tensor.storage).to_owned()))
        .collect()
}

fn root_of<'m>(memory: &'m [(String, String)], result: &str) -> &'m str {
    let found = memory.iter().find(|(name, _)| name == result);
    &found.expect("the result exists").1
}

#[test]
fn a_chain_of_only_readers_lives_in_one_storage() {
    let nodes = vec![
        node("Exp", &["x"], &["a"]),
        node("Identity", &["a"], &["view"]),
        node("Softmax", &["view"], &["b"]),
        node("Relu", &["b"], &["c"]),
        node("Exp", &["c"], &["y"]),
    ];
    let memory = memory_of(import(graph(&[("x", vector())], nodes, &["y"])));
    for result in ["a", "view", "b", "c"] {
        assert_eq!(root_of(&memory, result), "a", "{result}");
    }
    assert_eq!(root_of(&memory, "y"), "y");
}

#[test]
fn an_operand_with_another_reader_is_not_overwritten() {
    let nodes = vec![
        node("Exp", &["x"], &["a"]),
        node("Sigmoid", &["a"], &["b"]),
        node("Mul", &["a", "b"], &["c"]),
        node("Identity", &["c"], &["view"]),
        node("Relu", &["view"], &["d"]),
        node("Add", &["c", "d"], &["y"]),
    ];
    let memory = memory_of(import(graph(&[("x", vector())], nodes, &["y"])));
    assert_eq!((root_of(&memory, "b"), root_of(&memory, "d")), ("b", "d"));
}

#[test]
fn inputs_outputs_and_other_sizes_are_not_overwritten() {
    let nodes = vec![
        node("Relu", &["x"], &["of input"]),
        node("Exp", &["of input"], &["a"]),
        node("Relu", &["a"], &["y"]),
        node("Exp", &["of input"], &["b"]),
        node("Cast", &["b"], &["narrow"]).int("to", 10),
        node("Exp", &["narrow"], &["z"]),
    ];
    let memory = memory_of(import(graph(&[("x", vector())], nodes, &["y", "z"])));
    for result in ["of input", "y", "narrow"] {
        assert_eq!(root_of(&memory, result), result);
    }
}
