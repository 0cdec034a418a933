//! Plans as compact binary schedules, for devices that follow them step by step.
//!
//! A schedule says in a few hundred bytes what runs, what is freed, and what moves to a second memory and back; one with a block says where
//! everything lies. The format is
//! described in `docs/schedule.md`. The reader, [`Schedule`], needs neither the standard library nor an allocator, and so do its sibling in C
//! (`c/remat_schedule.h`) and the devices that both are for. Writing is for hosts (feature `write`, on by default).
//!
//! # Guarantees
//! - [`Schedule::open`] accepts exactly what the format allows: any other bytes end in a [`FormatError`], never in a panic, and
//!   nothing is read outside of them. What it accepts can be read to the end without further errors.
//! - A plan that is written and read again is the same plan, step by step.
#![no_std]

#[cfg(feature = "write")]
extern crate std;

mod format;
mod read;
#[cfg(feature = "write")]
mod write;

pub use read::{Block, FormatError, Schedule, Sizes, Step, Steps};
#[cfg(feature = "write")]
pub use write::{Numbering, PlanPeaks, WriteError, encode, placement_of, plan_of};
