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
mod nets;
mod poet;
mod sizes;
