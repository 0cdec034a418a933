//! Stage form: the space of plans of the Checkmate paper, and what every method in it shares.
//!
//! With `T` ops there are `T` *stages*. Stage `t` ends with the first run of op `t` (the frontier advances by one op in each
//! stage) and may run earlier ops again before it, each at most once, in reference order. Two lower triangular `T` x `T`
//! matrices describe a plan:
//!
//! | paper | here | entry `(t, i)` |
//! |---|---|---|
//! | `R` | [`Stages::computed`] | op `i` runs in stage `t`; the diagonal is set |
//! | `S` | [`Stages::retained`] | the results of op `i` are held from stage `t - 1` into stage `t`; strictly below the diagonal |
//!
//! A heuristic, or a relaxation that was rounded, yields `S` only: [`Stages::complete`] finds the cheapest `R` for it.
//! [`Stages::sequence`] gives the runs in order, for [`remat_plan::lower_sequence`], which frees each result after its last use.
//! The memory as the paper counts it is [`Stages::schedule_peak`]: at least what the checker finds for the lowered plan, because it holds
//! a retained result to the end of a stage that does not use it.
//!
//! Source: Jain et al., Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization, `MLSys` 2020, sections 4.2 to
//! 4.7; the schedule as in the paper's artifact (branch `mlsys20_artifact` of `parasj/checkmate`).

mod complete;
mod graph;
mod matrix;
mod memory;

pub use complete::Stages;
pub use graph::{MAX_STAGES, Node, StageGraph, TooManyStages};
pub use matrix::StageMatrix;
