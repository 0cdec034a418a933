//! How a session is made.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
