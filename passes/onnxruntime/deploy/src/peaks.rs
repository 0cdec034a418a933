//! Peaks of a model in the runtime, and when one is higher than another.

use std::fmt;

use remat::fission::more_loaded;
use remat_onnxruntime_predict::Prediction;
use remat_onnxruntime_run::Measurement;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

/// Share of a peak, as a divisor, and bytes by which another one is no higher: tables of the runtime, and names.
const BESIDE_TENSORS_SHARE: u64 = 200;
const BESIDE_TENSORS_BYTES: u64 = 1 << 16;

/// The same for the growth of a process, which is not the same in any two runs.
const GROWTH_SHARE: u64 = 10;
const GROWTH_BYTES: u64 = 4 << 20;

/// So much later a model is loaded late.
const LATE_NS: u64 = 1_000_000_000;

/// A heap peak that is lower by no more than this is no gain: two runs of a model without nodes differ by 16 bytes.
const NO_GAIN_BYTES: u64 = 256;

/// The largest growth of a process that counts as no higher than another one.
fn no_more_growth(before: u64) -> u64 {
    before.saturating_add(before / GROWTH_SHARE + GROWTH_BYTES)
}

/// The largest peak that counts as no higher than another one.
pub(crate) fn no_higher(before: u64) -> u64 {
    before.saturating_add(before / BESIDE_TENSORS_SHARE + BESIDE_TENSORS_BYTES)
}

/// Peaks of a model, in bytes above what is live before a run; absent where they cannot be measured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Peaks")]
pub struct Measured {
    /// Heap with memory arena and memory pattern off.
    pub arena_off: Option<u64>,
    /// Heap in the first run of a default session.
    pub first_run: Option<u64>,
    /// The same in later runs.
    pub later_runs: Option<u64>,
    /// By how much the process grew in the first run, arena and pattern off.
    pub arena_off_resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub arena_off_resident_later_bytes: Option<u64>,
    /// By how much the process grew in the first run of a default session.
    pub resident_first_bytes: Option<u64>,
    /// The same in later runs.
    pub resident_later_bytes: Option<u64>,
    /// Heap before the first run, weights and the graph of the session among it; arena and pattern off.
    pub loaded_bytes: Option<u64>,
    /// Time to load the model, in nanoseconds.
    pub load_ns: Option<u64>,
}

/// Bytes of the original and of what was made of it, by one measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct BeforeAfter {
    /// Of the original.
    pub before_bytes: u64,
    /// Of what was made of it.
    pub after_bytes: u64,
}

impl Measured {
    /// Bytes that its loaded session takes more than that of `before`: nodes that tiles and copies add. They are there whatever runs.
    #[must_use]
    pub fn more_loaded(&self, before: &Self) -> u64 {
        let more = self.loaded_bytes.zip(before.loaded_bytes);
        more.map_or(0, |(after, before)| more_loaded(after.saturating_sub(before)))
    }

    /// The first peak with the arena that is higher than that of `before`, on the heap or of the process, with what the loaded session takes more.
    pub(crate) fn higher_with_arena(&self, before: &Self, basis: Basis) -> Option<HigherPeak> {
        type Highest = fn(u64) -> u64;
        let more = self.more_loaded(before);
        let (first, later) = (before.resident_first_bytes, before.resident_later_bytes);
        let runs: [(Peak, Option<u64>, Option<u64>, Highest); 4] = [
            (Peak::FirstRun, before.first_run, self.first_run, no_higher),
            (Peak::LaterRuns, before.later_runs, self.later_runs, no_higher),
            (Peak::ProcessFirst, first, self.resident_first_bytes, no_more_growth),
            (Peak::ProcessLater, later, self.resident_later_bytes, no_more_growth),
        ];
        runs.into_iter().find_map(|(which, before, after, highest)| {
            let (before, after) = (before?, after?.saturating_add(more));
            (after > highest(before)).then_some(HigherPeak {
                which,
                basis,
                before,
                after,
            })
        })
    }

    /// Whether a heap peak is lower than that of `before`, with what the loaded session takes more, by more than what two runs and tables of the runtime
    /// differ by; `None` where none is known of both.
    pub(crate) fn is_lower(&self, before: &Self) -> Option<bool> {
        let peaks = [
            (before.arena_off, self.arena_off),
            (before.first_run, self.first_run),
            (before.later_runs, self.later_runs),
        ];
        let mut known = peaks
            .into_iter()
            .filter_map(|(before, after)| before.zip(after))
            .peekable();
        known.peek()?;
        let more = self.more_loaded(before);
        Some(known.any(|(before, after)| {
            after.saturating_add(more) < before.saturating_sub(before / BESIDE_TENSORS_SHARE + NO_GAIN_BYTES)
        }))
    }

    /// All heap peaks that are predicted.
    pub(crate) fn predicted(prediction: &Prediction) -> Self {
        Self {
            arena_off: Some(prediction.peak_bytes),
            ..Self::predicted_with_arena(prediction, &Self::default())
        }
    }

    /// The predicted peaks with the arena, without those that were `measured`.
    pub(crate) fn predicted_with_arena(prediction: &Prediction, measured: &Self) -> Self {
        Self {
            first_run: measured.first_run.is_none().then_some(prediction.arena_bytes),
            later_runs: measured.later_runs.is_none().then_some(prediction.arena_steady_bytes),
            ..Self::default()
        }
    }

    /// Takes over the peaks of a model that ran with the arena.
    pub(crate) fn take_arena(&mut self, measured: &Measurement) {
        let peaks = measured.peaks.as_ref().ok();
        self.first_run = peaks.map(|peaks| peaks.first);
        self.later_runs = peaks.and_then(|peaks| peaks.steady);
        self.resident_first_bytes = measured.resident.map(|resident| resident.first);
        self.resident_later_bytes = measured.resident.and_then(|resident| resident.later);
    }

    /// Takes over the peaks of a model that ran without it.
    pub(crate) fn of_exact(measured: &Measurement) -> Self {
        Self {
            arena_off: measured.peaks.as_ref().ok().map(|peaks| peaks.first),
            arena_off_resident_first_bytes: measured.resident.map(|resident| resident.first),
            arena_off_resident_later_bytes: measured.resident.and_then(|resident| resident.later),
            loaded_bytes: measured.peaks.as_ref().ok().map(|_| measured.loaded_bytes),
            load_ns: Some(measured.load_ns),
            ..Self::default()
        }
    }

    /// How long both take to load, where that is a second more than for the original or longer.
    #[must_use]
    pub fn loads_late(&self, before: &Self) -> Option<(u64, u64)> {
        let both = before.load_ns.zip(self.load_ns);
        both.filter(|&(before, after)| after >= before.saturating_add(LATE_NS))
    }

    /// Growth of the process with arena and pattern off, and where nothing is set.
    #[must_use]
    pub fn growth(&self) -> [Growth; 2] {
        let growth = |first, later| Growth { first, later };
        [
            growth(self.arena_off_resident_first_bytes, self.arena_off_resident_later_bytes),
            growth(self.resident_first_bytes, self.resident_later_bytes),
        ]
    }
}

/// By how many bytes a process grows, as far as that was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// In the first run.
    pub first: Option<u64>,
    /// At most in later ones.
    pub later: Option<u64>,
}

impl Growth {
    /// Growth beyond a process whose loaded session takes so many bytes less.
    #[must_use]
    pub fn and(self, more: u64) -> Self {
        let and = |growth: u64| growth.saturating_add(more);
        Self {
            first: self.first.map(and),
            later: self.later.map(and),
        }
    }

    /// The most by which the process grows in any run that was measured.
    #[must_use]
    pub fn most(self) -> Option<u64> {
        self.first.max(self.later)
    }

    /// The most by which this process and another one grow: in any run where later ones of both were measured, else in the first. Runs of one
    /// kind are never held against those of another.
    #[must_use]
    pub fn most_beside(self, other: Self) -> Option<BeforeAfter> {
        let first = self.first.zip(other.first)?;
        let later = self.later.zip(other.later).unwrap_or(first);
        Some(BeforeAfter {
            before_bytes: first.0.max(later.0),
            after_bytes: first.1.max(later.1),
        })
    }

    /// Whether later runs of both were measured.
    #[must_use]
    pub fn knows_later_runs_beside(self, other: Self) -> bool {
        self.later.is_some() && other.later.is_some()
    }
}

/// A peak that is higher than that of the original model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("it takes {after} bytes {which}, the original model {before}{basis}")]
pub struct HigherPeak {
    /// Which peak is higher.
    pub which: Peak,
    /// Whether the two were measured or only predicted.
    pub basis: Basis,
    /// Peak of the original model, in bytes.
    pub before: u64,
    /// Peak of the file, in bytes.
    pub after: u64,
}

/// A peak of a model in the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peak {
    /// With the memory arena off.
    ArenaOff,
    /// The first run with the memory arena on.
    FirstRun,
    /// Later runs with the memory arena on.
    LaterRuns,
    /// By how much the process grows in the first run with the memory arena on.
    ProcessFirst,
    /// The same in later runs.
    ProcessLater,
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ArenaOff => "with the memory arena off",
            Self::FirstRun => "with the memory arena in the first run",
            Self::LaterRuns => "with the memory arena in later runs",
            Self::ProcessFirst => "of the system in the first run, as the process grows with the memory arena",
            Self::ProcessLater => "of the system in later runs, as the process grows with the memory arena",
        })
    }
}

/// Where the figures of a comparison are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// Both models ran.
    Measured,
    /// The runtime was simulated on both.
    Predicted,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "",
            Self::Predicted => " (predicted, not measured)",
        })
    }
}

/// A budget that no file keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Missed {
    /// The budget in bytes.
    #[serde(rename = "budget_bytes")]
    pub budget: u64,
    /// What the closest file takes: its heap peak in the runtime with the memory arena off.
    #[serde(rename = "reached_bytes")]
    pub reached: u64,
    /// Whether that was measured; else it is predicted.
    pub is_measured: bool,
}

#[cfg(test)]
#[path = "peaks_tests.rs"]
mod tests;
