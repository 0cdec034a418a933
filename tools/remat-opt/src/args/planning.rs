//! The arguments of every command that makes plans for one input.

use std::path::PathBuf;

use clap::Args;

use super::{Inputs, LoadArgs, ReportArgs, SearchArgs};
use crate::job::{Job, Named};

/// The input, what a search runs with, how the input is read, and the report.
#[derive(Debug, Args)]
pub(crate) struct PlanningArgs {
    /// Model (`.onnx`), node-link graph or saved problem (`.json`); `-` for stdin.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

impl PlanningArgs {
    /// Every file that is read.
    pub(crate) fn inputs(&mut self) -> Inputs<'_> {
        self.load.inputs([&mut self.input])
    }

    /// The job, with the files that the command reads besides its input, and those that it writes.
    ///
    /// # Errors
    /// Those of [`Job::resolve`].
    pub(crate) fn job(&self, reads: &[Named<'_>], writes: &[Named<'_>]) -> anyhow::Result<Job<'_>> {
        Job::resolve(&self.input, &self.load, reads, writes)
    }
}
