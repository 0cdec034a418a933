//! Offsets of buffers in one block of memory, with a proof, in pure Rust.
//!
//! [`place`] takes [`Buffer`](remat_plan::Buffer)s and [`Blocks`](remat_plan::Blocks) and returns a
//! [`Placement`](remat_plan::Placement) with a certificate. `SolveControl` says how long and how hard to search. [`read_csv`] and
//! [`write_csv`] have MiniMalloc's format. How buffers are placed is the matter of `remat-planner`, which knows no names, clocks and other
//! solvers; what it lacks is here:
//!
//! 1. `place`: buffers with names (without them: `nameless`), and certificates;
//! 2. `control`: deadlines and flags end the search;
//! 3. `second`: where the search gets no further, a [`Packer`](remat_solve::Packer) of the caller of [`place_with`] is asked once;
//! 4. `csv`: files.
//!
//! What is claimed rests on one of three proofs. *Load*: at one time that much is taken, which `remat-verify` recounts. *Refutation*: the
//! search tried all canonical placements. *CP-SAT*: the packer says so.

mod control;
mod csv;
mod nameless;
mod place;
mod second;

pub use csv::{BufferFile, CsvError, read_csv, write_csv};
pub use place::{Outcome, PlaceError, load, place, place_with};
