//! The contract between solvers and everything else.
//!
//! A [`Problem`] says what may be scheduled: ops with durations, the storages they read and define, a budget. A [`Plan`] is
//! the only executable answer: an ordered list of [`Step`]s. A [`Certificate`] says what a solver claims about its plan.
//! Solvers see a `Problem` and return a `Plan`; they never see ONNX or MLIR. Importers never see a solver.
//!
//! # Memory of a plan
//! While a step computes an op, these are resident together: every storage that was computed and not freed, every storage
//! the op defines, and the op's workspace. The peak of a plan is the largest such sum over its compute steps, in bytes.
//! Where an op is recomputed while one of its results is still resident, the twin it makes of that result takes memory
//! during the step only, and readers keep reading the resident one.

mod budget;
mod certificate;
mod feasibility;
mod file;
mod lower;
mod plan;
mod problem;
mod prune;
mod structure;

pub use budget::{BudgetParseError, BudgetSpec};
pub use certificate::{BoundCovers, Certificate, Status, StopReason};
pub use feasibility::{Bottleneck, Infeasible};
pub use file::{PLAN_FORMAT, PlanFile, PlanFileError, StepKind, StepRecord};
pub use lower::{LowerError, baseline, lower_sequence};
pub use plan::{Plan, Step};
pub use problem::{
    Accounting, OrderMode, Paging, Problem, ProblemError, ProblemOp, ProblemStorage, ProblemTensor, StorageRole,
};
pub use prune::prune_sequence;
pub use remat_ir::{OpId, StorageId, TensorId};
pub use structure::Structure;
