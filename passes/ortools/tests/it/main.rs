//! Tests of the solvers on OR-Tools. Without the feature `cp-sat` there is nothing to test.
#![cfg(feature = "cp-sat")]

mod agreement;
mod brute;
mod claims;
mod control;
mod graphs;
mod nets;
mod sizes;
