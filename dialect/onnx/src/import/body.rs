//! Subgraphs of nodes as graphs of their own.
//!
//! They tell what a node takes while it runs. What is written out is the file's, so a subgraph that cannot be followed is left out, and
//! no error.

use std::rc::Rc;

use onnx_protobuf::{GraphProto, NodeProto};
use remat_ir::{Body, GraphBuilder, StorageClass};
use rustc_hash::FxHashMap;

use super::{Importer, node_names};
use crate::effects::Known;
use crate::order::stable_order;
use crate::scope;
use crate::shapes::Inferred;

impl<'m> Importer<'m> {
    /// The subgraphs of a node, in the order of its attributes; none where one of them cannot be followed.
    pub(super) fn bodies(&self, node: &'m NodeProto) -> Vec<Body> {
        if self.functions.called(node).is_some() {
            return Vec::new();
        }
        let graphs = node
            .attribute
            .iter()
            .filter_map(|a| Some((a.name.as_str(), a.g.as_ref()?)));
        // A branch that is never taken was not looked into.
        let reached = graphs.filter(|(_, graph)| self.bodies.of(graph).is_some());
        let bodies: Option<Vec<Body>> = reached.map(|(name, graph)| self.body(name, graph)).collect();
        bodies.unwrap_or_default()
    }

    fn body(&self, name: &str, proto: &'m GraphProto) -> Option<Body> {
        let types = self.bodies.of(proto)?.iter();
        let mut inner = Importer {
            builder: GraphBuilder::new(&proto.name),
            tensors: FxHashMap::default(),
            outputs: proto.output.iter().map(|o| o.name.as_str()).collect(),
            inferred: Inferred {
                types: types.map(|(name, ty)| (name.clone(), ty.clone())).collect(),
                ..Inferred::default()
            },
            bodies: Rc::clone(&self.bodies),
            functions: self.functions,
            opsets: self.opsets,
            known: Known::of_graph(proto),
            options: self.options,
        };
        inner.sources(proto).ok()?;
        let formals = inner.builder.graph().inputs.len();
        let outer = self.builder.graph();
        for name in scope::free_names(proto) {
            let tensor = &outer.tensors[*self.tensors.get(name)?];
            let is_constant = outer.storages[tensor.storage].class == StorageClass::Constant;
            let ty = tensor.ty.clone();
            let id = if is_constant {
                inner.builder.constant(name, ty)
            } else {
                inner.builder.input(name, ty)
            };
            inner.tensors.insert(name, id.ok()?);
        }
        let names = node_names(&proto.node);
        let captures: Vec<Vec<&str>> = proto.node.iter().map(scope::captures).collect();
        for index in order_of_body(proto, &captures)? {
            let place = index as usize;
            let captures = &captures[place];
            if captures.iter().any(|name| !inner.tensors.contains_key(name)) {
                return None;
            }
            inner.node(&proto.node[place], index, &names[place], captures).ok()?;
        }
        for output in &proto.output {
            inner.builder.output(*inner.tensors.get(output.name.as_str())?);
        }
        Some(Body {
            name: name.to_owned(),
            graph: inner.builder.finish(),
            formals,
            trips: self.bodies.trips(proto),
        })
    }
}

/// The nodes of a subgraph in reference order; `None` if they depend on each other in a circle.
fn order_of_body(graph: &GraphProto, captures: &[Vec<&str>]) -> Option<Vec<u32>> {
    let mut made: FxHashMap<&str, u32> = FxHashMap::default();
    for (index, node) in (0_u32..).zip(&graph.node) {
        made.extend(node.output.iter().map(|output| (output.as_str(), index)));
    }
    made.remove("");
    let sources = |(node, captures): (&NodeProto, &Vec<&str>)| {
        let inputs = node.input.iter().map(String::as_str);
        let reads = inputs.chain(captures.iter().copied());
        reads.filter_map(|name| made.get(name).copied()).collect()
    };
    let reads_from: Vec<Vec<u32>> = graph.node.iter().zip(captures).map(sources).collect();
    stable_order(&reads_from).ok()
}
