//! What is wrong with a function, and where.

use melior::ir::OperationRef;
use thiserror::Error;

use crate::ffi;

/// Why a function cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportError {
    /// The operation is not a function, or has no body.
    #[error("`{0}` is not a function with a body")]
    NotAFunction(String),
    /// A block has no terminator.
    #[error("a block has no terminator")]
    NoTerminator,
    /// A result has no known size.
    #[error(
        "result {result} of `{op}` has type `{ty}`, whose size is not known; the option `dynamic-extent` says what dynamic extents count as"
    )]
    UnknownSize {
        /// The operation.
        op: String,
        /// Number of the result.
        result: usize,
        /// Its type.
        ty: String,
    },
    /// A size does not fit 64 bits.
    #[error("result {result} of `{op}` has type `{ty}`: {source}")]
    Size {
        /// The operation.
        op: String,
        /// Number of the result.
        result: usize,
        /// Its type.
        ty: String,
        /// What overflows.
        source: remat_ir::SizeError,
    },
    /// The function already holds a plan: it is a result of this pass.
    #[error("`{0}`: the function is scheduled already; start from what it was before")]
    Scheduled(String),
    /// A page is used although it was dropped.
    #[error("`{0}`: the page was dropped before, by `remat.page_drop`")]
    Dropped(String),
}

/// Why a rewritten graph cannot be applied to a function.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyError {
    /// An op of the rewritten graph has no operation in the function.
    #[error("op `{0}` of the rewritten graph does not belong to the function")]
    ForeignOp(String),
    /// A tensor of the rewritten graph has no producer in it.
    #[error("tensor `{0}` of the rewritten graph does not belong to the function")]
    ForeignTensor(String),
    /// A tensor that moves to the second memory has a type that no page can hold.
    #[error("`{tensor}` cannot move to the second memory: no page holds a `{ty}`")]
    NoPage {
        /// The tensor.
        tensor: String,
        /// Its type.
        ty: String,
    },
    /// An operation of the dialect could not be built.
    #[error("`{op}` cannot be built: {why}")]
    Build {
        /// The operation.
        op: &'static str,
        /// MLIR's message.
        why: String,
    },
}

/// An error and the operation that causes it.
#[derive(Clone, Debug, Error)]
#[error("{error}")]
pub struct Diagnosed<'c, E: std::error::Error> {
    op: OperationRef<'c, 'c>,
    /// The error.
    pub error: E,
}

impl<'c, E: std::error::Error> Diagnosed<'c, E> {
    pub(crate) fn at(op: OperationRef<'c, 'c>, error: E) -> Self {
        Self { op, error }
    }

    /// Emits the error as an MLIR diagnostic at the operation.
    pub fn emit(&self) {
        ffi::emit(self.op, ffi::ERROR, &self.error.to_string());
    }
}
