//! A report as a page, on the command line.

use std::path::PathBuf;

use clap::Args;

use super::REPORT;

/// Where the page goes.
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// Also write the report as a page for a browser: one file, readable offline and without scripts.
    ///
    /// It shows memory over the steps before and after with the tensors in it, the block with its offsets (`--place`), recomputes, and
    /// transfers to the second memory.
    #[arg(long = "report", value_name = "HTML", help_heading = REPORT, hide_short_help = true)]
    pub(crate) page: Option<PathBuf>,
}
