//! What `remat-opt check` found.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use super::baseline::{Basis, Origin};
use super::model::{Checked, Difference};
use crate::failure::{LimitExceeded, OverLimit};
use crate::units;

/// Why nothing was measured.
const UNMEASURED: &str = "ONNX Runtime was not found, or the system does not tell what it takes";

/// What models take in a default session, beside limits and what they took before.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Where the figures are from.
    #[serde(flatten)]
    pub(super) origin: Origin,
    /// Where those of the baseline are from; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<BaselineRecord>,
    /// The models, each once, in the order of the command line.
    pub(super) models: Vec<Checked>,
}

/// The baseline.
#[derive(Serialize, JsonSchema)]
pub(super) struct BaselineRecord {
    /// Its file.
    pub(super) path: PathBuf,
    /// Where its figures are from.
    #[serde(flatten)]
    pub(super) origin: Origin,
}

impl Report {
    /// That limits are exceeded is a finding.
    ///
    /// # Errors
    /// [`LimitExceeded`] there.
    pub(super) fn outcome(&self) -> anyhow::Result<()> {
        let models: Vec<OverLimit> = self.models.iter().filter_map(Checked::over).collect();
        match models.is_empty() {
            true => Ok(()),
            false => Err(anyhow::Error::new(LimitExceeded { models })),
        }
    }

    /// What is to be known of all figures; `quoted` writes words of files.
    pub(super) fn notes(&self, quoted: fn(&str) -> String) -> Vec<String> {
        let mut notes = Vec::new();
        if self.origin.runtime.is_none() {
            notes.push(format!("nothing was measured: {UNMEASURED}"));
        }
        let of = |since: &Difference| since.of == Basis::Predicted;
        let mut measured = self.models.iter().filter(|model| model.now.measured_bytes.is_some());
        if measured.any(|model| model.since.as_ref().is_some_and(of)) {
            notes.push("the baseline was not measured, so differences are those of predictions".to_owned());
        }
        let before = self.baseline.as_ref().and_then(|one| one.origin.runtime.as_deref());
        if let Some((before, now)) = before.zip(self.origin.runtime.as_deref())
            && before != now
        {
            let before = quoted(before);
            notes.push(format!(
                "the baseline was measured in ONNX Runtime {before}, and this in {now}"
            ));
        }
        notes
    }

    /// What the figures are, in a sentence without its end.
    pub(super) fn about(&self, quoted: fn(&str) -> String) -> String {
        let of = match &self.origin.runtime {
            Some(version) => format!("measured in ONNX Runtime {version}"),
            None => "predicted".to_owned(),
        };
        let text = format!("Growth of the process in runs of a default session, {of}");
        let notes = self.notes(quoted).into_iter().map(|note| format!("; {note}"));
        std::iter::once(text).chain(notes).collect()
    }

    /// What a model takes, and that it is not as the others where it was not measured.
    pub(super) fn now(&self, model: &Checked) -> String {
        let is_other = self.origin.runtime.is_some() && model.now.bytes().1 == Basis::Predicted;
        units::bytes(model.bytes()) + if is_other { " (predicted)" } else { "" }
    }
}
