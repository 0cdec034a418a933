//! OR-Tools, loaded at run time: models for its solvers, and proofs on them.
//!
//! [`Exact`] bounds all plans in fixed order, [`Gap`] is a 0/1 model whose candidates grow, [`Windows`] the same over parts of a plan, and
//! [`NoOverlap`] places buffers. Nothing is linked: OR-Tools' library, that of the Python wheel `ortools`, is loaded when the first
//! model is solved, from where the program says ([`look_in`]). Without it solvers refuse ([`Refusal::Library`]). No type of OR-Tools leaves
//! this crate.
//!
//! A formulation of another crate is a [`run::call`] that builds a [`cpmodel`] or a [`program`] of a [`scaled`] problem, and has [`cpsat`] or
//! a [`program::task`] solve it under a [`clock`].
//!
//! | module | holds |
//! |---|---|
//! | [`run`] | what every solver does before and after its model: checks, the plan to start from, certificate |
//! | [`scaled`] | the flattened problem in units that lose nothing; what a bound over its sequences covers |
//! | [`cpmodel`] | building models with intervals, cumulatives and reservoirs |
//! | [`program`] | 0/1 programs: for CP-SAT, rounded for `milp`, and what of the answers is proved in integers |
//! | [`cpsat`] | a model solved in slices under a deadline and a flag, its incumbent handed from slice to slice |
//! | `milp` | mixed-integer programs and linear relaxations in floating point, on HiGHS; nothing of what it says is proved |
//! | `library` | OR-Tools' library, found and loaded at run time |
//! | `messages` | what CP-SAT is told and answers |
//! | `capi`, `milp::highs_capi`, `milp::quiet` | the C interfaces of OR-Tools and of HiGHS; with `library` the only unsafe code |
//! | `place` | offsets of buffers as rectangles that do not overlap |
//! | `gap` | the 0/1 model over gaps between touches of a value, and the growing candidate sets |
//! | `exact` | a relaxation of all plans in fixed order, and proofs that a plan is the best of them |

mod capi;
pub mod clock;
pub mod cpmodel;
pub mod cpsat;
mod exact;
mod gap;
mod library;
mod messages;
mod milp;
mod place;
pub mod program;
pub mod run;
pub mod scaled;
mod size;

pub use exact::Exact;
pub use gap::{Candidates, Gap, Windows};
pub use library::{LibraryError, OrTools, loaded, look_in};
pub use place::NoOverlap;
pub use scaled::Refusal;
pub use size::ModelSize;

pub use remat_files::Surroundings;
use remat_solve::{Packer, Registry, Solver};

/// Adds the solvers of this crate. Without the library they answer what needs no model, and refuse everything else.
pub fn register(registry: &mut Registry) {
    registry.add([&Exact as &dyn Solver, &Gap::NEW, &Windows]);
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
        ("messages", messages::tests::trials()),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        ("milp::quiet", milp::quiet::tests::trials()),
        ("program::proof", program::proof::tests::trials()),
        ("program::rounded", program::rounded::tests::trials()),
    ];
    remat_testing::run(remat_testing::within(modules))
}
