//! From the file's graph to the [`Graph`] of the passes.

mod body;
mod formulas;

use std::collections::BTreeMap;
use std::rc::Rc;

use onnx_protobuf::{GraphProto, ModelProto, NodeProto};
use remat_ir::{Graph, GraphBuilder, OpKind, OpSpec, ResultSpec, TensorId, ValueType};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::effects::{self, Known};
use crate::external::{self, Folder};
use crate::functions::Functions;
use crate::opsets::{Opsets, domain, opsets};
use crate::order::stable_order;
use crate::shapes::{BodyTypes, Context, Inferred, infer};
use crate::types::dimension_names;
use crate::values::{Follows, Tensor};
use crate::{ImportOptions, OnnxError, alias, attributes, scope, sizes, tensor};

/// A graph, with what the exporter must know about each node of the file.
pub(crate) struct Imported {
    pub(crate) graph: Graph,
    /// By position of the node in the file: its name in the graph.
    pub(crate) names: Vec<String>,
    /// By position of the node in the file: the outer values its subgraphs read.
    pub(crate) captures: Vec<Vec<String>>,
}

/// A model read as far as its types: what the importer starts from.
struct Reading<'m> {
    graph: &'m GraphProto,
    names: Vec<String>,
    captures: Vec<Vec<&'m str>>,
    /// Positions of the nodes in reference order.
    order: Vec<u32>,
    functions: Functions<'m>,
    opsets: Opsets,
}

impl<'m> Reading<'m> {
    fn of(model: &'m ModelProto, folder: Option<&Folder>) -> Result<Self, OnnxError> {
        let Some(graph) = model.graph.as_ref() else {
            return Err(OnnxError::NotOnnx {
                offset: 0,
                why: "the model has no graph".to_owned(),
            });
        };
        let names = node_names(&graph.node);
        let captures: Vec<Vec<&str>> = graph.node.iter().map(scope::captures).collect();
        let definitions = definitions(graph, &names)?;
        for (node, name) in graph.node.iter().zip(&names) {
            check_subgraphs(node, name)?;
        }
        let reads_from = reads_from(graph, &names, &captures, &definitions)?;
        let order = stable_order(&reads_from).map_err(|cycle| {
            let nodes = cycle.into_iter().map(|node| names[node as usize].clone()).collect();
            OnnxError::Cycle { nodes }
        })?;
        for tensor in &graph.initializer {
            check_external(tensor, folder)?;
        }
        Ok(Self {
            graph,
            names,
            captures,
            order,
            functions: Functions::new(model)?,
            opsets: opsets(&model.opset_import),
        })
    }

    /// Types and values, with the caller's dimensions; for `sizes`, see [`Context`].
    fn infer(
        &self,
        model: &ModelProto,
        folder: Option<&Folder>,
        follows: Follows,
        options: &ImportOptions,
        sizes: Option<&BTreeMap<String, u64>>,
    ) -> Result<Inferred, OnnxError> {
        check_given(options)?;
        let context = Context {
            graph: self.graph,
            functions: &self.functions,
            opsets: &self.opsets,
            folder,
            given: &options.dims,
            follows,
            nodes: self
                .order
                .iter()
                .map(|&i| (&self.graph.node[i as usize], self.names[i as usize].as_str()))
                .collect(),
            sizes,
        };
        let inferred = infer(&context, dimension_names(model))?;
        match options.dims.keys().find(|name| !inferred.names.contains(*name)) {
            Some(name) => Err(OnnxError::UnknownDim {
                name: name.clone(),
                known: inferred.to_ask().into_iter().collect(),
            }),
            None => Ok(inferred),
        }
    }
}

/// The values of the main graph that are known before the model runs; see [`crate::OnnxModel::known_values`].
pub(crate) fn known_values(
    model: &ModelProto,
    folder: Option<&Folder>,
    options: &ImportOptions,
) -> Result<BTreeMap<String, Rc<Tensor>>, OnnxError> {
    Ok(Reading::of(model, folder)?
        .infer(model, folder, Follows::AtLoad, options, None)?
        .tensors)
}

/// Imports the main graph of `model`.
pub(crate) fn import(
    model: &ModelProto,
    folder: Option<&Folder>,
    follows: Follows,
    options: &ImportOptions,
) -> Result<Imported, OnnxError> {
    let reading = Reading::of(model, folder)?;
    let mut inferred = reading.infer(model, folder, follows, options, None)?;
    let mut formulas = None;
    if !options.dims.is_empty() {
        let open = ImportOptions {
            dims: BTreeMap::new(),
            ..options.clone()
        };
        let infer = |sizes| reading.infer(model, folder, follows, &open, sizes);
        let without = infer(None)?;
        inferred.free(&without);
        if inferred.inputs.is_empty() && !without.inputs.is_empty() {
            formulas = infer(Some(&options.dims))?.formulas;
        }
    }
    let bodies = Rc::new(std::mem::take(&mut inferred.bodies));
    let Reading {
        graph: proto,
        names,
        captures,
        order,
        functions,
        opsets,
    } = reading;
    let mut importer = Importer {
        builder: GraphBuilder::new(&proto.name),
        tensors: FxHashMap::default(),
        outputs: proto.output.iter().map(|o| o.name.as_str()).collect(),
        inferred,
        bodies,
        functions: &functions,
        opsets: &opsets,
        known: Known::of_graph(proto),
        options,
    };
    importer.sources(proto)?;
    for &index in &order {
        importer.node(
            &proto.node[index as usize],
            index,
            &names[index as usize],
            &captures[index as usize],
        )?;
    }
    let mut imported = importer.finish(proto, &names, captures)?;
    imported.graph.formulas = formulas.and_then(|(table, shapes)| formulas::checked(&imported.graph, table, shapes));
    Ok(imported)
}

fn check_given(options: &ImportOptions) -> Result<(), OnnxError> {
    match options.dims.iter().find(|&(_, &value)| i64::try_from(value).is_err()) {
        None => Ok(()),
        Some((name, value)) => Err(OnnxError::ShapeOverflow {
            node: "the caller".to_owned(),
            tensor: name.clone(),
            why: format!("{value} exceeds 63 bits"),
        }),
    }
}

fn check_external(tensor: &onnx_protobuf::TensorProto, folder: Option<&Folder>) -> Result<(), OnnxError> {
    if !external::is_external(tensor) {
        return Ok(());
    }
    let bytes = tensor::dense_type(tensor, "an initializer")?
        .bytes()
        .ok()
        .flatten()
        .unwrap_or(0);
    match folder {
        Some(folder) => folder.check(tensor, bytes),
        None => external::range(tensor).map(drop),
    }
}

/// Unique names: those of the file, `OPTYPE_INDEX` for unnamed nodes, a suffix for names that are taken.
fn node_names(nodes: &[NodeProto]) -> Vec<String> {
    let stated: FxHashSet<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
    let mut taken: FxHashSet<String> = FxHashSet::default();
    let mut names = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let base = if node.name.is_empty() {
            format!("{}_{index}", node.op_type)
        } else {
            node.name.clone()
        };
        let mut name = base.clone();
        let mut suffix = 1;
        while taken.contains(&name) || ((node.name.is_empty() || suffix > 1) && stated.contains(name.as_str())) {
            name = format!("{base}_{suffix}");
            suffix += 1;
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Who defines a value of the main graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Definition {
    Input,
    Initializer,
    Node(u32),
}

impl Definition {
    fn describe(self, names: &[String]) -> String {
        match self {
            Self::Input => "a graph input".to_owned(),
            Self::Initializer => "an initializer".to_owned(),
            Self::Node(index) => format!("node `{}`", names[index as usize]),
        }
    }
}

fn definitions<'m>(graph: &'m GraphProto, names: &[String]) -> Result<FxHashMap<&'m str, Definition>, OnnxError> {
    let mut found: FxHashMap<&str, Definition> = FxHashMap::default();
    let mut define = |name: &'m str, definition: Definition| match found.insert(name, definition) {
        // An initializer of the same name is the default of an input.
        None => Ok(()),
        Some(Definition::Input) if definition == Definition::Initializer => Ok(()),
        Some(first) => Err(OnnxError::DuplicateName {
            name: name.to_owned(),
            first: first.describe(names),
            second: definition.describe(names),
        }),
    };
    for input in &graph.input {
        define(&input.name, Definition::Input)?;
    }
    let sparse = graph
        .sparse_initializer
        .iter()
        .map(|t| t.values.as_ref().map_or("", |v| v.name.as_str()));
    for name in graph.initializer.iter().map(|t| t.name.as_str()).chain(sparse) {
        define(name, Definition::Initializer)?;
    }
    for (index, node) in (0_u32..).zip(&graph.node) {
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            define(output, Definition::Node(index))?;
        }
    }
    Ok(found)
}

/// Subgraphs define each name once, too; the default of an input stands apart.
fn check_subgraphs(node: &NodeProto, name: &str) -> Result<(), OnnxError> {
    for graph in attributes::subgraphs(node) {
        let inputs: FxHashSet<&str> = graph.input.iter().map(|i| i.name.as_str()).collect();
        let defaults = graph
            .initializer
            .iter()
            .filter(|t| inputs.contains(t.name.as_str()))
            .count();
        let mut seen = FxHashSet::default();
        let repeated: Vec<&str> = scope::defined(graph).filter(|name| !seen.insert(*name)).collect();
        if let Some(&repeated) = repeated.get(defaults) {
            let place = || format!("a subgraph of node `{name}`");
            return Err(OnnxError::DuplicateName {
                name: repeated.to_owned(),
                first: place(),
                second: place(),
            });
        }
        for inner in &graph.node {
            check_subgraphs(inner, name)?;
        }
    }
    Ok(())
}

/// For each node, the nodes whose outputs it or its subgraphs read.
fn reads_from(
    graph: &GraphProto,
    names: &[String],
    captures: &[Vec<&str>],
    definitions: &FxHashMap<&str, Definition>,
) -> Result<Vec<Vec<u32>>, OnnxError> {
    let mut all = Vec::with_capacity(graph.node.len());
    for (index, node) in graph.node.iter().enumerate() {
        let inputs = node.input.iter().map(String::as_str).filter(|name| !name.is_empty());
        let mut sources = Vec::new();
        for name in inputs.chain(captures[index].iter().copied()) {
            match definitions.get(name) {
                Some(Definition::Node(source)) => sources.push(*source),
                Some(Definition::Input | Definition::Initializer) => {}
                None => {
                    return Err(OnnxError::UndefinedInput {
                        node: names[index].clone(),
                        tensor: name.to_owned(),
                    });
                }
            }
        }
        all.push(sources);
    }
    Ok(all)
}

struct Importer<'m> {
    builder: GraphBuilder,
    tensors: FxHashMap<&'m str, TensorId>,
    outputs: FxHashSet<&'m str>,
    inferred: Inferred,
    bodies: Rc<BodyTypes>,
    functions: &'m Functions<'m>,
    opsets: &'m Opsets,
    known: Known<'m>,
    options: &'m ImportOptions,
}

impl<'m> Importer<'m> {
    /// Adds graph inputs and constants. An input with an initializer is a constant: the session holds its default.
    fn sources(&mut self, graph: &'m GraphProto) -> Result<(), OnnxError> {
        let sparse = graph
            .sparse_initializer
            .iter()
            .map(|t| t.values.as_ref().map_or("", |v| v.name.as_str()));
        let constants: Vec<&str> = graph
            .initializer
            .iter()
            .map(|t| t.name.as_str())
            .chain(sparse)
            .collect();
        let held: FxHashSet<&str> = constants.iter().copied().collect();
        for input in graph
            .input
            .iter()
            .map(|i| i.name.as_str())
            .filter(|name| !held.contains(name))
        {
            let ty = self.take_type(input);
            let id = self
                .builder
                .input(input, ty)
                .map_err(overflow("a graph input", input))?;
            self.tensors.insert(input, id);
        }
        for name in constants {
            let ty = self.take_type(name);
            let id = self
                .builder
                .constant(name, ty)
                .map_err(overflow("an initializer", name))?;
            self.tensors.insert(name, id);
        }
        Ok(())
    }

    fn take_type(&mut self, name: &str) -> ValueType {
        self.inferred.types.remove(name).unwrap_or(ValueType::Unknown)
    }

    fn node(&mut self, node: &'m NodeProto, index: u32, name: &str, captures: &[&str]) -> Result<(), OnnxError> {
        let inputs: Vec<Option<TensorId>> = node
            .input
            .iter()
            .map(|i| self.tensors.get(i.as_str()).copied())
            .collect();
        let function = self.functions.called(node);
        let effects = function.map_or_else(|| effects::of_operator(node, self.opsets, &self.known), |f| f.effects);
        let mut results = Vec::with_capacity(node.output.len());
        for (position, output) in node.output.iter().enumerate() {
            if output.is_empty() {
                results.push(None);
                continue;
            }
            let base = |place: usize| {
                let tensor = inputs.get(place).copied().flatten()?;
                Some((tensor, &self.builder.graph().tensors[tensor].ty))
            };
            let is_graph_output = self.outputs.contains(output.as_str());
            let placement = alias::placement(node, position, effects, base, is_graph_output, function.is_some());
            results.push(Some(ResultSpec {
                name: output.clone(),
                ty: self.take_type(output),
                placement,
            }));
        }
        let spec = OpSpec {
            name: name.to_owned(),
            kind: OpKind::Compute,
            domain: domain(&node.domain).to_owned(),
            op_type: node.op_type.clone(),
            captures: captures.iter().map(|name| self.tensors[name]).collect(),
            inputs,
            results,
            effects,
            attributes: attributes::to_graph(node, self.opsets.get("").copied()),
            source: Some(index),
            bodies: self.bodies(node),
            parts: Vec::new(),
        };
        let first = node.output.first().map_or("", String::as_str);
        let (op, outputs) = self
            .builder
            .op(spec)
            .map_err(overflow(&format!("node `{name}`"), first))?;
        for (output, id) in node.output.iter().zip(outputs) {
            if let Some(id) = id {
                self.tensors.insert(output, id);
            }
        }
        sizes::derive(&mut self.builder, op, &self.inferred);
        Ok(())
    }

    fn finish(
        mut self,
        graph: &'m GraphProto,
        names: &[String],
        captures: Vec<Vec<&str>>,
    ) -> Result<Imported, OnnxError> {
        for output in &graph.output {
            let Some(&id) = self.tensors.get(output.name.as_str()) else {
                return Err(OnnxError::UndefinedOutput {
                    tensor: output.name.clone(),
                });
            };
            self.builder.output(id);
        }
        sizes::settle(&mut self.builder, self.options, &self.inferred)?;
        Ok(Imported {
            graph: self.builder.finish(),
            names: names.to_vec(),
            captures: captures
                .into_iter()
                .map(|c| c.into_iter().map(str::to_owned).collect())
                .collect(),
        })
    }
}

fn overflow(node: &str, tensor: &str) -> impl FnOnce(remat_ir::SizeError) -> OnnxError {
    let (node, tensor) = (node.to_owned(), tensor.to_owned());
    move |error| OnnxError::ShapeOverflow {
        node,
        tensor,
        why: error.to_string(),
    }
}
