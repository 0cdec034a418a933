//! A library that makes a stock ONNX Runtime place every buffer of a run at a planned offset of one block of memory.
//!
//! `SessionOptions.register_custom_ops_library` loads it and calls [`RegisterCustomOps`], which gives the session
//! an allocator of its own. The runtime allocates in the same order in every run, and each size is a formula of the dimensions that the model
//! leaves open. The first sizes of a run say which sizes these dimensions have; the k-th allocation is then the k-th buffer of the plan, and
//! gets its offset. What is in which file:
//!
//! | file | what it holds |
//! |---|---|
//! | `plan` | plans as text: read and written |
//! | `placement` | offsets for given sizes |
//! | `plans` | plans as runs follow them, and what they say for given dimensions |
//! | `dims` | dimensions from the sizes that a run allocates |
//! | `certain` | how many allocations it takes to know the shape of a run |
//! | `cursor` | where a run stands in the plans |
//! | `blocks` | the blocks of a session, and the runs in them: which bytes an allocation gets |
//! | `gate` | one session at a time takes its allocator |
//! | `memory` | blocks and other memory from the system |
//! | `session` | what the runtime knows as an allocator |
//! | `watch` | a thread that gives back blocks of sessions whose end nothing else shows |
//! | `messages` | what is said on the error stream |
//! | `api` | the functions of the runtime that are called |
//! | `entry` | the functions that others call |
//!
//! **A plan is a hint.** Before bytes are handed out they are checked to be free, under the lock of the session. So no plan, no other
//! version of the runtime and no race can make two live buffers overlap. What a plan does not foresee is allocated by `malloc` and counted.
//!
//! This crate is compiled twice: by cargo, for programs that write plans, and by its build script, as the library, without anything but the
//! standard library and the formulas. [`LIBRARY`] is that library.

mod blocks;
#[cfg(test)]
mod blocks_tests;
#[cfg(not(arena_library))]
mod certain;
mod cursor;
mod dims;
mod placement;
mod plan;
mod plans;

#[cfg(arena_library)]
#[path = "../../../../dialect/formula/src/formula.rs"]
mod formula;
#[cfg(not(arena_library))]
use remat_formula as formula;

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions of the runtime")]
mod api;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions that others call by name")]
mod entry;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory from the system")]
mod memory;
#[cfg(target_os = "linux")]
mod messages;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions that the runtime calls")]
mod session;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
pub use api::ApiBase;
pub use blocks::AllocationCounts;
#[cfg(not(arena_library))]
pub use certain::certain_after;
#[cfg(target_os = "linux")]
pub use entry::{RegisterCustomOps, remat_arena_events, remat_arena_stats};
pub use plan::{ALIGNMENT, ArenaPlan, ArenaPlanFile, MOST_FILE_BYTES, PlanFileError, PlannedBuffer, THREADS};
pub use plans::{Plans, Shape};
#[cfg(target_os = "linux")]
pub use session::RecordedEvent;

/// The library as a file; `None` where this crate was built for a system without it.
#[cfg(arena_embedded)]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(env!("REMAT_ARENA_LIBRARY")));
/// The library as a file; `None` where this crate was built for a system without it.
#[cfg(not(arena_embedded))]
pub const LIBRARY: Option<&[u8]> = None;
