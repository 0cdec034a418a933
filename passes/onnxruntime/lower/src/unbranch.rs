//! A model out of the branch that it was put in ([`branch`](crate::branch)), for sessions that have no block for the results of later runs anyway.

use remat_onnx::proto::{GraphProto, ModelProto, NodeProto};
use remat_onnx::{captures, rename_values};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::branch::NAME;

/// Takes the nodes of a model out of its branch, where it is in one; whether it was. The runtime may have optimized it meanwhile.
pub fn out_of_branch(model: &mut ModelProto) -> bool {
    let Some(outer) = model.graph.as_mut() else {
        return false;
    };
    let is_branch = |node: &NodeProto| node.op_type == "If" && node.name.starts_with(NAME);
    let Some(position) = outer.node.iter().position(is_branch) else {
        return false;
    };
    let node = &outer.node[position];
    let then = node.attribute.iter().find(|attribute| attribute.name == "then_branch");
    let Some(mut inner) = then.and_then(|then| then.g.as_ref()).cloned() else {
        return false;
    };
    if !is_apart(outer, &inner) || inner.output.len() != node.output.len() {
        return false;
    }
    let results = inner.output.iter().map(|output| output.name.clone());
    let names: FxHashMap<String, String> = results.zip(node.output.iter().cloned()).collect();
    rename_values(&mut inner, &names);
    let around = std::mem::take(&mut outer.node);
    let read_around: FxHashSet<&str> = around.iter().flat_map(read_by).collect();
    let only_for_it: FxHashSet<&str> = around
        .iter()
        .flat_map(|node| &node.output)
        .map(String::as_str)
        .collect();
    // What reads a value that was made for the branch alone was its mark.
    inner
        .node
        .retain(|node| !node.input.iter().any(|name| only_for_it.contains(name.as_str())));
    let read: FxHashSet<&str> = inner.node.iter().flat_map(read_by).collect();
    outer
        .initializer
        .retain(|weight| !read_around.contains(weight.name.as_str()) || read.contains(weight.name.as_str()));
    outer.node = inner.node;
    outer.initializer.append(&mut inner.initializer);
    outer.sparse_initializer.append(&mut inner.sparse_initializer);
    outer.quantization_annotation.append(&mut inner.quantization_annotation);
    outer.value_info.append(&mut inner.value_info);
    true
}

/// What a node reads, within its subgraphs, too.
fn read_by(node: &NodeProto) -> impl Iterator<Item = &str> {
    node.input.iter().map(String::as_str).chain(captures(node))
}

/// Whether a branch is all of its model: nothing around it is read but what it was given for its condition and its mark, no name means two things, and
/// its outputs are made by its nodes.
fn is_apart(outer: &GraphProto, inner: &GraphProto) -> bool {
    let made: FxHashSet<&str> = inner
        .node
        .iter()
        .flat_map(|node| &node.output)
        .map(String::as_str)
        .collect();
    let around: FxHashSet<&str> = outer
        .node
        .iter()
        .flat_map(|node| &node.output)
        .map(String::as_str)
        .collect();
    let given = outer.initializer.iter().map(|weight| weight.name.as_str());
    let names: FxHashSet<&str> = given
        .chain(outer.input.iter().map(|input| input.name.as_str()))
        .collect();
    let is_new = |name: &str| !names.contains(name) && !around.contains(name);
    let weights = inner.initializer.iter().map(|weight| weight.name.as_str());
    let reads_around = |node: &NodeProto| read_by(node).any(|name| around.contains(name) && !made.contains(name));
    let strangers = inner.node.iter().filter(|node| reads_around(node));
    let is_mark = |node: &NodeProto| node.op_type == "SequenceLength";
    made.iter().copied().chain(weights).all(is_new)
        && inner.output.iter().all(|output| made.contains(output.name.as_str()))
        && strangers.into_iter().all(is_mark)
}
