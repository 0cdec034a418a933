//! Plans of memory for runtimes: offsets of buffers in one block ([`place`]), and the order of ops that takes the least memory ([`order`]).
//!
//! A part for others: no dependencies, no standard library, no files, clock, threads or unsafe code. The answers are those of `remat-opt`,
//! which stands on it. `remat-planner-c` is its interface in C.
//!
//! ```
//! use remat_planner::Tries;
//! use remat_planner::place::{Blocks, Buffer, Options, place};
//!
//! let buffers = [Buffer::new(4096, 0..2), Buffer::new(1024, 1..4), Buffer::new(2048, 2..4)];
//! let placed = place(&buffers, &Blocks::Lowest, Options::default(), &mut Tries::at_most(100_000))?;
//! assert_eq!(placed.height, Some(5120));
//! # Ok::<(), remat_planner::place::PlaceError>(())
//! ```
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
