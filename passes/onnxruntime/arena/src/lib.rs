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
//! | `lines` | what stands in lines of that |
//! | `need` | bytes of buffers and of runs |
//! | `placement` | offsets for given sizes |
//! | `ceiling` | what runs of any sizes within ranges need at most |
//! | `plans` | plans as runs follow them, and what they say for given dimensions |
//! | `dims` | dimensions from the sizes that a run allocates |
//! | `certain` | how many allocations it takes to know the shape of a run |
//! | `cursor` | where a run stands in the plans |
//! | `pages` | which bytes of a block are in use |
//! | `block` | a block, the run in it, and what is reserved for it |
//! | `blocks` | the blocks of a session, and the runs in them: which bytes an allocation gets |
//! | `share` | one block for the runs of several sessions or processes, in turns |
//! | `address_space` | address space from the system, and files in memory |
//! | `ledger` | what the runs of the process have reserved, and who waits: who is next, and who is refused |
//! | `limit` | the ledger behind a lock, and threads that wait for it |
//! | `account` | what a session asks of the ledger, and what it got |
//! | `counts` | numbers that programs read |
//! | `gate` | one session at a time takes its allocator |
//! | `memory` | blocks and other memory from the system |
//! | `failing` | how an allocation fails, so that the runtime ends the run and not the process |
//! | `session` | what the runtime knows as an allocator |
//! | `counted` | all sessions, by number |
//! | `cuda` | the same for the memory of a CUDA device |
//! | `read` | files of plans |
//! | `watch` | a thread that gives back blocks of sessions whose end nothing else shows |
//! | `uses` | the weights that a run reads, as lines of a plan |
//! | `schedule` | which weights stay, and when others are asked for and dropped |
//! | `stream` | a thread that does so |
//! | `mapped` | where a file is mapped, and which pages are there |
//! | `advice` | what the system is told of weights |
//! | `touches` | which weights a run reads: recorded |
//! | `messages` | what is said on the error stream |
//! | `paging` | a second memory: operators that move tensors there and back |
//! | `api` | the functions of the runtime that are called |
//! | `entry` | the functions that others call |
//!
//! **A plan is a hint.** Before bytes are handed out they are checked to be free, under the lock of the session. So no plan, no other
//! version of the runtime and no race can make two live buffers overlap. What a plan does not foresee is allocated by `malloc` and counted.
//!
//! **A limit is kept by waiting.** With the session config entry `remat.arena.limit`, a run of the session goes on only where all runs of the
//! process together, of all sessions, have no more than so many bytes. Sessions may state different limits; the bytes are counted once, and each
//! run is held against the limit of its session. Sessions without one count, and never wait. What counts: of a block what the run in it needs
//! from its first buffer to its last one that is no output, and then the pages that are in use; all buffers of runs outside of blocks, those that no plan
//! foresees, too. What does not: what sessions allocate while they load, what is allocated past this library, and the parts of pages
//! around live buffers whose surroundings were given back. A run that has no room waits, or with `remat.arena.limit.action` = `fail` is
//! refused; one that never has room is refused. A refused run ends with a status that says why. Where nodes run at one time
//! (`ORT_PARALLEL`), no allocation waits.
//!
//! **Several sessions may have one block.** With the session config entry `remat.arena.share`, runs of these sessions take turns in it: a run waits
//! before its first buffer there, and leaves when nothing of it is live there. Outputs lie outside. What may not wait (runs of one session at one
//! time, a run within another one, `ORT_PARALLEL`, a child process) has its buffers outside, too.
//!
//! **What loading left goes.** While a session loads, large pieces of memory are mapped one by one, where the C library can do that: what a weight
//! is packed in goes back to the system as soon as it is freed. When a session runs for the first time, the free memory of the heap goes back,
//! too: what was needed only to load models.
//!
//! **Weights need not stay.** With the session config entry `remat.weights.resident`, at most about so many bytes of the file of the weights
//! stay in the memory: a part for ever, and of the others what a run reads, and what comes next. A weight is dropped by advice that keeps what
//! memory holds, so a wrong guess costs time and nothing else. Without the entry nothing is done.
//!
//! **The memory of a CUDA device is planned in the same way**, through three functions that the CUDA provider of the runtime calls in the place of
//! its arena ([`remat_cuda_open`]): results of runs and weights, which it requests there, too, lie in one block of `cudaMalloc`.
//!
//! This crate is compiled twice: by cargo, for programs that write plans, and by its build script, as the library, without anything but the
//! standard library and the formulas. [`LIBRARY`] is that library.

// The library is for Linux: elsewhere this crate reads and writes plans.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod account;
mod block;
mod blocks;
#[cfg(test)]
mod blocks_tests;
mod ceiling;
#[cfg(not(arena_library))]
mod certain;
mod counts;
mod cursor;
mod dims;
#[cfg(test)]
mod fake;
mod ledger;
#[cfg(test)]
mod ledger_tests;
mod limit;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod limited_tests;
mod lines;
mod need;
mod pages;
mod placement;
mod plan;
mod plans;
mod schedule;
mod uses;

// Links to the files of `remat-formula`.
#[cfg(arena_library)]
mod formula;
#[cfg(arena_library)]
mod parts;
#[cfg(not(arena_library))]
use remat_formula as formula;
#[cfg(not(arena_library))]
use remat_formula as parts;

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory from the system")]
mod address_space;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "advice to the system")]
mod advice;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions of the runtime")]
mod api;
#[cfg(target_os = "linux")]
mod counted;
#[cfg(target_os = "linux")]
mod cuda;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions that others call by name")]
mod entry;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions of the C library, and a frame that is left")]
mod failing;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
mod mapped;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "memory from the system")]
mod memory;
#[cfg(target_os = "linux")]
mod messages;
#[cfg(target_os = "linux")]
mod paging;
#[cfg(target_os = "linux")]
mod read;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "functions that the runtime calls")]
mod session;
#[cfg(target_os = "linux")]
mod share;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a signal, and the protection of memory")]
mod touches;
#[cfg(target_os = "linux")]
mod watch;

#[cfg(target_os = "linux")]
pub use api::ApiBase;
#[cfg(not(arena_library))]
pub use certain::{certain_after, first_block_bytes};
pub use counts::{AllocationCounts, RecordedEvent};
#[cfg(target_os = "linux")]
pub use cuda::{
    CudaFunctions, CudaSettings, remat_cuda_close, remat_cuda_load_begins, remat_cuda_load_ends, remat_cuda_open,
};
#[cfg(target_os = "linux")]
pub use entry::{
    RegisterCustomOps, remat_arena_events, remat_arena_stats, remat_arena_trim, remat_arena_weights,
    remat_arena_weights_begin,
};
pub use lines::PlanFileError;
#[cfg(target_os = "linux")]
pub use memory::trim_heap;
#[cfg(target_os = "linux")]
pub use paging::{Moved, SecondMemory};
pub use plan::{
    ALIGNMENT, ArenaPlan, ArenaPlanFile, CUDA_ALIGNMENT, CudaPlan, MOST_FILE_BYTES, PlannedBuffer, THREADS,
};
pub use plans::{Plans, Shape};
pub use uses::{PlannedWeights, WeightUse};

/// The library as a file; `None` where this crate was built for a system without it.
#[cfg(arena_embedded)]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(env!("REMAT_ARENA_LIBRARY")));
/// The library as a file; `None` where this crate was built for a system without it.
#[cfg(not(arena_embedded))]
pub const LIBRARY: Option<&[u8]> = None;
