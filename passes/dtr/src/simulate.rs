//! Replaying a trace under a budget.

use serde::Serialize;

use crate::runtime::{Runtime, Stop};
use crate::{Deallocation, SimulateOptions, Trace};

/// How a replay ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SimulateStatus {
    /// The program came to its end.
    Ok,
    /// The budget was exceeded with nothing left to evict.
    Oom,
    /// Recomputation exceeded its limit.
    Thrash,
}

/// What a replay found. After a failure, the figures are those up to then.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Simulation {
    /// How it ended.
    pub status: SimulateStatus,
    /// The budget in bytes.
    pub budget: Option<u64>,
    /// Time of all runs, as a multiple of the base cost; 1 for a program that takes no time.
    pub overhead: f64,
    /// Time of recomputation in nanoseconds.
    pub recompute_ns: u64,
    /// Bytes resident at most.
    pub peak: u64,
    /// Storages evicted for want of memory.
    pub evictions: u64,
    /// Ops that ran again.
    pub recomputes: u64,
}

/// Replays a trace.
#[must_use]
pub fn simulate(trace: &Trace, options: &SimulateOptions) -> Simulation {
    let mut runtime = Runtime::new(trace, options);
    let status = match runtime.execute() {
        Ok(()) => SimulateStatus::Ok,
        Err(Stop::OutOfMemory) => SimulateStatus::Oom,
        Err(Stop::Thrash | Stop::Interrupted) => SimulateStatus::Thrash,
    };
    let base = trace.base_cost();
    let overhead = if base == 0 {
        1.0
    } else {
        runtime.elapsed() as f64 / base as f64
    };
    Simulation {
        status,
        budget: options.budget,
        overhead,
        recompute_ns: runtime.recompute_ns,
        peak: runtime.peak,
        evictions: runtime.evictions,
        recomputes: runtime.recomputes,
    }
}

/// Bytes that a program takes without a budget, if it frees for good what it lets go of: what ratios of memory refer to.
#[must_use]
pub fn base_peak(trace: &Trace) -> u64 {
    let options = SimulateOptions {
        deallocation: Deallocation::Banish,
        ..SimulateOptions::default()
    };
    simulate(trace, &options).peak
}
