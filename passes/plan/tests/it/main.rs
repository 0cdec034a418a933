//! Tests of the contract from outside.
#![cfg(test)]

mod bottleneck;
mod certificate;
mod file;
mod instance;
mod lower;
mod problem;
mod prune;
