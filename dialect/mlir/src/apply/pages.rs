//! Pages: what is moved to the second memory and back.
//!
//! A `page_out` and a `page_in` of the graph name a storage, and all its tensors go and come with it. In a function, what comes back is a
//! new value: operations after it read the new value, and views are made again from it when they are read.

use melior::ir::operation::{OperationBuilder, OperationLike, OperationRef};
use melior::ir::{Location, Type, Value, ValueLike};
use remat_ir::{Op, OpKind, TensorId};
use rustc_hash::FxHashMap;

use super::state::{Applier, build_error, key, replace_reads};
use crate::error::ApplyError;
use crate::ffi;

impl<'c> Applier<'_, 'c> {
    /// What moves is of types that there are pages for. Asked before anything is changed.
    pub(super) fn check_pages(&self) -> Result<(), ApplyError> {
        for op in self.new.ops.iter().filter(|op| op.kind == OpKind::PageOut) {
            for tensor in op.reads() {
                let ty = self.type_of(tensor)?;
                if ffi::page_type(ty).is_none() {
                    return Err(ApplyError::NoPage {
                        tensor: self.new.tensors[tensor].name.clone(),
                        ty: ty.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Gives a tensor up that comes back later. Where its page is still there, nothing moves.
    pub(super) fn page_out(&mut self, op: &Op) -> Result<(), ApplyError> {
        for tensor in op.reads() {
            let storage = self.new.tensors[tensor].storage;
            let value = self.current(tensor)?;
            if self.pages.pages[storage].is_some() || self.pages.to_come[storage] == 0 {
                self.on_memory("remat.dealloc", value, None, self.location(tensor))?;
            } else {
                let ty = ffi::page_type(value.r#type());
                let page = self.on_memory("remat.page_out", value, ty, self.location(tensor))?;
                self.pages.pages[storage] = page.result(0).ok().map(Into::into);
            }
            for &gone in self.pages.tensors.get(&storage).into_iter().flatten() {
                self.pages.stale[gone] = self.values[gone].is_some();
            }
        }
        Ok(())
    }

    /// Brings a tensor back; the page goes when nothing is to come back from it any more.
    pub(super) fn page_in(&mut self, op: &Op) -> Result<(), ApplyError> {
        for tensor in op.reads() {
            let storage = self.new.tensors[tensor].storage;
            let foreign = || ApplyError::ForeignTensor(self.new.tensors[tensor].name.clone());
            let (page, was) = self.pages.pages[storage].zip(self.values[tensor]).ok_or_else(foreign)?;
            let back = self.on_memory("remat.page_in", page, Some(was.r#type()), self.location(tensor))?;
            self.values[tensor] = back.result(0).ok().map(Into::into);
            self.pages.stale[tensor] = false;
            self.pages.to_come[storage] -= 1;
            if self.pages.to_come[storage] == 0 {
                self.on_memory("remat.page_drop", page, None, self.location(tensor))?;
                self.pages.pages[storage] = None;
            }
        }
        Ok(())
    }

    /// The value of a tensor now. A view of what came back is made again of that.
    pub(super) fn current(&mut self, tensor: TensorId) -> Result<Value<'c, 'c>, ApplyError> {
        let known = &self.new.tensors[tensor];
        let foreign = || ApplyError::ForeignTensor(known.name.clone());
        if self.pages.stale[tensor] {
            if self.new.storages[known.storage].root == tensor {
                return Err(foreign());
            }
            self.view_again(tensor)?;
        }
        self.values[tensor].ok_or_else(foreign)
    }

    /// What the function returns is what came back, if it was away.
    pub(super) fn return_current(&mut self) -> Result<(), ApplyError> {
        let mut exchange = FxHashMap::default();
        for (&was, &is) in self.imported.graph.outputs.iter().zip(&self.new.outputs) {
            // Copies that bufferization will make are no values yet.
            let Some(was) = self.value_of(was) else { continue };
            let is = self.current(is)?;
            if key(was) != key(is) {
                exchange.insert(key(was), is);
            }
        }
        replace_reads(self.imported.table.terminator, &exchange);
        Ok(())
    }

    fn view_again(&mut self, tensor: TensorId) -> Result<(), ApplyError> {
        let new = self.new;
        let known = &new.tensors[tensor];
        let op = known.producer.map(|producer| &new.ops[producer]);
        let op = op.ok_or_else(|| ApplyError::ForeignTensor(known.name.clone()))?;
        let (source, old) = self.source(op)?;
        for read in op.reads() {
            if self.values[read].is_some() {
                self.current(read)?;
            }
        }
        let exchange = self.exchange(op, old)?;
        let made = self.insert((*self.imported.table.entries[source as usize].op).clone());
        replace_reads(made, &exchange);
        for (&output, result) in op.outputs.iter().flatten().zip(made.results()) {
            if new.tensors[output].storage == known.storage {
                self.values[output] = Some(result.into());
                self.pages.stale[output] = false;
            }
        }
        Ok(())
    }

    /// The type of the value that a tensor of the new graph stands for.
    fn type_of(&self, tensor: TensorId) -> Result<Type<'c>, ApplyError> {
        let known = &self.new.tensors[tensor];
        let maker = known.producer.map(|producer| &self.new.ops[producer]);
        let ty = maker.and_then(|op| {
            let entry = self.imported.table.entries.get(op.source? as usize)?;
            let result = op.outputs.iter().position(|&output| output == Some(tensor))?;
            Some(entry.op.result(result).ok()?.r#type())
        });
        ty.ok_or_else(|| ApplyError::ForeignTensor(known.name.clone()))
    }

    fn on_memory(
        &self,
        name: &'static str,
        operand: Value<'c, 'c>,
        result: Option<Type<'c>>,
        location: Location<'c>,
    ) -> Result<OperationRef<'c, 'c>, ApplyError> {
        let results: Vec<Type<'c>> = result.into_iter().collect();
        let operation = OperationBuilder::new(name, location)
            .add_operands(&[operand])
            .add_results(&results)
            .build()
            .map_err(|error| build_error(name, &error))?;
        Ok(self.insert(operation))
    }
}
