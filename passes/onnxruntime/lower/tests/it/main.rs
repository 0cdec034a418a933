//! What is done to a file for the runtime.
#![expect(clippy::panic, reason = "the helpers of tests fail like tests")]

mod listing;
mod order;
mod pages;
mod support;
