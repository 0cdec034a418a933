//! Tests of fission from outside.
#![cfg(test)]

mod chains;
mod net;
mod rules;
mod search;
