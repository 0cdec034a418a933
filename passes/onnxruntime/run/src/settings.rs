//! How a session is made, and how often and at which shapes its model runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use remat_formula::Ranges;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::planned::ArenaLibrary;
use crate::shared_arena::SharedArena;

/// How much the runtime rewrites a model when it loads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptimizationLevel {
    /// Nothing: nodes run as they stand in the file.
    Off,
    /// Constant folding, common subexpressions, redundant nodes.
    Basic,
    /// Basic, and fusion into the runtime's own operators.
    Extended,
    /// Extended, and layouts: the runtime's default.
    All,
}

impl fmt::Display for OptimizationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Basic => "basic",
            Self::Extended => "extended",
            Self::All => "all",
        })
    }
}

/// What executes the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// The runtime's own kernels on the processor.
    #[default]
    Cpu,
    /// CUDA on the GPU of this number. Only libraries that were built for it have it.
    Cuda(i32),
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(device) => write!(f, "cuda:{device}"),
        }
    }
}

/// How a session is made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionSettings {
    /// Graph optimization level.
    pub level: OptimizationLevel,
    /// Whether the runtime keeps memory in an arena (`enable_cpu_mem_arena`).
    pub arena: bool,
    /// Whether it plans one block for all intermediate results from the second run on (`enable_mem_pattern`).
    pub memory_pattern: bool,
    /// Threads within one node (`intra_op_num_threads`); 0 lets the runtime choose. Nodes run one after the other.
    pub threads: usize,
    /// Values of symbolic dimensions, for inputs that are made up; 1 where none is given.
    pub dims: BTreeMap<String, u64>,
    /// What executes the nodes.
    pub provider: Provider,
    /// The arena library, where the session has it; it takes the place of the runtime's arena and turns the memory pattern off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arena_library: Option<ArenaLibrary>,
    /// The arena of the environment that the session takes in the place of its own, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_arena: Option<SharedArena>,
}

impl SessionSettings {
    /// Settings in which a model takes what its tensors and kernels need, and gives the same bits in every run: no arena, no
    /// memory pattern, one thread, on the processor.
    #[must_use]
    pub fn exact(level: OptimizationLevel) -> Self {
        Self {
            level,
            arena: false,
            memory_pattern: false,
            threads: 1,
            dims: BTreeMap::new(),
            provider: Provider::Cpu,
            arena_library: None,
            shared_arena: None,
        }
    }

    /// What a user gets who sets nothing, except that one thread runs: every optimization, arena and memory pattern on.
    #[must_use]
    pub fn stock() -> Self {
        Self {
            arena: true,
            memory_pattern: true,
            ..Self::exact(OptimizationLevel::All)
        }
    }
}

/// How a process is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LedgerOptions {
    /// Runs, two at least.
    pub runs: u32,
    /// Files of weights that the model may map.
    pub data: BTreeSet<PathBuf>,
}

/// How often and on what a model runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MeasureOptions {
    /// Warm runs after the first, at least one.
    pub runs: u32,
    /// Seeds of the inputs: memory and time are measured on those of the first, outputs are taken of each.
    pub seeds: Vec<u64>,
    /// Time for all runs but the first, if it is limited: what would not end in time is left out. Seeds
    /// come before warm runs.
    pub time: Option<Duration>,
}

impl Default for MeasureOptions {
    /// Three warm runs, seed 0, however long they take.
    fn default() -> Self {
        Self {
            runs: 3,
            seeds: vec![0],
            time: None,
        }
    }
}

/// How often two models run in turns, and on what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PairOptions {
    /// Warm runs of each, at least one.
    pub pairs: u32,
    /// Seed of the inputs.
    pub seed: u64,
    /// Time for all pairs after the first, if it is limited.
    pub time: Option<Duration>,
}

/// How two models are compared that may round otherwise.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CloseOptions {
    /// Seeds of ordinary inputs; inputs of other kinds are made of those of the first one.
    pub seeds: Vec<u64>,
    /// The largest relative difference that is no fault.
    pub limit: f64,
    /// Time for all inputs after the first, if it is limited.
    pub time: Option<Duration>,
}

/// At which shapes runs are recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RecordOptions {
    /// Sizes of the dimensions that the model leaves open; [`complete_ranges`](crate::complete_ranges) says those of others.
    pub ranges: Ranges,
    /// Whether runs of more shapes are recorded than of that of the settings, and others.
    pub walks: bool,
    /// Shapes that are run after those that tell how the dimensions go together.
    pub others: Vec<BTreeMap<String, u64>>,
    /// So many shapes are run in any case.
    pub least: usize,
    /// No other one is begun when those after the first have taken so long.
    pub time: Option<Duration>,
    /// A file whose parts are recorded that runs read: that of the weights.
    #[serde(default)]
    pub weights: Option<PathBuf>,
}

/// At which sizes two models are compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Sizes {
    /// One below and one above of every dimension that the first one leaves open, but for those that are fixed on purpose in the second one. The
    /// sizes of the settings are those that are known to work; a size at which the first model does not run is no size of it, and another one is
    /// tried.
    Around {
        /// Dimensions that are fixed on purpose.
        fixed: BTreeSet<String>,
    },
    /// At these, one after the other.
    These {
        /// Sizes of dimensions; those of the settings where one is not named.
        shapes: Vec<BTreeMap<String, u64>>,
        /// No other one is begun after so long.
        time: Option<Duration>,
    },
}

/// How two models are compared at several sizes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CompareSizes {
    /// At which.
    pub sizes: Sizes,
    /// Seed of the inputs.
    pub seed: u64,
    /// The arena library of the second one's session, where it has one.
    pub arena_library: Option<ArenaLibrary>,
    /// The level of the first one's session, where it is another one.
    pub base_level: Option<OptimizationLevel>,
}

impl CompareSizes {
    /// At a size below and one above of what is open, but for what is `fixed` on purpose.
    #[must_use]
    pub fn around(fixed: &BTreeSet<String>, seed: u64) -> Self {
        Self {
            sizes: Sizes::Around { fixed: fixed.clone() },
            seed,
            arena_library: None,
            base_level: None,
        }
    }
}
