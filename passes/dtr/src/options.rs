//! How a trace is replayed.

use serde::Serialize;

use crate::Heuristic;

/// What happens when a program lets go of a storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deallocation {
    /// It is evicted at once, and can be computed again for the sake of others; constants stay.
    Eager,
    /// It is freed for good as soon as no evicted storage descends from it.
    Banish,
    /// Nothing: the heuristic has to find it.
    Keep,
}

/// How a trace is replayed. The defaults are those of the figures in the DTR paper.
#[derive(Clone, Debug)]
pub struct SimulateOptions {
    /// What is evicted.
    pub heuristic: Heuristic,
    /// What happens when the program lets go of a storage.
    pub deallocation: Deallocation,
    /// Bytes that may be resident; absent: no limit.
    pub budget: Option<u64>,
    /// The execution counts as thrashing once recomputation takes more than this limit less one, as a multiple of the base cost.
    pub thrash_limit: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for SimulateOptions {
    fn default() -> Self {
        Self {
            heuristic: Heuristic::DtrEq,
            deallocation: Deallocation::Eager,
            budget: None,
            thrash_limit: 2.0,
            seed: 0,
        }
    }
}
