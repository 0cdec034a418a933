//! Tests of fission.

mod chains;
mod interpreter;
mod net;
mod rules;
mod search;
mod value;
