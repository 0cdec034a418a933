//! Graphs inside nodes: subgraphs as regions, functions of the model inlined where they are called.
//!
//! A body is turned into a model of its own, with the values it reads from outside as inputs of known type. So its types are inferred
//! as those of the main graph are.

use std::collections::BTreeMap;

use remat_ir::{Op, ValueType};
use remat_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
};
use remat_onnx::{ImportOptions, OnnxModel, type_proto};

use crate::emit::{Emitter, Value};
use crate::level::Level;
use crate::{ExportError, Form};

/// Bodies stand inside each other this deep.
const MAX_DEPTH: usize = 64;

/// A value that a body sees from outside.
pub(crate) struct Outer<'m> {
    value: Value,
    ty: ValueType,
    /// Its content, where it is a constant.
    constant: Option<&'m TensorProto>,
}

/// The outer values that the subgraphs of an op read, by the names they have inside.
pub(crate) fn visible<'m>(level: &Level<'m>, op: &Op, node: &NodeProto) -> BTreeMap<String, Outer<'m>> {
    let names = remat_onnx::captures(node);
    let found = names.into_iter().zip(&op.captures).filter_map(|(name, &tensor)| {
        let outer = Outer {
            value: level.get(tensor)?.clone(),
            ty: level.graph.tensors[tensor].ty.clone(),
            constant: level.initializer(&level.graph.tensors[tensor].name),
        };
        Some((name.to_owned(), outer))
    });
    found.collect()
}

/// The function of the model that a node calls.
pub(crate) fn function<'m>(model: &'m OnnxModel, node: &NodeProto) -> Option<&'m FunctionProto> {
    let domain = |text: &str| {
        if text == "ai.onnx" {
            String::new()
        } else {
            text.to_owned()
        }
    };
    let mut functions = model.proto().functions.iter();
    functions.find(|function| {
        function.name == node.op_type
            && function.overload == node.overload
            && domain(&function.domain) == domain(&node.domain)
    })
}

impl Emitter<'_> {
    /// Writes a subgraph as a region without its braces.
    ///
    /// # Errors
    /// [`ExportError`] of what stands inside.
    pub(crate) fn region(
        &mut self,
        model: &OnnxModel,
        graph: &GraphProto,
        outer: &BTreeMap<String, Outer<'_>>,
        path: &str,
    ) -> Result<(), ExportError> {
        let mut body = graph.clone();
        let formal: Vec<String> = body.input.iter().map(|input| input.name.clone()).collect();
        for (name, outer) in outer {
            if formal.contains(name) {
                continue;
            }
            match outer.constant.filter(|tensor| is_small(tensor)) {
                Some(constant) => body.initializer.push(TensorProto {
                    name: name.clone(),
                    ..constant.clone()
                }),
                None => body.input.push(value_info(name, &outer.ty)),
            }
        }
        let body = self.body(model, body, &model.proto().opset_import, path)?;
        let mut level = Level::new(&body, body.graph(), path.to_owned(), false);
        let sources: Vec<_> = level.sources().collect();
        for &(name, id) in &sources {
            if let Some(outer) = outer.get(name).filter(|_| !formal.iter().any(|f| f == name)) {
                level.bind(id, outer.value.clone());
            }
        }
        let mut arguments = Vec::new();
        for name in &formal {
            let Some(&(_, id)) = sources.iter().find(|(source, _)| source == name) else {
                continue;
            };
            let ty = self.type_of(name, &body.graph().tensors[id].ty)?;
            let value = self.value(name, &ty);
            arguments.push(format!("{}: {ty}", value.name));
            level.bind(id, value);
        }
        if !arguments.is_empty() {
            self.indent -= 1;
            self.begin()?;
            writeln!(self.out, "^bb0({}):", arguments.join(", "))?;
            self.indent += 1;
        }
        self.depth += 1;
        self.block(&mut level)?;
        self.depth -= 1;
        let results = body
            .graph()
            .outputs
            .iter()
            .filter_map(|&tensor| level.get(tensor).cloned());
        let results: Vec<Value> = results.collect();
        match self.options.form {
            Form::Torch => self.terminator("torch.operator_terminator", &results),
            Form::OnnxMlir | Form::Remat => self.generic_terminator("onnx.Yield", &results),
        }
    }

    /// Writes the body of a function in place of its call.
    ///
    /// # Errors
    /// [`ExportError`] of what stands inside.
    pub(crate) fn call(
        &mut self,
        level: &mut Level<'_>,
        op: &Op,
        node: &NodeProto,
        function: &FunctionProto,
        operands: &[Option<Value>],
        place: &str,
    ) -> Result<(), ExportError> {
        let path = format!("{}{}/", level.path, op.name);
        let versions = |imports: &[OperatorSetIdProto]| {
            let mut default = imports.iter().filter(|set| matches!(&*set.domain, "" | "ai.onnx"));
            default.next().map(|set| set.version)
        };
        let (inner, outer) = (
            versions(&function.opset_import),
            versions(&level.model.proto().opset_import),
        );
        if let (Some(inner), Some(outer)) = (inner, outer)
            && inner != outer
        {
            let why = format!("its function is of operator set {inner}, the module is of {outer}");
            return Err(self.unsupported(place, why));
        }
        let mut body = GraphProto {
            name: function.name.clone(),
            output: function.output.iter().map(|name| named(name)).collect(),
            ..GraphProto::default()
        };
        let absent: Vec<&str> = (function.input.iter().enumerate())
            .filter(|(index, _)| !matches!(operands.get(*index), Some(Some(_))))
            .map(|(_, name)| name.as_str())
            .collect();
        for (name, input) in function.input.iter().zip(&op.inputs) {
            if let Some(tensor) = *input {
                body.input.push(value_info(name, &level.graph.tensors[tensor].ty));
            }
        }
        body.node = function
            .node
            .iter()
            .map(|inner| bound(inner, node, function, &absent))
            .collect();
        let body = self.body(level.model, body, &function.opset_import, &path)?;
        let mut inner = Level::new(&body, body.graph(), path, false);
        let sources: Vec<_> = inner.sources().collect();
        for (name, value) in function.input.iter().zip(operands) {
            let source = sources.iter().find(|(source, _)| source == name);
            if let (Some(&(_, id)), Some(value)) = (source, value) {
                inner.bind(id, value.clone());
            }
        }
        self.depth += 1;
        self.block(&mut inner)?;
        self.depth -= 1;
        for (&result, &tensor) in op.outputs.iter().zip(&body.graph().outputs) {
            if let (Some(result), Some(value)) = (result, inner.get(tensor)) {
                level.bind(result, value.clone());
            }
        }
        Ok(())
    }

    /// A graph as a model of its own, its types inferred.
    fn body(
        &self,
        model: &OnnxModel,
        graph: GraphProto,
        opsets: &[OperatorSetIdProto],
        path: &str,
    ) -> Result<OnnxModel, ExportError> {
        if self.depth > MAX_DEPTH {
            return Err(self.unsupported(path, format!("bodies stand in each other deeper than {MAX_DEPTH}")));
        }
        let proto = ModelProto {
            ir_version: model.proto().ir_version,
            opset_import: opsets.to_vec(),
            functions: model.proto().functions.clone(),
            graph: Some(graph).into(),
            ..ModelProto::default()
        };
        let options = ImportOptions {
            open_sizes: true,
            ..ImportOptions::default()
        };
        Ok(OnnxModel::from_proto(proto, &options)?)
    }
}

/// Whether a constant may decide shapes, and is cheap to copy.
fn is_small(tensor: &TensorProto) -> bool {
    let elements = tensor
        .dims
        .iter()
        .try_fold(1_i64, |product, &dim| product.checked_mul(dim));
    elements.is_some_and(|elements| elements <= 1024) && tensor.external_data.is_empty()
}

fn named(name: &str) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        ..ValueInfoProto::default()
    }
}

fn value_info(name: &str, ty: &ValueType) -> ValueInfoProto {
    ValueInfoProto {
        type_: type_proto(ty).into(),
        ..named(name)
    }
}

/// A node of a function's body with the attributes of the call, and without operands that the call leaves out.
fn bound(inner: &NodeProto, call: &NodeProto, function: &FunctionProto, absent: &[&str]) -> NodeProto {
    let mut node = inner.clone();
    for input in &mut node.input {
        if absent.contains(&input.as_str()) {
            input.clear();
        }
    }
    let attributes = std::mem::take(&mut node.attribute);
    node.attribute = attributes
        .into_iter()
        .filter_map(|a| bound_attribute(a, call, function, absent))
        .collect();
    node
}

fn bound_attribute(
    mut attribute: AttributeProto,
    call: &NodeProto,
    function: &FunctionProto,
    absent: &[&str],
) -> Option<AttributeProto> {
    if attribute.ref_attr_name.is_empty() {
        let graphs = attribute.g.0.as_deref_mut().into_iter().chain(&mut attribute.graphs);
        for graph in graphs {
            for node in &mut graph.node {
                *node = bound(node, call, function, absent);
            }
        }
        return Some(attribute);
    }
    let mut given = call.attribute.iter().chain(&function.attribute_proto);
    let value = given.find(|given| given.name == attribute.ref_attr_name)?;
    Some(AttributeProto {
        name: attribute.name,
        ..value.clone()
    })
}
