//! Tests of the contract from outside.
#![cfg(test)]

mod bottleneck;
mod certificate;
mod file;
mod instance;
mod lower;
// The problems that the checker's tests speak about.
#[path = "../../../verify/tests/it/net.rs"]
mod net;
mod problem;
mod prune;
