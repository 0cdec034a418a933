//! Why a model cannot be shown to compute each member of its batch by itself.

use remat_files::shown;
use thiserror::Error;

use crate::rules::Reason;

/// Why a model has no batch whose members are independent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotIndependent {
    /// The samples are of different models, or too few.
    #[error("the model has another graph at another size of the batch")]
    Samples,
    /// No input has it.
    #[error("no input has the batch")]
    Inputs,
    /// More than one axis of an input is the batch.
    #[error("input `{}` has the batch along more than one axis", shown(.0))]
    Input(String),
    /// An output follows from the size of the batch.
    #[error("output `{}` says how large the batch is", shown(.0))]
    Output(String),
    /// An op has members together, or might have.
    #[error(transparent)]
    Op(#[from] NotByMember),
}

/// The first op that cannot be shown to compute each member by itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{op}` ({op_type}) may not compute each member of the batch by itself: {why}", op = shown(.op), op_type = shown(.op_type))]
pub struct NotByMember {
    /// The op.
    pub op: String,
    /// What it computes.
    pub op_type: String,
    /// Why not.
    pub why: WhyMixed,
}

/// What an op does with a batch.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WhyMixed {
    /// A rule has no answer.
    #[error(transparent)]
    Rule(#[from] Reason),
    /// Rows of several members are put together.
    #[error("it puts members together")]
    Together,
    /// A shape is not known.
    #[error("its shapes are not known")]
    Shapes,
    /// A result has the batch along two axes, or in no equal parts.
    #[error("its result has no axis with an equal part for each member")]
    Extent,
    /// It draws random numbers, has a state, or nothing is known of it.
    #[error("it draws random numbers, has a state, or is not known")]
    Effects,
    /// A subgraph reads members.
    #[error("its subgraphs read the batch")]
    Subgraphs,
    /// The size of the batch becomes an element of a result that has it.
    #[error("the size of the batch becomes part of its values")]
    Size,
    /// What a member gets depends on where in the batch it is.
    #[error("the place of a member in the batch becomes part of its values")]
    Place,
    /// A member by itself would need other attributes, another padding say.
    #[error("a part would need other attributes")]
    Attributes,
}
