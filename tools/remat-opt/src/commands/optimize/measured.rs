//! What was measured of two models in ONNX Runtime, for JSON.

use remat_onnxruntime_deploy::{Check, Measured, Outputs};
use remat_onnxruntime_run::SizesCompared;
use schemars::JsonSchema;
use serde::Serialize;

/// How the outputs of what was made compare with those of the original.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutputsCompared {
    /// Both ran, and every bit is the same.
    BitIdentical,
    /// Not compared bit by bit, because sums may be rounded in another order.
    RoundingMayDiffer,
    /// Nothing was run.
    NotCompared,
}

impl OutputsCompared {
    pub(super) fn of(check: Option<&Check>) -> Self {
        match check.map(|check| check.outputs) {
            Some(Outputs::Identical) => Self::BitIdentical,
            Some(Outputs::MayRoundOtherwise) => Self::RoundingMayDiffer,
            None => Self::NotCompared,
        }
    }
}

/// The original and what was written, measured under every optimization and the default order.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(super) struct MeasuredRecord {
    /// The original.
    pub(super) before: Peaks,
    /// What was written.
    pub(super) after: Peaks,
    /// Time of the written model over that of the original in a default session: median of runs in turns. Absent where there was no time for
    /// them.
    pub(super) time_ratio: Option<f64>,
    /// The same with arena and pattern off, where every buffer is allocated anew.
    pub(super) arena_off_time_ratio: Option<f64>,
    /// Median time of the original, in nanoseconds: in turns in a default session, or else with arena and pattern off.
    before_ns: u64,
    /// The same with arena and pattern off, in turns. Absent where there was no time for them.
    arena_off_before_ns: Option<u64>,
    /// Nanoseconds for each MiB that the system hands out for the first time: mapping, faults and giving it back.
    allocation_ns_per_mib: u64,
    /// On how many inputs bits were compared.
    seeds: usize,
    /// What came of runs at other sizes of the dimensions that the file leaves free; absent where there are none.
    pub(super) sizes: Option<SizesCompared>,
    /// Why peaks are missing, where they are.
    pub(super) unmeasured: Option<String>,
}

/// Peaks of a model, in bytes above what is live before a run; absent where they cannot be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(super) struct Peaks {
    /// Heap with memory arena and memory pattern off.
    pub(super) arena_off: Option<u64>,
    /// Heap in the first run of a default session.
    pub(super) first_run: Option<u64>,
    /// The same in later runs.
    pub(super) later_runs: Option<u64>,
    /// By how much the process grew in the first run, arena and pattern off.
    pub(super) arena_off_resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub(super) arena_off_resident_later_bytes: Option<u64>,
    /// By how much the process grew in the first run of a default session.
    pub(super) resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub(super) resident_later_bytes: Option<u64>,
}

impl From<&Measured> for Peaks {
    fn from(measured: &Measured) -> Self {
        Self {
            arena_off: measured.exact,
            first_run: measured.stock,
            later_runs: measured.stock_steady,
            arena_off_resident_first_bytes: measured.exact_resident_first_bytes,
            arena_off_resident_later_bytes: measured.exact_resident_later_bytes,
            resident_first_bytes: measured.resident_first_bytes,
            resident_later_bytes: measured.resident_later_bytes,
        }
    }
}

impl From<&Check> for MeasuredRecord {
    fn from(check: &Check) -> Self {
        Self {
            before: (&check.before).into(),
            after: (&check.after).into(),
            time_ratio: check.time_ratio,
            arena_off_time_ratio: check.exact_time_ratio,
            before_ns: check.before_ns,
            arena_off_before_ns: check.exact_before_ns,
            allocation_ns_per_mib: check.fresh_ns_per_mib,
            seeds: check.seeds,
            sizes: check.sizes.clone(),
            unmeasured: check.unmeasured.clone(),
        }
    }
}
