//! Fission: fused chains of a graph that run tile by tile, so that results which are the peak of memory never exist whole.
//!
//! A [`Tiling`] names fused chains of ops and says in how many tiles along which axis each runs. [`apply`] makes a graph of it in which tile `t` of
//! a fused chain stands wholly before tile `t + 1`: clones of ops that compute rows of a result ([`remat_ir::Part`]), `Slice` ops that take rows
//! from what holds them, and `Concat` ops that put rows together. Between fused chains tensors stay in pieces until somebody needs all of one.
//!
//! ```text
//! conv1 -> relu -> conv2        conv1_tile0 -> relu_tile0 -> conv2_tile0   conv1_tile1 -> relu_tile1 -> conv2_tile1 -> concat
//! ```
//!
//! The tiles of a fused chain may run in tiles themselves, along another axis ([`Within`]): then the fused chains of the tiled graph, one for each tile, are
//! tiled in their turn.
//!
//! Where every bit must stay, rows of images are put back into ONNX Runtime's blocks of channels by pools of single elements (`blocks`).
//!
//! A normalization over an image and a softmax may run in two passes ([`Tiling::streamed`]), and sums may be split, where [`Exactness::Close`] permits it.
//!
//! Rows that two tiles need, those around a window, are computed twice or handed on ([`Mode`]). A fused chain may also run a second time before
//! a later op ([`Again`]), so that the skip of a U-Net is tiled together with what reads it.
//!
//! [`split()`] holds the rules: which rows of operands an op needs for rows of its result. [`Exactness`] says which tiles have the bits of the
//! whole in ONNX Runtime. [`by_member`] proves with the same rules that a model computes the members of a batch apart. [`search()`] finds tilings by the cost model and the replayed reference order; [`bound()`] says what no tiling can go below.
//!
//! The way of a tiling through the modules: `streamed` puts normalizations and, with `softened`, softmaxes and, with `best`, searches for the largest elements in two passes, `moved` lets ops run earlier, `repeat` adds clones of fused chains, `course` works out rows tile by tile with the rules in `rules`
//! and the condition in `exact`, `pieces` writes what they say.

mod apply;
mod best;
mod blocks;
mod bound;
mod course;
mod error;
mod exact;
mod forms;
mod held;
mod layout;
mod members;
mod moved;
mod names;
mod once;
mod pieces;
mod repeat;
mod rules;
mod search;
mod sizes;
mod softened;
mod stated;
mod streamed;
mod sum_up;
mod sums;
mod transfer;

pub use apply::apply;
pub use bound::{Bound, bound};
pub use error::FissionError;
pub use exact::{Exactness, is_limited_by_threads};
pub use members::{Batch, BatchSample, NotByMember, NotIndependent, WhyMixed, by_member, fix};
pub use once::{BoundOnce, bound_once};
pub use remat_plan::{Again, Axis, FusedChain, Mode, Moved, Tiling, Within};
pub use rules::{Cut, Integers, Need, NotSplit, Reason, split};
pub use search::{Candidate, SearchOptions, SearchReport, more_loaded, search};
