//! What became of one model.

use std::collections::BTreeMap;
use std::time::Duration;

use remat_onnxruntime_deploy::{Deployment, Strategy};
use serde::{Deserialize, Serialize};

use super::dims::Rule;
use super::find::ZooModel;

/// What a row depends on, beside the model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) budget: String,
    pub(super) time_ms: u64,
    pub(super) limit_ms: u64,
    pub(super) memory_bytes: u64,
    /// Versions of this program and of ONNX Runtime.
    pub(super) program: String,
    pub(super) runtime: String,
    pub(super) dims: Rule,
}

/// The row of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    /// Name of the folder that was given.
    pub(super) folder: String,
    /// Path from there.
    pub(super) model: String,
    /// Of its file.
    pub(super) hash: String,
    pub(super) settings: Settings,
    pub(super) opened: Outcome<Opened>,
    /// Absent where it was not opened.
    pub(super) deployed: Option<Outcome<Deployed>>,
}

/// What came of a process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome<T> {
    Done(T),
    /// Why there is nothing.
    Failed(String),
}

impl<T> From<Result<T, String>> for Outcome<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(done) => Self::Done(done),
            Err(why) => Self::Failed(why),
        }
    }
}

/// A model that was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    /// Values of dimensions.
    pub(super) dims: BTreeMap<String, u64>,
    pub(super) ops: usize,
    /// How many sizes follow from no file and were measured in a run.
    pub(super) measured_sizes: usize,
    pub(super) ms: u64,
}

/// Bytes of the original model and as it was written; absent where they were not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
}

/// A model that was made for the runtime.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Deployed {
    /// How it was written.
    pub(super) strategy: String,
    /// Other ways that were tried, and why they were rejected.
    pub(super) rejected: Vec<String>,
    /// Whether the file is not the original model.
    pub(super) is_rewritten: bool,
    pub(super) recomputes: usize,
    /// Predicted peak with the memory arena off.
    pub(super) predicted: u64,
    /// Peaks with the memory arena off.
    pub(super) exact: Change,
    /// Peaks with the memory arena: the first run, and later ones.
    pub(super) first: Change,
    pub(super) later: Change,
    /// Time over that of the original model.
    pub(super) time_ratio: Option<f64>,
    /// On how many inputs the bits of all outputs were compared, and found the same.
    pub(super) seeds: usize,
    /// What there was no time for.
    pub(super) left_out: Vec<String>,
    pub(super) ms: u64,
}

impl Row {
    /// Whether this is the row of that model.
    pub(super) fn is_of(&self, found: &ZooModel) -> bool {
        (&self.folder, &self.model) == (&found.folder, &found.name)
    }

    /// Whether the same file was done under the same settings.
    pub(super) fn is_current(&self, hash: &str, settings: &Settings) -> bool {
        self.hash == hash && !hash.is_empty() && self.settings == *settings
    }
}

impl Deployed {
    pub(super) fn of(deployment: &Deployment, took: Duration) -> Self {
        let check = deployment.check.as_ref();
        let change = |peak: fn(&remat_onnxruntime_deploy::Measured) -> Option<u64>| Change {
            before: check.and_then(|check| peak(&check.before)),
            after: check.and_then(|check| peak(&check.after)),
        };
        let rejected = deployment.rejected.iter();
        Self {
            strategy: deployment.strategy.to_string(),
            rejected: rejected
                .map(|one| format!("{}: {}", one.strategy, one.reason))
                .collect(),
            is_rewritten: deployment.strategy != Strategy::Untouched,
            recomputes: deployment.solution.plan.recomputes(),
            predicted: deployment.prediction.peak_bytes,
            exact: change(|measured| measured.arena_off),
            first: change(|measured| measured.first_run),
            later: change(|measured| measured.later_runs),
            time_ratio: check.and_then(|check| check.time_ratio),
            seeds: check.map_or(0, |check| check.seeds),
            left_out: deployment.left_out.iter().map(ToString::to_string).collect(),
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
