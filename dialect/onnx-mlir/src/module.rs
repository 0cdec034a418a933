//! The module around the graph.

use std::collections::BTreeMap;
use std::io::Write;

use remat_ir::Graph;
use remat_onnx::OnnxModel;

use crate::emit::{Emitter, Report, Value};
use crate::level::Level;
use crate::names::identifier;
use crate::parameters;
use crate::reads::Reads;
use crate::{Barriers, ExportError, Form, Options, text};

/// Writes `graph`, which is that of `model` or made of it by applying a plan, as a module.
///
/// The function has the graph's name (`main_graph` for onnx-mlir), its inputs and outputs in the same order.
/// Weights stand after the module or, with `parameters` (form `torch` only), in a safetensors file to which the module
/// refers as IREE does. Initializers that nobody reads are left out. Memory does not grow with the size of the weights.
///
/// # Errors
/// [`ExportError::Unsupported`] for what the form cannot say; [`ExportError::Onnx`] if values cannot be read; [`ExportError::Io`]. What
/// was written until then is not a module.
pub fn write(
    model: &OnnxModel,
    graph: &Graph,
    options: &Options,
    out: &mut dyn Write,
    parameters: Option<&mut dyn Write>,
) -> Result<Report, ExportError> {
    let mut emitter = Emitter::new(out, *options);
    emitter.resources.are_parameters = parameters.is_some();
    if parameters.is_some() && options.form != Form::Torch {
        return Err(emitter.unsupported("a weight", "it refers to no files; IREE does, by the form `torch`"));
    }
    emitter.module(model, graph)?;
    let (mut report, resources) = (emitter.report, emitter.resources);
    resources.write(model, out)?;
    if let Some(file) = parameters {
        parameters::write_file(&resources.parameters, model, file)?;
    }
    report.weights = resources.bytes();
    Ok(report)
}

impl Emitter<'_> {
    fn module(&mut self, model: &OnnxModel, graph: &Graph) -> Result<(), ExportError> {
        let mut level = Level::new(model, graph, String::new(), true);
        writeln!(self.out, "module {{")?;
        let name = match self.options.form {
            Form::OnnxMlir => "main_graph".to_owned(),
            Form::Torch | Form::Remat if graph.name.is_empty() => "main_graph".to_owned(),
            Form::Torch | Form::Remat => identifier(&graph.name),
        };
        self.resources.claim(&name);
        let is_onnx = self.options.form == Form::OnnxMlir;
        let onnx_name = |name: &str| {
            if is_onnx {
                format!(" {{onnx.name = {}}}", text::string(name.as_bytes()))
            } else {
                String::new()
            }
        };
        let mut arguments = Vec::with_capacity(graph.inputs.len());
        for &input in &graph.inputs {
            let tensor = &graph.tensors[input];
            let ty = self.type_of(&tensor.name, &tensor.ty)?;
            let value = self.value(&tensor.name, &ty);
            let location = text::string(tensor.name.as_bytes());
            arguments.push(format!(
                "{}: {ty}{} loc({location})",
                value.name,
                onnx_name(&tensor.name)
            ));
            level.bind(input, value);
        }
        let mut results = Vec::with_capacity(graph.outputs.len());
        let mut types = Vec::with_capacity(graph.outputs.len());
        for &output in &graph.outputs {
            let tensor = &graph.tensors[output];
            let ty = self.type_of(&tensor.name, &tensor.ty)?;
            results.push(format!("{ty}{}", onnx_name(&tensor.name)));
            types.push(ty);
        }
        let arguments = arguments.join(", ");
        write!(self.out, "  func.func @{name}({arguments}) -> ({})", results.join(", "))?;
        if self.options.form == Form::Torch {
            write!(self.out, " attributes {{{}}}", metadata(model))?;
        }
        writeln!(self.out, " {{")?;
        self.indent = 2;
        if self.options.form == Form::Torch && self.options.barriers == Barriers::Iree && Reads::has_plan(graph) {
            level.reads = Some(Reads::default());
        }
        self.block(&mut level)?;
        let mut returned = Vec::with_capacity(types.len());
        for (&output, ty) in graph.outputs.iter().zip(types) {
            let name = &graph.tensors[output].name;
            self.make_again(&mut level, output)?;
            let value = level.get(output).cloned();
            let value = value.ok_or_else(|| self.unsupported(&format!("output `{name}`"), "nothing defines it"))?;
            returned.push(if value.ty == ty {
                value
            } else {
                self.cast(&value, &ty, name)?
            });
        }
        if is_onnx {
            self.generic_terminator("onnx.Return", &returned)?;
        } else {
            self.terminator("return", &returned)?;
        }
        write!(self.out, "  }}")?;
        self.end(&graph.name)?;
        self.globals()?;
        if is_onnx {
            writeln!(self.out, "  \"onnx.EntryPoint\"() {{func = @main_graph}} : () -> ()")?;
        }
        writeln!(self.out, "}}")?;
        Ok(())
    }

    /// The same value with as much of its type as the signature states. The body of a function knows more than its call, or less.
    fn cast(&mut self, value: &Value, ty: &str, location: &str) -> Result<Value, ExportError> {
        let cast = self.value(location, ty);
        let op = match self.options.form {
            Form::Torch => "torch.tensor_static_info_cast",
            Form::OnnxMlir | Form::Remat => "tensor.cast",
        };
        self.begin()?;
        write!(self.out, "{} = {op} {} : {} to {ty}", cast.name, value.name, value.ty)?;
        self.end(location)?;
        Ok(cast)
    }
}

/// What torch-mlir reads about the model: operators mean what their set says.
fn metadata(model: &OnnxModel) -> String {
    let proto = model.proto();
    let mut others = BTreeMap::new();
    let mut version = 1;
    for set in &proto.opset_import {
        match &*set.domain {
            "" | "ai.onnx" => version = set.version,
            domain => _ = others.insert(domain, set.version),
        }
    }
    let mut attributes = vec![
        format!("torch.onnx_meta.ir_version = {} : si64", proto.ir_version),
        format!("torch.onnx_meta.opset_version = {version} : si64"),
    ];
    if !others.is_empty() {
        let others = others.iter().map(|(domain, version)| {
            let domain = text::string(domain.as_bytes());
            format!("{domain} = {version} : si64")
        });
        let others: Vec<String> = others.collect();
        attributes.push(format!("torch.onnx_meta.opset_versions = {{{}}}", others.join(", ")));
    }
    for (key, value) in [("name", &proto.producer_name), ("version", &proto.producer_version)] {
        let value = text::string(value.as_bytes());
        attributes.push(format!("torch.onnx_meta.producer_{key} = {value}"));
    }
    attributes.join(", ")
}
