//! Plans for the memory of a CUDA device.
//!
//! The runtime's CUDA provider can be told three functions, by which it gets all memory of its sessions: that of weights, of results, and what its kernels
//! work in. They know neither session nor stream, so every set of options gets functions of its own ([`slots`]). What a session requests
//! while it loads follows one plan, runs follow others, and both lie in one block of `cudaMalloc` ([`memory`]): the weights that stay at its beginning, runs
//! behind them, where what is needed only while it loads has been before.
//!
//! The provider has one stream where it has such functions, so bytes that were freed may be handed out at once: kernels get to them in order. Before a
//! block goes from one thread to another one, the device is waited for nevertheless.
//!
//! | file | what it holds |
//! |---|---|
//! | `library` | the CUDA runtime, loaded by name |
//! | `memory` | the block, and what else is taken from the device |
//! | `session` | which bytes a request gets |
//! | `slots` | the functions that the provider calls |
//! | `entry` | the functions that programs call |

#[expect(unsafe_code, reason = "functions that others call by name, and text of theirs")]
mod entry;
#[expect(unsafe_code, reason = "functions of the CUDA runtime")]
mod library;
mod memory;
mod session;
#[expect(unsafe_code, reason = "functions that the runtime calls")]
mod slots;

pub(crate) use entry::listen;
pub use entry::{
    CudaFunctions, CudaSettings, remat_cuda_close, remat_cuda_load_begins, remat_cuda_load_ends, remat_cuda_open,
};
pub(crate) use session::DeviceSession;
