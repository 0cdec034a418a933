//! Tests of fission from outside.
#![cfg(test)]

mod best;
mod chains;
mod forms;
mod net;
mod rules;
mod search;
mod softened;
mod streamed;
mod sums;
