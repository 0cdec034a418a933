//! What marks a recompute, and where memory is given up.

use remat_ir::{Op, StorageClass, ValueType};

use crate::body::Level;
use crate::emit::{Emitter, Value};
use crate::{ExportError, Fences, Form, text, types};

impl Emitter<'_> {
    /// Puts a fence before an operand of a recompute, so that nobody merges it with the op `of` that it repeats.
    ///
    /// The operand is the first ranked tensor that is no constant: compilers fold constants, and look for them. An op without such an
    /// operand stays unfenced; it makes constants, which compilers handle as such.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn fence(
        &mut self,
        level: &Level<'_>,
        op: &Op,
        operands: &mut [Option<Value>],
        of: &str,
    ) -> Result<(), ExportError> {
        let graph = level.graph;
        let found = op.inputs.iter().position(|input| {
            input.is_some_and(|tensor| {
                let tensor = &graph.tensors[tensor];
                let is_constant = graph.storages[tensor.storage].class == StorageClass::Constant
                    || tensor.producer.is_some_and(|producer| graph.ops[producer].op_type == "Constant");
                !is_constant && matches!(tensor.ty, ValueType::Tensor { shape: Some(_), .. })
            })
        });
        let Some((value, tensor)) = found.and_then(|at| Some((operands.get_mut(at)?.as_mut()?, op.inputs[at]?))) else {
            return Ok(());
        };
        match (self.options.form, self.options.fences) {
            (Form::Remat, _) => {
                let fenced = self.value(&graph.tensors[tensor].name, &value.ty);
                let (id, of) = (self.report.fences, text::string(of.as_bytes()));
                self.begin()?;
                write!(self.out, "{} = remat.recompute {} id({id}) of({of}) : {}", fenced.name, value.name, value.ty)?;
                self.end(&op.name)?;
                *value = fenced;
                self.report.fences += 1;
            }
            (Form::Torch, Fences::Iree) => {
                *value = self.iree_fence(value, &graph.tensors[tensor].ty, &op.name)?;
                self.report.fences += 1;
            }
            (Form::Torch, Fences::None) | (Form::OnnxMlir, _) => {}
        }
        Ok(())
    }

    fn iree_fence(&mut self, value: &Value, ty: &ValueType, location: &str) -> Result<Value, ExportError> {
        // IREE's tensors have no signs.
        let builtin = types::value_type(ty, Form::Remat).map_err(|why| self.unsupported(location, why))?;
        let (plain, fenced, back) = (
            self.value("plain", &builtin),
            self.value("fenced", &builtin),
            self.value("again", &value.ty),
        );
        self.begin()?;
        write!(self.out, "{} = torch_c.to_builtin_tensor {} : {} -> {builtin}", plain.name, value.name, value.ty)?;
        self.end(location)?;
        self.begin()?;
        write!(self.out, "{} = util.optimization_barrier {} : {builtin}", fenced.name, plain.name)?;
        self.end(location)?;
        self.begin()?;
        write!(self.out, "{} = torch_c.from_builtin_tensor {} : {builtin} -> {}", back.name, fenced.name, back.ty)?;
        self.end(location)?;
        Ok(back)
    }

    /// The end of a storage. Only the form `remat` says it; the others' compilers find it out.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn dealloc(&mut self, level: &Level<'_>, op: &Op) -> Result<(), ExportError> {
        let Some(tensor) = op.inputs.first().copied().flatten() else { return Ok(()) };
        let ty = &level.graph.tensors[tensor].ty;
        let is_ranked = matches!(ty, ValueType::Tensor { shape: Some(_), .. });
        let Some(value) = level.get(tensor) else { return Ok(()) };
        if self.options.form == Form::Remat && is_ranked {
            let line = format!("remat.dealloc {} : {}", value.name, value.ty);
            self.begin()?;
            write!(self.out, "{line}")?;
            self.end(&op.name)?;
            self.report.deallocs += 1;
        }
        Ok(())
    }
}
