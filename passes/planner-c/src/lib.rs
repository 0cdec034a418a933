//! The interface in C of `remat-planner`; `c/remat_planner.h` says what its functions do.
//!
//! ```sh
//! cargo build --release -p remat-planner-c                    # libremat_planner_c.a and .so
//! cargo build --release -p remat-planner-c --no-default-features --target thumbv7em-none-eabi
//! ```
//!
//! Without the feature `std`, memory comes from functions of the program, and a panic ends in one of them (`bare`). The library has to be built to abort
//! on panics then, as it is for targets without an operating system; on others, the program also has to define `rust_eh_personality`, which never runs.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

#[cfg(not(feature = "std"))]
#[expect(unsafe_code, reason = "functions of the program")]
mod bare;
#[expect(unsafe_code, reason = "functions that programs in C call")]
mod entry;

pub use entry::{Buffer, Dag, Pair, Value, remat_load, remat_order, remat_place};
