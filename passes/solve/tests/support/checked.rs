//! The claims of an answer, held against the checker.

use proptest::prelude::*;
use remat_plan::{Problem, Status};
use remat_solve::Outcome;
use remat_verify::{Replay, replay};

/// Replays the plan of an outcome, if there is one, and compares it with the claims.
pub(crate) fn checked(problem: &Problem, outcome: &Outcome) -> Result<Option<Replay>, TestCaseError> {
    let Some(plan) = &outcome.plan else {
        prop_assert_eq!(outcome.certificate.objective, None);
        prop_assert!(matches!(
            outcome.certificate.status,
            Status::Infeasible | Status::Unknown
        ));
        return Ok(None);
    };
    let replayed = replay(problem, plan).map_err(|rejection| TestCaseError::fail(rejection.to_string()))?;
    let certificate = &outcome.certificate;
    prop_assert_eq!(certificate.objective, Some(replayed.duration));
    prop_assert!(certificate.bound <= replayed.duration);
    prop_assert!(outcome.lowest_peak.is_some_and(|peak| replayed.peak <= peak));
    prop_assert!(matches!(certificate.status, Status::Feasible | Status::Optimal));
    prop_assert_eq!(&certificate.problem, &problem.digest());
    Ok(Some(replayed))
}
