//! How a command reports.

use clap::{Args, ValueEnum};

use super::REPORT;

/// The form of the report.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Form of the report: `text` or `json`.
    ///
    /// `json` prints one object on stdout, whose form `remat-opt explain FORM` describes; so it does for failures.
    #[arg(long, value_name = "FORM", default_value = "text", hide_possible_values = true, help_heading = REPORT)]
    pub(crate) format: ReportFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}
