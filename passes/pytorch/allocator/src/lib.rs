//! PyTorch's caching allocator for CUDA devices, simulated: what it reserves for a sequence of allocations, to the byte, on machines without such a
//! device.
//!
//! The allocator hands out *blocks* of *segments*. A segment is what it takes from the device in one piece; blocks are what segments are cut into.
//! Freed blocks are kept and given out again, so what a program reserves is more than what it has allocated. The rules were read in
//! `c10/cuda/CUDACachingAllocator.cpp`, and the tests hold them against what PyTorch 2.11 did on an NVIDIA H200, allocation by
//! allocation (`test/torch/cuda`).
//!
//! | file | what it holds |
//! |---|---|
//! | `settings` | `PYTORCH_CUDA_ALLOC_CONF` |
//! | `sizes` | what requests are rounded to, and what is taken from the device for them |
//! | `blocks` | blocks, their neighbours, and the pools of free ones |
//! | `memory` | what is taken from the device |
//! | `allocator` | allocating and freeing |
//! | `expandable` | segments that grow |
//! | `release` | what goes back to the device |
//! | `figures` | counts, and what happened |
//! | `requests` | a sequence of requests |
//! | `replay` | a recorded sequence, held against the simulation |
//!
//! # Limits
//! What is freed while another stream uses it comes back when [`Allocator::complete`] says so: the simulation has no clock. Kernels and libraries that
//! take memory past the allocator, and the context of the device, are not in it.

mod allocator;
mod blocks;
mod expandable;
mod figures;
mod memory;
mod release;
mod replay;
mod requests;
mod settings;
mod sizes;

pub use allocator::{Allocator, Misuse, OutOfMemory};
pub use figures::{Event, Figures, Segment, SegmentBlock};
pub use memory::Device;
pub use replay::{Divergence, Entry, Replayed, replay, requests};
pub use requests::{Outcome, Request, simulate};
pub use settings::{Settings, SettingsError};
pub use sizes::{rounded, taken};
