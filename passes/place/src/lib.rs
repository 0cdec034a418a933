//! Offsets of buffers in one block of memory, with a proof, in pure Rust.
//!
//! [`place`] takes [`Buffer`](remat_plan::Buffer)s and [`Blocks`](remat_plan::Blocks) and returns a
//! [`Placement`](remat_plan::Placement) with a certificate. `SolveControl` says how long and how hard to search. [`read_csv`] and
//! [`write_csv`] have MiniMalloc's format. A file holds one step, in this order:
//!
//! 1. `place`: buffers that never meet in time are placed apart, as parts; `space`: several blocks become one;
//! 2. `instance`: a part in flat arrays, sections of time instead of times;
//! 3. `heuristic`: passes over the buffers in a fixed order, each into the lowest or the tightest hole of `occupancy`; `n log n` for each
//!    of few holes; before these, of very many buffers, some in the order of time (`online`), which are `n log n` always;
//! 4. `minimise`: attempts between the bound and the height that the heuristics reach, in turns by
//! 5. `search`: a canonical placement within a capacity, or the proof that there is none;
//! 6. `repair`: where many buffers are tiny, a local search that places the large ones first;
//! 7. `second`: where all that gets no further, a [`Packer`](remat_solve::Packer) of the caller of [`place_with`] is asked once.
//!
//! What is claimed rests on one of three proofs. *Load*: at one time that much is taken, which `remat-verify` recounts. *Refutation*: the
//! search tried all canonical placements. *CP-SAT*: the packer says so.

mod control;
mod csv;
mod heuristic;
mod instance;
mod minimise;
mod occupancy;
mod online;
mod place;
mod repair;
mod search;
mod second;
mod space;

pub use csv::{BufferFile, CsvError, read_csv, write_csv};
pub use place::{Outcome, PlaceError, load, place, place_with};
