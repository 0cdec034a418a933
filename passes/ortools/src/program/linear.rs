//! The linear relaxation of a program: what it proves, and its fractions.

use remat_plan::Evidence;

use super::proof::{self, Proof};
use super::rounded::Countable;
use super::{Program, mip};
use crate::clock::{Clock, Ended};
use crate::milp::relaxation::Relaxation;

/// A linear relaxation that was solved, or not.
pub(crate) struct Relaxed {
    /// [`Ended::Infeasible`] is proved in integers.
    pub(crate) ended: Ended,
    /// No solution of the program costs less, proved in integers.
    pub(crate) bound: i64,
    /// What both rest on.
    pub(crate) evidence: Evidence,
    /// A value for each variable, 0 where there are none; not to be trusted unless the relaxation was solved.
    pub(crate) fractions: Vec<f64>,
}

/// Solves the linear relaxation of a program.
pub(crate) fn relax(program: &Countable<'_>, clock: &Clock<'_>) -> Relaxed {
    let program = &*program.program;
    let nothing = |ended| Relaxed {
        ended,
        bound: 0,
        evidence: Evidence::ExactIntegers,
        fractions: vec![0.0; program.cost.len()],
    };
    if let Some(ended) = clock.ended() {
        return nothing(ended);
    }
    let Some(mut relaxation) = Relaxation::new(&mip::program(program)) else {
        return nothing(Ended::Failed);
    };
    let (ended, solution) = relaxation.solve(clock);
    if ended == Ended::Infeasible {
        return nothing(refuted(program, &mut relaxation, clock));
    }
    // Multipliers of a solve that was stopped prove something, too.
    let proof = Proof::of(program, &solution.multipliers);
    Relaxed {
        ended,
        bound: proof.map_or(0, |proof| proof.bound()),
        evidence: Evidence::ExactIntegers,
        fractions: solution.columns,
    }
}

/// What is left of the claim that the relaxation of a program, as it was solved last, has no solution, once it is checked in integers:
/// [`Ended::Infeasible`] or [`Ended::Unproved`].
pub(crate) fn refuted(program: &Program, relaxation: &mut Relaxation, clock: &Clock<'_>) -> Ended {
    let ray = relaxation.ray(clock);
    if ray.is_some_and(|ray| proof::refutes(program, &ray)) {
        return Ended::Infeasible;
    }
    tracing::info!("that a linear relaxation has no solution is not proved in integers");
    clock.ended().unwrap_or(Ended::Unproved)
}
