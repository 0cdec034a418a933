//! Tests of the solvers on OR-Tools. Without the feature `cp-sat` there is nothing to test.
#![cfg(feature = "cp-sat")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod agreement;
mod answers;
mod checkmate;
mod claims;
mod control;
mod exact;
mod large;
mod place;
mod poet;
mod sizes;

use remat_solve::{Domain, Solver};

fn solvers_for_time() -> impl Iterator<Item = &'static dyn Solver> {
    remat_ortools::solvers().filter(|solver| solver.domain() == Domain::Time)
}
