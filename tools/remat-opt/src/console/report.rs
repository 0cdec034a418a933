//! The report of a command.

use remat_files::document::to_json;

use crate::args::{ReportArgs, ReportFormat};
use crate::document::{Body, Document};
use crate::failure::{FailureBody, Reported};

/// Prints the report in the form that was asked for. `outcome` is what the command ends with: a finding, such as that no plan exists,
/// comes with a report, and stands in it.
///
/// # Errors
/// That of `outcome`, marked as reported where the report tells it; or that stdout cannot be written to.
pub(crate) fn report<B: Body>(args: &ReportArgs, body: &B, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
    match args.format {
        ReportFormat::Text => {
            super::print(&body.text())?;
            outcome
        }
        ReportFormat::Markdown => {
            super::print(&body.markdown())?;
            outcome
        }
        ReportFormat::Json => {
            let failure = outcome.as_ref().err().map(FailureBody::of);
            super::print(&to_json(&Document::new(body, failure)))?;
            outcome.map_err(|error| Reported(error).into())
        }
    }
}
