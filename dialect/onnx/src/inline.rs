//! Calls of the model's own functions, replaced by what the functions do.
//!
//! Runtimes do the same before they optimize, so what runs, and what it takes, is the body of the function and not the call. Source:
//! the ONNX IR specification, section Functions.

use std::collections::BTreeSet;

use onnx_protobuf::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::attributes::{subgraphs, subgraphs_mut};
use crate::functions::MAX_CALL_DEPTH;
use crate::opsets::{domain, opsets};
use crate::scope::all_names;

/// Nodes that a model has after inlining at most; functions that call each other can unfold to exponentially many.
const MAX_NODES: u64 = 1 << 17;

type Key = (String, String, String);

fn called(node: &NodeProto) -> Key {
    (
        domain(&node.domain).to_owned(),
        node.op_type.clone(),
        node.overload.clone(),
    )
}

fn defined_as(function: &FunctionProto) -> Key {
    (
        domain(&function.domain).to_owned(),
        function.name.clone(),
        function.overload.clone(),
    )
}

/// Replaces every call in the main graph, its subgraphs included, by the nodes of the function.
///
/// A model stays as it is where a function calls itself, where the result would be too large, and where a function is written for another
/// version of an operator set than the model.
pub(crate) fn inline_functions(model: &mut ModelProto) {
    let functions: FxHashMap<Key, FunctionProto> = model
        .functions
        .iter()
        .map(|function| (defined_as(function), function.clone()))
        .collect();
    let Some(graph) = model.graph.as_ref() else { return };
    if functions.len() != model.functions.len() || !calls_any(&graph.node, &functions) || !same_versions(model) {
        return;
    }
    let mut sizes = FxHashMap::default();
    let size = unfolded(&graph.node, &functions, &mut sizes, 0);
    if size.is_none_or(|size| size > MAX_NODES) {
        return;
    }
    let names = all_names(model).into_iter().map(str::to_owned).collect();
    let mut inliner = Inliner {
        functions: &functions,
        names,
        counts: FxHashMap::default(),
    };
    if let Some(graph) = model.graph.as_mut() {
        inliner.graph(graph);
    }
    let imported = opsets(&model.opset_import);
    let missing: Vec<_> = model
        .functions
        .iter()
        .flat_map(|function| &function.opset_import)
        .filter(|import| !imported.contains_key(domain(&import.domain)))
        .cloned()
        .collect();
    for import in missing {
        let there = model
            .opset_import
            .iter()
            .any(|known| domain(&known.domain) == domain(&import.domain));
        if !there {
            model.opset_import.push(import);
        }
    }
    model.functions.clear();
}

fn calls_any(nodes: &[NodeProto], functions: &FxHashMap<Key, FunctionProto>) -> bool {
    let inside = |node: &NodeProto| subgraphs(node).any(|graph| calls_any(&graph.node, functions));
    nodes
        .iter()
        .any(|node| functions.contains_key(&called(node)) || inside(node))
}

/// Whether all parts of the model mean the same by the name of an operator.
fn same_versions(model: &ModelProto) -> bool {
    let mut versions = opsets(&model.opset_import);
    model.functions.iter().all(|function| {
        let mut imports = opsets(&function.opset_import).into_iter();
        imports.all(|(domain, version)| *versions.entry(domain).or_insert(version) == version)
    })
}

/// The number of nodes after inlining; `None` where a function calls itself.
fn unfolded(
    nodes: &[NodeProto],
    functions: &FxHashMap<Key, FunctionProto>,
    sizes: &mut FxHashMap<Key, u64>,
    depth: usize,
) -> Option<u64> {
    if depth > MAX_CALL_DEPTH {
        return None;
    }
    let mut total = 0_u64;
    for node in nodes {
        let key = called(node);
        let size = match (sizes.get(&key), functions.get(&key)) {
            (Some(&size), _) => size,
            (None, Some(function)) => {
                let size = unfolded(&function.node, functions, sizes, depth + 1)?;
                sizes.insert(key, size);
                size
            }
            (None, None) => 1,
        };
        total = total.saturating_add(size);
        for graph in subgraphs(node) {
            total = total.saturating_add(unfolded(&graph.node, functions, sizes, depth)?);
        }
    }
    Some(total)
}

struct Inliner<'f> {
    functions: &'f FxHashMap<Key, FunctionProto>,
    /// Names that are taken.
    names: BTreeSet<String>,
    /// How many prefixes each name of a call was tried with.
    counts: FxHashMap<String, u64>,
}

impl Inliner<'_> {
    fn graph(&mut self, graph: &mut GraphProto) {
        graph.node = self.nodes(std::mem::take(&mut graph.node));
    }

    fn nodes(&mut self, nodes: Vec<NodeProto>) -> Vec<NodeProto> {
        let mut inlined = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            match self.functions.get(&called(&node)) {
                Some(function) => {
                    let body = self.body(&node, function);
                    inlined.extend(self.nodes(body));
                }
                None => {
                    subgraphs_mut(&mut node).for_each(|graph| self.graph(graph));
                    inlined.push(node);
                }
            }
        }
        inlined
    }

    /// The nodes of a call, with the names of the caller.
    fn body(&mut self, call: &NodeProto, function: &FunctionProto) -> Vec<NodeProto> {
        let prefix = self.prefix(if call.name.is_empty() {
            &call.op_type
        } else {
            &call.name
        });
        let mut names = FxHashMap::default();
        for (formal, actual) in function
            .input
            .iter()
            .zip(call.input.iter().map(String::as_str).chain(std::iter::repeat("")))
        {
            names.insert(formal.as_str(), actual.to_owned());
        }
        // A result that no node of the body makes alone under its name is a copy.
        let mut copies = Vec::new();
        for (formal, actual) in function.output.iter().zip(&call.output) {
            if actual.is_empty() {
                continue;
            }
            if let Some(source) = names.get(formal.as_str()) {
                copies.push((source.clone(), actual.clone()));
            } else {
                names.insert(formal.as_str(), actual.clone());
            }
        }
        let renamer = Renamer {
            names,
            prefix: &prefix,
            attributes: attributes(call, function),
        };
        let mut nodes: Vec<NodeProto> = function.node.clone();
        for (index, node) in nodes.iter_mut().enumerate() {
            if node.name.is_empty() {
                node.name = format!("{}_{index}", node.op_type);
            }
            renamer.node(node);
        }
        nodes.extend(
            copies
                .into_iter()
                .enumerate()
                .map(|(index, (source, result))| NodeProto {
                    op_type: "Identity".to_owned(),
                    name: format!("{prefix}result_{index}"),
                    input: vec![source],
                    output: vec![result],
                    ..NodeProto::default()
                }),
        );
        nodes
    }

    /// What the names of a call begin with: that of no other name does.
    fn prefix(&mut self, name: &str) -> String {
        let names = &self.names;
        let taken = |prefix: &str| {
            let mut from = names.range(prefix.to_owned()..);
            from.next().is_some_and(|name| name.starts_with(prefix))
        };
        let count = self.counts.entry(name.to_owned()).or_insert(0);
        loop {
            *count += 1;
            let prefix = if *count == 1 {
                format!("{name}/")
            } else {
                format!("{name}_{count}/")
            };
            if !taken(&prefix) {
                self.names.insert(prefix.clone());
                return prefix;
            }
        }
    }
}

/// The attributes that the body may refer to: those of the call, and the defaults of the function.
fn attributes<'a>(call: &'a NodeProto, function: &'a FunctionProto) -> FxHashMap<&'a str, &'a AttributeProto> {
    let defaults = function.attribute_proto.iter();
    defaults
        .chain(&call.attribute)
        .map(|attribute| (attribute.name.as_str(), attribute))
        .collect()
}

/// Gives the nodes of a body the names of the caller.
struct Renamer<'a> {
    names: FxHashMap<&'a str, String>,
    prefix: &'a str,
    attributes: FxHashMap<&'a str, &'a AttributeProto>,
}

impl Renamer<'_> {
    fn value(&self, name: &mut String) {
        if !name.is_empty() {
            *name = self
                .names
                .get(name.as_str())
                .cloned()
                .unwrap_or_else(|| format!("{}{name}", self.prefix));
        }
    }

    fn node(&self, node: &mut NodeProto) {
        if !node.name.is_empty() {
            node.name = format!("{}{}", self.prefix, node.name);
        }
        node.input
            .iter_mut()
            .chain(&mut node.output)
            .for_each(|name| self.value(name));
        let stated = std::mem::take(&mut node.attribute);
        node.attribute = stated
            .into_iter()
            .filter_map(|attribute| self.attribute(attribute))
            .collect();
        subgraphs_mut(node).for_each(|graph| self.subgraph(graph));
    }

    /// The attribute itself, or the one of the call that it refers to, under its own name; absent where the call leaves it out.
    fn attribute(&self, attribute: AttributeProto) -> Option<AttributeProto> {
        if attribute.ref_attr_name.is_empty() {
            return Some(attribute);
        }
        let mut actual = (*self.attributes.get(attribute.ref_attr_name.as_str())?).clone();
        actual.name = attribute.name;
        Some(actual)
    }

    /// Names of a body's subgraph: those that it defines itself hide those of the function.
    fn subgraph(&self, graph: &mut GraphProto) {
        let own: FxHashSet<String> = crate::scope::defined(graph).map(str::to_owned).collect();
        let inner = Renamer {
            names: self
                .names
                .iter()
                .filter(|(name, _)| !own.contains(**name))
                .map(|(&name, new)| (name, new.clone()))
                .collect(),
            prefix: self.prefix,
            attributes: self.attributes.clone(),
        };
        let values = graph
            .input
            .iter_mut()
            .chain(&mut graph.output)
            .chain(&mut graph.value_info);
        values.for_each(|value| inner.value(&mut value.name));
        graph
            .initializer
            .iter_mut()
            .for_each(|tensor| inner.value(&mut tensor.name));
        for sparse in &mut graph.sparse_initializer {
            inner.value(&mut sparse.values.mut_or_insert_default().name);
        }
        graph.node.iter_mut().for_each(|node| inner.node(node));
    }
}
