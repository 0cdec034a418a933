//! Tests of the checker from outside.
#![cfg(test)]

mod block;
mod corpus;
mod explain;
mod inspect;
mod mutation;
mod oracle;
mod placement;
mod rules;
