//! Why a graph cannot be tiled as asked for.

use remat_files::shown;
use remat_ir::SizeError;
use thiserror::Error;

use crate::rules::NotSplit;

/// Why a tiling does not fit its graph. Every message names the op.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FissionError {
    /// A tiling names an op that the graph does not have.
    #[error("the tiling names op `{}`, which the graph does not have", shown(.0))]
    UnknownOp(String),
    /// A fused chain ends before it begins.
    #[error("the fused chain from `{first}` ends at `{last}`, which stands before it", first = shown(.first), last = shown(.last))]
    Backwards {
        /// Its first op.
        first: String,
        /// Its last op.
        last: String,
    },
    /// An op named as a normalization in two passes is none, or not the last op of one.
    #[error("`{}` is not the last op of a normalization over an image, which could run in two passes", shown(.0))]
    NotStreamed(String),
    /// An op cannot run earlier.
    #[error("`{op}` cannot run before `{before}`: it has effects, or reads what is made later", op = shown(.op), before = shown(.before))]
    NotMoved {
        /// The op.
        op: String,
        /// The earlier one.
        before: String,
    },
    /// Two fused chains have an op in common.
    #[error("`{}` is in two fused chains", shown(.0))]
    Overlap(String),
    /// A fused chain of fewer than two tiles.
    #[error("the fused chain from `{first}` has {tiles} tiles: at least 2 are needed", first = shown(.first))]
    FewTiles {
        /// Its first op.
        first: String,
        /// The number of tiles.
        tiles: u32,
    },
    /// An op that must run once runs again.
    #[error("`{}` must not run more than once", shown(.0))]
    RunsOnce(String),
    /// A result has no axis of the kind, or fewer rows along it than there are tiles.
    #[error("result `{tensor}` cannot be cut into {tiles} tiles along {axis}", tensor = shown(.tensor))]
    NoAxis {
        /// The result.
        tensor: String,
        /// The axis asked for, in words.
        axis: String,
        /// The number of tiles.
        tiles: u32,
    },
    /// An op cannot be split where the tiling needs it.
    #[error(transparent)]
    NotSplit(#[from] NotSplit),
    /// A tile of an op would differ bitwise from its part of the whole.
    #[error("{rows} rows of `{op}` along axis {axis} would differ bitwise from those of the whole op", op = shown(.op))]
    OtherBits {
        /// The op.
        op: String,
        /// The axis of its result.
        axis: usize,
        /// Rows of the tile.
        rows: u64,
    },
    /// The runtime would compute a tile in another form than the whole.
    #[error("the result of `{}` would differ bitwise: beside tiles, ONNX Runtime computes it in another form", shown(.0))]
    OtherForm(String),
    /// The graph has tiles already.
    #[error("`{}` is a tile already: start from the graph before it was tiled", shown(.0))]
    AlreadyTiled(String),
    /// The graph has a plan applied to it.
    #[error("`{}` belongs to a plan: tile the graph before it is planned", shown(.0))]
    Planned(String),
    /// A size does not fit 64 bits.
    #[error(transparent)]
    Size(#[from] SizeError),
}
