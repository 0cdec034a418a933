//! What `--format json` prints: one object, with the name and version of its form, warnings, and what went wrong.
//!
//! Every form has a schema (`remat-opt explain FORM`). A version changes when a field is renamed, removed or means something else; new fields do
//! not change it.

use std::path::Path;

use remat_files::document::to_json;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::FailureBody;
use crate::{console, files};

/// What one command reports.
pub(crate) trait Body: Serialize + JsonSchema {
    /// Name and version of its form, the value of the field `format`.
    const FORMAT: &'static str;
    /// Whether the body brings that field itself.
    const HAS_FORMAT: bool = false;

    /// The report for people.
    fn text(&self) -> String;

    /// The report as Markdown, of commands that print such.
    fn markdown(&self) -> String {
        self.text()
    }
}

/// A report.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Document<'a, B> {
    /// Name and version of this form.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(flatten)]
    body: &'a B,
    /// What was said as a warning on the way.
    warnings: Vec<String>,
    /// Why the exit status is not 0 although there is a report.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailureBody>,
}

impl<'a, B: Body> Document<'a, B> {
    pub(crate) fn new(body: &'a B, error: Option<FailureBody>) -> Self {
        Self {
            format: (!B::HAS_FORMAT).then_some(B::FORMAT),
            body,
            warnings: console::warnings_so_far(),
            error,
        }
    }
}

/// Writes a report where `path` names a file; `outcome` is what the command ends with.
pub(crate) fn save<B: Body>(path: Option<&Path>, body: &B, outcome: &anyhow::Result<()>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let failure = outcome.as_ref().err().map(FailureBody::of);
    files::write(path, to_json(&Document::new(body, failure)))
}
