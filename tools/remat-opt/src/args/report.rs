//! How a command reports.

use clap::{Args, ValueEnum};

use super::{Choice, REPORT};

/// The form of the report.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Form of the report: `text` or `json`.
    ///
    /// `json` prints one object on stdout, whose form `remat-opt explain FORM` describes; so it does for failures.
    #[arg(long, value_name = "FORM", default_value = "text", hide_possible_values = true, help_heading = REPORT)]
    pub(crate) format: ReportFormat,
}

/// The form of a report that may go into a pull request.
#[derive(Debug, Args)]
pub(crate) struct CommentArgs {
    /// Form of the report: `text`, `json` or `markdown`.
    ///
    /// `markdown` is a comment for a pull request. `json` prints one object on stdout, whose form `remat-opt explain FORM` describes; so it does
    /// for failures.
    #[arg(long, value_name = "FORM", value_parser = WITH_MARKDOWN, default_value = "text", hide_possible_values = true, help_heading = REPORT)]
    pub(crate) format: ReportFormat,
}

const WITH_MARKDOWN: Choice<ReportFormat> = Choice(&[
    ("text", ReportFormat::Text, "For people"),
    ("json", ReportFormat::Json, "For programs"),
    ("markdown", ReportFormat::Markdown, "For a pull request"),
]);

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For a pull request; of commands that have such a form.
    #[value(skip)]
    Markdown,
}
