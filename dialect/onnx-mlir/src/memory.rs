//! Memory ops: what is freed, what moves to the second memory and what comes back.
//!
//! An op of the graph moves a storage, and all its tensors go with it. In the text, what comes back is a new value of the tensor that owns
//! the storage; views are made again from it when they are read.

use remat_ir::{Op, OpKind, TensorId, ValueType};

use crate::emit::{Emitter, Value};
use crate::level::Level;
use crate::{ExportError, Form};

impl Emitter<'_> {
    /// Writes an op that says where memory goes. Only the form `remat` has words for that; the others' compilers find out by themselves where
    /// a tensor is read last.
    ///
    /// # Errors
    /// [`ExportError::Unsupported`] for a second memory in other forms, and for tensors that cannot move; those of writing.
    pub(crate) fn memory(&mut self, level: &mut Level<'_>, op: &Op) -> Result<(), ExportError> {
        let Some(tensor) = op.inputs.first().copied().flatten() else {
            return Ok(());
        };
        let known = &level.graph.tensors[tensor];
        let is_dealloc = op.kind == OpKind::Dealloc;
        let place = format!("`{}`", op.name);
        if self.options.form != Form::Remat {
            return if is_dealloc {
                Ok(())
            } else {
                Err(self.unsupported(&place, "it has no second memory"))
            };
        }
        let is_ranked = matches!(known.ty, ValueType::Tensor { shape: Some(_), .. });
        if is_dealloc {
            return match level.get(tensor).cloned().filter(|_| is_ranked) {
                Some(value) => self.dealloc(&value, &op.name),
                None => Ok(()),
            };
        }
        if known.ty.known_shape().is_none() {
            return Err(self.unsupported(&place, "the shape of what moves is not known"));
        }
        let ty = self.type_of(&known.name, &known.ty)?;
        let (storage, page_type) = (known.storage, format!("!remat.page<{ty}>"));
        let page = level.pages.pages.get(&storage).cloned();
        if op.kind == OpKind::PageOut {
            let value = level.get(tensor).cloned();
            let value = value.ok_or_else(|| self.unsupported(&place, "it is not in memory"))?;
            let comes_back = level.pages.to_come.get(&storage).is_some_and(|&left| left > 0);
            if page.is_none() && comes_back {
                let page = self.value("page", &page_type);
                self.line(
                    &format!("{} = remat.page_out {} : {ty}", page.name, value.name),
                    &op.name,
                )?;
                level.pages.pages.insert(storage, page);
            } else {
                // What lies in the second memory does not change, so nothing has to move again.
                self.dealloc(&value, &op.name)?;
            }
            let lost = level.forget(storage);
            level.pages.gone.extend(lost);
            return Ok(());
        }
        let page = page.ok_or_else(|| self.unsupported(&place, "it is not in the second memory"))?;
        let back = self.value(&known.name, &ty);
        self.line(&format!("{} = remat.page_in {} : {ty}", back.name, page.name), &op.name)?;
        level.bind(tensor, back);
        if level.pages.came_back(storage) {
            level.pages.pages.remove(&storage);
            self.line(&format!("remat.page_drop {} : {page_type}", page.name), &op.name)?;
        }
        Ok(())
    }

    /// Makes a view again whose memory was away since it was made.
    ///
    /// # Errors
    /// [`ExportError::Unsupported`] if the memory is still away; those of writing.
    pub(crate) fn make_again(&mut self, level: &mut Level<'_>, tensor: TensorId) -> Result<(), ExportError> {
        if !level.pages.gone.contains(&tensor) {
            return Ok(());
        }
        let known = &level.graph.tensors[tensor];
        let is_owner = level.graph.storages[known.storage].root == tensor;
        let producer = known.producer.filter(|_| !is_owner);
        let place = format!("tensor `{}`", known.name);
        let producer = producer.ok_or_else(|| self.unsupported(&place, "it is read while it is away"))?;
        self.operation(level, producer)
    }

    fn dealloc(&mut self, value: &Value, location: &str) -> Result<(), ExportError> {
        self.report.deallocs += 1;
        self.line(&format!("remat.dealloc {} : {}", value.name, value.ty), location)
    }
}
