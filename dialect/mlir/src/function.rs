//! A function of a module; MLIR's own types stay inside this crate.
#![expect(unsafe_code, reason = "operations come from C++")]

use std::ffi::c_void;

use melior::ir::operation::{OperationLike, OperationMutLike};
use melior::ir::{Attribute, OperationRef, RegionLike};
use mlir_sys::MlirOperation;

use crate::ffi::{self, NewAttribute, as_mut};

/// Severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// A remark.
    Remark,
    /// A warning: something may be wrong.
    Warning,
    /// An error: something is wrong.
    Error,
}

impl Severity {
    /// As C++ counts them.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Remark => 0,
            Self::Warning => 1,
            Self::Error => ffi::ERROR,
        }
    }
}

/// A function of an MLIR module.
#[derive(Clone, Copy)]
pub struct Function<'c> {
    op: OperationRef<'c, 'c>,
}

impl<'c> Function<'c> {
    /// The function that is this operation.
    ///
    /// # Safety
    /// The pointer leads to an `mlir::Operation` that lives as long as `'c`, and that nobody else moves.
    #[must_use]
    pub unsafe fn from_raw(operation: *mut c_void) -> Self {
        // SAFETY: the caller says so.
        let op = unsafe { OperationRef::from_raw(MlirOperation { ptr: operation }) };
        Self { op }
    }

    pub(crate) fn new(op: OperationRef<'c, 'c>) -> Self {
        Self { op }
    }

    pub(crate) fn op(self) -> OperationRef<'c, 'c> {
        self.op
    }

    /// The name of the function, without `@`.
    #[must_use]
    pub fn name(self) -> String {
        self.attribute("sym_name").and_then(ffi::text).unwrap_or_default()
    }

    /// Whether there is a body.
    #[must_use]
    pub fn is_defined(self) -> bool {
        self.op
            .regions()
            .next()
            .is_some_and(|region| region.first_block().is_some())
    }

    /// Emits an MLIR diagnostic at the function.
    pub fn emit(self, severity: Severity, text: &str) {
        ffi::emit(self.op, severity.number(), text);
    }

    /// The integer attribute of this name.
    #[must_use]
    pub fn integer(self, name: &str) -> Option<i64> {
        self.attribute(name).and_then(ffi::integer)
    }

    fn attribute(self, name: &str) -> Option<Attribute<'c>> {
        let mut attributes = ffi::attributes(self.op).into_iter();
        attributes.find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Sets a 64-bit integer attribute.
    pub fn set_integer(self, name: &str, value: i64) {
        set_integer(self.op, name, value);
    }
}

/// Sets a 64-bit integer attribute of an operation.
pub(crate) fn set_integer(op: OperationRef<'_, '_>, name: &str, value: i64) {
    let (_, value) = ffi::attribute(op.location(), name, &NewAttribute::Integer(value));
    as_mut(op).set_attribute(name, value);
}
