//! Plans of memory for runtimes: offsets of buffers in one block ([`place`]), and the order of ops that takes the least memory ([`order`]).
//!
//! A part for others: no dependencies, no standard library, no files, clock, threads or unsafe code. The answers are those of `remat-opt`,
//! which stands on it. `remat-planner-c` is its interface in C.
//!
//! A [`Limits`] ends a search: [`Tries`] counts them and asks a function of the caller now and then.
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod dense;
mod float;
mod hash;
mod limits;
pub mod order;
pub mod place;
mod rng;

pub use limits::{Limits, Tries};
pub use rng::Rng;
