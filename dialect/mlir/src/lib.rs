//! MLIR functions to and from the graph of the passes.
//!
//! [`Function::bodies`] are the blocks of a function over ranked tensors. [`Body::import`] reads one as a [`remat_ir::Graph`]; [`Imported::apply`] rewrites
//! it to match a rewritten graph: operations in its order, clones for its `recompute` ops, `remat.dealloc` markers for its
//! `dealloc` ops. Of a bufferized function, [`Function::buffers`] are what it allocates, to be put into one block, and
//! [`Function::blocks`] the views of such blocks, with what the uses of each say about its life. [`Session`] parses, runs pipelines and prints, for programs that are not plugins.
//!
//! # How a function becomes a graph
//! - A value has memory of its own, except views (`tensor.expand_shape`, `tosa.reshape`, …), which share the memory of their operand.
//!   Constants, scalars and the arguments of the function take no memory of the run.
//! - An operation that only prepares the destination of another one (`tensor.empty`, a `linalg.fill` of it) is part of the same op:
//!   bufferization makes one buffer of them.
//! - An operation of StableHLO that its compilers fuse into its only reader is part of the same op (`src/fusion.rs`).
//! - An operation with regions is one op. Outer values that it reads inside are captures. [`Imported::regions`] are those regions that can be read
//!   like the blocks of a function; what such a block reads from outside are inputs of its graph.
//! - What other blocks read of a block is an output of its graph. [`outside`] tells what is live across each.
//! - Operations with side effects keep their order among each other and are never recomputed. Operations of dialects that are not loaded
//!   are judged by their names.
//!
//! Without the feature `llvm` the crate is empty.

#[cfg(feature = "llvm")]
mod alias;
#[cfg(feature = "llvm")]
mod apply;
#[cfg(feature = "llvm")]
mod attributes;
#[cfg(feature = "llvm")]
mod blocks;
#[cfg(feature = "llvm")]
mod bodies;
#[cfg(feature = "llvm")]
mod body;
#[cfg(feature = "llvm")]
mod buffers;
#[cfg(feature = "llvm")]
mod calls;
#[cfg(feature = "llvm")]
mod effects;
#[cfg(feature = "llvm")]
mod error;
#[cfg(feature = "llvm")]
mod ffi;
#[cfg(feature = "llvm")]
mod function;
#[cfg(feature = "llvm")]
mod fusion;
#[cfg(feature = "llvm")]
mod held;
#[cfg(feature = "llvm")]
mod import;
#[cfg(feature = "llvm")]
mod indexing;
#[cfg(feature = "llvm")]
mod live;
#[cfg(feature = "llvm")]
mod lowered;
#[cfg(feature = "llvm")]
mod nested;
#[cfg(feature = "llvm")]
mod positions;
#[cfg(feature = "llvm")]
mod regions;
#[cfg(feature = "llvm")]
mod session;
#[cfg(feature = "llvm")]
mod types;
#[cfg(feature = "llvm")]
mod units;

#[cfg(feature = "llvm")]
pub use apply::ApplyOptions;
#[cfg(feature = "llvm")]
pub use blocks::{BlockError, BlockViews, ViewOfBlock};
#[cfg(feature = "llvm")]
pub use body::Body;
#[cfg(feature = "llvm")]
pub use buffers::{BlockSource, Buffers, Obstacle, OtherBuffer, StaticBuffer};
#[cfg(feature = "llvm")]
pub use calls::Call;
#[cfg(feature = "llvm")]
pub use error::{ApplyError, Diagnosed, ImportError};
#[cfg(feature = "llvm")]
pub use function::{Function, Severity};
#[cfg(feature = "llvm")]
pub use import::{ImportOptions, Imported};
#[cfg(feature = "llvm")]
pub use live::{Outside, outside};
#[cfg(feature = "llvm")]
pub use lowered::FormerBody;
#[cfg(feature = "llvm")]
pub use nested::{RegionKind, Regions};
#[cfg(feature = "llvm")]
pub use session::{Message, Parsed, Session, SessionError};
