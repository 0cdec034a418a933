//! Tests of the solvers on OR-Tools. Without the feature `cp-sat` there is nothing to test.
#![cfg(feature = "cp-sat")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail as tests do; a skipped test says so"
)]

mod agreement;
mod answers;
mod checkmate;
mod claims;
mod control;
mod exact;
mod graphs;
mod large;
mod nets;
mod poet;
mod sizes;
