//! Random problems, and answers that the checker has replayed.

use proptest::prelude::Strategy;
use remat_plan::{BoundCovers, Problem, Status};
use remat_solve::{Outcome, SolveControl, Solver};
use remat_testing::net::at_most_twice;
use remat_testing::random::{Features, problems};

use crate::judge::checked;

/// Random problems of up to so many ops, each of which may run twice.
pub fn random(ops: usize, features: Features) -> impl Strategy<Value = Problem> {
    problems(3..=ops, features).prop_map(at_most_twice)
}

/// Those in the setting of the papers.
pub fn paper(ops: usize) -> impl Strategy<Value = Problem> {
    random(ops, Features::PAPER)
}

/// Those with everything that an exhaustive search over scheduled ops sees.
pub fn models(ops: usize) -> impl Strategy<Value = Problem> {
    random(ops, Features::EXACT)
}

/// Solves, has the plan replayed, and returns its duration.
///
/// # Panics
/// If a claim is not what the checker finds.
pub fn solve(solver: &dyn Solver, problem: &Problem) -> (Outcome, Option<u64>) {
    let outcome = solver.solve(problem, &SolveControl::new());
    let duration = checked(problem, &outcome).map(|replay| replay.duration);
    (outcome, duration)
}

/// No plan that the bound covers beats it, and the plan is none of those that do not exist.
///
/// # Panics
/// If it is not so.
pub fn assert_honest(solver: &dyn Solver, problem: &Problem, optimum: Option<u64>) {
    let (outcome, duration) = solve(solver, problem);
    let certificate = &outcome.certificate;
    let message = format!("{} {certificate:?} {optimum:?}\n{problem:?}", solver.name());
    assert!(
        duration.is_none_or(|duration| optimum.is_some_and(|optimum| optimum <= duration)),
        "{message}"
    );
    if certificate.bound_covers != BoundCovers::CandidateSet {
        assert!(optimum.is_none_or(|optimum| certificate.bound <= optimum), "{message}");
        assert!(
            certificate.status != Status::Infeasible || optimum.is_none(),
            "{message}"
        );
        assert!(
            certificate.status != Status::Optimal || duration == optimum,
            "{message}"
        );
    }
}
