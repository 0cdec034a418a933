//! Why a rule has no answer.

use remat_files::shown;
use thiserror::Error;

/// Why an op cannot compute a part of its result.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{op}` ({op_type}) cannot be split along axis {axis}: {reason}", op = shown(.op), op_type = shown(.op_type))]
pub struct NotSplit {
    /// The op.
    pub op: String,
    /// What it computes.
    pub op_type: String,
    /// The axis of the result.
    pub axis: usize,
    /// The reason.
    pub reason: Reason,
}

/// What is in the way.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Reason {
    /// Nobody stated a rule.
    #[error("there is no rule for this operator")]
    NoRule,
    /// A shape is not known.
    #[error("its shapes are not known")]
    Shapes,
    /// The op has results that a part does not give.
    #[error("it has more than one result")]
    Results,
    /// Every row of the result depends on all rows of an operand.
    #[error("the rows depend on each other")]
    Dependent,
    /// An integer operand is computed in the run, or its elements are not known.
    #[error("bounds, axes, shapes or indices are not known constants")]
    Computed,
    /// An attribute has a value that no rule covers.
    #[error("attribute `{0}` has a value without a rule")]
    Attribute(&'static str),
    /// The rows asked for lie in the padding altogether.
    #[error("a tile would lie in the padding")]
    Padding,
    /// What a tile states depends on a dimension that may have another size in another run.
    #[error("a tile would be right for one size of a free dimension only")]
    Free,
    /// Rows can be cut at multiples of this number only.
    #[error("it can be cut at multiples of {0} only")]
    Multiple(u64),
}
