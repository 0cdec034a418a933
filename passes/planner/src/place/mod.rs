//! Offsets of buffers in one block of memory, or in several, with a proof.
//!
//! [`place`] takes [`Buffer`]s and [`Blocks`] and returns a [`Placement`]. One file holds one step, in this order:
//!
//! 0. `buffer`: what is placed;
//! 1. `parts`: buffers that never meet in time are placed apart, as parts; `space`: several blocks become one;
//! 2. `instance`: a part in flat arrays, sections of time instead of times;
//! 3. `heuristic`: passes over the buffers in a fixed order, each into the lowest or the tightest hole of `occupancy`; `n log n` for each
//!    of few holes; before these, of very many buffers, some in the order of time (`sweep`, into holes of `online`), which are `n log n` for each way;
//!    `windows`: where few of very many are alive together, one such pass, mended window by window;
//! 4. `minimise`: attempts between the bound and the height that the heuristics reach, in turns by
//! 5. `search`: a canonical placement within a capacity, or the proof that there is none;
//! 6. `repair`: where many buffers are tiny, a local search that places the large ones first;
//! 7. `second`: where all that gets no further, a [`Second`] of the caller is asked once.
//!
//! # Memory
//! Besides some hundred bytes for each buffer and 8 for each pair of buffers that meet in time (no search where these are more than 10 million),
//! the search remembers at most one entry of 32 to 64 bytes for every try, and two million entries in all.

mod buffer;
mod heuristic;
mod instance;
mod minimise;
mod occupancy;
mod online;
mod parts;
mod repair;
mod search;
mod second;
mod space;
mod sweep;
mod windows;

pub use self::buffer::{Blocks, Buffer, Fault, Place, PlaceError, load};
pub use self::heuristic::tries_of_passes;
pub use self::minimise::Proof;
pub use self::parts::{Options, Placement, Status, place};
pub use self::second::{Opinion, Question, Second};
