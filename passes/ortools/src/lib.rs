//! Exact solvers for the rematerialization problem, on OR-Tools.
//!
//! [`solvers`] lists what there is. With the cargo feature `cp-sat` that is `exact`, which bounds all plans in fixed order, the gap
//! model on CP-SAT, HiGHS and SCIP, and the formulations of the Moccasin and Checkmate papers; without it nothing is linked and the list is empty
//! ([`AVAILABLE`] says which). No type of OR-Tools leaves this crate.
//!
//! | module | holds |
//! |---|---|
//! | `scaled` | the flattened problem in units that lose nothing; what a bound over its sequences covers |
//! | `run` | what every solver of this crate does before and after its model: checks, warm start, certificate |
//! | `capi`, `milp::highs_capi`, `milp::mathopt_capi`, `milp::quiet` | the C interfaces of OR-Tools and of HiGHS: the only unsafe code |
//! | `cpsat` | a model solved in slices under a deadline and a flag, its incumbent handed from slice to slice |
//! | `cpmodel` | building models with intervals, cumulatives and reservoirs |
//! | `program` | 0/1 programs: for CP-SAT, rounded for `milp`, and what of the answers is proved in integers |
//! | `milp` | mixed-integer programs and linear relaxations in floating point, on HiGHS and SCIP; nothing of what it says is proved |
//! | `checkmate` | the integer program of the Checkmate paper and its rounded linear relaxation |
//! | `poet` | the integer program of the POET paper: that of `checkmate` with a second memory |
//! | `place` | offsets of buffers as rectangles that do not overlap |
//! | `moccasin` | the formulation of the Moccasin paper with retention intervals |
//! | `gap` | the 0/1 model over gaps between touches of a value, and the growing candidate sets |
//! | `exact` | a relaxation of all plans in fixed order, and proofs that a plan is the best of them |

#[cfg(feature = "cp-sat")]
mod capi;
#[cfg(feature = "cp-sat")]
mod checkmate;
#[cfg(feature = "cp-sat")]
mod clock;
#[cfg(feature = "cp-sat")]
mod cpmodel;
#[cfg(feature = "cp-sat")]
mod cpsat;
#[cfg(feature = "cp-sat")]
mod exact;
#[cfg(feature = "cp-sat")]
mod gap;
#[cfg(feature = "cp-sat")]
mod milp;
#[cfg(feature = "cp-sat")]
mod moccasin;
#[cfg(feature = "cp-sat")]
mod place;
#[cfg(feature = "cp-sat")]
mod poet;
#[cfg(feature = "cp-sat")]
mod program;
#[cfg(feature = "cp-sat")]
mod run;
#[cfg(feature = "cp-sat")]
mod scaled;
#[cfg(feature = "cp-sat")]
mod size;

#[cfg(feature = "cp-sat")]
pub use checkmate::{CheckmateIlp, CheckmateLp, Freeing, LpReport, Partition, Rounding};
#[cfg(feature = "cp-sat")]
pub use exact::{Exact, Relaxed};
#[cfg(feature = "cp-sat")]
pub use gap::{Candidates, Gap, GapReport, Round};
#[cfg(feature = "cp-sat")]
pub use moccasin::{Moccasin, MoccasinReport};
#[cfg(feature = "cp-sat")]
pub use place::NoOverlap;
#[cfg(feature = "cp-sat")]
pub use poet::{DeadlineCovers, Poet};
#[cfg(feature = "cp-sat")]
pub use program::backend::Backend;
#[cfg(feature = "cp-sat")]
pub use scaled::Refusal;
#[cfg(feature = "cp-sat")]
pub use size::ModelSize;

use remat_solve::{Packer, Solver};

/// Whether this crate was built with OR-Tools (cargo feature `cp-sat`).
pub const AVAILABLE: bool = cfg!(feature = "cp-sat");

/// All solvers of this crate; none unless [`AVAILABLE`].
pub fn solvers() -> impl Iterator<Item = &'static dyn Solver> {
    #[cfg(feature = "cp-sat")]
    static SOLVERS: [&dyn Solver; 15] = [
        &Exact,
        &Gap::NEW,
        &Gap::ON_HIGHS,
        &Gap::ON_SCIP,
        &Moccasin::NEW,
        &CheckmateIlp::NEW,
        &CheckmateIlp::ON_SCIP,
        &CheckmateIlp::ON_CP_SAT,
        &CheckmateLp::NEW,
        &CheckmateLp::HALF,
        &CheckmateLp::RANDOM,
        &CheckmateLp::RANDOMIZED,
        &Poet::NEW,
        &Poet::ON_SCIP,
        &Poet::ON_CP_SAT,
    ];
    #[cfg(not(feature = "cp-sat"))]
    static SOLVERS: [&dyn Solver; 0] = [];
    SOLVERS.iter().copied()
}

/// Offsets of buffers by CP-SAT; none unless [`AVAILABLE`].
#[must_use]
pub fn packer() -> Option<&'static dyn Packer> {
    #[cfg(feature = "cp-sat")]
    return Some(&NoOverlap);
    #[cfg(not(feature = "cp-sat"))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_solvers_exactly_where_the_library_is_linked() {
        assert_eq!(solvers().count() > 0, AVAILABLE);
        assert_eq!(packer().is_some(), AVAILABLE);
    }
}
