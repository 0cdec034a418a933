//! What turning the memory arena off changes for a file, and whether to recommend it.
//!
//! The heap holds less then. But what the C library gave back to the system it takes anew, with a fault for each page, and what it did not give
//! back lies in gaps. So the setting is recommended only where the process was seen not to grow by more, and where the added time stays
//! within the limit, that is: beside the original model, where nothing is set.

use remat_onnxruntime_observe::no_larger_growth;
use schemars::JsonSchema;
use serde::Serialize;

use crate::deployment::Deployment;
use crate::peaks::BeforeAfter;

/// Nanoseconds for each MiB that the system hands out for the first time, where that was not measured: 1 us for a page of 4 KiB.
const FRESH_NS_PER_MIB: u64 = 256_000;

/// A written model with memory arena and memory pattern off, beside the same model in a default session.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ArenaOff {
    /// How much lower the heap peak of the first run is.
    pub saved_bytes: u64,
    /// Time beyond the original in a default session, in per cent.
    pub overhead_percent: f64,
    /// Whether that was measured; else it is estimated.
    pub is_measured: bool,
    /// The most that it may be, in per cent, where there is a limit.
    pub most_percent: Option<f64>,
    /// Growth of the process in a default session, and with the arena off; absent where it was not measured.
    pub growth: Option<BeforeAfter>,
}

impl ArenaOff {
    /// Whether the process grows by more than where nothing is set; `None` where that is not known.
    #[must_use]
    pub fn grows(&self) -> Option<bool> {
        let growth = self.growth?;
        Some(growth.after_bytes > no_larger_growth(growth.before_bytes))
    }

    /// Whether the added time is beyond the limit.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.most_percent.is_some_and(|most| self.overhead_percent > most)
    }

    /// Whether the setting is to be recommended.
    #[must_use]
    pub fn is_recommended(&self) -> bool {
        self.grows() == Some(false) && !self.is_slow()
    }
}

impl Deployment {
    /// Predicted time beyond the original model where nothing is set, in per cent, of the file with arena and pattern off: that of its
    /// plan, and the faults of pages that each run then takes anew.
    #[must_use]
    pub fn arena_off_overhead_percent(&self) -> f64 {
        let measured = self.check.as_ref();
        let price = measured.map_or(FRESH_NS_PER_MIB, |check| check.allocation_ns_per_mib);
        let run = measured.map_or(self.model.baseline().duration, |check| check.before_ns);
        self.solution.overhead.percent() + faults_percent(self.prediction.fresh_bytes, price, run)
    }

    /// What turning the arena off changes; `None` where it was not measured that the heap holds less then.
    #[must_use]
    pub fn arena_off(&self) -> Option<ArenaOff> {
        let check = self.check.as_ref()?;
        let (exact, stock) = check.after.arena_off.zip(check.after.first_run)?;
        let measured = check.arena_off_ratio().map(|ratio| 100.0 * (ratio - 1.0));
        let [off, on] = check.after.growth();
        (stock > exact).then(|| ArenaOff {
            saved_bytes: stock - exact,
            overhead_percent: measured.unwrap_or_else(|| self.arena_off_overhead_percent()),
            is_measured: measured.is_some(),
            most_percent: self.most_overhead.map(|millionths| millionths as f64 / 10_000.0),
            growth: on.most_beside(off),
        })
    }
}

/// Time for the faults of so many bytes, in per cent of a run of so many nanoseconds.
fn faults_percent(fresh_bytes: u64, ns_per_mib: u64, run_ns: u64) -> f64 {
    let nanoseconds = (u128::from(fresh_bytes) * u128::from(ns_per_mib)) >> 20;
    100.0 * nanoseconds as f64 / run_ns.max(1) as f64
}

#[cfg(test)]
#[path = "arena_off_tests.rs"]
mod tests;
