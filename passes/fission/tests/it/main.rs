//! Tests of fission from outside.
#![cfg(test)]

mod chains;
mod forms;
mod interpreter;
mod net;
mod rules;
mod search;
mod value;
