//! The linear relaxation of a program: what it proves, and its fractions.

use remat_plan::Evidence;

use super::proof::{self, Proof};
use super::{Program, mip};
use crate::clock::{Clock, Ended};
use crate::milp::relaxation::Relaxation;

/// A linear relaxation that was solved, or not.
pub struct Relaxed {
    /// [`Ended::Infeasible`] is proved in integers.
    pub ended: Ended,
    /// No solution of the program costs less, proved in integers.
    pub bound: i64,
    /// What both rest on.
    pub evidence: Evidence,
    /// A value for each variable, 0 where there are none; not to be trusted unless the relaxation was solved.
    pub fractions: Vec<f64>,
}

/// Solves the linear relaxation of a program, its sizes rounded so that the solver can count them.
#[must_use]
pub fn relax(program: &Program, clock: &Clock<'_>) -> Relaxed {
    let rounded = program.rounded();
    let program = &*rounded.program;
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
