//! A context of its own, for programs that are no plugin.

use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, RegionLike};
use thiserror::Error;

use crate::ffi;
use crate::function::Function;

/// Why a module cannot be worked on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The text is no module; what is wrong was told to the handler of diagnostics.
    #[error("the text is not an MLIR module")]
    Parse,
    /// The module breaks rules of its operations.
    #[error("the module does not verify")]
    Invalid,
}

/// A context with all of MLIR's dialects and `remat`. Operations of other dialects are read in their generic form.
#[derive(Debug)]
pub struct Session {
    context: Context,
}

impl Session {
    /// A new context. Diagnostics go to stderr.
    #[must_use]
    pub fn new() -> Self {
        let registry = DialectRegistry::new();
        melior::utility::register_all_dialects(&registry);
        ffi::register_dialect(&registry);
        let context = Context::new();
        context.append_dialect_registry(&registry);
        context.get_or_load_dialect("remat");
        context.set_allow_unregistered_dialects(true);
        Self { context }
    }

    /// Parses a module, hands its functions with bodies to `work` one after the other, and prints what has become of it.
    ///
    /// # Errors
    /// [`SessionError`], or what `work` fails with.
    pub fn transform<E: From<SessionError>>(
        &self,
        text: &str,
        mut work: impl FnMut(Function<'_>) -> Result<(), E>,
    ) -> Result<String, E> {
        let module = Module::parse(&self.context, text).ok_or(SessionError::Parse)?;
        let mut next = module.body().first_operation();
        while let Some(op) = next {
            let function = Function::new(op);
            if ffi::is_function(op) && op.regions().next().is_some_and(|region| region.first_block().is_some()) {
                work(function)?;
            }
            next = op.next_in_block();
        }
        if module.as_operation().verify() {
            Ok(module.as_operation().to_string())
        } else {
            Err(SessionError::Invalid.into())
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}
