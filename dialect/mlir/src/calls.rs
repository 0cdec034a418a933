//! The functions of a module, and which of them call which.

#![expect(unsafe_code, reason = "operations come from C++")]

use std::ffi::c_void;

use melior::ir::attribute::FlatSymbolRefAttribute;
use melior::ir::operation::{OperationLike, OperationMutLike};
use melior::ir::{OperationRef, ValueLike};
use mlir_sys::MlirOperation;

use crate::bodies::{for_each_block, for_each_op};
use crate::ffi::{self, as_mut};
use crate::function::{Function, set_integer};
use crate::positions::{Positions, name_of};
use crate::types::value_type;

/// What the cost model reads as the bytes that an operation takes beside operands and results.
const WORKSPACE: &str = "workspace";

/// A direct call of a function.
#[derive(Clone)]
pub struct Call<'c> {
    op: OperationRef<'c, 'c>,
    /// The name of the function that is called.
    pub callee: String,
}

impl Call<'_> {
    /// Notes what the callee takes at its peak, so that it counts in the function that calls. Its results count there anyway.
    pub fn set_peak(&self, peak: u64) {
        let results = self.op.results();
        let bytes = results.filter_map(|result| value_type(result.r#type(), None).bytes().ok().flatten());
        let results = bytes.fold(0, u64::saturating_add);
        let workspace = peak.saturating_sub(results);
        set_integer(self.op, WORKSPACE, i64::try_from(workspace).unwrap_or(i64::MAX));
    }

    /// Takes the note away.
    pub fn forget_peak(&self) {
        // It is an error of MLIR's that there was none.
        let _ = as_mut(self.op).remove_attribute(WORKSPACE);
    }
}

impl<'c> Function<'c> {
    /// The functions with a body that a module holds.
    ///
    /// # Safety
    /// The pointer leads to an `mlir::Operation` that lives as long as `'c`, and that nobody else changes.
    #[must_use]
    pub unsafe fn all_of(module: *mut c_void) -> Vec<Self> {
        // SAFETY: the caller says so.
        let module: OperationRef<'c, 'c> = unsafe { OperationRef::from_raw(MlirOperation { ptr: module }) };
        let mut found = Vec::new();
        for_each_block(module, &mut |block| {
            for_each_op(block, &mut |op| {
                if ffi::is_function(op) {
                    found.push(Function::new(op));
                }
            });
        });
        found.retain(|function| function.is_defined());
        found
    }

    /// The calls in the function and its regions.
    #[must_use]
    pub fn calls(self) -> Vec<Call<'c>> {
        let positions = Positions::of(self.op());
        let calls = positions.ops().iter().filter(|&&op| name_of(op) == "func.call");
        let calls = calls.filter_map(|&op| {
            let mut all = ffi::attributes(op).into_iter();
            let (_, callee) = all.find(|(name, _)| name == "callee")?;
            let callee = FlatSymbolRefAttribute::try_from(callee).ok()?.value().to_owned();
            Some(Call { op, callee })
        });
        calls.collect()
    }
}
