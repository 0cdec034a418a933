//! An MLIR context, for programs that are not plugins.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use melior::Context;
use melior::diagnostic::DiagnosticSeverity;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::pass::PassManager;
use melior::utility::parse_pass_pipeline;
use thiserror::Error;

use crate::ffi;
use crate::function::Function;

/// A diagnostic of MLIR: an error, a warning, a remark, or a note to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// `error`, `warning`, `remark` or `note`.
    pub severity: &'static str,
    /// The location, as MLIR prints it.
    pub place: String,
    /// The message.
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self
            .place
            .strip_prefix("loc(")
            .and_then(|place| place.strip_suffix(')'));
        let place = place.unwrap_or(&self.place).replace('"', "");
        write!(f, "{place}: {}: {}", self.severity, self.text)
    }
}

/// Why a module cannot be processed. [`Session::take_messages`] has MLIR's messages about it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The text is not a module.
    #[error("`{0}` is not a module of MLIR")]
    Parse(String),
    /// The text is not a pipeline.
    #[error("`{pipeline}` is not a pipeline of passes: {why}")]
    Pipeline {
        /// The text.
        pipeline: String,
        /// MLIR's message.
        why: String,
    },
    /// A pass failed.
    #[error("a pass failed")]
    Pass,
    /// The module that was made breaks rules of its operations: a bug of ours.
    #[error("the rewritten module does not verify")]
    Invalid,
}

/// A context with all of MLIR's dialects and `remat`. Operations of other dialects are read in their generic form.
#[derive(Debug)]
pub struct Session {
    context: Context,
    messages: Arc<Mutex<Vec<Message>>>,
}

/// A module that was parsed in a session.
#[derive(Debug)]
pub struct Parsed<'s> {
    session: &'s Session,
    module: Module<'s>,
}

impl Session {
    /// A new context.
    #[must_use]
    pub fn new() -> Self {
        let registry = DialectRegistry::new();
        melior::utility::register_all_dialects(&registry);
        ffi::register_dialect(&registry);
        let context = Context::new();
        context.append_dialect_registry(&registry);
        context.get_or_load_dialect("remat");
        for name in ["arith", "bufferization", "func", "memref", "scf", "tensor"] {
            context.get_or_load_dialect(name);
        }
        context.set_allow_unregistered_dialects(true);
        let messages: Arc<Mutex<Vec<Message>>> = Arc::default();
        let heard = Arc::clone(&messages);
        context.attach_diagnostic_handler(move |diagnostic| {
            let severity = match diagnostic.severity() {
                DiagnosticSeverity::Error => "error",
                DiagnosticSeverity::Warning => "warning",
                DiagnosticSeverity::Remark => "remark",
                DiagnosticSeverity::Note => "note",
            };
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(Message {
                severity,
                place: diagnostic.location().to_string(),
                text: diagnostic.to_string(),
            });
            true
        });
        Self { context, messages }
    }

    /// MLIR's diagnostics since the last call.
    pub fn take_messages(&self) -> Vec<Message> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *messages)
    }

    /// Parses the module in a file.
    ///
    /// # Errors
    /// [`SessionError::Parse`].
    pub fn open<'s>(&'s self, path: &Path) -> Result<Parsed<'s>, SessionError> {
        let name = path.display().to_string();
        let module = ffi::parse_file(&self.context, &name);
        let module = module.ok_or(SessionError::Parse(name))?;
        Ok(Parsed { session: self, module })
    }

    /// Parses a module; locations in it name the file `-`.
    ///
    /// # Errors
    /// [`SessionError::Parse`].
    pub fn parse<'s>(&'s self, text: &str) -> Result<Parsed<'s>, SessionError> {
        let error = || SessionError::Parse("-".to_owned());
        if text.contains('\0') {
            return Err(error());
        }
        let module = Module::parse(&self.context, text).ok_or_else(error)?;
        Ok(Parsed { session: self, module })
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Parsed<'_> {
    /// The functions with bodies that stand in the module itself.
    #[must_use]
    pub fn functions(&self) -> Vec<Function<'_>> {
        let mut functions = Vec::new();
        let mut next = self.module.body().first_operation();
        while let Some(op) = next {
            let function = Function::new(op);
            if ffi::is_function(op) && function.is_defined() {
                functions.push(function);
            }
            next = op.next_in_block();
        }
        functions
    }

    /// Runs a pipeline of passes in its textual form, `builtin.module(...)`, of those that are registered in this process.
    ///
    /// # Errors
    /// [`SessionError::Pipeline`] and [`SessionError::Pass`].
    pub fn run(&mut self, pipeline: &str) -> Result<(), SessionError> {
        melior::utility::register_all_passes();
        let manager = PassManager::new(&self.session.context);
        parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline).map_err(|error| SessionError::Pipeline {
            pipeline: pipeline.to_owned(),
            why: error.to_string(),
        })?;
        manager.run(&mut self.module).map_err(|_| SessionError::Pass)
    }

    /// The module as text, once it verifies.
    ///
    /// # Errors
    /// [`SessionError::Invalid`].
    pub fn print(&self) -> Result<String, SessionError> {
        if self.module.as_operation().verify() {
            Ok(self.module.as_operation().to_string())
        } else {
            Err(SessionError::Invalid)
        }
    }
}
