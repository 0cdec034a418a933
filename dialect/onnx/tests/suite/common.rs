//! What tests ask of an import.

use std::collections::BTreeMap;

use remat_ir::{Graph, Op, TensorId};
use remat_onnx::proto::{GraphProto, Message, ModelProto, TypeProto};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
pub(crate) use remat_testing::onnx::*;

pub(crate) fn vector() -> TypeProto {
    tensor_type(FLOAT, "8")
}

pub(crate) fn open(model: &ModelProto) -> Result<OnnxModel, OnnxError> {
    open_with(model, &[], &[])
}

pub(crate) fn open_with(
    model: &ModelProto,
    dims: &[(&str, u64)],
    sizes: &[(&str, u64)],
) -> Result<OnnxModel, OnnxError> {
    let map = |pairs: &[(&str, u64)]| {
        pairs
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>()
    };
    let options = ImportOptions {
        open_sizes: false,
        dims: map(dims),
        sizes: map(sizes),
        ..ImportOptions::default()
    };
    OnnxModel::from_bytes(&model.write_to_bytes().unwrap(), None, &options)
}

/// The model of a graph, imported.
pub(crate) fn import(graph: GraphProto) -> OnnxModel {
    open(&model(graph)).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn error(graph: GraphProto) -> String {
    open(&model(graph)).expect_err("the model imports").to_string()
}

pub(crate) fn op<'g>(graph: &'g Graph, name: &str) -> &'g Op {
    graph
        .ops
        .iter()
        .find(|op| op.name == name)
        .unwrap_or_else(|| panic!("no op `{name}`"))
}

pub(crate) fn tensor_named(graph: &Graph, name: &str) -> TensorId {
    graph
        .tensors
        .iter_enumerated()
        .find(|(_, t)| t.name == name)
        .unwrap_or_else(|| panic!("no tensor `{name}`"))
        .0
}

pub(crate) fn bytes(graph: &Graph, name: &str) -> Option<u64> {
    graph.storages[graph.tensors[tensor_named(graph, name)].storage].bytes
}

/// Name of the storage a tensor lives in, with its class.
pub(crate) fn home(graph: &Graph, name: &str) -> String {
    let storage = graph.tensors[tensor_named(graph, name)].storage;
    format!("{} ({:?})", graph.storage_name(storage), graph.storages[storage].class)
}
