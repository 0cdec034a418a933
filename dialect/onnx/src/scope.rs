//! Names: what a subgraph reads from outside, and renaming that.
//!
//! A subgraph sees the values of the graphs around it unless it defines the name itself.

use std::collections::BTreeSet;

use onnx_protobuf::{GraphProto, ModelProto, NodeProto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::OnnxError;
use crate::attributes::{subgraphs, subgraphs_mut};

/// The outer values that a node's subgraphs read, each once, in the order of their first use.
#[must_use]
pub fn captures(node: &NodeProto) -> Vec<&str> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for graph in subgraphs(node) {
        for name in free_names(graph) {
            if seen.insert(name) {
                found.push(name);
            }
        }
    }
    found
}

/// The names that a graph reads but does not define, in the order of their first use; one may come up more than once.
pub(crate) fn free_names(graph: &GraphProto) -> Vec<&str> {
    let local: FxHashSet<&str> = defined(graph).collect();
    let mut free = Vec::new();
    for node in &graph.node {
        free.extend(
            node.input
                .iter()
                .map(String::as_str)
                .filter(|name| !name.is_empty() && !local.contains(name)),
        );
        for inner in subgraphs(node) {
            free.extend(free_names(inner).into_iter().filter(|name| !local.contains(name)));
        }
    }
    free.extend(
        graph
            .output
            .iter()
            .map(|o| o.name.as_str())
            .filter(|name| !name.is_empty() && !local.contains(name)),
    );
    let mut seen = FxHashSet::default();
    free.retain(|name| seen.insert(*name));
    free
}

/// Takes a name that the model does not have. Nodes and values are named apart: a node may have the name of its result.
pub(crate) fn claim<'a>(
    name: &'a str,
    reserved: &BTreeSet<&str>,
    taken: &mut FxHashSet<&'a str>,
) -> Result<(), OnnxError> {
    if reserved.contains(name) || !taken.insert(name) {
        let (first, second) = ("the model".to_owned(), "the rewritten graph".to_owned());
        return Err(OnnxError::DuplicateName {
            name: name.to_owned(),
            first,
            second,
        });
    }
    Ok(())
}

/// The names a graph defines itself.
pub(crate) fn defined(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let inputs = graph.input.iter().map(|v| v.name.as_str());
    let dense = graph.initializer.iter().map(|t| t.name.as_str());
    let sparse = graph
        .sparse_initializer
        .iter()
        .map(|t| t.values.get_or_default().name.as_str());
    let outputs = graph.node.iter().flat_map(|n| n.output.iter().map(String::as_str));
    inputs
        .chain(dense)
        .chain(sparse)
        .chain(outputs)
        .filter(|name| !name.is_empty())
}

/// Renames outer values inside a node's subgraphs, but not names that a subgraph defines itself.
pub fn rename_captures(node: &mut NodeProto, names: &FxHashMap<String, String>) {
    if !names.is_empty() {
        subgraphs_mut(node).for_each(|graph| rename_in(graph, names));
    }
}

fn rename_in(graph: &mut GraphProto, names: &FxHashMap<String, String>) {
    let local: FxHashSet<&str> = defined(graph).collect();
    let mut visible = names.clone();
    visible.retain(|old, _| !local.contains(old.as_str()));
    if visible.is_empty() {
        return;
    }
    let values = graph
        .output
        .iter_mut()
        .chain(&mut graph.value_info)
        .map(|v| &mut v.name);
    for name in graph.node.iter_mut().flat_map(|node| &mut node.input).chain(values) {
        if let Some(new) = visible.get(name) {
            name.clone_from(new);
        }
    }
    graph.node.iter_mut().for_each(|node| rename_captures(node, &visible));
}

/// Gives values of the main graph other names, wherever they are read. `names` holds new names by old ones, none of a graph input,
/// output or initializer.
pub fn rename_values(graph: &mut GraphProto, names: &FxHashMap<String, String>) {
    let values = graph.value_info.iter_mut().map(|value| &mut value.name);
    for name in graph
        .node
        .iter_mut()
        .flat_map(|node| node.input.iter_mut().chain(&mut node.output))
        .chain(values)
    {
        if let Some(new) = names.get(name) {
            name.clone_from(new);
        }
    }
    graph.node.iter_mut().for_each(|node| rename_captures(node, names));
}

/// Every name of a value or node anywhere in the model.
pub(crate) fn all_names(model: &ModelProto) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    if let Some(graph) = model.graph.as_ref() {
        names_in_graph(graph, &mut names);
    }
    for function in &model.functions {
        names.extend(function.input.iter().chain(&function.output).map(String::as_str));
        names_in_nodes(&function.node, &mut names);
    }
    for training in &model.training_info {
        training
            .initialization
            .iter()
            .chain(&training.algorithm)
            .for_each(|graph| names_in_graph(graph, &mut names));
    }
    names.remove("");
    names
}

fn names_in_graph<'m>(graph: &'m GraphProto, names: &mut BTreeSet<&'m str>) {
    names.extend(defined(graph));
    names.extend(graph.output.iter().chain(&graph.value_info).map(|v| v.name.as_str()));
    names.extend(graph.quantization_annotation.iter().map(|a| a.tensor_name.as_str()));
    names_in_nodes(&graph.node, names);
}

fn names_in_nodes<'m>(nodes: &'m [NodeProto], names: &mut BTreeSet<&'m str>) {
    for node in nodes {
        names.insert(&node.name);
        names.extend(node.input.iter().chain(&node.output).map(String::as_str));
        subgraphs(node).for_each(|graph| names_in_graph(graph, names));
    }
}
