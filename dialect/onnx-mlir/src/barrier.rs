//! Optimization barriers and attributes that mark recomputes.

use remat_ir::{Graph, Op, OpKind, StorageClass, TensorId, ValueType};

use crate::emit::{Emitter, Value};
use crate::level::Level;
use crate::{ExportError, Form, text, types};

impl Emitter<'_> {
    /// Puts optimization barriers before operands of an op if its form needs them to keep the plan.
    ///
    /// A recompute gets one before its first ranked tensor that is no constant, so that nobody merges it with the op that it
    /// repeats: compilers fold constants, and look for them. An op without such an operand gets none; it makes constants,
    /// which compilers handle as such. One that reads what was recomputed itself differs from the others already, and is
    /// better fused with that. For IREE, far reads get a barrier, too ([`crate::reads`]).
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn barriers(
        &mut self,
        level: &mut Level<'_>,
        op: &Op,
        operands: &mut [Option<Value>],
    ) -> Result<(), ExportError> {
        let graph = level.graph;
        let repeated = match op.kind {
            OpKind::Recompute { of } => Some(&graph.ops[of].name),
            _ => None,
        };
        let mut wants_barrier = level.is_like_another(op);
        for (&input, operand) in op.inputs.iter().zip(operands) {
            let (Some(tensor), Some(value)) = (input, operand) else {
                continue;
            };
            if !can_carry_barrier(graph, tensor) {
                continue;
            }
            match (self.options.form, repeated) {
                (Form::Remat, Some(of)) if wants_barrier => {
                    *value = self.recompute_op(value, &graph.tensors[tensor].name, op, of)?;
                    wants_barrier = false;
                }
                (Form::Torch, _) => {
                    let is_static = graph.tensors[tensor].ty.known_shape().is_some();
                    let Some(reads) = level.reads.as_mut().filter(|_| is_static) else {
                        continue;
                    };
                    let is_far = reads.is_far(tensor);
                    if is_far || wants_barrier {
                        *value = self.iree_barrier(value, &graph.tensors[tensor].ty, &op.name)?;
                    } else if let Some(current) = reads.current(tensor) {
                        *value = current.clone();
                    }
                    if is_far {
                        reads.passed_barrier(tensor, value.clone());
                    }
                    wants_barrier = false;
                }
                (Form::OnnxMlir | Form::Remat, _) => {}
            }
        }
        if let Some(reads) = &mut level.reads {
            reads.step(op);
        }
        Ok(())
    }

    /// The optimization barrier of the dialect `remat`.
    fn recompute_op(&mut self, value: &Value, called: &str, op: &Op, of: &str) -> Result<Value, ExportError> {
        let copy = self.value(called, &value.ty);
        let (id, of) = (self.report.barriers, text::string(of.as_bytes()));
        let (name, operand, ty) = (&copy.name, &value.name, &value.ty);
        let line = format!("{name} = remat.recompute {operand} id({id}) of({of}) : {ty}");
        self.line(&line, &op.name)?;
        self.report.barriers += 1;
        Ok(copy)
    }

    /// The optimization barrier for IREE: a transfer to the device where the tensor already is. It lasts until all passes that merge, fuse and move ops are done,
    /// and then goes without a copy. The shape must be known.
    fn iree_barrier(&mut self, value: &Value, ty: &ValueType, location: &str) -> Result<Value, ExportError> {
        // IREE's tensors have no signs.
        let builtin = types::value_type(ty, Form::Remat).map_err(|why| self.unsupported(location, why))?;
        let (plain, moved, back) = (
            self.value("plain", &builtin),
            self.value("barrier", &builtin),
            self.value("again", &value.ty),
        );
        let to_builtin = format!("torch_c.to_builtin_tensor {} : {} -> {builtin}", value.name, value.ty);
        self.line(&format!("{} = {to_builtin}", plain.name), location)?;
        let transfer = format!("flow.tensor.transfer {} : {builtin}", plain.name);
        self.line(
            &format!("{} = {transfer} to #hal.device.promise<@__device_0>", moved.name),
            location,
        )?;
        let from_builtin = format!("torch_c.from_builtin_tensor {} : {builtin} -> {}", moved.name, back.ty);
        self.line(&format!("{} = {from_builtin}", back.name), location)?;
        self.report.barriers += 1;
        Ok(back)
    }
}

/// Whether a read of this tensor may get an optimization barrier: it is ranked and not a constant.
fn can_carry_barrier(graph: &Graph, tensor: TensorId) -> bool {
    let tensor = &graph.tensors[tensor];
    let is_constant = graph.storages[tensor.storage].class == StorageClass::Constant
        || tensor
            .producer
            .is_some_and(|producer| graph.ops[producer].op_type == "Constant");
    !is_constant && matches!(tensor.ty, ValueType::Tensor { shape: Some(_), .. })
}
