//! What is wrong with a function, and where.

use melior::ir::OperationRef;
use thiserror::Error;

use crate::ffi;

/// Why a function cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportError {
    /// The operation is no function, or one without a body.
    #[error("`{0}` is not a function with a body")]
    NotAFunction(String),
    /// The body has several blocks.
    #[error(
        "a function of {blocks} blocks cannot be scheduled: lower structured control flow after `remat`, not before"
    )]
    SeveralBlocks {
        /// How many there are.
        blocks: usize,
    },
    /// The body has no terminator.
    #[error("the body of the function has no terminator")]
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
    /// The function is a result of this pass.
    #[error("`{0}`: the function is scheduled already; start from what it was before")]
    Scheduled(String),
}

/// Why a rewritten graph cannot be carried over to a function.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyError {
    /// An op of the rewritten graph does not stand for an operation of the function.
    #[error("op `{0}` of the rewritten graph is none of the function's")]
    ForeignOp(String),
    /// A tensor of the rewritten graph is made by no op of it.
    #[error("tensor `{0}` of the rewritten graph is none of the function's")]
    ForeignTensor(String),
    /// A tensor is to move to the second memory that no page holds.
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
        /// MLIR's words.
        why: String,
    },
}

/// An error with the operation at which it stands.
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

    /// Tells the error at the operation, as MLIR tells its own.
    pub fn emit(&self) {
        ffi::emit(self.op, ffi::ERROR, &self.error.to_string());
    }
}
