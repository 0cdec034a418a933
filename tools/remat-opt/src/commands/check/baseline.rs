//! What models took: the file that `--write-baseline` writes and `--baseline` reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path};

use anyhow::{Context, bail};
use remat_files::{document, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::console::streams;

/// The value of [`BaselineFile::format`] that this version writes and reads.
pub(crate) const BASELINE_FORMAT: &str = "remat-baseline/1";

/// What models took, to be compared with what they take later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BaselineFile {
    /// [`BASELINE_FORMAT`].
    format: String,
    /// Where the figures are from.
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// The models, each once, in the order of the command line.
    models: Vec<Record>,
}

/// Where figures are from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Origin {
    /// The commit, where one was stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    /// Version of the ONNX Runtime that measured; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) runtime: Option<String>,
}

/// What a model takes in a default session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Record {
    /// Path of the model, as the command line names it, with `/` between folders.
    pub(super) model: String,
    /// Dimensions that the command line gives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) dims: BTreeMap<String, u64>,
    /// Number of ops.
    pub(super) ops: u64,
    /// Bytes of its weights, which runs do not take: they are there before.
    pub(super) weights_bytes: u64,
    /// By how much a process is predicted to grow in runs.
    pub(super) predicted_bytes: u64,
    /// By how much one was measured to grow; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) measured_bytes: Option<u64>,
    /// The op at the peak, in the order of the file.
    pub(super) peak_op: String,
}

/// Where a figure is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Basis {
    /// The model ran.
    Measured,
    /// It did not: the runtime was simulated.
    Predicted,
}

impl Basis {
    /// The figure of a record; of predictions there is always one.
    pub(super) fn of(self, record: &Record) -> Option<u64> {
        match self {
            Self::Measured => record.measured_bytes,
            Self::Predicted => Some(record.predicted_bytes),
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Measured => "measured",
            Self::Predicted => "predicted, not measured",
        })
    }
}

impl Record {
    /// What the model takes: as measured, else as predicted.
    pub(super) fn bytes(&self) -> (u64, Basis) {
        match self.measured_bytes {
            Some(bytes) => (bytes, Basis::Measured),
            None => (self.predicted_bytes, Basis::Predicted),
        }
    }
}

impl BaselineFile {
    pub(super) fn new(origin: Origin, models: Vec<Record>) -> Self {
        let format = BASELINE_FORMAT.to_owned();
        Self { format, origin, models }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or says two things of one model.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = remat::read_text(path)?;
        let broken = || format!("cannot read the baseline `{}`", shown(path.display()));
        let file: Self = document::read("baseline", &[BASELINE_FORMAT], &text).with_context(broken)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = file.models.iter().find(|record| !seen.insert(&record.model)) {
            bail!("{}: it has `{}` twice", broken(), shown(&twice.model));
        }
        Ok(file)
    }

    /// What it says of a model, at these dimensions; nothing where it does not have it.
    ///
    /// # Errors
    /// If it is about other dimensions.
    pub(super) fn of(&self, model: &str, dims: &BTreeMap<String, u64>) -> anyhow::Result<Option<&Record>> {
        let found = self.models.iter().find(|record| record.model == model);
        if let Some(record) = found.filter(|record| record.dims != *dims) {
            let text = |dims: &BTreeMap<String, u64>| match dims.is_empty() {
                true => "without `--dim`".to_owned(),
                false => format!("for {}", shown(remat_onnxruntime_run::dims_text(dims))),
            };
            bail!(
                "the baseline of `{}` was made {}, and this is {}: figures of other sizes say nothing",
                shown(model),
                text(&record.dims),
                text(dims)
            );
        }
        Ok(found)
    }
}

/// What a model is called in baselines: its path, the same on all systems.
pub(super) fn name_of(path: &Path) -> String {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let mut name = String::new();
    for part in parts {
        if !(name.is_empty() || name.ends_with('/')) {
            name.push('/');
        }
        match part {
            Component::RootDir => name.push('/'),
            part => name += &part.as_os_str().to_string_lossy(),
        }
    }
    streams::shown(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_one_name_however_its_path_is_written() {
        for (path, name) in [
            ("model.onnx", "model.onnx"),
            ("./a//b/./model.onnx", "a/b/model.onnx"),
            ("../model.onnx", "../model.onnx"),
            ("/a/model.onnx", "/a/model.onnx"),
        ] {
            assert_eq!(name_of(Path::new(path)), name);
        }
    }
}
