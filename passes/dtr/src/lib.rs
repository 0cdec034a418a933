//! Dynamic tensor rematerialization (Kirisame et al., ICLR 2021).

mod heuristic;
mod log;
mod problem_of;
mod runtime;
mod simulate;
mod staged;
mod trace;

pub use heuristic::{CostTerm, Heuristic, Score, UnknownHeuristic};
pub use log::{LogError, LogErrorKind, read as read_log};
pub use problem_of::problem_of;
pub use simulate::{Deallocation, SimulateOptions, SimulateStatus, Simulation, base_peak, simulate};
pub use staged::{Staged, solvers};
pub use trace::Trace;
