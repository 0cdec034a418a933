//! Subgraphs of nodes as models of their own, and back into the model they come from.
//!
//! What a subgraph reads from outside are inputs of its model, after those of its own; constants are initializers. So a subgraph is imported,
//! planned and written like any other graph. Names are those of the whole model: none that is new hides one from outside.

use std::cell::RefCell;
use std::collections::BTreeMap;

use onnx_protobuf::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use remat_ir::{Body, Dim, OpId, StorageClass, Tensor, TensorId, ValueType};
use rustc_hash::FxHashSet;

use crate::attributes::attribute;
use crate::external::Folder;
use crate::proto_type::type_proto;
use crate::scope::free_names;
use crate::values::Follows;
use crate::{ImportOptions, OnnxError, OnnxModel};

impl OnnxModel {
    /// A subgraph of an op as a model: `place` is that in the op's list of bodies. Values have the types that they have in this model.
    ///
    /// # Errors
    /// [`OnnxError::Foreign`] if the op has no such subgraph; those of [`OnnxModel::from_proto`].
    pub fn body(&self, op: OpId, place: usize) -> Result<Self, OnnxError> {
        let (body, proto) = self.found_body(op, place)?;
        let mut graph = proto.clone();
        let graph_of = &body.graph;
        let dims = RefCell::new(BTreeMap::new());
        let stated = |tensor: TensorId| {
            let tensor = &graph_of.tensors[tensor];
            let ty = with_named_dims(tensor, &mut dims.borrow_mut());
            Some(ValueInfoProto {
                name: tensor.name.clone(),
                type_: Some(type_proto(&ty)?).into(),
                ..ValueInfoProto::default()
            })
        };
        let inputs = graph_of.inputs.iter().filter_map(|&input| stated(input));
        let known: Vec<ValueInfoProto> = inputs.collect();
        let own: FxHashSet<&str> = proto.input.iter().map(|input| input.name.as_str()).collect();
        for input in &mut graph.input {
            if let Some(known) = known.iter().find(|known| known.name == input.name) {
                input.type_.clone_from(&known.type_);
            }
        }
        let from_outside = known.iter().filter(|value| !own.contains(value.name.as_str()));
        graph.input.extend(from_outside.cloned());
        graph.initializer.extend(self.constants_of(body, proto));
        let made = graph_of
            .tensors
            .keys()
            .filter(|&id| graph_of.tensors[id].producer.is_some());
        let made: Vec<ValueInfoProto> = made.filter_map(stated).collect();
        for output in &mut graph.output {
            if let Some(known) = made.iter().find(|known| known.name == output.name) {
                output.type_.clone_from(&known.type_);
            }
        }
        let outputs: FxHashSet<&str> = proto.output.iter().map(|output| output.name.as_str()).collect();
        graph.value_info = made;
        graph.value_info.retain(|value| !outputs.contains(value.name.as_str()));
        let model = ModelProto {
            ir_version: self.proto.ir_version,
            opset_import: self.proto.opset_import.clone(),
            functions: self.proto.functions.clone(),
            graph: Some(graph).into(),
            ..ModelProto::default()
        };
        let folder = self.folder.as_ref().map(Folder::again);
        let options = ImportOptions {
            dims: dims.into_inner(),
            ..ImportOptions::default()
        };
        let mut model = Self::finish(model, folder, None, Follows::All, &options)?;
        model.outer_names = self.reserved_names().into_iter().map(str::to_owned).collect();
        Ok(model)
    }

    /// This model with `written`, which was made of [`OnnxModel::body`], in the place of that subgraph.
    ///
    /// # Errors
    /// As [`OnnxModel::body`].
    pub fn with_body(
        &self,
        op: OpId,
        place: usize,
        written: &GraphProto,
        options: &ImportOptions,
    ) -> Result<Self, OnnxError> {
        let (body, before) = self.found_body(op, place)?;
        let outside: FxHashSet<&str> = free_names(before).into_iter().collect();
        let mut graph = written.clone();
        graph.input.clone_from(&before.input);
        graph.output.clone_from(&before.output);
        graph.value_info.clone_from(&before.value_info);
        graph
            .initializer
            .retain(|tensor| !outside.contains(tensor.name.as_str()));
        let mut proto = self.proto.clone();
        let source = self.source_of(op)?;
        let node = &mut proto.graph.mut_or_insert_default().node[source];
        if let Some(held) = node.attribute.iter_mut().find(|held| held.name == body.name) {
            held.g = Some(graph).into();
        }
        let folder = self.folder.as_ref().map(Folder::again);
        let mut model = Self::finish(proto, folder, self.path.as_deref(), Follows::All, options)?;
        model.outer_names.clone_from(&self.outer_names);
        Ok(model)
    }

    fn source_of(&self, op: OpId) -> Result<usize, OnnxError> {
        let entry = &self.graph.ops[op];
        let source = entry.source.map(|source| source as usize);
        let nodes = self.proto.graph.get_or_default().node.len();
        let source = source.filter(|&source| source < nodes);
        source.ok_or_else(|| OnnxError::foreign(&entry.name, "it names no node of the model"))
    }

    fn found_body(&self, op: OpId, place: usize) -> Result<(&Body, &GraphProto), OnnxError> {
        let node = &self.proto.graph.get_or_default().node[self.source_of(op)?];
        let body = self.graph.ops[op].bodies.get(place);
        let found = body.and_then(|body| Some((body, attribute(node, &body.name)?.g.as_ref()?)));
        found.ok_or_else(|| OnnxError::foreign(&self.graph.ops[op].name, "it has no such subgraph"))
    }

    /// The constants that a subgraph reads from outside.
    fn constants_of<'m>(&'m self, body: &'m Body, proto: &'m GraphProto) -> impl Iterator<Item = TensorProto> + 'm {
        let main = self.proto.graph.get_or_default();
        let outside: FxHashSet<&str> = free_names(proto).into_iter().collect();
        let is_constant = |id: &TensorId| {
            let tensor = &body.graph.tensors[*id];
            tensor.producer.is_none() && body.graph.storages[tensor.storage].class == StorageClass::Constant
        };
        let names = body.graph.tensors.keys().filter(is_constant);
        let names = names.map(|id| body.graph.tensors[id].name.as_str());
        let found = |name: &str| {
            let held = main.initializer.iter().find(|tensor| tensor.name == name);
            let makes = |node: &&NodeProto| node.op_type == "Constant" && node.output.iter().any(|made| made == name);
            let made = || attribute(main.node.iter().find(makes)?, "value")?.t.as_ref();
            let tensor = held.or_else(made)?;
            Some(TensorProto {
                name: name.to_owned(),
                ..tensor.clone()
            })
        };
        names.filter(move |name| outside.contains(name)).filter_map(found)
    }
}

/// The type of a value with a name for each dimension that is free, and what it is given for, in `dims`.
fn with_named_dims(tensor: &Tensor, dims: &mut BTreeMap<String, u64>) -> ValueType {
    let mut ty = tensor.ty.clone();
    if let ValueType::Tensor { shape: Some(shape), .. } = &mut ty {
        for (axis, dim) in shape.iter_mut().enumerate() {
            if let Dim::Free { size, name } = dim {
                let name = name.get_or_insert_with(|| format!("{}[{axis}]", tensor.name));
                dims.insert(name.clone(), *size);
            }
        }
    }
    ty
}
