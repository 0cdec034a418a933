//! ONNX models with fewer nodes. What nodes that are left out computed becomes an input of the graph.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::bail;
use remat::onnx::proto::{Message, ModelProto, TypeProto, ValueInfoProto, tensor_proto};
use remat::onnx::{ImportOptions, OnnxModel, captures, type_proto};

use super::{Subject, outside};

/// A model, and the types of all values of its graph that are known.
#[derive(Clone)]
pub(crate) struct OnnxSubject {
    model: ModelProto,
    types: BTreeMap<String, TypeProto>,
}

/// Positions in [`Subject::KINDS`].
const NODES: usize = 0;
const OUTPUTS: usize = 1;
const FUNCTIONS: usize = 2;

impl OnnxSubject {
    /// A model whose weights lie within the file. Where it does not import, only the types that it states are known.
    pub(crate) fn new(bytes: &[u8]) -> anyhow::Result<Self> {
        let model = ModelProto::parse_from_bytes(bytes)?;
        let graph = model.graph.get_or_default();
        let is_external = |tensor: &remat::onnx::proto::TensorProto| {
            tensor.data_location == tensor_proto::DataLocation::EXTERNAL.into()
        };
        if let Some(weight) = graph.initializer.iter().find(|tensor| is_external(tensor)) {
            bail!(
                "`{}` lies in another file, which candidates would lack: save the model with its weights inside",
                weight.name
            );
        }
        let mut types = BTreeMap::new();
        let options = ImportOptions {
            open_sizes: true,
            ..ImportOptions::default()
        };
        if let Ok(imported) = OnnxModel::from_proto(model.clone(), &options) {
            let tensors = imported.graph().tensors.iter();
            types.extend(tensors.filter_map(|tensor| Some((tensor.name.clone(), type_proto(&tensor.ty)?))));
        }
        let stated = graph.value_info.iter().chain(&graph.output).chain(&graph.input);
        types.extend(stated.filter_map(|value| Some((value.name.clone(), value.type_.as_ref()?.clone()))));
        Ok(Self { model, types })
    }

    /// Declares what is read and not defined, and takes out what nobody reads.
    fn close(&mut self) {
        let graph = self.model.graph.mut_or_insert_default();
        let mut read: Vec<String> = Vec::new();
        let mut made: BTreeSet<String> = BTreeSet::new();
        for node in &graph.node {
            read.extend(node.input.iter().filter(|name| !name.is_empty()).cloned());
            read.extend(captures(node).into_iter().map(str::to_owned));
            made.extend(node.output.iter().cloned());
        }
        read.extend(graph.output.iter().map(|output| output.name.clone()));
        let wanted: BTreeSet<&str> = read.iter().map(String::as_str).collect();
        graph.input.retain(|input| wanted.contains(input.name.as_str()));
        graph.initializer.retain(|tensor| wanted.contains(tensor.name.as_str()));
        graph
            .sparse_initializer
            .retain(|tensor| wanted.contains(tensor.values.get_or_default().name.as_str()));
        graph.value_info.retain(|value| made.contains(&value.name));
        made.extend(graph.input.iter().map(|input| input.name.clone()));
        made.extend(graph.initializer.iter().map(|tensor| tensor.name.clone()));
        let sparse = graph.sparse_initializer.iter();
        made.extend(sparse.map(|tensor| tensor.values.get_or_default().name.clone()));
        for name in read {
            if made.insert(name.clone()) {
                graph.input.push(ValueInfoProto {
                    type_: self.types.get(&name).cloned().into(),
                    name,
                    ..ValueInfoProto::default()
                });
            }
        }
    }
}

impl Subject for OnnxSubject {
    const KINDS: &'static [&'static str] = &["nodes", "outputs", "functions", "stated types"];

    fn count(&self, kind: usize) -> usize {
        let graph = self.model.graph.get_or_default();
        match kind {
            NODES => graph.node.len(),
            OUTPUTS => graph.output.len(),
            FUNCTIONS => self.model.functions.len(),
            _ => graph.value_info.len(),
        }
    }

    fn without(&self, kind: usize, parts: Range<usize>) -> Option<Self> {
        let mut reduced = self.clone();
        let graph = reduced.model.graph.mut_or_insert_default();
        match kind {
            NODES => graph.node = outside(&graph.node, &parts),
            OUTPUTS => graph.output = outside(&graph.output, &parts),
            FUNCTIONS => reduced.model.functions = outside(&self.model.functions, &parts),
            _ => graph.value_info = outside(&graph.value_info, &parts),
        }
        reduced.close();
        Some(reduced)
    }

    fn numbers(&mut self) -> Vec<&mut u64> {
        Vec::new()
    }

    fn is_valid(&self) -> bool {
        true
    }

    fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        Ok(self.model.write_to_bytes()?)
    }
}
