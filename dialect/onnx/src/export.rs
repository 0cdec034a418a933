//! From a rewritten [`Graph`] back to a model.
//!
//! Each op names the node it comes from. The node is copied whole (doc string, attributes, fields this version of the
//! format does not know) and only its operands, results and the outer values of its subgraphs get the names they have in
//! the graph. Types and quantization annotations of copied results are copied too. Results that only the rewritten graph
//! leaves unread get a reader, so that runtimes free them ([`crate::sink`]).
//!
//! Of a graph after fission a node may be written several times, as tiles; [`crate::tiles`] has what only such graphs need.

use std::collections::BTreeSet;

use onnx_protobuf::{ModelProto, NodeProto, StringStringEntryProto, TensorAnnotation, ValueInfoProto};
use remat_ir::{ElementType, Graph, Op, OpKind, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::opsets::opsets;
use crate::scope::claim;
use crate::sink::{self, Readers};
use crate::streamed::{Streamed, is_streamed};
use crate::tiles::{Tiles, mark_repeated, part_entry};
use crate::{Marks, OnnxError, OnnxModel, RECOMPUTE_OF, attributes, proto_type, scope};

impl OnnxModel {
    /// The model with the nodes in the order of `rewritten`, recompute ops as copies of their originals.
    ///
    /// After fission, a tile of an op is a copy of its node with other attributes and operands; `Slice` and `Concat` of fission become
    /// nodes, integer constants of the graph initializers, equal ones one. Slices of initializers that lie in the file are written as
    /// initializers. Initializers that nothing reads any more are left out. Tiles that repeat another node are marked ([`crate::TILE_MARK`]).
    /// Normalizations in two passes become nodes of ONNX's own operators ([`crate::streamed`]); what they replace may be missing.
    ///
    /// # Errors
    /// [`OnnxError::Foreign`] if `rewritten` does not come from [`OnnxModel::graph`]: an op without source, a missing or
    /// repeated op, other graph outputs; [`OnnxError::DuplicateName`] if a new name is taken; [`OnnxError::Unsupported`] if the model's
    /// set of operators has no `Slice` with such bounds, or is too old for normalizations in two passes.
    pub fn export_proto(&self, rewritten: &Graph) -> Result<ModelProto, OnnxError> {
        export(self, rewritten, true)
    }

    /// Like [`OnnxModel::export_proto`], but results that `rewritten` leaves unread get no reader: the nodes are exactly its ops.
    ///
    /// # Errors
    /// Those of [`OnnxModel::export_proto`].
    pub fn export_without_readers(&self, rewritten: &Graph) -> Result<ModelProto, OnnxError> {
        export(self, rewritten, false)
    }
}

/// Writes `graph` as a model; see [`OnnxModel::export_proto`]. `with_readers`: whether unread results get a reader.
fn export(model: &OnnxModel, graph: &Graph, with_readers: bool) -> Result<ModelProto, OnnxError> {
    let mut exporter = Exporter::new(model, graph);
    exporter.check_outputs()?;
    let mut nodes = Vec::with_capacity(graph.ops.len());
    let mut tiles = Vec::new();
    for op in graph.ops.iter().filter(|op| op.kind.is_run()) {
        if exporter.tiles.hold(op) {
            exporter.claim_piece(op)?;
            continue;
        }
        let first = nodes.len();
        nodes.extend(exporter.nodes(op)?);
        if !op.parts.is_empty() {
            tiles.extend(first..nodes.len());
        }
        if with_readers {
            exporter.add_sinks(op, &mut nodes);
        }
    }
    exporter.check_complete()?;
    mark_repeated(&mut nodes, &tiles);
    let mut proto = model.proto.clone();
    let main = proto.graph.mut_or_insert_default();
    main.node = nodes;
    main.value_info.append(&mut exporter.value_info);
    main.quantization_annotation.append(&mut exporter.annotations);
    if graph.ops.iter().any(|op| !op.parts.is_empty()) {
        exporter.tiles.finish(main, &exporter.reserved)?;
        exporter.streamed.finish(main);
    }
    // Names of a model that is only written again may look like ours.
    if graph.ops.iter().any(|op| matches!(op.kind, OpKind::Recompute { .. })) {
        Marks::state(&mut proto);
    }
    Ok(proto)
}

struct Exporter<'a> {
    model: &'a OnnxModel,
    graph: &'a Graph,
    reserved: BTreeSet<&'a str>,
    written: Vec<bool>,
    new_nodes: FxHashSet<&'a str>,
    new_values: FxHashSet<&'a str>,
    sinks: FxHashSet<String>,
    readers: Readers,
    /// Names of the values that the model's own graph leaves unread. Ids of the two graphs do not compare.
    unread_before: FxHashSet<&'a str>,
    stated: FxHashMap<&'a str, &'a ValueInfoProto>,
    annotated: FxHashMap<&'a str, &'a TensorAnnotation>,
    value_info: Vec<ValueInfoProto>,
    annotations: Vec<TensorAnnotation>,
    tiles: Tiles<'a>,
    streamed: Streamed<'a>,
}

impl<'a> Exporter<'a> {
    fn new(model: &'a OnnxModel, graph: &'a Graph) -> Self {
        let main = model.proto.graph.get_or_default();
        let values = main.output.iter().chain(&main.value_info);
        let readers_before = Readers::of(model.graph());
        let before = model.graph().tensors.iter_enumerated();
        let unread_before = before
            .filter(|&(id, _)| !readers_before.has(id))
            .map(|(_, tensor)| tensor.name.as_str());
        let reserved = model.reserved_names();
        let version = opsets(&model.proto.opset_import).get("").copied();
        Self {
            model,
            graph,
            streamed: Streamed::new(graph, version, &reserved),
            reserved,
            written: vec![false; main.node.len()],
            new_nodes: FxHashSet::default(),
            new_values: FxHashSet::default(),
            sinks: FxHashSet::default(),
            readers: Readers::of(graph),
            unread_before: unread_before.collect(),
            stated: values.map(|v| (v.name.as_str(), v)).collect(),
            annotated: main
                .quantization_annotation
                .iter()
                .map(|a| (a.tensor_name.as_str(), a))
                .collect(),
            value_info: Vec::new(),
            annotations: Vec::new(),
            tiles: Tiles::new(model, graph),
        }
    }

    fn check_outputs(&self) -> Result<(), OnnxError> {
        let expected = self
            .model
            .proto
            .graph
            .get_or_default()
            .output
            .iter()
            .map(|o| o.name.as_str());
        let found = self.graph.outputs.iter().map(|&t| self.name(t));
        if expected.eq(found) {
            return Ok(());
        }
        let why = "its outputs are not those of the model".to_owned();
        Err(OnnxError::Foreign {
            op: self.graph.name.clone(),
            why,
        })
    }

    /// Ops without effects may be missing: those that normalizations in two passes replace, and, of a graph with tiles, those that computed shapes which
    /// are constants now.
    fn check_complete(&self) -> Result<(), OnnxError> {
        let mut lost: FxHashSet<usize> = (0..self.written.len()).filter(|&node| !self.written[node]).collect();
        let has_tiles = self.graph.ops.iter().any(|op| !op.parts.is_empty());
        let is_streamed = self.graph.ops.iter().any(is_streamed);
        let is_integer = |result: TensorId| self.model.graph.tensors[result].ty.element() == Some(ElementType::Int64);
        let may_be_lost = |op: &&Op| {
            let is_instead = is_streamed || has_tiles && op.results().all(is_integer);
            is_instead && op.effects.recomputable()
        };
        for op in self.model.graph.ops.iter().filter(may_be_lost) {
            op.source.map(|source| lost.remove(&(source as usize)));
        }
        match lost.into_iter().min() {
            None => Ok(()),
            Some(index) => Err(OnnxError::foreign(
                &self.model.names[index],
                "the rewritten graph has lost it",
            )),
        }
    }

    fn name(&self, tensor: TensorId) -> &'a str {
        self.tiles.name(tensor)
    }

    fn names(&self, tensors: &[Option<TensorId>]) -> Vec<String> {
        let name = |tensor: &Option<TensorId>| tensor.map_or_else(String::new, |t| self.name(t).to_owned());
        tensors.iter().map(name).collect()
    }

    /// The nodes of an op: one, unless it is of a normalization in two passes.
    fn nodes(&mut self, op: &'a Op) -> Result<Vec<NodeProto>, OnnxError> {
        if !op.parts.is_empty() {
            self.claim_piece(op)?;
            self.state_types(op);
        }
        if is_streamed(op) {
            return self.streamed.nodes(op, &self.tiles);
        }
        let mut node = match op.source {
            None if !op.parts.is_empty() => self.tiles.made(op)?,
            _ => self.copied(op)?,
        };
        if !op.parts.is_empty() {
            node.name.clone_from(&op.name);
            node.metadata_props.extend(part_entry(op));
        }
        if let OpKind::Recompute { of } = op.kind {
            node.metadata_props.push(StringStringEntryProto {
                key: RECOMPUTE_OF.to_owned(),
                value: self.graph.ops[of].name.clone(),
                ..StringStringEntryProto::default()
            });
        }
        Ok(vec![node])
    }

    /// States the types of the results of an op that fission made, where the model does not.
    fn state_types(&mut self, op: &Op) {
        for result in op.results() {
            let tensor = &self.graph.tensors[result];
            let ty = proto_type::type_proto(&tensor.ty).filter(|_| !self.stated.contains_key(&*tensor.name));
            self.value_info.extend(ty.map(|ty| ValueInfoProto {
                name: tensor.name.clone(),
                type_: Some(ty).into(),
                ..ValueInfoProto::default()
            }));
        }
    }

    /// Takes the names of an op that fission made, and of its results. What makes a tensor whole again may have the name of it.
    fn claim_piece(&mut self, op: &'a Op) -> Result<(), OnnxError> {
        let is_of = |name: &str| op.parts.iter().flatten().any(|part| part.of == name);
        // The second pass of a normalization has the name of its last op, which is not written.
        let is_instead = is_streamed(op) && self.model.names.contains(&op.name);
        // What runs whole, and states what its node was told, has the name of that.
        let own = op.source.and_then(|source| self.model.names.get(source as usize));
        let is_first = own == Some(&op.name) && self.new_nodes.insert(&op.name);
        if !is_of(&op.name) && !is_instead && !is_first {
            claim(&op.name, &self.reserved, &mut self.new_nodes)?;
        }
        for result in op.results().filter(|&result| !is_of(&self.graph.tensors[result].name)) {
            claim(&self.graph.tensors[result].name, &self.reserved, &mut self.new_values)?;
        }
        Ok(())
    }

    /// The copy of the node that an op comes from.
    fn copied(&mut self, op: &'a Op) -> Result<NodeProto, OnnxError> {
        let main = self.model.proto.graph.get_or_default();
        let source = op.source.map(|source| source as usize);
        let source = source.filter(|&source| source < main.node.len());
        let source = source.ok_or_else(|| OnnxError::foreign(&op.name, "it names no node of the model"))?;
        let original = &main.node[source];
        let captures = &self.model.captures[source];
        if op.inputs.len() != original.input.len()
            || op.outputs.len() != original.output.len()
            || op.captures.len() != captures.len()
        {
            return Err(OnnxError::foreign(
                &op.name,
                "it has other operands or results than its node",
            ));
        }
        let is_copy = op.kind != OpKind::Compute;
        let is_tile = !op.parts.is_empty();
        let is_repeated = !is_copy && std::mem::replace(&mut self.written[source], true);
        if is_repeated && !is_tile {
            return Err(OnnxError::foreign(&op.name, "its node stands in the graph twice"));
        }
        let mut node = original.clone();
        node.input = self.names(&op.inputs);
        node.output = self.names(&op.outputs);
        let renamed = captures
            .iter()
            .zip(&op.captures)
            .map(|(old, &new)| (old.clone(), self.name(new).to_owned()));
        scope::rename_captures(&mut node, &renamed.filter(|(old, new)| old != new).collect());
        if is_tile {
            if (crate::opsets::domain(&node.domain), &node.op_type) != (&op.domain, &op.op_type) {
                return Err(OnnxError::foreign(&op.name, "its node is of another type"));
            }
            let version = opsets(&self.model.proto.opset_import).get("").copied();
            let unknown =
                |name: &str| OnnxError::foreign(&op.name, &format!("only the file could hold its attribute `{name}`"));
            attributes::change(&mut node, &op.attributes, version).map_err(unknown)?;
            return Ok(node);
        }
        if op.name != self.model.names[source] {
            claim(&op.name, &self.reserved, &mut self.new_nodes)?;
            node.name.clone_from(&op.name);
        }
        for (old, result) in original.output.iter().zip(&op.outputs) {
            let Some(result) = *result else { continue };
            if self.name(result) != old {
                claim(self.name(result), &self.reserved, &mut self.new_values)?;
                self.describe(old, self.name(result));
            } else if is_copy {
                return Err(OnnxError::foreign(
                    &op.name,
                    "its result has the name of the original's",
                ));
            }
        }
        Ok(node)
    }

    /// Lets something read the results of `op` that nobody reads, where the original's were read.
    fn add_sinks(&mut self, op: &Op, nodes: &mut Vec<NodeProto>) {
        let has_default_domain = self
            .model
            .proto
            .opset_import
            .iter()
            .any(|set| matches!(&*set.domain, "" | "ai.onnx"));
        if !has_default_domain {
            return;
        }
        for result in op.results().filter(|&result| !self.readers.has(result)) {
            let is_as_before = op.kind == OpKind::Compute && self.unread_before.contains(self.name(result));
            if is_as_before {
                continue;
            }
            let tensor = &self.graph.tensors[result];
            let taken = |name: &str| {
                self.reserved.contains(name) || self.new_values.contains(name) || self.sinks.contains(name)
            };
            let name = sink::name(&tensor.name, |name| !taken(name));
            if let Some(node) = sink::sink(&tensor.name, &tensor.ty, &name) {
                nodes.push(node);
                self.sinks.insert(name);
            }
        }
    }

    /// Gives the copy of a value what the model states about the original.
    fn describe(&mut self, original: &str, copy: &str) {
        if let Some(&stated) = self.stated.get(original) {
            self.value_info.push(ValueInfoProto {
                name: copy.to_owned(),
                ..stated.clone()
            });
        }
        if let Some(&annotated) = self.annotated.get(original) {
            self.annotations.push(TensorAnnotation {
                tensor_name: copy.to_owned(),
                ..annotated.clone()
            });
        }
    }
}
