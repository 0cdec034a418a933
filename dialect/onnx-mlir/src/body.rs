//! The ops of a graph: the main one, the body of a subgraph, the body of a function.

use remat_ir::{Op, OpId, OpKind, StorageClass, TensorId};
use remat_onnx::proto::NodeProto;
use remat_operators::operator;
use rustc_hash::FxHashMap;

use crate::attribute::{Extra, is_graph};
use crate::emit::{Emitter, Head, Part, Value};
use crate::level::Level;
use crate::resource::Weight;
use crate::{ExportError, Form, call};

/// Ops that are written at most: functions that call each other can unfold to exponentially many.
const MAX_OPS: u64 = 1 << 22;

impl<'w> Emitter<'w> {
    /// Writes the constants that somebody reads and all ops.
    ///
    /// # Errors
    /// [`ExportError`] for what the form cannot say.
    pub(crate) fn block(&mut self, level: &mut Level<'_>) -> Result<(), ExportError> {
        self.constants(level)?;
        for id in level.graph.ops.keys() {
            self.operation(level, id)?;
        }
        Ok(())
    }

    fn constants(&mut self, level: &mut Level<'_>) -> Result<(), ExportError> {
        let graph = level.graph;
        let mut is_read: FxHashMap<TensorId, ()> = graph.outputs.iter().map(|&tensor| (tensor, ())).collect();
        is_read.extend(graph.ops.iter().flat_map(Op::reads).map(|tensor| (tensor, ())));
        let initializers = &level.model.proto().graph.get_or_default().initializer;
        let by_name: FxHashMap<&str, usize> = initializers
            .iter()
            .enumerate()
            .map(|(index, tensor)| (tensor.name.as_str(), index))
            .collect();
        for (name, id) in level.sources() {
            let storage = &graph.storages[graph.tensors[id].storage];
            let is_wanted = storage.class == StorageClass::Constant && is_read.contains_key(&id);
            if !is_wanted || level.get(id).is_some() {
                continue;
            }
            let place = format!("initializer `{name}`");
            let Some(&index) = by_name.get(name) else {
                return Err(self.unsupported(&place, "it has no sparse tensors"));
            };
            let weight = level.is_main.then_some(Weight::Initializer(index));
            let location = format!("{}{name}", level.path);
            let value = self.constant(level.model, &initializers[index], (name, &location), &place, weight)?;
            level.bind(id, value);
        }
        Ok(())
    }

    pub(crate) fn operation(&mut self, level: &mut Level<'_>, id: OpId) -> Result<(), ExportError> {
        let op = &level.graph.ops[id];
        if !op.kind.is_run() {
            return self.memory(level, op);
        }
        for tensor in op.reads() {
            self.make_again(level, tensor)?;
        }
        let place = format!("node `{}{}`", level.path, op.name);
        let node = level
            .node(op)
            .ok_or_else(|| self.unsupported(&place, "it stems from no node of the model"))?;
        let mut operands = Vec::with_capacity(op.inputs.len());
        for &input in &op.inputs {
            operands.push(match input {
                None => None,
                Some(tensor) => Some(self.read(level, tensor, &place)?),
            });
        }
        self.report.ops += 1;
        if self.report.ops > MAX_OPS {
            return Err(self.unsupported(&place, format!("functions unfold to more than {MAX_OPS} ops")));
        }
        let mut recompute = None;
        if let OpKind::Recompute { .. } = op.kind {
            self.report.recomputes += 1;
            recompute = Some(self.report.recomputes);
        }
        self.barriers(level, op, &mut operands)?;
        if let Some(function) = call::function(level.model, node) {
            return self.call(level, op, node, function, &operands, &place);
        }
        if node.op_type == "Constant" && matches!(&*node.domain, "" | "ai.onnx") {
            return self.constant_node(level, op, node, &place);
        }
        self.node(level, op, node, &operands, recompute, &place)
    }

    fn read(&self, level: &Level<'_>, tensor: TensorId, place: &str) -> Result<Value, ExportError> {
        let found = level.get(tensor).cloned();
        found.ok_or_else(|| self.unsupported(place, format!("`{}` is not in memory before it", level.name(tensor))))
    }

    fn node(
        &mut self,
        level: &mut Level<'_>,
        op: &Op,
        node: &NodeProto,
        operands: &[Option<Value>],
        recompute: Option<u64>,
        place: &str,
    ) -> Result<(), ExportError> {
        let form = self.options.form;
        let is_default = matches!(&*node.domain, "" | "ai.onnx");
        let (mut inputs, mut outputs) = (trimmed(operands), trimmed(&op.outputs));
        if form == Form::OnnxMlir && is_default {
            let (all_inputs, all_outputs) = operator(&node.domain, &node.op_type).slots;
            inputs = inputs.max(all_inputs);
            outputs = outputs.max(all_outputs);
        }
        let mut values = Vec::with_capacity(inputs);
        for index in 0..inputs {
            values.push(match operands.get(index).cloned().flatten() {
                Some(value) => value,
                None => self.none(level)?,
            });
        }
        let mut results = Vec::with_capacity(outputs);
        for index in 0..outputs {
            results.push(match op.outputs.get(index).copied().flatten() {
                Some(tensor) => self.type_of(level.name(tensor), &level.graph.tensors[tensor].ty)?,
                None => if form == Form::Torch { "!torch.none" } else { "none" }.into(),
            });
        }
        let location = format!("{}{}", level.path, op.name);
        let first = op.results().next().map_or(&*op.name, |tensor| level.name(tensor));
        let name = match form {
            Form::OnnxMlir if !is_default => "onnx.Custom".to_owned(),
            Form::Remat if !is_default => format!("{}.{}", node.domain, node.op_type),
            _ => format!("onnx.{}", node.op_type),
        };
        let mut extra: Vec<Extra<'_>> = Vec::new();
        if form == Form::OnnxMlir {
            if !is_default {
                extra.push(("function_name", crate::text::string(node.op_type.as_bytes())));
                extra.push(("domain_name", crate::text::string(node.domain.as_bytes())));
            }
            extra.push(("onnx_node_name", crate::text::string(location.as_bytes())));
            extra.extend(recompute.map(|id| ("remat.recompute", format!("{id} : i64"))));
        }
        let mut graphs: Vec<_> = node.attribute.iter().filter(|a| is_graph(a)).collect();
        // torch-mlir finds a region by the place of its attribute's name in alphabetical order; onnx-mlir declares then before else.
        if form == Form::Torch {
            graphs.sort_by(|a, b| a.name.cmp(&b.name));
        } else {
            graphs.sort_by(|a, b| b.name.cmp(&a.name));
        }
        let outer = call::visible(level, op, node);
        let path = format!("{location}/");
        let mut writers: Vec<_> = graphs
            .iter()
            .map(|attribute| {
                let (outer, path, model) = (&outer, &path, level.model);
                move |emitter: &mut Emitter<'w>| emitter.region(model, attribute.g.get_or_default(), outer, path)
            })
            .collect();
        let mut regions: Vec<Part<'_, 'w>> = Vec::with_capacity(writers.len());
        for writer in &mut writers {
            regions.push(writer);
        }
        let model = level.model;
        let mut attributes = |emitter: &mut Emitter<'w>| emitter.attributes(model, &extra, &node.attribute, place);
        let has_attributes = !extra.is_empty() || node.attribute.iter().any(|a| !is_graph(a));
        let attributes: Option<Part<'_, 'w>> = if has_attributes { Some(&mut attributes) } else { None };
        let head = Head {
            name: &name,
            operands: &values,
            results: &results,
            called: first,
            location: &location,
        };
        let written = self.op(&head, attributes, &mut regions)?;
        for (tensor, value) in op.outputs.iter().zip(written) {
            if let Some(tensor) = *tensor {
                level.bind(tensor, value);
            }
        }
        Ok(())
    }

    /// The value that stands for what is left out, written once in each block.
    fn none(&mut self, level: &mut Level<'_>) -> Result<Value, ExportError> {
        if let Some(value) = &level.none {
            return Ok(value.clone());
        }
        let is_torch = self.options.form == Form::Torch;
        let value = self.value("none", if is_torch { "!torch.none" } else { "none" });
        self.begin()?;
        if is_torch {
            writeln!(self.out, "{} = torch.constant.none", value.name)?;
        } else {
            writeln!(self.out, "{} = \"onnx.NoValue\"() {{value}} : () -> none", value.name)?;
        }
        level.none = Some(value.clone());
        Ok(value)
    }
}

/// The length without what is left out at the end.
fn trimmed<T>(list: &[Option<T>]) -> usize {
    list.iter().rposition(Option::is_some).map_or(0, |last| last + 1)
}
