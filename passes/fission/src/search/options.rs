//! What a search for tilings may do, and what it found.

use std::sync::atomic::AtomicBool;
use web_time::Instant;

use remat_cost::{BodyBytes, Device, no_bodies};

use crate::{Axis, Exactness, Mode, Tiling};

/// Up to here a loaded graph takes as much as another one: tables of a runtime.
const AS_MUCH_LOADED_BYTES: u64 = 1 << 20;

/// What counts as memory of the bytes that a loaded graph takes more than another one.
#[must_use]
pub fn more_loaded(bytes: u64) -> u64 {
    if bytes > AS_MUCH_LOADED_BYTES { bytes } else { 0 }
}

/// What a search may do.
#[derive(Clone, Debug)]
pub struct SearchOptions<'a> {
    /// The device whose times and kernels count.
    pub device: &'a Device,
    /// What subgraphs take.
    pub bodies: BodyBytes,
    /// Which tiles are permitted.
    pub exactness: Exactness,
    /// Kinds of axes, in the order in which they are tried.
    pub axes: Vec<Axis>,
    /// Numbers of tiles, ascending; those below 2 are left out.
    pub tiles: Vec<u32>,
    /// Whether rows may run in tiles along columns.
    pub grids: bool,
    /// Whether all large normalizations run in two passes, where sums may be split.
    pub two_passes: bool,
    /// Whether anything may run in two passes: whether what does can be written.
    pub may_stream: bool,
    /// What may happen to rows that two tiles need.
    pub modes: Vec<Mode>,
    /// Bytes that a runtime keeps for each op of its graph: those of ops that tiles add count as memory at every time ([`more_loaded`]).
    pub op_bytes: u64,
    /// Whether fused chains may run a second time before a later op.
    pub again: bool,
    /// The most estimated time that tiling may add, in thousandths of that of the graph; `None`: any.
    pub most_overhead_permille: Option<u64>,
    /// The most tilings that are estimated; `None`: until nothing helps.
    pub evaluations: Option<u64>,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Set from outside to stop.
    pub cancelled: Option<&'a AtomicBool>,
}

impl<'a> SearchOptions<'a> {
    /// Everything is permitted but tiles that have other bits with one thread.
    #[must_use]
    pub fn new(device: &'a Device) -> Self {
        Self {
            device,
            bodies: no_bodies,
            exactness: Exactness::Exact {
                threads: 1,
                blocks: false,
            },
            axes: Axis::ALL.to_vec(),
            tiles: vec![2, 4, 8, 16],
            grids: false,
            two_passes: false,
            may_stream: true,
            modes: vec![Mode::LineBuffer, Mode::Recompute],
            op_bytes: 0,
            again: true,
            most_overhead_permille: None,
            evaluations: None,
            deadline: None,
            cancelled: None,
        }
    }
}

/// A tiling, and what it is estimated to take. Only estimates in one report compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The tiling.
    pub tiling: Tiling,
    /// Bytes at the peak of the tiled graph in reference order, with those of the ops that tiles add.
    pub peak: u64,
    /// Estimated time in millionths of that of the original graph.
    pub time_ppm: u64,
}

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchReport {
    /// Tilings of which none takes less memory in less time than another, from the fastest to the one of the lowest peak. The first one is
    /// empty: the original graph.
    pub front: Vec<Candidate>,
    /// Fused chains one behind the other, along two axes in turns, with all large tensors in pieces: it may be on no front, and yet the best one
    /// once it is planned.
    pub in_pieces: Option<Candidate>,
    /// How many tilings were estimated.
    pub evaluations: u64,
    /// Whether the search ended because nothing helped any more.
    pub is_finished: bool,
}
