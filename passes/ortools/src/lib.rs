//! Exact solvers for the rematerialization problem, on OR-Tools.
//!
//! [`solvers`] lists what there is: `exact`, which bounds all plans in fixed order, the gap model on CP-SAT, and the formulations
//! of the Moccasin, Checkmate and POET papers. Nothing is linked: OR-Tools' library, that of the Python wheel `ortools`, is loaded when the first
//! model is solved, from where the program says ([`look_in`]). Without it the solvers refuse ([`Refusal::Library`]). No type of OR-Tools leaves
//! this crate.
//!
//! | module | holds |
//! |---|---|
//! | `scaled` | the flattened problem in units that lose nothing; what a bound over its sequences covers |
//! | `run` | what every solver of this crate does before and after its model: checks, warm start, certificate |
//! | `library` | OR-Tools' library, found and loaded at run time |
//! | `messages` | what CP-SAT is told and answers |
//! | `capi`, `milp::highs_capi`, `milp::quiet` | the C interfaces of OR-Tools and of HiGHS; with `library` the only unsafe code |
//! | `cpsat` | a model solved in slices under a deadline and a flag, its incumbent handed from slice to slice |
//! | `cpmodel` | building models with intervals, cumulatives and reservoirs |
//! | `program` | 0/1 programs: for CP-SAT, rounded for `milp`, and what of the answers is proved in integers |
//! | `milp` | mixed-integer programs and linear relaxations in floating point, on HiGHS; nothing of what it says is proved |
//! | `checkmate` | the integer program of the Checkmate paper and its rounded linear relaxation |
//! | `poet` | the integer program of the POET paper: that of `checkmate` with a second memory |
//! | `place` | offsets of buffers as rectangles that do not overlap |
//! | `moccasin` | the formulation of the Moccasin paper with retention intervals |
//! | `gap` | the 0/1 model over gaps between touches of a value, and the growing candidate sets |
//! | `exact` | a relaxation of all plans in fixed order, and proofs that a plan is the best of them |

mod capi;
mod checkmate;
mod clock;
mod cpmodel;
mod cpsat;
mod exact;
mod gap;
mod library;
mod messages;
mod milp;
mod moccasin;
mod place;
mod poet;
mod program;
mod run;
mod scaled;
mod size;

pub use checkmate::{CheckmateIlp, CheckmateLp, Freeing, LpReport, Partition, Rounding};
pub use exact::{Exact, Relaxed};
pub use gap::{Candidates, Gap, GapReport, Round, Windows};
pub use library::{LibraryError, loaded, look_in};
pub use moccasin::{Moccasin, MoccasinReport};
pub use place::NoOverlap;
pub use poet::{DeadlineCovers, Poet};
pub use scaled::Refusal;
pub use size::ModelSize;

pub use remat_files::Surroundings;
use remat_solve::{Packer, Solver};

/// All solvers of this crate. Without the library they answer what needs no model, and refuse everything else.
pub fn solvers() -> impl Iterator<Item = &'static dyn Solver> {
    static SOLVERS: [&dyn Solver; 8] = [
        &Exact,
        &Gap::NEW,
        &Windows,
        &Moccasin::NEW,
        &CheckmateIlp::NEW,
        &CheckmateLp::NEW,
        &CheckmateLp::RANDOMIZED,
        &Poet::NEW,
    ];
    SOLVERS.iter().copied()
}

/// Offsets of buffers by CP-SAT; `None` where the library is not there.
#[must_use]
pub fn packer() -> Option<&'static dyn Packer> {
    loaded().is_ok().then_some(&NoOverlap as &dyn Packer)
}

/// The tests that stand in the modules, some of which need the library.
#[cfg(test)]
fn main() -> std::process::ExitCode {
    look_in(&remat_testing::ortools());
    let modules = [
        ("gap::windows", gap::windows::tests::trials()),
        ("library", library::tests::trials()),
        #[cfg(feature = "cp_sat")]
        ("messages", messages::tests::trials()),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        ("milp::quiet", milp::quiet::tests::trials()),
        ("poet::start", poet::start::tests::trials()),
        ("program::proof", program::proof::tests::trials()),
        ("program::rounded", program::rounded::tests::trials()),
    ];
    remat_testing::run(remat_testing::within(modules))
}
