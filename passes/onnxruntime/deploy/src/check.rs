//! What was measured of a file beside the original model, and how far that may lie above what was predicted.

use remat_onnxruntime_predict::Prediction;
use remat_onnxruntime_run::{Closeness, SizesCompared};
use schemars::JsonSchema;
use serde::Serialize;

use crate::peaks::{Measured, no_higher};

/// Share of the predicted peak, in thousandths, and bytes that a measured peak may lie above it: what the model of the runtime
/// leaves out.
const TOLERANCE_PERMILLE: u64 = 30;
const TOLERANCE_BYTES: u64 = 500_000;

/// Share of a predicted peak, as a divisor, by which that of a file in a branch may be higher.
const BRANCH_SHARE: u64 = 50;

/// How the outputs of two models compare.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Outputs {
    /// Bit by bit the same.
    #[default]
    Identical,
    /// Close to each other: sums may be rounded in another order.
    Close {
        /// Whether the model computes in 16 bits somewhere.
        half: bool,
    },
}

/// The largest relative difference of outputs that may be rounded otherwise. Sums of single precision in another order differ by some 1e-7, which
/// networks amplify to 1e-6 up to 1e-4; a tile that is off by one row, or a sum over other elements, makes 1e-2 and more.
const CLOSE: f64 = 1e-3;
/// The same in 16 bits, where a number is rounded by up to 5e-4 (`float16`) or 4e-3 (`bfloat16`).
const CLOSE_HALF: f64 = 2e-2;

impl Outputs {
    /// The largest relative difference; `None` where none is allowed.
    pub(crate) fn limit(self) -> Option<f64> {
        match self {
            Self::Identical => None,
            Self::Close { half: false } => Some(CLOSE),
            Self::Close { half: true } => Some(CLOSE_HALF),
        }
    }
}

/// The original and what was written, measured under every optimization and the default order.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "MeasuredRecord")]
pub struct Check {
    /// The original.
    pub before: Measured,
    /// What was written.
    pub after: Measured,
    /// Time of the written model over that of the original in a default session: median of runs in turns. Absent where there was no time for
    /// them.
    pub time_ratio: Option<f64>,
    /// The same with arena and pattern off, where every buffer is allocated anew.
    pub arena_off_time_ratio: Option<f64>,
    /// Median time of the original, in nanoseconds: in turns in a default session, or else with arena and pattern off.
    pub before_ns: u64,
    /// The same with arena and pattern off, in turns. Absent where there was no time for them.
    pub arena_off_before_ns: Option<u64>,
    /// Nanoseconds for each MiB that the system hands out for the first time: mapping, faults and giving it back.
    pub allocation_ns_per_mib: u64,
    /// On how many inputs bits were compared.
    pub seeds: usize,
    /// How the outputs compare.
    #[serde(skip)]
    pub outputs: Outputs,
    /// How far outputs lie apart on inputs of several kinds; absent where they must be bit by bit the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closeness: Option<Closeness>,
    /// What came of runs at other sizes of the dimensions that the file leaves free; absent where there are none.
    pub sizes: Option<SizesCompared>,
    /// Why peaks are missing, where they are.
    pub unmeasured: Option<String>,
}

/// The largest measured peak that does not exceed a prediction.
pub(crate) fn tolerated(predicted: u64) -> u64 {
    close(predicted).saturating_add(TOLERANCE_BYTES)
}

/// The prediction and a share of it that may be off: up to here nothing is said of the difference.
fn close(predicted: u64) -> u64 {
    let share = u128::from(predicted) * u128::from(TOLERANCE_PERMILLE) / 1_000;
    predicted.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
}

/// Puts right what measuring showed to be too low. Bytes that the model of the runtime leaves out may be much of a small model: they are tolerated,
/// and predicted once they are known.
pub(crate) fn calibrate(prediction: &mut Prediction, measured: &Measured) {
    let simulated = prediction.peak_bytes;
    let put_right = |predicted: &mut u64, measured: Option<u64>| {
        *predicted = measured
            .filter(|&measured| measured > close(*predicted))
            .unwrap_or(*predicted);
    };
    put_right(&mut prediction.peak_bytes, measured.arena_off);
    put_right(&mut prediction.arena_bytes, measured.first_run);
    put_right(&mut prediction.arena_steady_bytes, measured.later_runs);
    prediction.calibration_bytes = prediction.peak_bytes - simulated;
}

/// Predicts what was measured, for a file in which the runtime fuses nodes when it loads it: of that the simulation knows nothing.
pub(crate) fn replace(prediction: &mut Prediction, measured: &Measured) {
    prediction.peak_bytes = measured.arena_off.unwrap_or(prediction.peak_bytes);
    prediction.arena_bytes = measured.first_run.unwrap_or(prediction.arena_bytes);
    prediction.arena_steady_bytes = measured.later_runs.unwrap_or(prediction.arena_steady_bytes);
}

impl Check {
    /// Time of the written model with arena and pattern off over that of the original model where nothing is set.
    #[must_use]
    pub fn arena_off_ratio(&self) -> Option<f64> {
        self.time_ratio?;
        let before = self.arena_off_before_ns? as f64 / self.before_ns.max(1) as f64;
        Some(self.arena_off_time_ratio? * before)
    }

    /// By which share of the time of the original model the measured time exceeds so many millionths more than that, where nothing is set; absent if
    /// it was not measured.
    pub(crate) fn beyond_time(&self, most_overhead: u64) -> Option<f64> {
        Some((self.time_ratio? - 1.0 - most_overhead as f64 / 1e6).max(0.0))
    }

    /// How far the measured peak lies above the predicted one, where that is more than the model of the runtime leaves out and more than
    /// the calibration `margin`.
    pub(crate) fn beyond(&self, predicted: &Prediction, margin: u64) -> Option<u64> {
        let measured = self.after.arena_off?;
        let beyond = measured.saturating_sub(predicted.peak_bytes);
        (measured > tolerated(predicted.peak_bytes + margin)).then_some(beyond)
    }

    /// The same where the measured peak exceeds a budget that the predicted one keeps.
    pub(crate) fn beyond_budget(&self, predicted: &Prediction, budget: u64) -> Option<u64> {
        let measured = self.after.arena_off?;
        (measured > budget && predicted.peak_bytes <= budget).then(|| measured - predicted.peak_bytes)
    }

    /// The most that a file may take in a branch with the arena off, where `outside` is predicted of it outside of one: little more than that, and
    /// no more than a budget.
    pub(crate) fn most_in_branch(outside: u64, budget: Option<u64>) -> u64 {
        let most = no_higher(outside).saturating_add(outside / BRANCH_SHARE);
        budget.map_or(most, |budget| most.min(budget))
    }
}
