//! Tests of the rewrite from outside.
#![cfg(test)]

mod cases;
mod errors;
mod interpreter;
mod property;
mod support;
