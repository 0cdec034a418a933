//! Dynamic tensor rematerialization (Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021): a runtime that keeps within
//! a budget by evicting tensors and computing them again, as a simulator of logs and as a staged solver.
//!
//! ```text
//! log ── read_log ──> Trace ── simulate ──> Simulation       what an eager runtime would have paid
//!                       └──── problem_of ──> Problem          the static graph, for any solver
//! Problem ── Staged ─────> Trace ── execute once ──> Plan     what DTR did, as a schedule
//! ```
//!
//! - `log` reads logs, `trace` is what they become: ops, tensors, storages, and what the program holds on to.
//! - `runtime` executes a trace. Its module documentation has the parts; `heuristic` names the scores.
//! - `simulate` and `staged` are the two uses of it; `problem_of` is the way to other solvers.
//!
//! # What the runtime guarantees
//! - At no time are more bytes resident than the budget; while an op runs, its arguments, results, results that it makes a second
//!   time, and workspace count together.
//! - An execution is a function of trace and options, the seed among them. Ties are broken by the order in which storages became
//!   evictable.
//! - It ends: recomputation is limited in time, and in the number of runs where ops take no time.

mod heuristic;
mod log;
mod options;
mod problem_of;
mod runtime;
mod simulate;
mod staged;
mod trace;

pub use heuristic::{Heuristic, UnknownHeuristic};
pub use log::{LogError, LogErrorKind, read as read_log};
pub use options::{Deallocation, SimulateOptions};
pub use problem_of::problem_of;
pub use simulate::{SimulateStatus, Simulation, base_peak, simulate};
pub use staged::{Staged, register};
pub use trace::Trace;
