//! What is asked of fission.

use remat_fission::{Axis, Exactness};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What fused chains may be run tile by tile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FissionRequest {
    /// Whether every bit stays in the kernels of ONNX Runtime. Of others it is said that tiles keep bits: they add up each number by itself.
    pub exactness: Exactness,
    /// Numbers of tiles to try; empty: those that the search likes.
    pub tiles: Vec<u32>,
    /// Axes to cut; empty: all.
    pub axes: Vec<Axis>,
    /// Whether rows may run in tiles along columns.
    #[serde(default)]
    pub grids: bool,
    /// Whether all large normalizations over images run in two passes, because the kernels that the model has for them are not for outputs.
    #[serde(default)]
    pub two_passes: bool,
    /// Bytes that the runtime keeps for each op of a loaded graph: where the lowest peak is asked for, those of ops that tiles add count.
    #[serde(default)]
    pub op_bytes: u64,
}

impl FissionRequest {
    /// Threads with which bits stay unless others are asked for.
    pub const EXACT_THREADS: u32 = 64;

    /// Every bit stays, with one to [`Self::EXACT_THREADS`] threads.
    pub const EXACT: Self = Self {
        exactness: Exactness::Exact {
            threads: Self::EXACT_THREADS,
            blocks: false,
        },
        tiles: Vec::new(),
        axes: Vec::new(),
        grids: false,
        two_passes: false,
        op_bytes: 0,
    };
}
